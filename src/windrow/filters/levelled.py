"""What the filters by levels share: pools, and levels that are indexed when first asked for."""

from abc import abstractmethod
from typing import Any

import numpy as np

from windrow.columns.filters import idle, levels, ordered
from windrow.columns.filters.pool import grown, new_pool
from windrow.columns.ranges import Array
from windrow.errors import BadSpecification, InvariantBroken
from windrow.filters.base import Filter, Range
from windrow.filters.precision import Level, error_at_least, error_at_most, levels_for

_WORDS = 1 << 10


def per_size_of(epsilon: float | None, per_size: int | None) -> int:
    """Levels of each size, from either way to say it."""
    if epsilon is not None and per_size is not None:
        raise BadSpecification("say epsilon= or per_size=, not both")
    if epsilon is not None:
        return levels_for(epsilon)
    if per_size is None:
        return 8
    if isinstance(per_size, bool) or not isinstance(per_size, int) or not 1 <= per_size <= 20_000:
        raise BadSpecification(f"per_size= must be a whole number from 1 on, not {per_size!r}")
    return per_size


class Levelled(Filter):
    """A filter whose keys have entries in levels."""

    def __init__(
        self,
        longest: Any,
        epsilon: float | None = None,
        per_size: int | None = None,
        unit: str | None = None,
    ) -> None:
        super().__init__(longest, unit)
        self.per_size = per_size_of(epsilon, per_size)
        self._rows, self._rows_free = new_pool(_WORDS)
        self._pool, self._free = new_pool(_WORDS)
        self._levels: Array = np.empty((0, levels.FIELDS), np.int64)
        self._indexes: Array = np.empty((0, ordered.FIELDS), np.int64)
        self._row_of: dict[tuple[Level, bool], int] = {}
        self._marks: Array = np.zeros(len(self._keys), np.int64)

    @property
    def error(self) -> float:
        """ε of candidates for ``at_least``: none has less than (1 − ε)·v."""
        return error_at_least(self.per_size)

    @property
    def error_at_most(self) -> float:
        """ε of candidates for ``at_most``: none has more than (1 + ε)·v."""
        return error_at_most(self.per_size)

    def index_moves(self) -> int:
        """How often an entry has moved in an index, over all rows so far."""
        return int(self._state[idle.MOVES])

    def indexed_levels(self) -> list[tuple[Level, str]]:
        """The levels that have been asked for, and from which side."""
        return [(level, "at_most" if low else "at_least") for level, low in sorted(self._row_of)]

    # --- room -----------------------------------------------------------------------------------

    def _grow(self, need: int) -> None:
        if need == idle.NEEDS_POOL:
            self._pool = grown(self._pool)
        else:
            self._rows = grown(self._rows)

    def _widen(self, slots: int) -> None:
        while not ordered.widen(self._pool, self._free, self._indexes, slots.bit_length() - 1):
            self._pool = grown(self._pool)
        marks = np.zeros(slots, np.int64)
        marks[: len(self._marks)] = self._marks
        self._marks = marks

    def _drop(self, keep_from: int) -> bool:
        return bool(
            levels.drop_idle(
                self._keys,
                self._state,
                self._rows,
                self._rows_free,
                self._pool,
                self._free,
                self._indexes,
                keep_from,
                self._dropped,
            )
        )

    def _arrays(self) -> list[Array]:
        return [self._rows, self._pool, self._levels, self._indexes, self._marks]

    # --- levels ---------------------------------------------------------------------------------

    @abstractmethod
    def _near(self, level: Level) -> int:
        """The level's nearest distance, where that is a whole number."""

    @abstractmethod
    def _fill(self, row: int) -> bool:
        """Index the level in this row of the table; False where the pool is used up."""

    def _levels_changed(self) -> None:
        """The table of levels is another."""

    def _index(self, level: Level, low: bool) -> int:
        """The row of a level's index, which is made if it is not there yet."""
        row = self._row_of.get((level, low))
        if row is not None:
            return row
        size, j = level
        entry = np.array([[size, self._near(level), size * self.per_size + j, low]], np.int64)
        table = np.concatenate([self._levels, entry])
        indexes = np.concatenate([self._indexes, np.zeros((1, ordered.FIELDS), np.int64)])
        places = len(self._keys).bit_length() - 1
        while not ordered.start(self._pool, self._free, indexes[-1], places):
            self._pool = grown(self._pool)
        order = np.lexsort((table[:, levels.LOW], table[:, levels.NUMBER]))
        self._levels, self._indexes = table[order], indexes[order]
        wanted = [*sorted(self._row_of, key=self._row_of.__getitem__), (level, low)]
        self._row_of = {wanted[old]: new for new, old in enumerate(order.tolist())}
        new = self._row_of[level, low]
        self._levels_changed()
        while not self._fill(new):
            self._pool = grown(self._pool)
        return new

    def forget_levels(self) -> None:
        """Give up all indexes; they are made again when asked for."""
        self._pool, self._free = new_pool(_WORDS)
        self._levels, self._indexes = self._levels[:0], self._indexes[:0]
        self._row_of = {}
        self._levels_changed()

    def _all_known(self, kept: int) -> int:
        count = int(idle.known(self._keys, self._state, kept, self._out))
        self._told[:] = count, count, 0
        return count

    def _candidates(self, level: Level, low: bool, since: int, kept: int) -> int:
        """Keys read off one index; those that are idle by now are left out."""
        row = self._index(level, low)
        border = ~(since - 1) if low else since
        count = int(ordered.read_off(self._pool, self._indexes[row], border, self._out))
        if low:
            slots = self._out[:count]
            slots = slots[self._keys[slots, idle.NEWEST] >= kept]
            count = len(slots)
            self._out[:count] = slots
        self._told[:] = count, 0, 0
        return count

    def _between_candidates(
        self, asked: Range, inner: Level | None, outer: Level, since: int, kept: int
    ) -> int:
        """Candidates of one side that the other side's index does not rule out."""
        count = (
            self._all_known(kept) if inner is None else self._candidates(inner, False, since, kept)
        )
        row = self._index(outer, True)
        places = self._indexes[row, ordered.PLACES] + self._out[:count]
        at = self._indexes[row, ordered.NODES] + self._pool[places]
        slots = self._out[:count][~self._pool[at] < since]
        self._out[: len(slots)] = slots
        return len(slots)

    def _check(self) -> None:
        for key, row in self._row_of.items():
            if not ordered.is_sound(self._pool, self._indexes[row]):
                raise InvariantBroken(f"the index of level {key} is out of order")
            if key[1] and self._indexes[row, ordered.LENGTH] != len(self):
                raise InvariantBroken(f"the index of level {key} does not hold every key")
