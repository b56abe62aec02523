"""Rows from before a stream: from a table, or from the state of a checkpoint.

A new checkpoint begins with them, so that windows look back further than the stream does: after a
window was made longer, after an aggregate of another column was added, with another number of
buckets.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from windrow.columns.stream_plan import Head
from windrow.errors import BadSpecification, Refused
from windrow.spark.envelopes import BUCKET

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, init=False)
class History:
    """Rows before a stream; those before ``until`` were answered, those from then on will be."""

    rows: Any
    until: int
    """In microseconds."""

    def __init__(self, rows: Any, until: Any) -> None:
        if isinstance(until, datetime):
            aware = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
            since = aware - _EPOCH
            until = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        if not isinstance(until, int):
            raise BadSpecification(f"until= is a datetime, not {until!r}")
        if getattr(rows, "isStreaming", True):
            raise BadSpecification("a history is a Spark table, not a stream")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "until", until)


def from_checkpoint(checkpoint: str, schema: T.StructType, session: Any = None) -> History:
    """The rows that a stream's state keeps, as the start of another; the stream must have stopped.

    ``schema``: the columns of the stream.
    """
    if session is None:
        from pyspark.sql import SparkSession

        session = SparkSession.active()
    reader = session.read.format("statestore")
    found = reader.option("stateVarName", "head").load(str(checkpoint))
    heads = {
        row[0]: Head.from_bytes(bytes(row[1]))
        for row in found.select(f"key.{BUCKET}", "value.head").collect()
    }
    if not heads:
        raise Refused(f"{checkpoint}: the checkpoint has no state of windrow's yet")
    frontiers = {head.frontier for head in heads.values()}
    contract = next(iter(heads.values())).contract
    if len(contract["timed"]) < len(contract["windows"]):
        raise Refused("rows windows keep the last rows of every key apart: begin anew from a table")
    if contract.get("emit") == "rules":
        raise Refused("which rules fire is not part of a history: begin a new checkpoint")
    until = max((f for f in frontiers if f is not None), default=None)
    if until is None:
        raise Refused(f"{checkpoint}: no row was answered yet: begin a new checkpoint")
    rows = None
    for name in ("log", "waiting"):
        cells = session.read.format("statestore").option("stateVarName", name).load(str(checkpoint))
        some = cells.select(f"key.{BUCKET}", "user_map_key.number", "user_map_value.cell")
        part = some.mapInArrow(_reader(name, heads, until, contract["time"], schema), schema)
        rows = part if rows is None else rows.unionAll(part)
    return History(rows, until)


def _reader(
    name: str, heads: dict[int, Head], until: int, time: str, schema: T.StructType
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    from pyspark.sql.pandas.types import to_arrow_schema

    segments = {bucket: (head.oldest, head.next) for bucket, head in heads.items()}
    frontiers = {bucket: head.frontier for bucket, head in heads.items()}
    wanted = to_arrow_schema(schema, timezone="UTC")

    def windrow_history(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from windrow.columns.cells import decoded

        for batch in batches:
            for bucket, number, cell in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                if name == "log" and not segments[bucket][0] <= number < segments[bucket][1]:
                    continue  # what is folded is folded again
                table = decoded(bytes(cell), f"{name} {number}").table
                if name == "waiting":
                    ticks = table[time].cast(pa.int64()).to_pylist()
                    low = frontiers[bucket]
                    table = table.filter(pa.array([low is None or t >= low for t in ticks]))
                arrays = [
                    table[f.name].cast(f.type)
                    if f.name in table.column_names
                    else pa.nulls(table.num_rows, f.type)
                    for f in wanted
                ]
                yield from pa.table(arrays, names=wanted.names).to_batches()

    return windrow_history
