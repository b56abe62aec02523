"""One key's answers from a stream's state, through Spark's state reader; nothing is written."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.aggregates import REGISTRY, Aggregate
from windrow.columns.approx.hashes import key_hashes
from windrow.columns.cells import decoded
from windrow.columns.contract import pairs_of
from windrow.columns.key_chunks import chunk_of
from windrow.columns.key_totals import key_answers
from windrow.columns.stream_plan import (
    TOTALLED,
    Head,
    aggregate_parts,
    columns_of,
    overflow_is_null,
)
from windrow.columns.stretch import Reach
from windrow.errors import BadValue, Refused
from windrow.rolling import Rolling
from windrow.serving import Current
from windrow.slides import Rows, Session, Time
from windrow.spark.envelopes import bucket_ids, opened, sealed
from windrow.spark.keyed import key_expression
from windrow.times import Duration, moment

_FOUND = T.StructType(
    [T.StructField("number", T.LongType()), T.StructField("payload", T.BinaryType())]
)


def lookup(checkpoint: str, key: Any, features: Rolling | None, session: Any) -> Current:
    """The answers of a key as of the frontier, and that time; see ``windrow.spark.lookup``."""
    reader = _Reader(session, str(checkpoint))
    heads = reader.heads()
    if not heads:
        raise Refused(f"{checkpoint}: the checkpoint has no state of windrow's yet")
    contract = next(iter(heads.values())).contract
    spec = specification(contract) if features is None else _agreed(features, contract)
    frontier = max((h.frontier for h in heads.values() if h.frontier is not None), default=None)
    if frontier is None:
        raise Refused(f"{checkpoint}: no row was answered yet, there is no frontier to look from")
    own = _key_columns(spec, contract, key)
    bucket = _bucket_of(session, spec, own, contract["buckets"])
    head = heads[bucket]
    wanted = set(range(head.oldest, head.next))
    shelves = {label: sight.recent for label, sight in head.sights.items() if sight.filled}
    shelves |= {
        label: sight.chunk(int(chunk_of(_hashes(own), sight.totals.count)[0]))
        for label, sight in head.sights.items()
        if sight.totals.count
    }
    cells = reader.rows(bucket, wanted | set(shelves.values()), own)
    label_row = own.append_column(
        str(spec.time),
        pa.array([frontier], pa.int64()).cast(arrow_type(contract["rows"][spec.time])),
    )
    timed = [cells[n] for n in sorted(wanted) if n in cells]
    values: dict[str, Any] = {}
    for label, window in spec.windows.items():
        tables = timed
        kept = cells.get(shelves.get(label, -1))
        if window.kind in TOTALLED:
            behind = [
                cells[n] for n in sorted(wanted) if n in cells and n >= head.sights[label].borders.e
            ]
            values |= _from_totals(spec, label, head, kept, behind, label_row, frontier)
            continue
        if isinstance(window, Rows):
            tables = [] if kept is None else [kept]
        values |= _answers(spec, label, tables, label_row, contract)
    ordered = {name: values[name] for name, _, _ in spec.outputs}
    return Current(ordered, moment(frontier))


def _answers(
    spec: Rolling, label: str, tables: list[pa.Table], labels: pa.Table, contract: dict[str, Any]
) -> dict[str, Any]:
    """One window's answers before the frontier; rows of equal time are in their order already."""
    one = Rolling(
        key=spec.key,
        time=spec.time,
        windows={label: spec.windows[label]},
        aggregates=[aggregate for _, aggregate, over in spec.outputs if over == label],
        min_rows=spec.min_rows,
        unit=spec.unit,
        threads=1,
    )
    found = one.as_of(_events(tables, contract), labels, on=spec.time)
    return {name: found[name][0].as_py() for name, _, _ in one.outputs}


def _events(tables: list[pa.Table], contract: dict[str, Any]) -> pa.Table:
    """Rows from several cells, with the columns that are kept."""
    kept = {name: arrow_type(contract["rows"][name]) for name in contract["kept"]}
    empty = pa.table({name: pa.array([], kind) for name, kind in kept.items()})
    return pa.concat_tables([empty, *(t.select(list(kept)) for t in tables)]).combine_chunks()


def _from_totals(
    spec: Rolling,
    label: str,
    head: Head,
    totals: pa.Table | None,
    behind: list[pa.Table],
    key: pa.Table,
    frontier: int,
) -> dict[str, Any]:
    """The answers of a window of which totals are kept."""
    start, end = head.contract["reaches"][label]
    known = None if totals is None else (totals, head.sights[label].back_low)
    rows = _events(behind, head.contract)
    found = key_answers(spec, label, Reach(label, "time", start, end), known, rows, key, frontier)
    return {name: array[0].as_py() for name, array in found.items()}


def _hashes(key: pa.Table) -> Any:
    return key_hashes([column.combine_chunks() for column in key.columns], 1)


class _Reader:
    """Reads of one committed batch, so that they agree while the stream goes on."""

    def __init__(self, session: Any, checkpoint: str) -> None:
        self.session, self.checkpoint = session, checkpoint
        operators = session.read.format("state-metadata").load(checkpoint)
        self.batch = operators.agg(F.max("maxBatchId")).first()[0]
        if self.batch is None or self.batch < 0:
            raise Refused(f"{checkpoint}: the checkpoint has no batch that is done yet")

    def _read(self, name: str) -> Any:
        reader = self.session.read.format("statestore").option("stateVarName", name)
        return reader.option("batchId", self.batch).load(self.checkpoint)

    def heads(self) -> dict[int, Head]:
        rows = self._read("head").select("key.*", "value.head").collect()
        return {row[0]: Head.from_bytes(bytes(row[1])) for row in rows}

    def rows(self, bucket: int, numbers: set[int], own: pa.Table) -> dict[int, pa.Table]:
        """The key's rows in some cells of a bucket; cells are opened where they are."""
        cells = self._read("log").select("key.*", "user_map_key.number", "user_map_value.cell")
        cells = cells.toDF("bucket", "number", "cell").where(F.col("bucket") == bucket)
        if not numbers:
            return {}
        cells = cells.where(F.col("number").isin(sorted(numbers))).select("number", "cell")
        found = cells.mapInArrow(_filter(own), _FOUND).collect()
        return {row[0]: opened(bytes(row[1])) for row in found}


def _filter(own: pa.Table) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    payload = sealed(own)

    def windrow_lookup(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key = opened(payload)
        for batch in batches:
            numbers, cells = (column.to_pylist() for column in batch.columns)
            for number, cell in zip(numbers, cells, strict=True):
                rows = _of_key(decoded(cell, f"segment {number}").table, key)
                if rows.num_rows:
                    arrays = [pa.array([number], pa.int64()), pa.array([sealed(rows)], pa.binary())]
                    yield pa.record_batch(arrays, names=["number", "payload"])

    return windrow_lookup


def _of_key(table: pa.Table, key: pa.Table) -> pa.Table:
    """The rows of a key, as keys are the same: null is null, NaN is NaN, -0.0 is 0.0."""
    for place, name in enumerate(key.column_names):
        totals = f"key.{place}"  # as totals call it
        value, column = key[name][0], table[totals if totals in table.column_names else name]
        if not value.is_valid:
            same = column.is_null()
        elif pa.types.is_floating(column.type) and value.as_py() != value.as_py():
            same = pa.compute.is_nan(column)
        else:
            same = pa.compute.equal(column, value)
        table = table.filter(same)
    return table


def _bucket_of(session: Any, spec: Rolling, own: pa.Table, buckets: int) -> int:
    """The number of the bucket that Spark put the key's rows into."""
    if not spec.key:
        return bucket_ids(1)[0]
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(own.schema, prefer_timestamp_ntz=True)
    row = session.createDataFrame(own, schema)
    keys = [key_expression(schema, name) for name in spec.key]
    place = row.select(F.pmod(F.xxhash64(*keys), F.lit(buckets)).cast("int")).first()[0]
    return bucket_ids(buckets)[int(place)]


def _key_columns(spec: Rolling, contract: dict[str, Any], key: Any) -> pa.Table:
    """The key as a table of one row, with the types that the stream has."""
    parts = (
        key if isinstance(key, tuple | list) else (() if key is None and not spec.key else (key,))
    )
    if isinstance(key, dict):
        parts = [key.get(name) for name in spec.key]
    if len(parts) != len(spec.key):
        raise BadValue(f"the key is ({', '.join(spec.key)}): {key!r} has {len(parts)} parts")
    columns = {}
    for name, part in zip(spec.key, parts, strict=True):
        kind = arrow_type(contract["rows"][name])
        try:
            columns[name] = pa.array([part], kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise BadValue(f"key column {name!r} is of type {kind}: {part!r} is not") from error
    if not columns:
        return pa.table({"__windrow_none": [0]}).select([])
    return pa.table(columns)


_TIMESTAMP = re.compile(r"timestamp\[(\w+)(?:, tz=(.+))?\]")
_DECIMAL = re.compile(r"decimal128\((\d+), (\d+)\)")


def arrow_type(text: str) -> pa.DataType:
    """An Arrow type from its name, as far as Spark has them in columns of a key or a value."""
    if found := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(found[1], found[2])
    if found := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(found[1]), int(found[2]))
    try:
        return pa.type_for_alias(text)
    except ValueError as error:
        raise Refused(f"a column of type {text} cannot be looked up") from error


# --- the specification that a state was written with ----------------------------------------------


def _agreed(features: Rolling, contract: dict[str, Any]) -> Rolling:
    """The specification, which must be the one of the state."""
    spec = features.plain()[0].part(lambda aggregate, _: aggregate.kind != "sequential")
    overflow_is_null(spec)
    for what, mine, theirs in (
        ("key", list(spec.key), contract["key"]),
        ("time", spec.time, contract["time"]),
        ("windows", {k: repr(w) for k, w in spec.windows.items()}, _windows(contract)),
        ("aggregates", _once(map(_text, spec.aggregates)), _once(contract["aggregates"])),
        (
            "aggregates over windows",
            _pairs(spec),
            {k: _once(v) for k, v in pairs_of(contract).items()},
        ),
    ):
        if mine != theirs:
            raise Refused(
                f"the state was written with other {what}: {theirs}, the specification has {mine}"
            )
    return spec


def _windows(contract: dict[str, Any]) -> dict[str, str]:
    """The windows that rows are kept for."""
    return {label: contract["windows"][label] for label in pairs_of(contract)}


def _pairs(spec: Rolling) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {label: [] for label in spec.windows}
    for _, aggregate, label in spec.outputs:
        found[label].append(_text(aggregate))
    return {label: _once(texts) for label, texts in found.items()}


def _once(texts: Iterable[str]) -> list[str]:
    """Each once: an aggregate may be asked for under several names, which a state has not."""
    return list(dict.fromkeys(texts))


def _text(aggregate: Aggregate) -> str:
    return f"{aggregate.identification}({','.join(aggregate.columns)})"


def specification(contract: dict[str, Any]) -> Rolling:
    """The specification that a state names: windrow's own aggregates, without their aliases."""
    windows = {label: _built(text) for label, text in _windows(contract).items()}
    texts = _once(contract["aggregates"])
    aggregates = [_aggregate(text, contract["kept"]) for text in texts]
    if "pairs" in contract:
        aggregates = [
            aggregate.over(*(label for label in windows if text in contract["pairs"][label]))
            for aggregate, text in zip(aggregates, texts, strict=True)
        ]
    spec = Rolling(
        key=contract["key"] or None,
        time=contract["time"],
        tie="any",
        windows=windows,
        aggregates=aggregates,
    )
    return _agreed(spec, contract)


def _aggregate(text: str, known: list[str]) -> Aggregate:
    owner, description, names = aggregate_parts(text)
    kind = REGISTRY.get(owner.removeprefix("windrow."))
    if kind is None or not owner.startswith("windrow."):
        raise Refused(
            f"{owner} is no aggregate of windrow's: name the specification, lookup(..., features)"
        )
    call = ast.parse(description, mode="eval").body
    assert isinstance(call, ast.Call)
    options = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    columns = columns_of(names, known)
    if columns is None:
        raise Refused(f"{text}: no such columns: name the specification, lookup(..., features)")
    return kind(*columns, **options)


_PARTS: dict[str, Any] = {"Time": Time, "Session": Session, "Rows": Rows, "Duration": Duration}


def _built(text: str) -> Any:
    """A window from how it is shown; nothing else is ever called."""
    return _made(ast.parse(text, mode="eval").body)


def _made(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _PARTS[node.func.id](**{str(k.arg): _made(k.value) for k in node.keywords})
    return ast.literal_eval(node)
