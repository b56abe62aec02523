"""Windows over the state of a bucket: what each looks at in a turn, and what it keeps for later."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate
from windrow.columns.arranged import Arranged, Piece, answer, fold, lifted, slots_of
from windrow.columns.cells import Cell, Cells, Shelf
from windrow.columns.column import plain_column
from windrow.columns.forms import Form
from windrow.columns.ranges import Array, Ranges
from windrow.columns.segment_queue import Borders, SegmentQueue
from windrow.columns.slots import Slot
from windrow.columns.stream_plan import Head, Sight, StreamPlan, Turn, ticks

Outputs = list[tuple[str, Form]]


@dataclass(frozen=True)
class New:
    """Rows that are asked for: sorted by key and time, with where each key begins."""

    table: pa.Table
    time: Array
    offsets: Array
    chosen: Array | None = None
    """Which of them want an answer, if not all do."""
    beside: pa.Table | None = None
    """Where moments are asked for, which are no rows: the rows that came, by key and time."""
    live: Array | None = None
    """Where moments are asked for: whether any window has rows."""

    @property
    def are_moments(self) -> bool:
        """Whether they are no rows."""
        return self.live is not None

    @property
    def earliest(self) -> int:
        """The first time."""
        return int(self.time.min())

    @property
    def latest(self) -> int:
        """The last time."""
        return int(self.time.max())


class State(Protocol):
    """What a view needs of its bucket."""

    plan: StreamPlan
    head: Head
    log: Cells
    forms: dict[Aggregate, Form]
    turn: Turn


class View:
    """A window of the specification over a bucket's state, during one turn."""

    def __init__(self, state: State, label: str, first: int | None = None) -> None:
        self.state, self.label = state, label
        self.sight = state.head.sights.get(label) or self._begin(first)
        self.spec = state.plan.spec
        self.reach = state.plan.reaches[label]
        self.shelf = Shelf(state.log, self.sight.shelf)
        self.outputs: Outputs = [
            (name, state.forms[aggregate])
            for name, aggregate, found in self.spec.outputs
            if found == label and aggregate in state.forms
        ]

    def _begin(self, first: int | None) -> Sight:
        """Look at the segments from a number on; without one, at those to come."""
        head = self.state.head
        first = head.next if first is None else first
        sight = Sight(head.shelves, first, borders=Borders(*([first] * 6)))
        head.shelves += 1
        head.sights[self.label] = sight
        return sight

    @property
    def lasts(self) -> bool:
        """Whether moments are asked for while this window has rows."""
        return True

    looks_back = False
    """Whether rows are kept behind its totals."""

    @property
    def since(self) -> int:
        """From when on, before the frontier, rows can still be of use."""
        return self.reach.start

    def lifted(self, table: pa.Table, slots: Sequence[Slot]) -> Piece:
        """Rows with the columns of some slots."""
        return lifted(table, self.spec.key, ticks(table, self.spec), slots)

    def look(self, first: int, last: int) -> None:
        """Find what moments from the first to the last look at."""

    def write(
        self,
        new: New,
        arranged: Arranged,
        ranges: Ranges,
        outputs: Outputs,
        answers: dict[str, pa.Array],
    ) -> None:
        """The answers of some outputs."""
        if new.live is not None and self.lasts:
            np.logical_or(new.live, ranges.lo < ranges.hi, out=new.live)  # type: ignore[operator]
        if new.chosen is not None:
            lo, hi = ranges.of(np.flatnonzero(new.chosen))
            ranges = Ranges(lo, hi, len(lo))
        for name, form in outputs:
            found, overflows = answer(form, arranged, ranges, self.spec.min_rows)
            answers[name] = found
            self.state.turn.overflows += overflows


class TimeView(View):
    """A stretch of time behind every row."""

    def __init__(self, state: State, label: str, first: int | None = None) -> None:
        super().__init__(state, label, first)
        self.folded = [(n, f) for n, f in self.outputs if f.aggregate.kind == "bounded"]
        self.replayed = [(n, f) for n, f in self.outputs if f.aggregate.kind != "bounded"]
        self.slots = slots_of([form for _, form in self.folded])
        self.sight.folds = bool(self.folded)
        self.queue = SegmentQueue(self.shelf, self._merged, self.sight.borders)

    def look(self, first: int, last: int) -> None:
        """Let go what begins to leave by the last moment; find the rows around what is folded."""
        sight, at, reach = self.sight, self.sight.borders, self.reach
        while at.f < at.e and sight.front_low < last + reach.start:
            sight.front_low = self._segment(at.f).numbers["high"]
            self._evict()
        while (
            sight.tail < at.f and self._segment(sight.tail).numbers["high"] <= first + reach.start
        ):
            sight.tail += 1
        self.old = [self._segment(number).table for number in range(sight.tail, at.f)]
        self.young = [cell.table for cell in self._coming(last + reach.end)]

    def answer(self, new: New, kept: pa.Table, answers: dict[str, pa.Array]) -> None:
        """From the rows that leave, what is folded, and the rows that come."""
        if self.folded:
            parts = [self._piece(cell) for cell in self.queue.parts()]
            self._write(new, kept, self.old, parts, self.folded, answers)
        if self.replayed:
            self._write(new, kept, self.old + self.middle_rows(), [], self.replayed, answers)

    def middle_rows(self) -> list[pa.Table]:
        """The rows of what is folded."""
        at = self.sight.borders
        return [self._segment(number).table for number in range(at.f, at.e)]

    def middle_keys(self) -> list[list[pa.Array]]:
        """The keys of what is folded, from the cells that are read anyhow."""
        if self.folded:
            return [self._piece(cell).keys for cell in self.queue.parts()]
        return [
            [plain_column(table[name]) for name in self.spec.key] for table in self.middle_rows()
        ]

    def rows_behind(self) -> list[pa.Table]:
        """The rows after what is folded."""
        borders = range(self.sight.borders.e, self.state.head.next)
        return [self._segment(number).table for number in borders]

    def take_in(self, frontier: int) -> None:
        """Fold the segments that every later row will see whole."""
        sight, at, reach = self.sight, self.sight.borders, self.reach
        for number, cell in self._seen_whole(frontier):
            low, high = cell.numbers["low"], cell.numbers["high"]
            sight.back_low = high
            if at.f < at.e or low >= frontier + reach.start:
                sight.front_low = low if at.f == at.e else sight.front_low
                self._push(cell)
            else:  # it begins to leave before it could be of use
                self.queue.start_at(number + 1)
                sight.front_low = high

    def _seen_whole(self, frontier: int) -> Iterator[tuple[int, Cell]]:
        """The segments, of those not folded yet, that every later row will see whole."""
        end = frontier + self.reach.end
        for number in range(self.sight.borders.e, self.state.head.next):
            if self.sight.back_low >= end:
                return
            cell = self._segment(number)
            if cell.numbers["high"] > end:
                return
            yield number, cell

    def _segment(self, number: int) -> Cell:
        return self.state.log[number]

    def _coming(self, until: int) -> list[Cell]:
        """Segments after the queue that begin before a time."""
        low, found = self.sight.back_low, []
        for number in range(self.sight.borders.e, self.state.head.next):
            if low >= until:
                break
            found.append(self._segment(number))
            low = found[-1].numbers["high"]
        return found

    def _write(
        self,
        new: New,
        kept: pa.Table,
        old: list[pa.Table],
        middle: list[Piece],
        outputs: Outputs,
        answers: dict[str, pa.Array],
    ) -> None:
        slots = slots_of([form for _, form in outputs])
        pieces = [self.lifted(table, slots) for table in old]
        pieces += middle
        pieces += [self.lifted(table, slots) for table in self.young]
        if new.beside is not None:
            pieces.append(self.lifted(new.beside, slots))
        arranged = Arranged(pieces, self.lifted(kept, slots), new.offsets, new.are_moments)
        self.write(new, arranged, self._ranges(arranged), outputs, answers)

    def _ranges(self, arranged: Arranged) -> Ranges:
        """Where each of the rows that are asked for looks."""
        return arranged.reach(self.reach.start, self.reach.end)

    # Without anything to fold there is no queue: only its ends are kept.

    def _evict(self) -> None:
        if self.folded:
            self.queue.evict()
        else:
            self.sight.borders.f += 1

    def _push(self, cell: Cell) -> None:
        if self.folded:
            piece = self.lifted(cell.table, self.slots)
            self.queue.push(self._cell(fold([piece], self.slots)))
        else:
            self.sight.borders.e += 1

    def _merged(self, a: Cell, b: Cell) -> Cell:
        return self._cell(fold([self._piece(a), self._piece(b)], self.slots))

    def _cell(self, piece: Piece) -> Cell:
        names = [f"key.{i}" for i in range(len(piece.keys))]
        arrays = list(piece.keys)
        for place, slot in enumerate(self.slots):
            for column, array in enumerate(piece.slots[slot.name]):
                names.append(f"{place}.{column}")
                arrays.append(array)
        return Cell(pa.table(arrays, names=names), {"rows": piece.size})

    def _piece(self, cell: Cell) -> Piece:
        groups: dict[str, list[pa.Array]] = {"key": []}
        for name, column in zip(cell.table.column_names, cell.table.columns, strict=True):
            groups.setdefault(name.partition(".")[0], []).append(plain_column(column))
        slots = {slot.name: groups[str(place)] for place, slot in enumerate(self.slots)}
        times = np.full(cell.numbers["rows"], self.sight.back_low - 1, np.int64)
        return Piece(groups["key"], times, slots)
