"""Time windows: time is cut in ticks, and a tick's values together are one value of a counter.

A window of W ticks ends with the open tick, the one of the newest time. The sum of a tick must stay
within the counter's maximum; the open tick's sum is kept beside the counter (``open``) until time
moves on. After an idle gap the counter takes the missing ticks as zeros in O(min(k, gap)) steps;
after a gap of a whole window nothing is left to know, and the counter begins anew. Ticks are
multiples of their length from the epoch (or ``origin``) on, wherever the data begins.

For the window (t − T, t] with T = W ticks, the one tick that is partly in it counts as out: at most
one tick's maximum is missing, and that is part of ``error_bound``. Where times are whole ticks
(integer times and ``tick=1``) nothing is.
"""

import struct
from typing import Any, Self

from windrow import times
from windrow.approx import frame
from windrow.approx.base import Counter
from windrow.errors import BadSpecification, BadValue, OutOfOrder

_TICK_BYTES = 8
_NEVER = -(1 << 63)


class OverTime:
    """A counter over the last ``counter.window`` ticks instead of values.

    >>> from windrow.approx.summing import Sum
    >>> bytes_sent = OverTime(Sum(window=3600, maximum=10**6, epsilon=0.01), tick="1s")
    >>> from datetime import datetime, timedelta
    >>> noon = datetime(2026, 1, 1, 12)
    >>> bytes_sent.insert(1500, at=noon)
    >>> bytes_sent.insert(400_000, at=noon + timedelta(milliseconds=20))
    >>> abs(bytes_sent.query() - 401_500) <= bytes_sent.error_bound
    True
    """

    def __init__(
        self, counter: Counter, tick: Any = 1, *, origin: Any = None, unit: str | None = None
    ) -> None:
        if getattr(counter, "minimum", 0):
            raise BadSpecification("an idle tick is worth 0: the counter's minimum must be 0")
        self.counter = counter
        self.tick = times.duration(tick, "tick")
        self.unit = unit
        self.origin = origin
        self._clock: times.Clock | None = None
        self._length = 0
        self._start = 0
        self._now: int | None = None
        self._open: int | float = 0

    @property
    def error_bound(self) -> float:
        """The counter's, and the tick that is partly out of the window."""
        whole = self.tick == 1
        return self.counter.error_bound + (0.0 if whole else float(self.counter.layout.R))

    def insert(self, value: Any, at: Any) -> None:
        """Take a value at its time; times do not go back by a tick or more."""
        tick = self._tick_of(at)
        total = self._checked(value, self._open if tick == self._now else 0, at)
        if tick != self._now:
            self._advance(tick)
        self._open = total

    def query(self, at: Any = None) -> float:
        """The estimate for the window that ends now, or with the tick of ``at``: time moves on."""
        if at is not None:
            tick = self._tick_of(at)
            if tick != self._now:
                self._advance(tick)
        return self.counter.query_with(self._open) if self._now is not None else 0.0

    def bits(self) -> int:
        """The counter's bits, the open tick's sum in whole bytes, and 64 bits for its number."""
        return self.counter.bits() + 8 * (self._open_bytes() + _TICK_BYTES)

    def lower_bound_bits(self) -> int:
        """The counter's: that of a window of values, one for each tick."""
        return self.counter.lower_bound_bits()

    def to_bytes(self) -> bytes:
        """The counter's header and fields, the open tick's sum and its number."""
        now = _NEVER if self._now is None else self._now
        tail = self._open_to_bytes() + now.to_bytes(_TICK_BYTES, "little", signed=True)
        return frame.write(self.counter._parameters(), bytes(self.counter._packed.data) + tail)

    def from_bytes(self, data: bytes) -> Self:
        """What the bytes are of, with this one's counter parameters, tick, origin and unit."""
        parameters = self.counter._parameters()
        _, state = frame.read(data, parameters)
        frame.check_state(state, self.bits())
        cut = len(state) - self._open_bytes() - _TICK_BYTES
        counter = type(self.counter).from_bytes(
            frame.write(parameters, state[:cut]), like=self.counter
        )
        made = type(self)(counter, self.tick, origin=self.origin, unit=self.unit)
        now = int.from_bytes(state[-_TICK_BYTES:], "little", signed=True)
        made._now = None if now == _NEVER else now
        made._open = self._open_from_bytes(state[cut:-_TICK_BYTES])
        return made

    def _checked(self, value: Any, before: int | float, at: Any) -> int | float:
        counter = self.counter
        real = isinstance(counter.layout.R, float)
        number = float(value) if real else counter._checked(value)
        if real and not number >= 0 and not counter.clamp:
            raise BadValue(f"{value!r} at {at!r} is below 0")
        total = before + max(number, 0)
        limit = counter.layout.R
        if total <= limit:
            return total
        if counter.clamp:
            return limit
        raise BadValue(
            f"the values of the tick of {at!r} sum to {total}, more than the counter's maximum "
            f"{limit}: give a larger maximum=, a shorter tick=, or clamp=True"
        )

    def _tick_of(self, at: Any) -> int:
        if self._clock is None:
            clock = times.clock_of(at, self.unit)
            self._length = clock.length(self.tick, "tick")
            if self._length < 1:
                raise BadSpecification(f"tick={self.tick!r}: a tick is longer than that")
            self._start = 0 if self.origin is None else clock.to_ticks(self.origin)
            self._clock = clock
        try:
            ticks = self._clock.to_ticks(at)
        except TypeError:
            raise BadValue(f"{at!r} is not a time like those before: {self._clock.kind}") from None
        tick = (ticks - self._start) // self._length
        if self._now is not None and tick < self._now:
            raise OutOfOrder(
                f"time {at!r} is in tick {tick}, but tick {self._now} has begun: sort by time first"
            )
        return tick

    def _advance(self, tick: int) -> None:
        if self._now is not None and tick - self._now < self.counter.window:
            self.counter.insert(self._open)
            self.counter.skip(tick - self._now - 1)
        elif self._now is not None:
            self.counter = self.counter._fresh()
        self._open = 0
        self._now = tick

    def _open_bytes(self) -> int:
        R = self.counter.layout.R
        return 8 if isinstance(R, float) else (R.bit_length() + 7) >> 3

    def _open_to_bytes(self) -> bytes:
        if isinstance(self.counter.layout.R, float):
            return struct.pack("<d", self._open)
        return int(self._open).to_bytes(self._open_bytes(), "little")

    def _open_from_bytes(self, data: bytes) -> int | float:
        if isinstance(self.counter.layout.R, float):
            return float(struct.unpack("<d", data)[0])
        return int.from_bytes(data, "little")
