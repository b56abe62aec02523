"""Runs of rows of one key: keys as dense codes, whether rows come in order already, and sorting.

Rows that come by key and time are only looked at, in parallel; others are put into runs by counting
codes, and those runs whose times are not in order are then sorted, each by itself.
"""

# mypy: disable-error-code="no-untyped-def"

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.column import array_of, numbers_of, plain_column, whole_column
from windrow.columns.jit import njit
from windrow.columns.radix import keyed, sort
from windrow.columns.ranges import Array, shared_out
from windrow.errors import BadSpecification

_FEW = 24
"""So many rows are put in order by insertion."""
_MANY = 2048
"""From so many on a radix sort is faster; it takes fewer than 2**31."""
_NO_MASK = np.empty(0, np.bool_)
_NO_ROWS = np.empty(0, np.int32)


def key_codes(table: pa.Table, key: tuple[str, ...]) -> tuple[Array, int]:
    """One dense code per row for its key; a null key is a key, and so is NaN."""
    codes: Array | None = None
    count = 1
    for name in key:
        array = _by_word(whole_column(table[name]))
        if isinstance(array, pa.ExtensionArray):  # UUIDs, periods: equal if what is stored is
            array = array.storage
        if pa.types.is_floating(array.type):
            array = array.cast(pa.float64()) if pa.types.is_float16(array.type) else array
            array = pc.if_else(pc.is_nan(array), float("nan"), pc.add(array, 0.0))
        try:
            encoded = array.dictionary_encode(null_encoding="encode")
        except pa.ArrowNotImplementedError:
            raise BadSpecification(
                f"key column {name!r} has type {array.type}, which cannot be a key: take a column "
                "of texts, numbers or dates"
            ) from None
        own = numbers_of(encoded.indices).astype(np.int64)
        size = max(1, len(encoded.dictionary))
        if codes is None:
            codes, count = own, size
            continue
        together = array_of(codes * size + own).dictionary_encode()
        codes = numbers_of(together.indices).astype(np.int64)
        count = max(1, len(together.dictionary))
    assert codes is not None
    return codes, count


def _by_word(array: pa.Array) -> pa.Array:
    """A column of a key; of categories their numbers, where no two have the same text."""
    if pa.types.is_dictionary(array.type):
        words = array.dictionary
        try:
            alone = not words.null_count and len(words.unique()) == len(words) <= len(array)
        except pa.ArrowNotImplementedError:
            alone = False
        if alone and not pa.types.is_floating(words.type):
            return array.indices
    return plain_column(array)


def is_sorted(x: Array, threads: int) -> bool:
    """Whether no value is below the one before it."""
    return all(shared_out(len(x), threads, partial(_is_sorted, x)))


@njit(cache=True, nogil=True)
def _is_sorted(x, first, last):
    for i in range(max(first, 1), last):
        if x[i] < x[i - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def _sorted_in_runs(codes, time, first, last):
    """Whether rows already come by code, and within a code by time."""
    for i in range(max(first, 1), last):
        if codes[i] < codes[i - 1]:
            return False
        if len(time) and codes[i] == codes[i - 1] and time[i] < time[i - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def _run_starts(codes, first, last):
    """The rows whose code is another than that of the row before."""
    runs = 0
    for i in range(max(first, 1), last):
        runs += codes[i] != codes[i - 1]
    out = np.empty(runs, np.int64)
    runs = 0
    for i in range(max(first, 1), last):
        if codes[i] != codes[i - 1]:
            out[runs] = i
            runs += 1
    return out


def runs_if_sorted(codes: Array, time: Array | None, threads: int) -> Array | None:
    """Where each run of equal codes begins, and the end; None unless rows come by code and time."""
    times = np.empty(0, np.int64) if time is None else time
    if not all(shared_out(len(codes), threads, partial(_sorted_in_runs, codes, times))):
        return None
    return run_starts(codes, threads)


def run_starts(codes: Array, threads: int = 1) -> Array:
    """Where each run of equal codes begins, and the end."""
    starts = shared_out(len(codes), threads, partial(_run_starts, codes))
    return np.concatenate([[0], *starts, [len(codes)]]).astype(np.int64)


@njit(cache=True, nogil=True)
def by_code(codes, count, order):
    """A stable sort of ``order`` by code, and where each code's run begins."""
    offsets = np.zeros(count + 1, np.int64)
    for code in codes:
        offsets[code + 1] += 1
    for k in range(count):
        offsets[k + 1] += offsets[k]
    place = offsets[:-1].copy()
    out = np.empty(len(codes), np.int64)
    for i in order:
        code = codes[i]
        out[place[code]] = i
        place[code] += 1
    return out, offsets


def by_time(order: Array, offsets: Array, time: Array, threads: int) -> None:
    """Sort each run of ``order`` by time; rows of equal time stay as they come."""
    shared_out(len(order), threads, partial(_by_time, order, offsets, time, _NO_MASK, _NO_ROWS))


@njit(cache=True, nogil=True)
def _merge(rows, times, cut):
    """Put rows in order whose times are, before the cut and from there on."""
    before = rows[:cut].copy()
    one, two = 0, cut
    for i in range(len(rows)):
        if two == len(rows) or (one < cut and times[one] <= times[two]):
            rows[i] = before[one]
            one += 1
        else:
            rows[i] = rows[two]
            two += 1
        if one == cut:
            break


@njit(cache=True, nogil=True)
def _by_time(order, offsets, time, no_mask, no_rows, first, last):
    """The runs that begin in [first, last)."""
    few = np.empty(_FEW, np.int64)
    run = np.searchsorted(offsets[:-1], first)
    while run < len(offsets) - 1 and offsets[run] < last:
        start, end = offsets[run], offsets[run + 1]
        run += 1
        if end - start <= _FEW:
            for i in range(start, end):
                row, j = order[i], i
                at = time[row]
                while j > start and few[j - start - 1] > at:
                    order[j], few[j - start] = order[j - 1], few[j - start - 1]
                    j -= 1
                order[j], few[j - start] = row, at
            continue
        rows = order[start:end]
        times = time[rows]
        falls = cut = 0
        for i in range(1, len(times)):
            if times[i] < times[i - 1]:
                falls += 1
                cut = i
        if not falls:
            continue
        if falls == 1:  # rows that came after others, both in order
            _merge(rows, times, cut)
        elif len(rows) < _MANY or len(rows) >= 1 << 31:
            rows[:] = rows[np.argsort(times, kind="mergesort")]
        else:
            keys, rank = np.empty(len(rows), np.uint64), np.empty(len(rows), np.int32)
            keyed(times, no_mask, False, keys, no_rows)
            sort(keys, no_rows, False, rank)
            came = rows.copy()
            for i in range(len(rows)):
                rows[rank[i]] = came[i]


@njit(cache=True, nogil=True)
def peers(offsets, time):
    """The rows that are not the only one of their run and time, and a number for each such group.

    Without times all rows of a run are of one.
    """
    count = 0
    for counted in (False, True):
        places = np.empty(count if counted else 0, np.int64)
        groups = np.empty(len(places), np.int64)
        count = 0
        for run in range(len(offsets) - 1):
            first = offsets[run]
            for end in range(first + 1, offsets[run + 1] + 1):
                if end < offsets[run + 1] and (len(time) == 0 or time[end] == time[first]):
                    continue
                if end - first > 1:
                    if counted:
                        places[count : count + end - first] = np.arange(first, end)
                        groups[count : count + end - first] = first
                    count += end - first
                first = end
    return places, groups
