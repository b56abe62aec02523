"""Runs of rows of one key: keys as dense codes, whether rows come in order already, and sorting.

Rows that come by key and time are only looked at, in parallel; others are sorted by counting codes.
"""

# mypy: disable-error-code="no-untyped-def"

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.column import array_of, numbers_of, plain_column
from windrow.columns.jit import njit
from windrow.columns.ranges import Array, shared_out
from windrow.errors import BadSpecification


def key_codes(table: pa.Table, key: tuple[str, ...]) -> tuple[Array, int]:
    """One dense code per row for its key; a null key is a key, and so is NaN."""
    codes: Array | None = None
    count = 1
    for name in key:
        array = plain_column(table[name])
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
