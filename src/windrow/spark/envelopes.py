"""Envelopes: rows of one bucket travel as one binary value, so that a batch crosses in columns.

Runs in Spark's Python workers before and after the stateful operator; imports no numba.
"""

import gc
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.columns.gathered import gathered

BUCKET = "__windrow_bucket"
PAYLOAD = "__windrow_payload"
_GATHERED_ROWS = 1 << 18
_GATHERED_BYTES = 64 << 20
_GIVEN_OUT = 1 << 16


def sealed(table: pa.Table) -> bytes:
    """A table as bytes, to be opened in the same query."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def opened(payload: bytes) -> pa.Table:
    """What was sealed."""
    return pa.ipc.open_stream(pa.py_buffer(payload)).read_all()


@cache
def settled() -> None:
    """A worker has everything loaded: its garbage collector need not look at that again.

    Spark has it collect garbage after every task, which takes a tenth of a second of a core where
    pyarrow and numba are loaded; more than there is to do for a small batch.
    """
    gc.collect()
    gc.freeze()


def packed(
    batches: Iterable[pa.RecordBatch], names: list[str], ids: list[int], marker: str | None
) -> Iterator[pa.RecordBatch]:
    """One envelope for every bucket and some rows; an empty one for every bucket comes first.

    So every bucket is called in every batch that has rows: all have the same frontier. Rows whose
    ``marker`` is true only move the watermark.
    """
    first = True
    for rows in gathered(batches, _enough):
        if first:
            yield envelopes_of(ids, [None] * len(ids))
            first = False
        table = rows.rename_columns([*names, BUCKET])
        if marker is not None:
            table = table.filter(pc.invert(table[marker].fill_null(False)))
        yield from _by_bucket(table, [name for name in names if name != marker], ids)


def _by_bucket(table: pa.Table, names: list[str], ids: list[int]) -> Iterator[pa.RecordBatch]:
    if not table.num_rows:
        return
    buckets = table[BUCKET].combine_chunks()
    codes = np.frombuffer(buckets.buffers()[1], np.int32)[buckets.offset :][: len(buckets)]
    order = np.argsort(codes.astype(np.uint16), kind="stable")  # by radix
    ends = np.cumsum(np.bincount(codes, minlength=len(ids)))
    places = pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order)])
    table = table.select(names).take(places)  # pyarrow.array would import pandas
    payloads = []
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        rows = table.slice(start, end - start).combine_chunks()
        payloads.append(sealed(rows) if rows.num_rows else None)
    filled = [place for place, payload in enumerate(payloads) if payload is not None]
    yield envelopes_of([ids[i] for i in filled], [payloads[i] for i in filled])


def envelopes_of(ids: list[int], payloads: list[bytes | None]) -> pa.RecordBatch:
    """What goes to buckets; nothing only has them called."""
    arrays = [pa.array(ids, pa.int32()), pa.array(payloads, pa.binary())]
    return pa.record_batch(arrays, names=[BUCKET, PAYLOAD])


def _enough(rows: int, size: int) -> bool:
    return rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of envelopes."""
    for batch in batches:
        for payload in batch.column(0):
            if payload.is_valid:
                yield from opened(payload.as_buffer()).to_batches(_GIVEN_OUT)


def bucket_ids(count: int) -> list[int]:
    """A number for every bucket, such that Spark's hash puts each into a partition of its own.

    With as many partitions as buckets, or a multiple; with a divisor of that, evenly. One of them
    is always 0: so a checkpoint with another number of buckets is found out by the first batch.
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < count:
        found.setdefault(spark_hash(number) % count, number)
        number += 1
    return [found[place] for place in range(count)]


def spark_hash(number: int, seed: int = 42) -> int:
    """Murmur3 of a 32-bit integer, as Spark's ``hash`` has it."""
    mask = 0xFFFFFFFF
    k = number * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    h = seed ^ (k * 0x1B873593 & mask)
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
