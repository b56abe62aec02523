"""CI-COUNT: which keys have had at least, or at most, so many rows in the last T.

"At least v rows since s" is the same as "the v-th row from the end is at s or later". Rows at
distances 1, 2, … from the end of each key are divided into levels, p of each size 1, 2, 4, …; an
index over all keys holds the time of one row of each level. A threshold asks the level just below
it, which misses no key; the exact answer looks up only those keys that the level just above does
not prove.

Time: update amortised at most 2·p moves in indexes of O(log |K|); lookup O(candidates).
Space: a time for each row in the longest window, or with ``exact=False`` for each level: about
p·(1 + log2(N / p)) times for a key with N rows.
Paper: Arasu, Widom, "Resource Sharing in Continuous Sliding-Window Aggregates", VLDB 2004, section
4.1; the outer level and levels on demand are additions.
"""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from windrow.columns.filters import counts, idle, ordered
from windrow.columns.filters.pool import LEAST, take
from windrow.columns.ranges import Array
from windrow.errors import BadBytes, InvariantBroken, Refused
from windrow.filters.base import Range
from windrow.filters.levelled import Levelled
from windrow.filters.precision import Level, count_inner, count_outer, nearest_distance
from windrow.filters.saved import Saved

_MANY = 1 << 40
"""More rows than any key has."""


class CiCount(Levelled):
    """Keys by how many rows they have had in the last T.

    >>> import windrow as wr
    >>> calls = wr.filters.CiCount(longest="3h")
    >>> from datetime import datetime
    >>> for minute, who in enumerate("ababacaa"):
    ...     calls.insert(who, at=datetime(2024, 1, 1, 12, minute))
    >>> now = datetime(2024, 1, 1, 12, 7)
    >>> calls.lookup(now, "5m", at_least=3), calls.lookup(now, "5m", at_most=1)
    (['a'], ['b', 'c'])
    >>> calls.value("a", now, "1h")
    5

    ``longest`` is the largest T that can be asked for. A key without a row in the longest window is
    idle, and forgotten; all others count, also with no row in the last T. ``per_size`` levels of
    each size (8 if nothing is said), or ``epsilon``, bound how many keys are looked at in vain.
    With ``exact=False`` rows are not kept, and every answer is the candidates.
    """

    name = "count"

    def __init__(
        self,
        longest: Any,
        epsilon: float | None = None,
        per_size: int | None = None,
        exact: bool = True,
        unit: str | None = None,
    ) -> None:
        super().__init__(longest, epsilon, per_size, unit)
        self.exact = bool(exact)

    def insert(self, key: Any, at: Any) -> None:
        """A row of a key."""
        self._insert_one(key, 0.0, at)

    def insert_many(self, keys: Any, at: Any) -> None:
        """Rows in order of time: lists, NumPy or Arrow."""
        self._insert_batch(keys, None, None, at)

    def _insert(self, slots: Array, times: Array, values: Array, first: int, last: int) -> int:
        return int(
            counts.insert(
                self._keys,
                self._state,
                self._rows,
                self._rows_free,
                self._pool,
                self._free,
                self._levels,
                self._indexes,
                self.per_size,
                self._span,
                self.exact,
                slots,
                times,
                first,
                last,
                self._dropped,
            )
        )

    def _near(self, level: Level) -> int:
        return nearest_distance(self.per_size, level)

    def _fill(self, row: int) -> bool:
        return bool(
            counts.fill(
                self._keys,
                self._state,
                self._rows,
                self._pool,
                self._free,
                self._levels[row],
                self._indexes[row],
                self.per_size,
                self.exact,
            )
        )

    def _read(self, asked: Range, since: int, kept: int, approximate: bool) -> tuple[int, str]:
        p = self.per_size
        least = None if asked.least is None else math.ceil(max(min(asked.least, _MANY), 0))
        most = None if asked.most is None else math.floor(max(min(asked.most, _MANY), -1))
        approximate = approximate or not self.exact
        if (most is not None and most < 0) or (
            least is not None and most is not None and least > most
        ):
            return 0, "nothing can pass"
        if most is None:
            assert least is not None
            if least <= 0:
                return self._all_known(kept), "every key"
            inner, outer = count_inner(p, least), count_outer(p, least)
            if approximate or inner == outer:
                return self._candidates(inner, False, since, kept), f"level {inner}"
            inside, outside = self._index(inner, False), self._index(outer, False)
            inside = self._index(inner, False)  # the second may have moved the first
            count = counts.at_least(
                self._keys,
                self._state,
                self._rows,
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
        if least is None or least <= 0:
            inner, outer = count_inner(p, most + 1), count_outer(p, most + 1)
            if approximate or inner == outer:
                return self._candidates(outer, True, since, kept), f"level {outer}"
            outside = self._index(outer, True)
            inside = self._index(inner, True)
            outside = self._index(outer, True)
            count = counts.at_most(
                self._keys,
                self._state,
                self._rows,
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
        if approximate:
            inner, outer = count_inner(p, least), count_outer(p, most + 1)
            count = self._between_candidates(asked, inner, outer, since, kept)
            return count, f"levels {inner} and {outer}"
        count, how = self._read(Range(least, None), since, kept, False)
        kept_count = counts.below(self._keys, self._rows, since, most, self._out, count)
        self._told[2] += count
        return int(kept_count), f"{how}, each looked up"

    def _value(self, slot: int, since: int) -> Any:
        if not self.exact:
            raise Refused("rows are not kept with exact=False: make the filter with exact=True")
        return int(counts.count_since(self._keys, slot, self._rows, since))

    def _options(self) -> dict[str, Any]:
        return {"per_size": self.per_size} | ({} if self.exact else {"exact": False})

    @classmethod
    def _made(cls, longest: Any, unit: str | None, options: Sequence[Any]) -> Self:
        per_size, *exact = options
        return cls(longest, per_size=per_size, exact=not exact, unit=unit)

    def _save(self, saved: Saved, slots: Array) -> None:
        saved.array(self._keys[slots, idle.COUNT])
        saved.array(self._keys[slots, idle.LENGTH])
        for slot in slots.tolist():
            saved.array(self._held(slot))

    def _held(self, slot: int) -> Array:
        """A key's row times, or its entries, in the order they are kept in."""
        _, block, size, first, length = self._keys[slot, :5].tolist()
        places = (max(first, 0) + np.arange(length)) & ((1 << size) - 1)
        return np.asarray(self._rows[block + places])

    def _load(self, saved: Saved, slots: int) -> None:
        count, length = saved.read_array("int64", slots), saved.read_array("int64", slots)
        held = [saved.read_array("int64", int(n)) for n in length]
        if (length < 1).any() or (count < length).any():
            raise BadBytes("CiCount: a key without rows, or with more than it has had")
        newest = [int(times[-1] if self.exact else times[0]) for times in held]
        for slot in np.argsort(np.array(newest, np.int64), kind="stable").tolist():
            times = held[slot]
            apart = np.diff(times)
            if (apart < 0).any() if self.exact else (apart > 0).any():
                raise BadBytes("CiCount: the rows of a key are not in order")
            size = max(2, (len(times) - 1).bit_length())
            while (block := take(self._rows, self._rows_free, size)) < 0:
                self._grow(idle.NEEDS_ROWS)
            self._rows[block : block + len(times)] = times
            self._keys[slot, :5] = count[slot], block, size, 0, len(times)
            idle.enter(self._keys, self._state, slot, newest[slot])
        if slots and max(newest) > (self._now or 0):
            raise BadBytes("CiCount: a row is later than the filter's time")

    def _check(self) -> None:
        super()._check()
        for slot in self._known_slots().tolist():
            times = self._held(slot)
            apart = np.diff(times)
            if not len(times) or ((apart < 0).any() if self.exact else (apart > 0).any()):
                raise InvariantBroken(f"the rows of {self._names[slot]!r} are not in order")
            for (level, low), row in self._row_of.items():
                table = (self._levels[row], self.per_size, self.exact)
                due = int(counts.current_entry(self._keys, slot, self._rows, *table))
                at = int(ordered.value_of(self._pool, self._indexes[row], slot, LEAST))
                found = ~at if low else at
                if found != due and (due != LEAST or found >= times.min()):
                    raise InvariantBroken(
                        f"key {self._names[slot]!r}, level {level}: {found} where {due} is due"
                    )
