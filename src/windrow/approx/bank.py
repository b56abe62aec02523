"""Banks: one counter for each of millions of keys, in one block of memory.

A key has a row of ⌈(bits + 1)/8⌉ bytes in one array, and its place in arrays of ``bank_keys``; over
time two numbers more, its open tick and what that has come to; nothing else, and no Python object.
Arrays grow by an eighth.
"""

import zlib
from pathlib import Path
from typing import Any, Self

import numpy as np

from windrow import times
from windrow.approx import frame
from windrow.approx.bank_keys import ROOM, IntegerKeys, TextKeys, keys_like
from windrow.approx.base import Counter
from windrow.approx.counting import Count
from windrow.approx.summing import Sum
from windrow.errors import BadBytes, BadSpecification, BadValue, OutOfOrder

Array = np.ndarray[Any, Any]
_MAGIC = b"windrow bank\x02"
_LEAST = 64
_NEVER = np.iinfo(np.int64).min


class Bank:
    """Counts or sums of the last ``window`` values of each key, and a bit for whether it is idle.

    ``kind`` is ``"count"`` or ``"sum"``. Keys are 64-bit integers, or texts, or bytes.

    >>> clicks = Bank("count", window=100, epsilon=0.05)
    >>> clicks.insert_many(["a", "b", "a", "a"], [True, True, False, True])
    >>> clicks.query(["a", "b", "c"]).round().tolist(), clicks.error_bound
    ([0.0, 0.0, 0.0], 4.5)
    >>> clicks.insert_many(["a"] * 100)
    >>> keys, estimates = clicks.heavy(90)
    >>> keys.tolist()
    ['a']

    With ``tick`` a window is the last ``window`` ticks, as for ``OverTime``, and ``maximum`` the
    most that a tick may come to; ``insert_many(keys, values, at=times)``.

    >>> sent = Bank("sum", window=60, epsilon=0.01, maximum=10_000, tick=1)
    >>> sent.insert_many([7, 8, 7], [1500, 40, 9000], at=[100, 100, 130])
    >>> abs(sent.query([7]).item() - 10_500) <= sent.error_bound, sent.query([7], at=500).item()
    (True, 0.0)
    """

    def __init__(
        self,
        kind: str,
        window: int,
        epsilon: Any,
        maximum: int = 1,
        *,
        clamp: bool = False,
        tick: Any = None,
        unit: str | None = None,
    ) -> None:
        if kind not in ("count", "sum"):
            raise BadSpecification(f'kind={kind!r}: a bank is one of "count" and "sum"')
        if kind == "count" and maximum != 1 and tick is None:
            raise BadSpecification(f"a count's values are 0 and 1: maximum={maximum!r} is for sums")
        self.kind = kind
        self._one: Counter = (
            Count(window, epsilon, clamp=clamp)
            if kind == "count" and maximum == 1
            else Sum(window, maximum, epsilon, clamp=clamp)
        )
        layout = self._one.layout
        if not layout.fits_machine_words:
            raise BadSpecification(
                f"{self._one!r} has fields of more than 56 bits, which a bank does not take: give "
                "a smaller window or maximum"
            )
        from windrow.columns.approx.fields import numbers

        self.tick = None if tick is None else times.duration(tick, "tick")
        self.unit = unit
        self.stride = (layout.bits + 8) >> 3
        self._numbers = numbers(layout, before=1)
        self._scale = layout.scale
        self._keys: IntegerKeys | TextKeys | None = None
        self._clock: times.Clock | None = None
        self._length = 0
        self._latest = int(_NEVER)
        self._reserve(_LEAST)

    def _reserve(self, capacity: int) -> None:
        ticks = 0 if self.tick is None else capacity
        self._rows = np.zeros(capacity * self.stride, np.uint8)
        self._nows = np.full(ticks, _NEVER, np.int64)
        self._opens = np.zeros(ticks, np.int64)

    @property
    def error_bound(self) -> float:
        """No key's answer is ever further from the truth than this."""
        partly = self.tick not in (None, 1)
        return self._one.error_bound + (float(self._one.layout.R) if partly else 0.0)

    @property
    def nbytes(self) -> int:
        """All memory that the bank has: rows, keys and index, with their free places."""
        keys = 0 if self._keys is None else self._keys.nbytes
        return self._rows.nbytes + self._nows.nbytes + self._opens.nbytes + keys

    def bits(self) -> int:
        """The size of one key's counter."""
        return self._one.bits()

    def lower_bound_bits(self) -> int:
        """The fewest bits a key's counter can have, whatever the algorithm."""
        return self._one.lower_bound_bits()

    def __len__(self) -> int:
        return 0 if self._keys is None else self._keys.used

    def __contains__(self, key: Any) -> bool:
        if self._keys is None or not self._keys.is_one(key):
            return False
        return bool(self._keys.find(self._keys.taken([key]))[0] >= 0)

    def __repr__(self) -> str:
        return f"Bank of {len(self)} × {self._one!r}"

    def keys(self) -> Array:
        """All keys, oldest first."""
        return np.empty(0, np.int64) if self._keys is None else self._keys.listed()

    def insert_many(self, keys: Any, values: Any = None, at: Any = None) -> None:
        """Take (key, value) pairs in order; without values each is worth 1. All or none.

        ``at``: their times, where the bank has a tick; a key's do not go back by a tick or more.
        """
        if (at is None) != (self.tick is None):
            raise BadSpecification("at= gives every pair its time, where the bank has a tick=")
        if self._keys is None:
            if not len(keys):
                return
            self._keys = keys_like(keys, _LEAST)
        many = self._keys.taken(keys)
        taken = np.ones(len(many), np.uint8) if values is None else self._values_of(values, keys)
        if at is not None:
            self._insert_at(many, taken.astype(np.int64), self._ticks(at), keys, at)
        elif isinstance(self._keys, IntegerKeys):
            self._insert_integers(self._keys, many, taken)  # type: ignore[arg-type]
        else:
            self._insert_at(many, taken.astype(np.int64), None, keys, None)

    def _insert_integers(self, own: IntegerKeys, many: Array, taken: Array) -> None:
        """Found and taken in one go."""
        from windrow.columns.approx.bank import insert

        done = 0
        while done < len(many):
            if own.used == own.capacity:
                self._resize(int(own.used * ROOM) + _LEAST)
            step, own.used = insert(
                *(own.index, own.keys, self._rows, own.used, self.stride, self._numbers),
                *(many[done:], taken[done:]),
            )
            done += step

    def _insert_at(self, many: Any, taken: Array, ticks: Array | None, keys: Any, at: Any) -> None:
        """First every pair's row, then what is wrong with it, then its value."""
        from windrow.columns.approx import bank
        from windrow.columns.approx import ticks as timed

        own = self._keys
        assert own is not None
        before = own.used
        found = np.empty(len(many), np.int64)
        done = own.place(many, found, 0)
        while done < len(many):
            if own.used == own.capacity:
                self._resize(int(own.used * ROOM) + _LEAST)
            done = own.place(many, found, done)
        if ticks is None:
            bank.take_all(self._rows, self.stride, self._numbers, found, taken)
            return
        limit = int(self._one.layout.R)
        copies = (self._nows.copy(), self._opens.copy())
        wrong, back = timed.check(found, ticks, taken, *copies, limit, self._one.clamp)
        if wrong >= 0:
            own.resize(own.capacity, np.arange(before))
            raise self._refused(keys[wrong], at[wrong], bool(back))
        where = (self._rows, self.stride, self._numbers, self._nows, self._opens)
        timed.insert(*where, found, ticks, taken, limit)
        self._latest = max(self._latest, int(ticks.max(initial=self._latest)))

    def _refused(self, key: Any, at: Any, back: bool) -> Exception:
        if back:
            return OutOfOrder(
                f"key {key!r}: time {at!r} is in a tick before the one of this key that has begun: "
                "sort by time first"
            )
        return BadValue(
            f"key {key!r}: the values of the tick of {at!r} sum to more than the maximum "
            f"{self._one.layout.R}: give a larger maximum=, a shorter tick=, or clamp=True"
        )

    def query(self, keys: Any, at: Any = None) -> Array:
        """The estimate for each key; 0 for a key that has no counter.

        With a tick: for the window that ends with the tick of ``at``, or with the latest one that
        any key has had; nothing changes.
        """
        if self._keys is None:
            return np.zeros(len(keys))
        return self._estimates(self._keys.find(self._keys.taken(keys)), at)

    def _estimates(self, found: Array, at: Any) -> Array:
        from windrow.columns.approx import bank
        from windrow.columns.approx import ticks as timed

        out = np.empty(len(found))
        if self.tick is None:
            if at is not None:
                raise BadSpecification("at= is for banks with a tick=")
            bank.query(self._rows, self.stride, self._numbers, found, self._scale, out)
            return out
        tick = self._latest if at is None else int(self._ticks([at])[0])
        if tick < self._latest:
            raise OutOfOrder(f"{at!r} is before the latest tick: a counter knows its last window")
        where = (self._rows, self.stride, self._numbers, self._scale, self._nows, self._opens)
        timed.estimates(*where, found, tick, out)
        return out

    def heavy(self, threshold: float, at: Any = None) -> tuple[Array, Array]:
        """Keys that may have ``threshold`` or more, and their estimates, largest first.

        None is missed that has; one that is returned has at least ``threshold − 2·error_bound``.
        """
        if self._keys is None:
            return np.empty(0, np.int64), np.empty(0)
        out = self._estimates(np.arange(len(self)), at)
        rows = np.flatnonzero(out >= threshold - self.error_bound)
        rows = rows[np.argsort(-out[rows], kind="stable")]
        return self._keys.listed(rows), out[rows]

    def drop_idle(self) -> int:
        """Drop the keys without a value since the last call, and their memory; how many went."""
        if self._keys is None:
            return 0
        before = len(self)
        marks = self._rows.reshape(-1, self.stride)[:before, 0]
        kept = np.flatnonzero(marks & 1)
        marks &= 254
        self._resize(max(int(len(kept) * ROOM), _LEAST), kept)
        return before - len(self)

    def _resize(self, capacity: int, kept: Array | None = None) -> None:
        assert self._keys is not None
        rows, nows, opens = self._rows, self._nows, self._opens
        chosen: Any = slice(0, self._keys.used) if kept is None else kept
        self._keys.resize(capacity, kept)
        self._reserve(capacity)
        n = self._keys.used
        self._rows.reshape(-1, self.stride)[:n] = rows.reshape(-1, self.stride)[chosen]
        if self.tick is not None:
            self._nows[:n], self._opens[:n] = nows[chosen], opens[chosen]

    def to_bytes(self) -> bytes:
        """Version, checksum, parameters, keys and rows."""
        import json  # which takes longer to load than this module

        n, own = len(self), self._keys
        tick = self.tick.nanoseconds if isinstance(self.tick, times.Duration) else self.tick
        head = {
            "kind": self.kind,
            "counter": self._one.to_bytes().hex(),
            "tick": tick,
            "elapsed": isinstance(self.tick, times.Duration),
            "unit": self.unit,
            "latest": self._latest,
            "keys": None if own is None else own.kind,
            "count": n,
        }
        text = json.dumps(head).encode()
        parts = [len(text).to_bytes(8, "little"), text, b"" if own is None else own.to_bytes()]
        for array in (self._nows, self._opens):
            parts.append(array[:n].astype("<i8").tobytes())
        body = b"".join([*parts, self._rows[: n * self.stride].tobytes()])
        return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The bank that these bytes are of."""
        import json

        start = len(_MAGIC)
        body = data[start + 4 :]
        if data[:start] != _MAGIC or zlib.crc32(body) != int.from_bytes(
            data[start : start + 4], "little"
        ):
            raise BadBytes(f"{len(data)} bytes that are no bank's: cut short or damaged")
        size = int.from_bytes(body[:8], "little")
        head = json.loads(body[8 : 8 + size])
        (_, W, R, epsilon, clamp), _ = frame.read(bytes.fromhex(head["counter"]), None)
        tick = f"{head['tick']}ns" if head["elapsed"] else head["tick"]
        made = cls(head["kind"], W, epsilon, R or 1, clamp=clamp, tick=tick, unit=head["unit"])
        made._latest, n, at = head["latest"], head["count"], 8 + size
        if head["keys"] is not None:
            capacity = max(int(n * ROOM), _LEAST)
            whole = head["keys"] == "i"
            made._keys = IntegerKeys(capacity) if whole else TextKeys(capacity, head["keys"] == "t")
            at += made._keys.read(body[at:], n)
            made._reserve(capacity)
        for array in (made._nows, made._opens) if made.tick is not None else ():
            array[:n] = np.frombuffer(body, "<i8", n, at)
            at += 8 * n
        made._rows[: n * made.stride] = np.frombuffer(body, np.uint8, n * made.stride, at)
        return made

    def save(self, path: str | Path) -> None:
        """Write the bank to a file, which is replaced as a whole."""
        target = Path(path)
        beside = target.with_name(target.name + ".part")
        beside.write_bytes(self.to_bytes())
        beside.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The bank that ``save`` wrote."""
        return cls.from_bytes(Path(path).read_bytes())

    def _ticks(self, at: Any) -> Array:
        """The tick of every time."""
        from windrow.columns.approx.ticks import ticks_of

        assert self.tick is not None
        whole, self._clock = ticks_of(at, self._clock, self.unit, _tick)
        if self._clock is not None and not self._length:
            self._length = self._clock.length(self.tick, "tick")
            if self._length < 1:
                raise BadSpecification(f"tick={self.tick!r}: a tick is longer than that")
        return whole // max(1, self._length)

    def _values_of(self, values: Any, keys: Any) -> Array:
        given = np.asarray(values)
        if len(given) != len(keys):
            raise BadValue(f"{len(keys)} keys, but {len(given)} values: give one for each")
        try:
            return self._one._many_units(given)
        except BadValue as error:
            limit = self._one.layout.R
            if given.dtype.kind in "iu":
                key = keys[int(np.argmax((given < 0) | (given > limit)))]
                raise BadValue(f"key {key}, {error}") from None
            raise


def _tick(clock: times.Clock, at: Any) -> int:
    try:
        return clock.to_ticks(at)
    except TypeError:
        raise BadValue(f"{at!r} is not a time like those before: {clock.kind}") from None
