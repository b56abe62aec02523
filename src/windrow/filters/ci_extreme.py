"""CI-MAX and CI-MIN: which keys' largest (smallest) value in the last T passes; always exact.

Of each key its staircase is kept, the rows that no later one dominates, and the stretch of window
starts that each of its points answers for: a threshold stabs these stretches. The paper leaves the
algorithm to its full version; ``windrow.columns.filters.extremes`` derives this one.

Time: update amortised O(log² N), lookup O(log N + output), for N rows of all keys in the longest
window.
Space: O(N) words, and at most 2·log2 N places for each point of a staircase.
Paper: Arasu, Widom, VLDB 2004, Figure 1, the last row.
"""

import math
import struct
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from windrow.columns.filters import extremes, idle, stabbing
from windrow.columns.filters.factorise import numbers
from windrow.columns.filters.pool import grown, new_pool
from windrow.columns.ranges import Array
from windrow.errors import BadBytes, InvariantBroken
from windrow.filters.base import Filter, Range, threshold_float
from windrow.filters.saved import Saved

_FIRST_ROWS = 1 << 8
_SAFE = 1 << 53
_FLIP = np.int64((1 << 63) - 1)
_LEAST, _MOST = 1 - (1 << 63), (1 << 63) - 2


def _ordered(values: Array) -> Array:
    """Floats as integers in the same order; NaN, one of them, is the largest."""
    values = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, bits ^ _FLIP)


def _ordered_one(value: float) -> int:
    bits: int = struct.unpack("<q", struct.pack("<d", math.nan if value != value else value + 0.0))[
        0
    ]
    return bits if bits >= 0 else bits ^ int(_FLIP)


def _number(ordered: int) -> float:
    bits = np.array([ordered], np.int64)
    return float(np.where(bits >= 0, bits, bits ^ _FLIP).view(np.float64)[0])


class CiExtreme(Filter):
    """What the two have in common; inside, both look for the largest."""

    _turned: ClassVar[bool]

    def __init__(self, longest: Any, unit: str | None = None) -> None:
        super().__init__(longest, unit)
        self._ends: Array = np.zeros(stabbing.ENDS, np.int64)
        self._ranks: Array = np.full((_FIRST_ROWS, stabbing.RANKS), -1, np.int64)
        self._pool, self._free = new_pool(1 << 10)
        # the tree for the side that this extreme grows to; the other is built when asked for
        self._high: Array = extremes.new_nodes(_FIRST_ROWS >> stabbing.BITS)
        self._low: Array = extremes.new_nodes(0)
        self._one_value = np.empty(1, np.int64)
        self._whole = True

    def insert(self, key: Any, value: Any, at: Any) -> None:
        """A row of a key."""
        kind = type(value)
        if kind is float or (kind is int and -_SAFE <= value <= _SAFE):
            ordered = _ordered_one(float(value))
            self._insert_one(key, ~ordered if self._turned else ordered, at)
            self._whole = self._whole and kind is int
        else:
            self.insert_many([key], [value], [at])

    def insert_many(self, keys: Any, values: Any, at: Any) -> None:
        """Rows in order of time: lists, NumPy or Arrow."""
        found, present, whole = numbers(values)
        self._insert_batch(keys, self._inside(found), present, at)
        self._whole = self._whole and whole

    def _inside(self, values: Array) -> Array:
        inside = _ordered(values)
        return ~inside if self._turned else inside

    def _insert(self, slots: Array, times: Array, values: Array, first: int, last: int) -> int:
        return int(
            extremes.insert(
                self._keys,
                self._state,
                self._ends,
                self._ranks,
                self._pool,
                self._free,
                self._high,
                self._low,
                self._span,
                slots,
                times,
                values,
                first,
                last,
                self._dropped,
            )
        )

    def _grow(self, need: int) -> None:
        if need == idle.NEEDS_POOL:
            self._pool = grown(self._pool)
            return
        ranks = np.full((2 * len(self._ranks), stabbing.RANKS), -1, np.int64)
        extremes.spread_ranks(self._ends, self._ranks, ranks)
        self._ranks = ranks
        self._high = self._spread(self._high)
        if len(self._low):
            self._low = self._spread(self._low)

    def _spread(self, nodes: Array) -> Array:
        new = extremes.new_nodes(len(self._ranks) >> stabbing.BITS)
        extremes.spread_nodes(self._ends, self._pool, self._free, nodes, new)
        return new

    def _widen(self, slots: int) -> None:
        """Keys have nothing of their own but their record."""

    def _drop(self, keep_from: int) -> bool:
        args = (self._keys, self._state, self._ends, self._ranks, keep_from, self._dropped)
        return bool(extremes.pass_time(*args))

    def _arrays(self) -> list[Array]:
        return [self._ranks, self._pool, self._high, self._low]

    def index_moves(self) -> int:
        """How many heaps rows have entered so far."""
        return int(self._state[idle.MOVES])

    def stored_timestamps(self) -> int:
        """The points of all staircases."""
        return len(self._living())

    def _living(self) -> Array:
        out = np.empty(int(self._ends[stabbing.END] - self._ends[stabbing.START]), np.int64)
        count = extremes.living(self._keys, self._state, self._ends, self._ranks, out)
        return out[:count]

    # --- lookups --------------------------------------------------------------------------------

    def _read(self, asked: Range, since: int, kept: int, approximate: bool) -> tuple[int, str]:
        least, most = _LEAST, _MOST
        if asked.least is not None:
            least = int(_ordered(np.array([threshold_float(asked.least)]))[0])
        if asked.most is not None:
            most = int(_ordered(np.array([threshold_float(asked.most)]))[0])
        only_low = asked.least is None
        if self._turned:
            least, most = ~most, ~least
            only_low = asked.most is None
        if only_low and not len(self._low):
            self._build_low()
        wanted = len(self._keys) + int(self._ends[stabbing.FULLEST]) + 2
        if len(self._out) < wanted:
            self._out = np.empty(2 * wanted, np.int64)
        nodes = self._low if only_low else self._high
        args = (only_low, since, least, most, self._out)
        count = int(extremes.lookup(self._ends, self._ranks, self._pool, nodes, *args))
        self._told[:] = count, count, 0
        return (
            count,
            f"steps of staircases, from {'below' if only_low != self._turned else 'above'}",
        )

    def _build_low(self) -> None:
        self._low = extremes.new_nodes(len(self._ranks) >> stabbing.BITS)
        rank, end = int(self._ends[stabbing.START]), int(self._ends[stabbing.END])
        while True:
            args = (self._ends, self._ranks, self._pool, self._free, self._low, True, rank)
            rank = int(extremes.fill(*args))
            if rank == end:
                return
            self._pool = grown(self._pool)

    def _value(self, slot: int, since: int) -> Any:
        args = (self._keys, self._ends, self._ranks, slot, since)
        rank = int(extremes.value_since(*args))
        if rank < 0:
            return None
        inside = int(self._ranks[rank & (len(self._ranks) - 1), stabbing.VALUE])
        found = _number(~inside if self._turned else inside)
        return int(found) if self._whole else found

    def _nothing(self) -> Any:
        return None

    # --- checks and bytes -----------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _made(cls, longest: Any, unit: str | None, options: Sequence[Any]) -> Self:
        if options:
            raise BadBytes(f"{cls.__name__}: unknown options {options!r}")
        return cls(longest, unit=unit)

    def _save(self, saved: Saved, slots: Array) -> None:
        saved.value(self._whole)
        rows = self._ranks[self._living() & (len(self._ranks) - 1)]
        place = np.full(len(self._names), -1, np.int64)
        place[slots] = np.arange(len(slots))
        saved.value(len(rows))
        saved.array(place[rows[:, stabbing.OWNER]])
        saved.array(rows[:, stabbing.TIME])
        saved.array(rows[:, stabbing.VALUE])

    def _load(self, saved: Saved, slots: int) -> None:
        self._whole = bool(saved.read())
        count = saved.read()
        owner, times, values = (saved.read_array("int64", count) for _ in range(3))
        now = self._now
        if count and (
            int(owner.min()) < 0
            or int(owner.max()) >= slots
            or (np.diff(times) < 0).any()
            or int(values.min()) < _LEAST
            or int(values.max()) > _MOST
            or now is None
            or int(times[-1]) > now
        ):
            raise BadBytes(f"{type(self).__name__}: rows that cannot have been written")
        if count:
            self._run(owner, times, values)
        self._now = now

    def _check(self) -> None:
        mask = len(self._ranks) - 1
        ends = self._ends.tolist()
        live = np.arange(ends[stabbing.START], ends[stabbing.END])
        if (np.diff(self._ranks[live & mask, stabbing.TIME]) < 0).any():
            raise InvariantBroken("rows are not in order of time")
        above: dict[int, tuple[int, int]] = {}
        for rank in self._living().tolist():
            _, value, slot, left, following = self._ranks[rank & mask].tolist()
            before = above.get(slot)
            if before is not None and (before[1] <= value or left != before[0]):
                raise InvariantBroken(f"the staircase of {self._names[slot]!r} is not one")
            if following < 0 and self._keys[slot, extremes.LAST] != rank:
                raise InvariantBroken(f"the youngest row of {self._names[slot]!r} is another")
            above[slot] = (rank, value)


class CiMax(CiExtreme):
    """Keys by their largest value in the last T.

    >>> import windrow as wr
    >>> prices = wr.filters.CiMax(longest=60)
    >>> prices.insert_many(["a", "b", "a", "c"], [20.5, 30.0, 19.0, 7.25], at=[1, 2, 50, 61])
    >>> prices.lookup(61, 60, at_least=19), prices.lookup(61, 60, at_most=19)
    (['a', 'b'], ['a', 'c'])
    >>> prices.value("a", 61, 61 - 1)
    19.0

    A key without a row in the last T has no maximum, and passes nothing. NaN is larger than every
    number; a missing value (None, null) is no row.
    """

    name = "max"
    _turned = False


class CiMin(CiExtreme):
    """Keys by their smallest value in the last T.

    >>> import windrow as wr
    >>> prices = wr.filters.CiMin(longest=60)
    >>> prices.insert_many(["a", "b", "a", "c"], [20.5, 30.0, 19.0, 7.25], at=[1, 2, 50, 61])
    >>> prices.lookup(61, 60, at_least=19), prices.lookup(61, 60, at_most=19)
    (['a', 'b'], ['a', 'c'])
    """

    name = "min"
    _turned = True
