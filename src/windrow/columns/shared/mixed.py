"""Updates and lookups that come mixed, taken as a batch: first its rows, then its lookups.

A lookup of rows by their numbers has the same answer whatever rows come later, as long as its own
are held: so the rows of a batch can all come first. Then nothing has to be decided for each
operation, lookups do not wait for rows, and a structure's own kernels for many of each are used.
"""

import numpy as np

from windrow.columns.jit import njit

U = np.uint64


@njit(inline="always")
def no_batch(items, size):  # type: ignore[no-untyped-def]
    """Room for the rows of a batch of operations, and for both ends of its lookups."""
    return np.empty(size, items.dtype), np.empty(size, np.int64), np.empty(size, np.int64)


@njit(cache=True, nogil=True)
def parted(updates, items, widths, start, row, rows, lefts, rights):  # type: ignore[no-untyped-def]
    """The rows of a batch, which begins at ``start``, and its lookups; how many of each.

    Every operation is written as both, and counted as what it is: there is no branch to guess.
    """
    count, lookups = 0, 0
    for i in range(start, min(start + len(rows), len(updates))):
        update = int(updates[U(i)])
        rows[U(count)] = items[U(i)]
        lefts[U(lookups)] = row + count - widths[U(i)]
        rights[U(lookups)] = row + count - 1
        count += update
        lookups += 1 - update
    return count, lookups
