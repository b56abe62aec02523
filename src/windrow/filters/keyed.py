"""Keys and their slots, times and rows: what a filter has before anything is looked up."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from windrow.columns.filters import idle
from windrow.columns.filters.factorise import canonical, key_codes, ticks_of
from windrow.columns.filters.pool import grown
from windrow.columns.ranges import Array
from windrow.errors import BadSpecification, BadValue, OutOfOrder, Refused, WindrowError
from windrow.times import NO_TIME, Clock, Duration, clock_of, duration

_FIRST_SLOTS = 64
_INT64 = 1 << 63


class Keyed(ABC):
    """Rows of many keys, each with a slot; keys without a row in the longest window leave."""

    def __init__(self, longest: Any, unit: str | None = None) -> None:
        self.longest = duration(longest, "longest=")
        length = self.longest.nanoseconds if isinstance(self.longest, Duration) else self.longest
        if not 0 < length < 1 << 62:
            raise BadSpecification(f"longest= must be above 0, not {longest!r}")
        self._unit = unit
        self._clock: Clock | None = None
        self._span = 0  # the longest window in ticks
        self._now: int | None = None
        self._lengths: dict[Any, int] = {}
        self._slot_of: dict[Hashable, int] = {}
        self._names: list[Any] = []
        self._free_slots: list[int] = []
        self._keys: Array = np.full((_FIRST_SLOTS, idle.FIELDS), -1, np.int64)
        self._keys[:, idle.COUNT] = 0
        self._state: Array = np.zeros(idle.STATE, np.int64)
        self._state[idle.OLDEST] = self._state[idle.YOUNGEST] = -1
        self._dropped: Array = np.empty(_FIRST_SLOTS, np.int64)
        self._out: Array = np.empty(2 * _FIRST_SLOTS + 2, np.int64)
        self._told: Array = np.zeros(3, np.int64)
        self._one_slot: Array = np.empty(1, np.int64)
        self._one_time: Array = np.empty(1, np.int64)
        self._one_value: Array = np.empty(1)

    # --- what each filter does ------------------------------------------------------------------

    @abstractmethod
    def _insert(self, slots: Array, times: Array, values: Array, first: int, last: int) -> int:
        """Take rows; return the first that was not taken for want of room."""

    @abstractmethod
    def _grow(self, need: int) -> None:
        """Make room of the kind that was wanting."""

    @abstractmethod
    def _widen(self, slots: int) -> None:
        """Room for so many keys."""

    @abstractmethod
    def _drop(self, keep_from: int) -> bool:
        """Forget keys without a row from a time on; False if not all could be told."""

    # --- time -----------------------------------------------------------------------------------

    def _tick(self, clock: Clock, at: Any) -> int:
        try:
            if clock.kind.startswith("datetime64") and isinstance(at, datetime):
                at = np.datetime64(at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at)
            ticks = clock.to_ticks(at)
        except WindrowError:
            raise
        except NO_TIME as error:
            raise clock.refusal(at) from error
        if ticks == -_INT64:
            raise BadValue(
                f"time {at!r} is the least 64-bit integer, which stands for no time here"
            )
        return ticks

    def _start(self, clock: Clock) -> None:
        if self._clock is None:
            self._span = clock.length(self.longest, "longest=")
            self._clock = clock

    def _shown(self, ticks: int) -> Any:
        return ticks if self._clock is None else self._clock.from_ticks(ticks)

    def _check_order(self, first: int) -> None:
        if self._now is not None and first < self._now:
            raise OutOfOrder(
                f"a row at {self._shown(first)} came after one at {self._shown(self._now)}: "
                "filters take rows in order of time over all keys. Sort the rows first"
            )

    def _window(self, now: Any, T: Any) -> tuple[int, int]:
        """The first time in the window, and the first that keeps a key from being idle."""
        clock = self._clock
        assert clock is not None
        assert self._now is not None
        ticks = self._tick(clock, now)
        if ticks < self._now:
            raise Refused(
                f"a window that ends at {now!r}, before the newest row ({self._shown(self._now)}), "
                "is a historical one: filters answer for windows that end now. Use filters.PerKey, "
                "which keeps one shared window for each key"
            )
        length = self._lengths.get(T) if isinstance(T, Hashable) else None
        if length is None:
            length = clock.length(duration(T, "T"), "T")
            if length <= 0:
                raise BadSpecification(f"T must be above 0, not {T!r}")
            if length > self._span:
                raise BadSpecification(
                    f"T={T!r} is longer than longest={self.shown_longest!r}, the longest window "
                    "this filter keeps rows for: make it with a larger longest="
                )
            if isinstance(T, Hashable) and len(self._lengths) < 1000:
                self._lengths[T] = length
        return max(ticks - length + 1, 1 - _INT64), max(ticks - self._span + 1, 1 - _INT64)

    @property
    def shown_longest(self) -> Any:
        """The longest window as it was given."""
        return self.longest.label if isinstance(self.longest, Duration) else self.longest

    # --- keys -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._state[idle.KNOWN])

    def __contains__(self, key: Any) -> bool:
        slot = self._slot_of.get(canonical(key))
        return slot is not None and bool(self._keys[slot, idle.COUNT])

    def keys(self) -> list[Any]:
        """The keys that are not idle, as far as rows have told, in the order of their slots."""
        return [self._names[slot] for slot in self._known_slots().tolist()]

    def _known_slots(self) -> Array:
        return np.flatnonzero(self._keys[: len(self._names), idle.COUNT] > 0)

    def _slot(self, key: Any) -> int:
        slot = self._slot_of.get(key)
        if slot is not None:
            return slot
        if self._free_slots:
            slot = self._free_slots.pop()
            self._names[slot] = key
        else:
            slot = len(self._names)
            if slot == len(self._keys):
                self._more_slots()
            self._names.append(key)
        self._slot_of[key] = slot
        return slot

    def _more_slots(self) -> None:
        before = len(self._keys)
        self._widen(2 * before)
        keys = np.full((2 * before, idle.FIELDS), -1, np.int64)
        keys[:, idle.COUNT] = 0
        keys[:before] = self._keys
        self._keys = keys
        self._out = np.empty(4 * before + 2, np.int64)

    def _forget_dropped(self) -> None:
        """Keys that went idle and did not come again give their slots back."""
        count = int(self._state[idle.DROPPED])
        if not count:
            return
        for slot in np.unique(self._dropped[:count]).tolist():
            if not self._keys[slot, idle.COUNT]:
                del self._slot_of[self._names[slot]]
                self._names[slot] = None
                self._free_slots.append(slot)
        self._state[idle.DROPPED] = 0

    # --- rows -----------------------------------------------------------------------------------

    def _insert_one(self, key: Any, value: float | int, at: Any) -> None:
        clock = clock_of(at, self._unit) if self._clock is None else self._clock
        ticks = self._tick(clock, at)
        self._check_order(ticks)
        key = canonical(key)
        try:
            hash(key)
        except TypeError as error:
            raise BadValue(f"a key must be hashable, and {key!r} is not") from error
        self._start(clock)
        self._one_slot[0] = self._slot(key)
        self._one_time[0] = ticks
        self._one_value[0] = value
        self._run(self._one_slot, self._one_time, self._one_value)

    def _insert_batch(
        self, keys: Any, values: Array | None, present: Array | None, at: Any
    ) -> None:
        codes, distinct = key_codes(keys)
        times, clock = ticks_of(at, self._clock, self._unit, self._tick)
        lengths = {len(codes), len(times)} | ({len(values)} if values is not None else set())
        if len(lengths) > 1:
            raise BadSpecification(f"columns of different lengths: {sorted(lengths)}")
        if clock is None or not len(times):
            return
        if times.min() == -_INT64:
            raise BadValue("a time is the least 64-bit integer, which stands for no time here")
        later = np.flatnonzero(times[1:] < times[:-1])
        if len(later):
            row = int(later[0]) + 1
            shown = clock.from_ticks
            raise OutOfOrder(
                f"row {row}, at {shown(int(times[row]))}, came after one at "
                f"{shown(int(times[row - 1]))}: sort the rows by time first"
            )
        self._check_order(int(times[0]))
        self._start(clock)
        now = int(times[-1])
        if present is not None and values is not None:
            codes, times, values = codes[present], times[present], values[present]
        if len(codes):
            used = np.unique(codes).tolist() if present is not None else range(len(distinct))
            slot_of = np.full(len(distinct), -1, np.int64)
            for code in used:
                slot_of[code] = self._slot(distinct[code])
            self._run(slot_of[codes], times, self._one_value if values is None else values)
        self._now = now

    def _run(self, slots: Array, times: Array, values: Array) -> None:
        done, last = 0, len(slots)
        while (done := self._insert(slots, times, values, done, last)) < last:
            need = int(self._state[idle.NEED])
            if need == idle.NEEDS_DROPPED:
                self._dropped = grown(self._dropped)
            else:
                self._grow(need)
        self._forget_dropped()
        self._now = int(times[-1])

    def drop_idle(self, now: Any) -> int:
        """Let time pass without a row: keys without one in the longest window are forgotten."""
        if self._clock is None or self._now is None:
            return 0
        ticks = self._tick(self._clock, now)
        self._check_order(ticks)
        before = len(self)
        while not self._drop(max(ticks - self._span + 1, 1 - _INT64)):
            self._dropped = grown(self._dropped)
        self._forget_dropped()
        self._now = ticks
        return before - len(self)
