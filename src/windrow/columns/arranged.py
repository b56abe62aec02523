"""Rows of many keys from several places in one order, with stand-ins among them, and their answers.

Pieces come oldest first: rows that leave, what is folded, rows that come. The rows that are asked
for come last. Only keys that these have are kept; each key is one run, in the order of the pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates import (
    Aggregate,
    GeometricMean,
    Product,
    Spread,
    Sum,
)
from windrow.aggregates.power_sums import PowerSums
from windrow.columns import own
from windrow.columns.answers import BUILT_IN
from windrow.columns.bounds import session_bounds
from windrow.columns.column import (
    Column,
    array_of,
    number_column,
    numbers_of,
    plain_column,
    valid_of,
)
from windrow.columns.forms import Form
from windrow.columns.jit import njit
from windrow.columns.key_runs import by_code, key_codes
from windrow.columns.own_answers import by_python, compiled_answers, whole_products
from windrow.columns.partial_slots import OwnSlot, PythonSlot
from windrow.columns.power_sums import Parts, from_parts
from windrow.columns.prepare import Prepared
from windrow.columns.ranges import Array, Ranges
from windrow.columns.slots import Arrays, Slot, filled
from windrow.columns.sum_slots import MonomialSlot, OddSlot, PowerSlot
from windrow.columns.task import Task, differences, prefix_sums
from windrow.columns.totals import means_of_logarithms


@dataclass
class Piece:
    """Some rows, or stand-ins for some: keys, times, and a slot's columns."""

    keys: Arrays
    time: Array
    slots: dict[str, Arrays]

    @property
    def size(self) -> int:
        """How many."""
        return len(self.time)


class SortedRows(Prepared):
    """A table whose rows are in order already."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.order, self.size = table, None, table.num_rows
        self._columns = {}


def slots_of(forms: Sequence[Form]) -> list[Slot]:
    """The slots of some forms, each once."""
    found: dict[str, Slot] = {}
    for form in forms:
        for slot in (form.rows, *form.slots):
            found[slot.name] = slot
    return list(found.values())


def lifted(table: pa.Table, key: Sequence[str], time: Array, slots: Sequence[Slot]) -> Piece:
    """Rows as a piece."""
    rows = SortedRows(table)
    keys = [plain_column(table[name]) for name in key]
    return Piece(keys, time, {slot.name: slot.lift(rows) for slot in slots})


def codes_of(keys: Sequence[Arrays], sizes: Sequence[int]) -> tuple[Array, int]:
    """One code for every key of several pieces, in the order in which they first come."""
    if not keys[0]:
        return np.zeros(sum(sizes), np.int64), 1
    names = [str(i) for i in range(len(keys[0]))]
    columns = [pa.concat_arrays(parts) for parts in zip(*keys, strict=True)]
    return key_codes(pa.table(dict(zip(names, columns, strict=True))), tuple(names))


def joined(pieces: Sequence[Piece], name: str) -> Arrays:
    """A slot's columns over all pieces."""
    parts = zip(*(piece.slots[name] for piece in pieces), strict=True)
    return [pa.concat_arrays(arrays) for arrays in parts]


def fold(pieces: Sequence[Piece], slots: Sequence[Slot]) -> Piece:
    """All pieces as one: a few stand-ins for every key, at the time of its last row."""
    codes, count = codes_of([p.keys for p in pieces], [p.size for p in pieces])
    order, offsets = by_code(codes, count, np.arange(len(codes)))
    places = array_of(order)
    counts: list[Array] = []
    folded: list[Arrays] = []
    for slot in slots:
        arrays = [array.take(places) for array in joined(pieces, slot.name)]
        found, sizes = slot.fold(arrays, offsets)
        folded.append(found)
        counts.append(sizes)
    most = np.maximum.reduce([np.ones(count, np.int64), *counts])
    time = np.concatenate([p.time for p in pieces])[order]
    latest = time[offsets[1:] - 1]
    first = order[offsets[:-1]]
    keys = [
        pa.concat_arrays(parts).take(array_of(np.repeat(first, most)))
        for parts in zip(*(p.keys for p in pieces), strict=True)
    ]
    spread = {
        slot.name: _spread(found, sizes, most)
        for slot, found, sizes in zip(slots, folded, counts, strict=True)
    }
    return Piece(keys, np.repeat(latest, most), spread)


def _spread(arrays: Arrays, sizes: Array, most: Array) -> Arrays:
    """Entries of every run at the start of its share of rows; the rest is null."""
    if np.array_equal(sizes, most):
        return arrays
    starts = np.cumsum(most) - most
    own_starts = np.cumsum(sizes) - sizes
    place = np.full(int(most.sum()), -1, np.int64)
    entries = np.arange(int(sizes.sum()))
    place[np.repeat(starts - own_starts, sizes) + entries] = entries
    missing = place < 0
    return [array.take(array_of(place, missing)) for array in arrays]


@njit(cache=True, nogil=True)
def _own_bounds(offsets, asked, time, start, end, beside, lo, hi):  # type: ignore[no-untyped-def]
    """For the last rows of every run, which rows have times from t + start up to before t + end.

    ``beside``: these last rows only ask, and are in no window.
    """
    i = 0
    for run in range(len(offsets) - 1):
        low = high = offsets[run]
        last = offsets[run + 1]
        first = last - (asked[run + 1] - asked[run])
        stop = first if beside else last
        for row in range(first, last):
            t = time[row]
            while low < stop and time[low] < t + start:
                low += 1
            while high < stop and time[high] < t + end:
                high += 1
            hi[i] = high
            lo[i] = min(low, high)
            i += 1


@njit(cache=True, nogil=True)
def _own_rows(offsets, asked, time, start, n, ending, beside, lo, hi):  # type: ignore[no-untyped-def]
    """For the last rows of every run, the n rows that end so many ago, none before t + start.

    ``beside``: these last rows only ask: the n rows up to their time.
    """
    i = 0
    for run in range(len(offsets) - 1):
        first, last = offsets[run], offsets[run + 1]
        low = end = first
        begin = last - (asked[run + 1] - asked[run])
        for row in range(begin, last):
            t = time[row]
            if beside:
                while end < begin and time[end] <= t:
                    end += 1
            else:
                end = row + 1
            while low < end and time[low] < t + start:
                low += 1
            hi[i] = max(end - ending, first)
            lo[i] = min(max(end - ending - n, low), hi[i])
            i += 1


class Arranged:
    """Pieces in one order. ``asked`` is where each key's run of rows that are asked for begins.

    ``beside``: what is asked for are moments, and no rows.
    """

    def __init__(
        self, pieces: Sequence[Piece], new: Piece, asked: Array, beside: bool = False
    ) -> None:
        self.pieces = [new, *pieces]  # so that keys have the codes of their runs
        self.asked, self.beside = asked, beside
        runs = len(asked) - 1
        codes, _ = codes_of([p.keys for p in self.pieces], [p.size for p in self.pieces])
        places = np.flatnonzero(codes[new.size :] < runs) + new.size
        places = np.concatenate([places, np.arange(new.size)])
        order, self.offsets = by_code(codes[places], runs, np.arange(len(places)))
        self.places = places[order]
        self.time = np.concatenate([p.time for p in self.pieces])[self.places]

    def reach(self, start: int, end: int) -> Ranges:
        """Where rows look whose window is a stretch of time."""
        ranges = self._ranges()
        where = (self.offsets, self.asked, self.time)
        _own_bounds(*where, start, end, self.beside, ranges.lo, ranges.hi)
        return ranges

    def sessions(self, gap: int, end: int) -> Ranges:
        """Where rows look whose window is a session."""
        ranges = self._ranges()
        counts = np.diff(self.asked)
        begins = self.offsets[1:] - counts
        asked = np.repeat(begins - self.asked[:-1], counts) + np.arange(int(self.asked[-1]))
        stops = begins if self.beside else self.offsets[1:]
        session_bounds(
            *(self.offsets[:-1], stops, self.time, self.asked, self.time[asked]),
            *(gap, end > 0, ranges.lo, ranges.hi),
        )
        return ranges

    def last_rows(self, start: int, n: int, ending: int) -> Ranges:
        """Where rows look whose window is a number of rows, not older than ``start``."""
        ranges = self._ranges()
        where = (self.offsets, self.asked, self.time)
        _own_rows(*where, start, n, ending, self.beside, ranges.lo, ranges.hi)
        return ranges

    def _ranges(self) -> Ranges:
        size = int(self.asked[-1])
        return Ranges(np.empty(size, np.int64), np.empty(size, np.int64), size)

    def slot(self, name: str) -> Arrays:
        """A slot's columns in order."""
        places = array_of(self.places)
        return [array.take(places) for array in joined(self.pieces, name)]


class _Task(Task):
    """An aggregate over rows that may be stand-ins for many."""

    weighted = True

    def __init__(
        self, aggregate: Aggregate, columns: list[Column], rows: Array, ranges: Ranges, least: int
    ) -> None:
        self.aggregate, self.columns, self.ranges = aggregate, columns, ranges
        self.asked, self.least = least, max(1, least)
        self.size = len(rows)
        self.table: Any = self
        self._present = differences(prefix_sums(rows), ranges)

    def present(self) -> Array:
        """How many rows each range stands for."""
        return self._present

    def missing(self, least: int | None = None) -> Array | None:
        """Which ranges have too few rows for an answer."""
        gone = self._present < (self.least if least is None else least)
        return gone if gone.any() else None

    def original_row(self, row: int) -> int:
        """Rows of a stream have no number: the answer's own place."""
        return row


def answer(form: Form, arranged: Arranged, ranges: Ranges, least: int) -> tuple[pa.Array, int]:
    """The answers of the rows that are asked for, and how many of them are too large to be told."""
    aggregate, slot = form.aggregate, form.slot
    rows = filled(arranged.slot(form.rows.name)[0])
    if isinstance(slot, PowerSlot):
        return _moments(form, arranged, _Task(aggregate, [], rows, ranges, least), rows), 0
    if isinstance(slot, MonomialSlot):
        return _powers(form, arranged, _Task(aggregate, [], rows, ranges, least), rows), 0
    arrays = [] if slot is None else arranged.slot(slot.name)
    named = slot is not None and not isinstance(slot, OwnSlot | PythonSlot)
    columns = [number_column(array, _name(aggregate, i)) for i, array in enumerate(arrays * named)]
    task = _Task(aggregate, columns, rows, ranges, least)
    if isinstance(slot, PythonSlot):
        return _by_python(task, slot, arrays), 0
    if isinstance(slot, OwnSlot):
        return _compiled(task, arrays, slot)
    if isinstance(aggregate, GeometricMean):
        return means_of_logarithms(task, task.column.filled(0)), 0
    found = BUILT_IN[type(aggregate)].answers(task)
    if type(aggregate) not in (Sum, Spread) or task.column.is_float:
        return found, 0
    return found, _too_large(task, found)


def _too_large(task: Task, found: pa.Array) -> int:
    """How many answers are missing although there are rows."""
    missing = task.missing()
    return int(found.null_count) - (0 if missing is None else int(missing.sum()))


def _name(aggregate: Aggregate, place: int) -> str:
    return aggregate.columns[place] if place < len(aggregate.columns) else ""


def _compiled(task: Task, arrays: Arrays, slot: OwnSlot) -> tuple[pa.Array, int]:
    valid = valid_of(arrays[0])
    compiled = own.compile_aggregate(task.aggregate, (), valid is not None, lifted=True)
    counts = None if valid is None else prefix_sums(valid)
    inputs = tuple(numbers_of(array) for array in arrays)
    out = compiled_answers(task, compiled, inputs, valid, counts)
    if type(task.aggregate) is Product and not slot.columns[0].is_float:
        task.columns = slot.columns
        found = whole_products(task, out, inputs, valid, counts, lifted=True)
        return found, _too_large(task, found)
    return task.numbers(out), 0


def _moments(form: Form, arranged: Arranged, task: Task, rows: Array) -> pa.Array:
    """Variances from values and squares; odd rows are known by their partials, or not finite."""
    aggregate = task.aggregate
    assert isinstance(aggregate, PowerSums)
    *sums, texts = (arranged.slot(slot.name)[0] for slot in form.slots)
    x, high, low = (filled(part) for part in sums)
    known = _known_partials(form.slots[-1], texts)
    odd = ~np.isfinite(x)
    if odd.any():
        for i in np.flatnonzero(odd).tolist():
            special = aggregate.lift(float(x[i]))
            known[i] = aggregate.combine(known[i], special) if i in known else special
        x, high, low = (np.where(odd, 0.0, part) for part in (x, high, low))
    return _from_parts(task, [[x], [high, low]], rows, known)


def _powers(form: Form, arranged: Arranged, task: Task, rows: Array) -> pa.Array:
    """Moments from sums of monomials; odd rows are known by their partials."""
    *sums, texts = (arranged.slot(slot.name) for slot in form.slots)
    parts = [[filled(array) for array in arrays] for arrays in sums]
    return _from_parts(task, parts, rows, _known_partials(form.slots[-1], texts[0]))


def _from_parts(task: Task, parts: Parts, rows: Array, known: dict[int, Any]) -> pa.Array:
    aggregate = task.aggregate
    assert isinstance(aggregate, PowerSums)
    out = from_parts(aggregate, parts, rows.astype(np.float64), known, task.ranges)
    return array_of(out, mask=task.missing(max(task.least, aggregate.fewest)))


def _known_partials(slot: Slot, texts: pa.Array) -> dict[int, Any]:
    assert isinstance(slot, OddSlot)
    if texts.null_count == len(texts):
        return {}
    read = slot.aggregate.from_bytes
    return {i: read(text) for i, text in enumerate(texts.to_pylist()) if text is not None}


def _by_python(task: Task, slot: PythonSlot, arrays: Arrays) -> pa.Array:
    return by_python(task, slot.rows(arrays), [array.type for array in arrays[:-1]])
