"""Windows of which something is kept for every key: its last rows, or its total."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.columns.arranged import Arranged, Piece, codes_of, fold, slots_of
from windrow.columns.cells import Cell
from windrow.columns.column import array_of, plain_column
from windrow.columns.jit import njit
from windrow.columns.key_chunks import KeyChunks
from windrow.columns.key_runs import by_code
from windrow.columns.key_totals import rows_of_totals, totals_of_rows
from windrow.columns.sequential import keys_of_runs
from windrow.columns.stream_plan import ticks
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
            self.sight.tail = number + 1
            self.queue.start_at(number + 1)

    def begin(self, totals: pa.Table, rows: pa.Table | None, frontier: int) -> None:
        """With totals from elsewhere, and rows, in order, that are not in them yet."""
        sight, plan = self.sight, self.state.plan
        none = self.lifted(plan.schema.empty_table().select(plan.kept), self.slots)
        shape = totals_of_rows(none, self.slots).schema  # zones, say, change on the way
        sight.totals.keys = totals.num_rows
        self.chunks.write(totals.select(shape.names).cast(shape), set(), set())
        sight.back_low = frontier + self.reach.end
        if rows is not None:
            times = ticks(rows, self.spec)
            self._add(rows.filter(array_of(times < sight.back_low)))

    def go_on(self) -> None:
        """The segments to come are not in the totals."""
        self.sight.tail = self.state.head.next
        self.queue.start_at(self.state.head.next)

    def _add(self, rows: pa.Table) -> None:
        """Rows to the totals of their keys."""
        came = fold([self.lifted(rows, self.slots)], self.slots)
        chunks = self.chunks.holding(came.keys, came.size)
        before = self._table(chunks)
        if before is None:
            whole = totals_of_rows(came, self.slots)
        else:
            near = self.chunks.near(before, came.keys, came.size)
            pieces = self._pieces(before.filter(array_of(near)))
            found = totals_of_rows(fold([*pieces, came], self.slots), self.slots)
            whole = pa.concat_tables([before.filter(array_of(~near)), found])
        self.sight.totals.keys += whole.num_rows - (0 if before is None else before.num_rows)
        self.chunks.write(whole, chunks, chunks)

    def _table(self, chunks: Iterable[int]) -> pa.Table | None:
        """What some chunks hold, of what is still wanted: an aggregate may have been taken away."""
        tables = self.chunks.tables(chunks)
        if not tables:
            return None
        wanted, known = ["key", *(slot.name for slot in self.slots)], tables[0].column_names
        names = [name for slot in wanted for name in known if name.rpartition(".")[0] == slot]
        return pa.concat_tables([table.select(names) for table in tables])

    def _pieces(self, table: pa.Table | None) -> list[Piece]:
        return [] if table is None else [rows_of_totals(table, self.slots, self.sight.back_low)]


_VIEWS: dict[str, type[View]] = {"rows": RowsView, "time": TimeView, "ever": EverView}


def view_of(state: State, label: str, first: int | None = None) -> Any:
    """The view of a window; one that is new looks at the segments from ``first`` on."""
    return _VIEWS[state.plan.spec.windows[label].kind](state, label, first)
