"""CI-SUM: which keys' values, none of them negative, add up to at least or at most so much.

The levels of CI-COUNT, by weight instead of rows, for any floats: ``windrow.columns.filters.sums``
derives them. Thresholds are compared with the exact sum of the rows, not with a rounded one.

Time: a row moves the levels whose size is not above its value and, amortised, a constant number of
larger ones, p of each size, in indexes of O(log |K|), each found by a search of O(log N); lookup
O(candidates), a search for each that is looked up.
Space: four words for each row in the longest window.
Paper: Arasu, Widom, VLDB 2004, section 4.2, where a value is so many copies of a row.
"""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from windrow.columns.filters import idle, levels, ordered, sum_lookups, sums
from windrow.columns.filters.factorise import numbers
from windrow.columns.filters.pool import LEAST, grown, take
from windrow.columns.ranges import Array
from windrow.errors import BadBytes, BadValue, InvariantBroken
from windrow.filters.base import Range, threshold_float
from windrow.filters.levelled import Levelled
from windrow.filters.precision import Level, sum_inner, sum_outer
from windrow.filters.saved import Saved

_LARGEST = 2.0**900
_TINY = 2.0**-1000
_SAFE = 1 << 53
_SURELY = 1 + 2.0**-19
"""Levels are trusted to a millionth: the outer one is taken so much farther away."""


class CiSum(Levelled):
    """Keys by the sum of their values in the last T.

    >>> import windrow as wr
    >>> volume = wr.filters.CiSum(longest=60)
    >>> volume.insert_many(["a", "b", "a", "c"], [100, 5, 250, 0.5], at=[1, 2, 50, 61])
    >>> volume.lookup(61, 60, at_least=255), volume.lookup(61, 60, between=(0.5, 5))
    ([], ['b', 'c'])
    >>> volume.value("a", 61, 60)
    250.0

    Values are numbers that are not negative; a missing one (None, null) is no row. The sum of no
    rows is 0 here. Integers are given back as integers if all values were.
    """

    name = "sum"

    def __init__(
        self,
        longest: Any,
        epsilon: float | None = None,
        per_size: int | None = None,
        unit: str | None = None,
    ) -> None:
        super().__init__(longest, epsilon, per_size, unit)
        self._values, self._highs, self._lows = (np.empty(len(self._rows)) for _ in range(3))
        self._bases: Array = np.zeros((len(self._keys), sums.BASES))
        self._nears: Array = np.empty(0)
        self._sizes: Array = np.zeros(1, np.int64)
        self._units: Array = np.empty(0)
        self._pending: Array = np.zeros((0, len(self._keys)))
        self._whole = True

    def insert(self, key: Any, value: Any, at: Any) -> None:
        """A row of a key."""
        kind = type(value)
        if (kind is float or (kind is int and value <= _SAFE)) and 0 <= value <= _LARGEST:
            self._insert_one(key, value + 0.0, at)
            self._whole = self._whole and kind is int
            return
        self.insert_many([key], [value], [at])

    def insert_many(self, keys: Any, values: Any, at: Any) -> None:
        """Rows in order of time: lists, NumPy or Arrow."""
        found, present, whole = numbers(values)
        wrong = np.flatnonzero(~((found >= 0) & (found <= _LARGEST)))
        if len(wrong):
            row = int(wrong[0])
            raise BadValue(
                f"row {row}: the value {found[row]!r} is negative, not finite, or above 2**900: "
                "CiSum finds keys by sums that only grow with the window. Use filters.PerKey, "
                "which keeps one shared window for each key"
            )
        self._insert_batch(keys, found + 0.0, present, at)
        self._whole = self._whole and whole

    def _grow(self, need: int) -> None:
        super()._grow(need)
        if len(self._values) < len(self._rows):
            parts = (grown(a, len(self._rows)) for a in (self._values, self._highs, self._lows))
            self._values, self._highs, self._lows = parts

    def _widen(self, slots: int) -> None:
        super()._widen(slots)
        bases, pending = self._bases, self._pending
        self._bases = np.zeros((slots, sums.BASES))
        self._bases[: len(bases)] = bases
        self._pending = np.zeros((len(pending), slots))
        self._pending[:, : pending.shape[1]] = pending

    def _arrays(self) -> list[Array]:
        own = [self._values, self._highs, self._lows, self._bases, self._pending]
        return [*super()._arrays(), *own]

    @property
    def _ring(self) -> tuple[Array, ...]:
        return self._rows, self._values, self._highs, self._lows, self._bases

    def _insert(self, slots: Array, times: Array, values: Array, first: int, last: int) -> int:
        return int(
            sums.insert(
                self._keys,
                self._state,
                self._rows,
                self._rows_free,
                self._values,
                self._highs,
                self._lows,
                self._bases,
                self._pool,
                self._free,
                self._levels,
                self._indexes,
                self._nears,
                self._sizes,
                self._units,
                self._pending,
                self._span,
                slots,
                times,
                values,
                first,
                last,
                self._dropped,
            )
        )

    # --- levels ---------------------------------------------------------------------------------

    def _near(self, level: Level) -> int:
        return 0

    def _levels_changed(self) -> None:
        size_of = self._levels[:, levels.CLASS]
        j = self._levels[:, levels.NUMBER] - size_of * self.per_size
        self._nears = np.ldexp((self.per_size + j).astype(np.float64), size_of)
        sizes, starts = np.unique(size_of, return_index=True)
        units = np.ldexp(1.0, sizes)
        pending = np.zeros((len(units), len(self._keys)))
        for row, unit in enumerate(self._units.tolist()):
            if len(units):
                pending[int(np.searchsorted(units, unit))] = self._pending[row]
        self._sizes = np.append(starts, len(size_of)).astype(np.int64)
        self._units, self._pending = units, pending

    def _fill(self, row: int) -> bool:
        return bool(
            sums.fill(
                self._keys,
                self._state,
                *self._ring,
                self._pool,
                self._free,
                self._levels[row],
                self._indexes[row],
                self._nears[row],
            )
        )

    # --- lookups --------------------------------------------------------------------------------

    def _read(self, asked: Range, since: int, kept: int, approximate: bool) -> tuple[int, str]:
        least = None if asked.least is None else threshold_float(asked.least)
        most = None if asked.most is None else threshold_float(asked.most)
        if least is not None and least > 2 * _LARGEST * (1 << 40):
            return 0, "nothing can pass"
        if (most is not None and most < 0) or (
            least is not None and most is not None and least > most
        ):
            return 0, "nothing can pass"
        if most is not None and most > 2 * _LARGEST * (1 << 40):
            most = None
            least = 0.0 if least is None else least
        if most is None:
            assert least is not None
            return self._at_least(least, since, kept, approximate)
        if least is None or least <= 0:
            return self._at_most(most, since, kept, approximate)
        if approximate and least >= _TINY:
            inner, outer = sum_inner(self.per_size, least), self._outer(most)
            count = self._between_candidates(asked, inner, outer, since, kept)
            return count, f"levels {inner} and {outer}"
        count, how = self._at_least(least, since, kept, approximate)
        self._told[2] += count
        kept_count = sum_lookups.compared(
            self._keys, *self._ring, since, most, False, self._out, count
        )
        return int(kept_count), f"{how}, each looked up"

    def _outer(self, threshold: float) -> Level:
        return sum_outer(self.per_size, max(threshold, _TINY) * _SURELY)

    def _at_least(self, least: float, since: int, kept: int, approximate: bool) -> tuple[int, str]:
        if least <= 0:
            return self._all_known(kept), "every key"
        if least < _TINY:
            count = self._all_known(kept)
            self._told[:] = count, 0, count
            args = (since, least, True, self._out, count)
            return int(sum_lookups.compared(self._keys, *self._ring, *args)), "every key, looked up"
        inner, outer = sum_inner(self.per_size, least), self._outer(least)
        if approximate:
            return self._candidates(inner, False, since, kept), f"level {inner}"
        inside, outside = self._index(inner, False), self._index(outer, False)
        inside = self._index(inner, False)  # the second may have moved the first
        count = sum_lookups.at_least(
            self._keys,
            self._state,
            *self._ring,
            self._pool,
            self._indexes[inside],
            self._indexes[outside],
            self._marks,
            since,
            least,
            self._out,
            self._told,
        )
        return int(count), f"levels {inner} and {outer}"

    def _at_most(self, most: float, since: int, kept: int, approximate: bool) -> tuple[int, str]:
        outer = self._outer(most)
        if approximate:
            return self._candidates(outer, True, since, kept), f"level {outer}"
        inner = sum_inner(self.per_size, max(most, _TINY))
        if most < _TINY:  # no level ends that near: only the outer one is used
            inner = outer
        outside, inside = self._index(outer, True), self._index(inner, True)
        outside = self._index(outer, True)
        if inner == outer:
            count = self._candidates(outer, True, since, kept)
            self._told[2] = count
            args = (since, most, False, self._out, count)
            return int(sum_lookups.compared(self._keys, *self._ring, *args)), f"level {outer}"
        count = sum_lookups.at_most(
            self._keys,
            self._state,
            *self._ring,
            self._pool,
            self._indexes[inside],
            self._indexes[outside],
            self._marks,
            since,
            kept,
            most,
            self._out,
            self._told,
        )
        return int(count), f"levels {inner} and {outer}"

    def _places(self, slot: int, first: int = 0) -> Array:
        """Where the rows of a key are, from the first that is asked for."""
        _, block, size, start, length = self._keys[slot, :5].tolist()
        return np.asarray(block + ((start + np.arange(first, length)) & ((1 << size) - 1)))

    def _value(self, slot: int, since: int) -> Any:
        first = int(sum_lookups.first_since(self._keys, slot, self._rows, since))
        rows = self._values[self._places(slot, first)].tolist()
        return sum(map(int, rows)) if self._whole else math.fsum(rows)

    # --- checks and bytes -----------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        return {"per_size": self.per_size}

    @classmethod
    def _made(cls, longest: Any, unit: str | None, options: Sequence[Any]) -> Self:
        (per_size,) = options
        return cls(longest, per_size=per_size, unit=unit)

    def _save(self, saved: Saved, slots: Array) -> None:
        saved.value(self._whole)
        saved.array(self._keys[slots, idle.LENGTH])
        for slot in slots.tolist():
            saved.array(self._rows[self._places(slot)])
            saved.array(self._values[self._places(slot)])

    def _load(self, saved: Saved, slots: int) -> None:
        self._whole = bool(saved.read())
        length = saved.read_array("int64", slots)
        held = [(saved.read_array("int64", n), saved.read_array("float64", n)) for n in length]
        newest = np.array([times[-1] for times, _ in held], np.int64)
        if slots and int(newest.max()) > (self._now or 0):
            raise BadBytes("CiSum: a row is later than the filter's time")
        for slot in np.argsort(newest, kind="stable").tolist():
            times, values = held[slot]
            if (np.diff(times) < 0).any() or not ((values >= 0) & (values <= _LARGEST)).all():
                raise BadBytes("CiSum: the rows of a key are not in order, or a value is negative")
            size = max(2, (len(times) - 1).bit_length())
            while (block := take(self._rows, self._rows_free, size)) < 0:
                self._grow(idle.NEEDS_ROWS)
            self._rows[block : block + len(times)] = times
            self._values[block : block + len(times)] = values
            self._keys[slot, :5] = len(times), block, size, 0, len(times)
            ring = (self._values, self._highs, self._lows, self._bases)
            sums.begin_anew(self._keys, slot, *ring)
            idle.enter(self._keys, self._state, slot, int(newest[slot]))

    def _check(self) -> None:
        super()._check()
        for slot in self._known_slots().tolist():
            times, values = self._rows[self._places(slot)], self._values[self._places(slot)]
            name = repr(self._names[slot])
            if not len(times) or (np.diff(times) < 0).any() or (values < 0).any():
                raise InvariantBroken(f"the rows of {name} are not in order")
            after = np.cumsum(values[::-1])[::-1]
            for (level, low), row in self._row_of.items():
                near, unit = float(self._nears[row]), math.ldexp(1.0, level[0])
                at = int(ordered.value_of(self._pool, self._indexes[row], slot, LEAST))
                found = ~at if low else at
                # what comes after the entry is less than far; what is from it on at least near
                behind = float(after[times > found][0]) if (times > found).any() else 0.0
                upto = float(after[times >= found][0]) if (times >= found).any() else 0.0
                if behind >= (near + unit) * _SURELY or (
                    found >= times[0] and upto * _SURELY < near
                ):
                    raise InvariantBroken(f"key {name}, level {level}: entry {found} is misplaced")
