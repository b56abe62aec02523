"""Windows of which something is kept for every key: its last rows, or its total."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns.arranged import Arranged, Piece, codes_of, fold, joined, slots_of
from windrow.columns.cells import Cell
from windrow.columns.column import array_of, numbers_of, plain_column
from windrow.columns.jit import njit
from windrow.columns.key_chunks import KeyChunks
from windrow.columns.key_runs import by_code
from windrow.columns.key_totals import LAST, rows_of_totals, totals_of_rows
from windrow.columns.ranges import Ranges
from windrow.columns.sequential import keys_of_runs
from windrow.columns.stream_plan import FOR_EVER, ticks
from windrow.columns.views import New, State, TimeView, View
from windrow.slides import Rows


class RowsView(View):
    """A number of rows behind every row, none older than a horizon; the last rows are one cell."""

    @property
    def window(self) -> Rows:
        """The window."""
        window = self.spec.windows[self.label]
        assert isinstance(window, Rows)
        return window

    @property
    def old(self) -> list[pa.Table]:
        """The last rows of every key."""
        return [self.shelf[0].table] if self.sight.filled else []

    @property
    def young(self) -> list[pa.Table]:
        """Rows come with the turn, from nowhere else."""
        return []

    def middle_keys(self) -> list[list[pa.Array]]:
        """Nothing is folded."""
        return []

    def rows_behind(self) -> list[pa.Table]:
        """Rows come with the turn, from nowhere else."""
        return []

    def answer(self, new: New, kept: pa.Table, answers: dict[str, pa.Array]) -> None:
        """From the last rows of every key."""
        slots = slots_of([form for _, form in self.outputs])
        pieces = [self.lifted(table, slots) for table in self.old]
        if new.beside is not None:
            pieces.append(self.lifted(new.beside, slots))
        arranged = Arranged(pieces, self.lifted(kept, slots), new.offsets, new.are_moments)
        ranges = arranged.last_rows(self.reach.start, self.window.n, self.window.ending)
        self.write(new, arranged, ranges, self.outputs, answers)

    def keep(self, kept: pa.Table, frontier: int) -> None:
        """The last rows of every key, as far as later rows can see them."""
        recent = [table.select(kept.column_names).cast(kept.schema) for table in self.old]
        whole = pa.concat_tables([*recent, kept]).combine_chunks()
        most = self.window.n + self.window.ending  # what comes next needs one less; lookups do not
        times = ticks(whole, self.spec)
        codes, count = codes_of(
            [[plain_column(whole[name]) for name in self.spec.key]], [len(times)]
        )
        order, offsets = by_code(codes, count, np.arange(len(codes)))
        chosen = order[_last_of_each(times[order], offsets, most, frontier + self.reach.start)]
        if not kept.num_rows and len(chosen) == whole.num_rows:
            return  # a turn without rows, in which none left
        self.shelf[0] = Cell(whole.take(array_of(chosen)), {})
        self.sight.filled = True


@njit(cache=True, nogil=True)
def _last_of_each(time, offsets, most, low):  # type: ignore[no-untyped-def]
    """Which rows are among the last of their run, and not before a time."""
    keep = np.zeros(len(time), np.bool_)
    for run in range(len(offsets) - 1):
        for i in range(max(offsets[run], offsets[run + 1] - most), offsets[run + 1]):
            keep[i] = time[i] >= low
    return keep


class EverView(TimeView):
    """All rows so far: what they amount to, for every key, in chunks of keys.

    The segments that every later row will see are put to the totals, and nothing ever leaves.
    """

    def __init__(self, state: State, label: str, first: int | None = None) -> None:
        super().__init__(state, label, first)
        self.chunks = KeyChunks(self.shelf, self.sight.totals)

    @property
    def lasts(self) -> bool:
        """Not at ticks, which would never end."""
        return self.state.plan.emission != "ticks"

    @property
    def since(self) -> int:
        """All rows: they go to the totals."""
        return -FOR_EVER

    def look(self, first: int, last: int) -> None:
        """Find the rows behind what is in the totals."""
        self.young = [cell.table for cell in self._coming(last + self.reach.end)]
        self.old = []

    def answer(self, new: New, kept: pa.Table, answers: dict[str, pa.Array]) -> None:
        """From the totals of the keys that are asked for, and the rows that come."""
        runs = len(new.offsets) - 1
        keys = keys_of_runs(new.table, self.spec.key, new.offsets[:-1])
        table = self._table(self.chunks.holding(keys, runs))
        if table is not None:
            table = table.filter(array_of(self.chunks.near(table, keys, runs)))
        self._write(new, kept, [], self._pieces(table), self.folded, answers)

    def middle_rows(self) -> list[pa.Table]:
        """None is kept."""
        return []

    def middle_keys(self) -> list[list[pa.Array]]:
        """The keys of all totals."""
        return [piece.keys for piece in self._pieces(self._table(range(self.sight.totals.count)))]

    def take_in(self, frontier: int) -> None:
        """Put the segments to the totals that every later row will see whole."""
        for number, cell in self._seen_whole(frontier):
            self._add(cell.table)
            self.sight.back_low = cell.numbers["high"]
            self._pass(number + 1)

    def begin(self, totals: pa.Table, rows: pa.Table | None, frontier: int) -> None:
        """With totals from elsewhere, and rows, in order, that are not in them yet."""
        sight, plan = self.sight, self.state.plan
        none = self.lifted(plan.schema.empty_table().select(plan.kept), self.slots)
        shape = self._kept(none).schema  # zones, say, change on the way
        sight.totals.keys = totals.num_rows
        self.chunks.write(totals.select(shape.names).cast(shape), set(), set())
        sight.back_low = frontier + self.reach.end
        if rows is not None:
            rows = rows.filter(array_of(ticks(rows, self.spec) < sight.back_low))
            if rows.num_rows:
                self._add(rows)

    def go_on(self) -> None:
        """The segments to come are not in the totals."""
        self._pass(self.state.head.next)

    def _pass(self, number: int) -> None:
        """The segments before a number are in the totals, and their rows of no more use."""
        self.sight.tail = number
        self.queue.start_at(number)

    def _add(self, rows: pa.Table) -> None:
        """Rows to the totals of their keys."""
        came = self._came(rows)
        chunks = self.chunks.holding(came.keys, came.size)
        before = self._table(chunks)
        if before is None:
            whole = self._kept(self._total([came]))
        else:
            near = self.chunks.near(before, came.keys, came.size)
            pieces = self._pieces(before.filter(array_of(near)))
            found = self._kept(self._total([*pieces, came]))
            whole = pa.concat_tables([before.filter(array_of(~near)), found])
        self._write_chunks(whole, before, chunks)

    def _write_chunks(self, table: pa.Table, before: pa.Table | None, chunks: set[int]) -> None:
        self.sight.totals.keys += table.num_rows - (0 if before is None else before.num_rows)
        self.chunks.write(table, chunks, chunks)

    def _came(self, rows: pa.Table) -> Piece:
        """Rows on their way to the totals: one of each key."""
        return self._total([self.lifted(rows, self.slots)])

    def _total(self, pieces: list[Piece]) -> Piece:
        """What rows and stand-ins amount to."""
        return fold(pieces, self.slots)

    def _kept(self, piece: Piece) -> pa.Table:
        """Totals as they are kept."""
        return totals_of_rows(piece, self.slots)

    def _table(self, chunks: Iterable[int]) -> pa.Table | None:
        """What some chunks hold, of what is still wanted: an aggregate may have been taken away."""
        tables = self.chunks.tables(chunks)
        if not tables:
            return None
        wanted, known = ["key", *(s.name for s in self.slots), "last"], tables[0].column_names
        names = [name for slot in wanted for name in known if name.rpartition(".")[0] == slot]
        return pa.concat_tables([table.select(names) for table in tables])

    def _pieces(self, table: pa.Table | None) -> list[Piece]:
        return [] if table is None else [rows_of_totals(table, self.slots, self.sight.back_low)]


class SessionView(EverView):
    """The rows since the last pause: what they amount to, and when the last one was.

    A pause begins a key's total anew. Where it matters when sessions end, the log keeps rows for as
    long as one may go on without another. A turn looks through one chunk for those that are over.
    """

    @property
    def lasts(self) -> bool:
        """Until the gap after its last row has passed."""
        return True

    @property
    def looks_back(self) -> bool:  # type: ignore[override]
        """Whether answers are asked for when no row comes."""
        return self.state.plan.emission in ("ticks", "changes")

    @property
    def gap(self) -> int:
        """A longer pause ends a session."""
        return -self.reach.start

    def look(self, first: int, last: int) -> None:
        """Find the rows behind what is in the totals, and those that sessions go on from."""
        super().look(first, last)
        sight = self.sight
        if self.looks_back:
            while sight.tail < sight.borders.e and self._is_over(sight.tail, first):
                sight.tail += 1
            self.old = [self._segment(n).table for n in range(sight.tail, sight.borders.e)]

    def _is_over(self, number: int, first: int) -> bool:
        return self._segment(number).numbers["high"] <= first + self.reach.start

    def middle_keys(self) -> list[list[pa.Array]]:
        """None: where a session goes on, the log has its last row."""
        return []

    def take_in(self, frontier: int) -> None:
        """Put segments to the totals; look for some that are over."""
        super().take_in(frontier)
        at = self.sight.totals
        if not at.count:
            return
        swept = {at.swept % at.count}
        at.swept += 1
        table = self._table(swept)
        assert table is not None
        behind = self.sight.borders.e < self.state.head.next  # rows that may go on with a session
        low = min(frontier, self.sight.back_low) if behind else frontier
        alive = numbers_of(plain_column(table[LAST])) >= low - self.gap
        if not alive.all():
            self._write_chunks(table.filter(array_of(alive)), table, swept)

    def _pass(self, number: int) -> None:
        """The segments before a number are in the totals."""
        if not self.looks_back:
            self.sight.tail = number
        self.queue.start_at(number)

    def _ranges(self, arranged: Arranged) -> Ranges:
        """Where each of the rows that are asked for looks."""
        return arranged.sessions(self.gap, self.reach.end)

    def _came(self, rows: pa.Table) -> Piece:
        """Rows on their way to the totals: all, since the first may go on with a session."""
        return self.lifted(rows, self.slots)

    def _total(self, pieces: list[Piece]) -> Piece:
        """What every key's last session amounts to."""
        codes, count = codes_of([p.keys for p in pieces], [p.size for p in pieces])
        order, offsets = by_code(codes, count, np.arange(len(codes)))
        time = np.concatenate([p.time for p in pieces])
        places = order[_last_sessions(time[order], offsets, self.gap)]
        chosen = array_of(places)
        keys = [
            pa.concat_arrays(parts).take(chosen)
            for parts in zip(*(p.keys for p in pieces), strict=True)
        ]
        slots = {
            slot.name: [array.take(chosen) for array in joined(pieces, slot.name)]
            for slot in self.slots
        }
        return fold([Piece(keys, time[places], slots)], self.slots)

    def _kept(self, piece: Piece) -> pa.Table:
        """Totals as they are kept, with the time of the last row."""
        return totals_of_rows(piece, self.slots, session=True)


@njit(cache=True, nogil=True)
def _last_sessions(time, offsets, gap):  # type: ignore[no-untyped-def]
    """Which rows come after the last long pause of their run."""
    keep = np.zeros(len(time), np.bool_)
    for run in range(len(offsets) - 1):
        i = offsets[run + 1] - 1
        while i >= offsets[run]:
            keep[i] = True
            if i > offsets[run] and time[i] - time[i - 1] > gap:
                break
            i -= 1
    return keep


_VIEWS: dict[str, type[View]] = {
    "rows": RowsView,
    "time": TimeView,
    "ever": EverView,
    "session": SessionView,
}


def view_of(state: State, label: str, first: int | None = None) -> Any:
    """The view of a window; one that is new looks at the segments from ``first`` on."""
    return _VIEWS[state.plan.spec.windows[label].kind](state, label, first)
