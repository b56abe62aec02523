"""Small batches put together, so that what is done for each table is worth it."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Enough = Callable[[int, int], bool]
"""Whether so many rows, of so many bytes, are a table."""


def gathered(batches: Iterable[pa.RecordBatch], enough: Enough) -> Iterator[pa.Table]:
    """Tables of one batch or more each; batches without rows are left out."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if enough(rows, size):
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)
