"""Rows that come by one number, some bits of their key's hash above some of their time.

Rows of one key share a prefix, the bits above time. Several keys may share one too, and their rows
then mix; rows of one moment, an equal number, come in any order. Where that leaves rows out of
order by key, time and tie, and only there, they are sorted here.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from windrow.columns.column import numbers_of, plain_column
from windrow.columns.jit import njit
from windrow.columns.key_runs import key_codes, run_starts
from windrow.columns.prepare import tie_keys, time_column
from windrow.columns.ranges import Array
from windrow.rolling import Rolling

ORDER = "__windrow_order"
TIME_BITS = 44


def orders_of(table: pa.Table) -> Array:
    """The numbers that the rows come by."""
    return numbers_of(plain_column(table[ORDER]))


def whole_moments(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables, cut anew so that the rows of a moment are in one of them."""
    waiting: pa.Table | None = None
    for table in tables:
        after = table
        if waiting is not None:
            cut = _moment_that_goes_on(waiting, table)
            if cut:
                yield waiting.slice(0, cut)
            if cut < waiting.num_rows:
                after = pa.concat_tables([waiting.slice(cut), table])
        waiting = after
    if waiting is not None:
        yield waiting


def _moment_that_goes_on(table: pa.Table, after: pa.Table) -> int:
    """Where the moment begins that goes on in the table after; the end if none does."""
    orders = table[ORDER]
    if orders[-1] != after[ORDER][0]:
        return int(table.num_rows)
    if orders[0] == orders[-1]:  # known without a copy, however long it grows
        return 0
    numbers = orders_of(table)
    return int(np.searchsorted(numbers, numbers[-1]))


def arranged(spec: Rolling, table: pa.Table) -> tuple[Array | None, Array, int]:
    """The order by prefix, key, time and tie (None: as they come), and the runs of keys.

    These are where each run begins, the end, and how many runs have the last prefix: the keys that
    may go on.
    """
    assert spec.time is not None
    orders = orders_of(table)
    prefixes = orders >> TIME_BITS
    codes = _codes(table, spec.key)
    time, _ = time_column(table, spec.time, spec.unit)
    unsettled = np.zeros(len(orders), np.bool_)
    _mark(prefixes, codes[1:] != codes[:-1], unsettled)
    mixed = unsettled.copy()
    _mark(orders, time[1:] <= time[:-1] if spec.tie else time[1:] < time[:-1], unsettled)
    places = None
    if unsettled.any():
        parts = run_starts(np.where(mixed, prefixes << TIME_BITS, orders))
        ties = [key for name in spec.tie for key in tie_keys(table, name)]
        places = np.arange(len(orders))
        for key in (*ties[::-1], time, codes):
            _sort_within(parts, unsettled, key, places)
        codes = codes[places]
    runs = run_starts(codes)
    last = int(np.searchsorted(prefixes, prefixes[-1]))
    return places, runs, len(runs) - 1 - int(np.searchsorted(runs, last))


def _codes(table: pa.Table, key: tuple[str, ...]) -> Array:
    """A number for each row that is the same for the same key; one integer key is one already."""
    array = plain_column(table[key[0]])
    if len(key) == 1 and not array.null_count and pa.types.is_integer(array.type):
        return numbers_of(array)
    return key_codes(table, key)[0]


@njit(cache=True, nogil=True)
def _mark(parts, wrong, out):  # type: ignore[no-untyped-def]
    """Mark all rows of a part, a stretch of equal numbers, in which any row is wrong."""
    start = 0
    found = False
    for i in range(1, len(parts) + 1):
        if i == len(parts) or parts[i] != parts[i - 1]:
            if found:
                out[start:i] = True
            start, found = i, False
        elif wrong[i - 1]:
            found = True


@njit(cache=True, nogil=True)
def _sort_within(parts, unsettled, key, places):  # type: ignore[no-untyped-def]
    """Sort the rows of every unsettled part by a key; equal ones stay as they are."""
    for part in range(len(parts) - 1):
        start, end = parts[part], parts[part + 1]
        if unsettled[start]:
            rows = places[start:end].copy()
            places[start:end] = rows[np.argsort(key[rows], kind="mergesort")]
