"""Rows from before a stream: from a table, or from the state of a checkpoint.

A new checkpoint begins with them, so that windows look back further than the stream does: after a
window was made longer, after an aggregate of another column was added, with another number of
buckets.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

from windrow.columns.carried import (
    PLACE,
    SOURCE,
    TEXT,
    Totals,
    taken_out,
    totals_of,
)
from windrow.columns.cells import decoded
from windrow.columns.contract import longest_of, pairs_of
from windrow.columns.stream_plan import TOTALLED, Head, StreamPlan
from windrow.errors import BadSpecification, Refused
from windrow.slides import Rows
from windrow.spark.envelopes import BUCKET
from windrow.spark.state_lookup import arrow_type
from windrow.times import EPOCH

SOURCES = [T.StructField(SOURCE, T.StringType()), T.StructField(PLACE, T.LongType())]
"""What rows of a checkpoint have besides the stream's columns."""


@dataclass(frozen=True, init=False)
class History:
    """Rows before a stream; those before ``until`` were answered, those from then on will be."""

    rows: Any
    until: int
    """In microseconds."""
    contract: dict[str, Any] | None = None
    """Where they are of a checkpoint: what that was written with."""
    rules: tuple[str, str] | None = None
    """Of a checkpoint of rules: the version and the text of those in force."""

    def __init__(
        self,
        rows: Any,
        until: Any,
        contract: dict[str, Any] | None = None,
        rules: tuple[str, str] | None = None,
    ) -> None:
        if isinstance(until, datetime):
            aware = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
            until = (aware - EPOCH) // timedelta(microseconds=1)
        if not isinstance(until, int):
            raise BadSpecification(f"until= is a datetime, not {until!r}")
        if getattr(rows, "isStreaming", True):
            raise BadSpecification("a history is a Spark table, not a stream")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "until", until)
        object.__setattr__(self, "contract", contract)
        object.__setattr__(self, "rules", rules)

    def refuse_without(self, names: Iterable[str]) -> None:
        """Say which column windows would look at in vain."""
        for name in names:
            if name not in self.rows.columns:
                raise BadSpecification(f"history= has no column {name!r}")

    def refuse(self, plan: StreamPlan) -> None:
        """Say what a checkpoint has not kept, before a window is answered without it."""
        if self.contract is None:
            return
        before, now = {"emit": "rows"} | self.contract, plan.contract()
        way_out = "begin with the history of a table, wr.spark.History(table, until)"
        for name in ("key", "time", "tie", "emit"):
            if before[name] != now[name]:
                what = "emit= or every" if name == "emit" else name
                raise Refused(f"the history was kept for another {what}=: {way_out}")
        new = [name for name in now["kept"] if name not in before["kept"]]
        if new:
            raise Refused(f"the history has no column {', '.join(map(repr, new))}: {way_out}")
        if plan.sequential:
            raise Refused(f"{plan.sequential[0]}: counters are not part of a history: {way_out}")
        longest = longest_of(before)
        known = [before["windows"][label] for label in before["windows"]]
        for label, window in now["windows"].items():
            if plan.spec.windows[label].kind in TOTALLED:
                self._refuse_without_totals(plan, label, window, way_out)
                continue
            rows = isinstance(plan.spec.windows[label], Rows)
            if not (rows and window in known) and plan.reaches[label].start < longest:
                raise Refused(f"window {label!r} looks back further than the history: {way_out}")

    def _refuse_without_totals(
        self, plan: StreamPlan, label: str, window: str, way_out: str
    ) -> None:
        """A window of which totals are kept goes on from them, or not at all."""
        assert self.contract is not None
        kept = pairs_of(self.contract)
        known = [text for n in kept if self.contract["windows"][n] == window for text in kept[n]]
        new = [text for text in plan.pairs[label] if text not in known]
        if new:
            raise Refused(
                f"window {label!r}: the history has no totals of {', '.join(new)} over all rows: "
                f"{way_out}"
            )

    def tells(self, plan: StreamPlan) -> bool:
        """Whether the stream that it was kept for gave out the same answers."""
        if self.contract is None:
            return False
        return self.contract | {"buckets": 0} == plan.contract() | {"buckets": 0}


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
    contract = next(iter(heads.values())).contract
    until = max((h.frontier for h in heads.values() if h.frontier is not None), default=None)
    if until is None:
        raise Refused(f"{checkpoint}: no row was answered yet: begin a new checkpoint")
    made = [name for name in contract["kept"] if name not in schema.names]  # by where()
    kinds = [from_arrow_type(arrow_type(contract["rows"][name])) for name in made]
    schema = T.StructType([*schema.fields, *map(T.StructField, made, kinds)])
    spaces = {
        name: reader.option("stateVarName", name)
        .load(str(checkpoint))
        .select(f"key.{BUCKET}", "user_map_key.number", "user_map_value.cell")
        for name in ("log", "waiting", *(["rules"] if contract.get("emit") == "rules" else []))
    }
    totals = _totals(spaces["log"], heads)
    own = [field for one in totals for field in one.fields()]
    made = [T.StructField(field.name, from_arrow_type(field.type)) for field in own]
    out = T.StructType([*schema.fields, *made, *SOURCES])
    rows = None
    for name, cells in spaces.items():
        part = cells.mapInArrow(_reader(name, heads, schema, totals), out)
        rows = part if rows is None else rows.unionAll(part)
    return History(
        rows, until, contract, _rules(spaces["rules"], heads) if "rules" in spaces else None
    )


def _totals(cells: Any, heads: dict[int, Head]) -> list[Totals]:
    """The windows of which the state has totals, and the columns of these."""
    buckets = {id(head): bucket for bucket, head in heads.items()}

    def cell(head: Head, number: int) -> bytes:
        one = cells.where((F.col(BUCKET) == buckets[id(head)]) & (F.col("number") == number))
        return bytes(one.first()["cell"])

    return totals_of(heads.values(), cell)


def _rules(cells: Any, heads: dict[int, Head]) -> tuple[str, str] | None:
    """The version and the text of the rules in force, which all buckets have."""
    versions = {bucket: head.rules["version"] for bucket, head in heads.items() if head.rules}
    for bucket, _, cell in cells.where(F.col("number") == TEXT).collect():
        if bucket in versions:
            return versions[bucket], decoded(bytes(cell), "rules").table["text"][0].as_py()
    return None


def _reader(
    name: str, heads: dict[int, Head], schema: T.StructType, totals: list[Totals]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    wanted = to_arrow_schema(schema, timezone="UTC")

    def windrow_history(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for bucket, number, cell in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                table = taken_out(name, number, bytes(cell), heads[bucket], wanted, totals)
                yield from table.to_batches()

    return windrow_history
