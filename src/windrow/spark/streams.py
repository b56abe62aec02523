"""Spark streams: rows packed by bucket of keys, one stateful operator, answers unpacked."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from windrow.aggregates import Aggregate
from windrow.columns.carried import is_carried
from windrow.columns.forms import Form, form_of
from windrow.columns.partial_slots import PythonSlot
from windrow.columns.stream_plan import StreamPlan, overflow_is_null, reaches_of
from windrow.errors import BadSpecification, Refused
from windrow.rolling import Rolling
from windrow.sequential import metadata
from windrow.slides import Rows, Time
from windrow.spark import masked
from windrow.spark.axis import axis, clock, quoted
from windrow.spark.envelopes import (
    BUCKET,
    PAYLOAD,
    bucket_ids,
    envelopes_of,
    packed,
    settled,
    unpacked,
)
from windrow.spark.keyed import crossed, key_expression, named
from windrow.spark.schema import RESERVED, can_cross, output_schema, used_columns
from windrow.spark.stream_history import History
from windrow.spark.stream_state import refuse_other_providers
from windrow.spark.stream_worker import METRICS, OUTPUT, BucketProcessor, Extras
from windrow.spark.tables import kinds_of, ready, refuse_without_tie
from windrow.support import refuse_on_streams
from windrow.times import NANOSECONDS, Duration, clock_of, duration

BUCKETS = 8
OBSERVED = "windrow"
_WATERMARK = f"{RESERVED}watermark"
_END_OF_TIME = "9999-01-01 00:00:00"
_DELAY = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class StreamOptions:
    """What only streams need to know."""

    buckets: int = BUCKETS
    late: str | None = None
    flush: str | None = None
    gone: str | None = None
    idle_after: Any = None
    history: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.buckets, int) or not 1 <= self.buckets <= 1 << 15:
            raise BadSpecification(f"buckets= is a number from 1 to 32768, not {self.buckets!r}")
        for name in ("late", "flush", "gone"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise BadSpecification(f"{name}= is the name of a column, not {value!r}")
        if self.history is not None and not isinstance(self.history, History):
            raise BadSpecification(
                f"history= is wr.spark.History(table, until=...), not {self.history!r}"
            )
        self.idle_milliseconds  # noqa: B018 - refuses what is no length of time

    @property
    def idle_milliseconds(self) -> int | None:
        """After how long without rows the clock moves the frontier on."""
        if self.idle_after is None:
            return None
        found = duration(self.idle_after, "idle_after=")
        if not isinstance(found, Duration) or found.nanoseconds <= 0:
            raise BadSpecification(
                f'idle_after= is a length of time such as "1 minute", not {self.idle_after!r}'
            )
        return -(-found.nanoseconds // 1_000_000)


def options_of(given: dict[str, Any]) -> StreamOptions:
    """The options as given, each of them known."""
    known = [field.name for field in fields(StreamOptions)]
    for name in given:
        if name not in known:
            raise BadSpecification(f"there is no option {name!r} for streams: {', '.join(known)}")
    return StreamOptions(**given)


def apply(spec: Rolling, df: Any, **given: Any) -> Any:
    """The stream with its answers, as its specification says when they come out."""
    options = options_of(given)
    made: list[str] = []
    if spec.masked:
        options = replace(options, history=masked.with_history(options.history, spec))
        spec, df, _, made = masked.plain(spec, df)
    spec, schema = ready(spec, df)
    plan, out = planned(spec, schema, options, tuple(made))
    refuse_other_providers(df.sparkSession)
    rows = watermarked(df, spec, schema, options)
    if not spec.answers_rows:  # what does not come out need not travel
        names = [*plan.schema.names, *([] if options.flush is None else [options.flush])]
        rows, schema = rows.select(*map(quoted, names)), T.StructType([schema[n] for n in names])
    envelopes = enveloped(rows, spec, schema, options)
    processor = BucketProcessor(plan, kinds_of(spec, out), extras_of(options, plan))
    before = before_it(plan, T.StructType([schema[n] for n in plan.schema.names]), options)
    turns = taken_in_turns(envelopes, processor, options, before)
    return turns.select("payload").mapInArrow(unpacker(spec), out).drop(*made)


def enveloped(rows: Any, spec: Rolling, schema: T.StructType, options: StreamOptions) -> Any:
    """Rows packed by bucket."""
    packer = _packer(spec, schema, options)
    names = [*schema.names, BUCKET]
    return crossed(rows.withColumn(BUCKET, _bucket(spec, schema, options)), packer, names, SENT)


def before_it(plan: StreamPlan, schema: T.StructType, options: StreamOptions) -> Any:
    """A history packed as the stream is; columns that it lacks are null."""
    if options.history is None:
        return None
    options.history.refuse(plan)
    spec, table = plan.spec, options.history.rows
    options.history.refuse_without(used_columns(spec))
    columns = [
        (F.col(quoted(f.name)) if f.name in table.columns else F.lit(None))
        .cast(f.dataType)
        .alias(f.name)
        for f in schema.fields
    ]
    extra = [field for field in table.schema if is_carried(field.name)]
    schema = T.StructType([*schema.fields, *extra])
    rows = table.select(*columns, *(field.name for field in extra))
    plain = StreamOptions(buckets=options.buckets)
    sent = enveloped(rows, spec, schema, plain)
    # a history without rows, too, says up to when all was answered
    every = table.sparkSession.range(1).mapInArrow(_packer_of_nothing(plan.buckets), SENT)
    return sent.union(every).groupBy(BUCKET)


def taken_in_turns(
    envelopes: Any, processor: Any, options: StreamOptions, before: Any = None
) -> Any:
    """Every bucket's turns, with their metrics."""
    mode = "eventTime" if options.idle_after is None else "processingTime"
    groups = envelopes.groupBy(BUCKET)
    turns = groups.transformWithState(processor, OUTPUT, "append", mode, before)
    return turns.observe(OBSERVED, *_metrics())


def extras_of(options: StreamOptions, plan: StreamPlan) -> Extras:
    """What the stateful operator must know besides the plan."""
    known = Extras(options.late, options.gone, options.idle_milliseconds)
    past = options.history
    if past is None:
        return known
    return replace(known, until=past.until, told=past.tells(plan), rules=past.rules)


SENT = T.StructType(
    [T.StructField(BUCKET, T.IntegerType()), T.StructField(PAYLOAD, T.BinaryType())]
)


def planned(
    spec: Rolling, schema: T.StructType, options: StreamOptions, made: tuple[str, ...] = ()
) -> tuple[StreamPlan, T.StructType]:
    """What is to be computed, and the columns that come out; refuses what cannot be.

    ``made``: columns that are not the stream's, but made for aggregates of some rows.
    """
    refuse(spec, schema, options)
    overflow_is_null(spec)
    plain = T.StructType([f for f in schema.fields if f.name != options.flush])
    out = output_schema(_with_ticks(spec), plain)
    for option in ("late", "gone"):
        name = getattr(options, option)
        if name is None:
            continue
        if name.lower() in [known.lower() for known in out.names]:
            raise BadSpecification(f"{option}={name!r}: there is such a column already")
        out = T.StructType([*out.fields, T.StructField(name, T.BooleanType(), False)])
    out = T.StructType([_nullable(f, spec, options) for f in out.fields])
    if not spec.answers_rows:
        plain = T.StructType([plain[name] for name in used_columns(spec)])
    can_cross(plain)
    arrow = to_arrow_schema(plain, timezone="UTC")
    buckets = options.buckets if spec.key else 1
    step, origin = _ticks(spec, schema)
    reaches = reaches_of(spec, clock(schema, str(spec.time)))
    return StreamPlan(spec, arrow, reaches, buckets, step=step, origin=origin, made=made), out


def _with_ticks(spec: Rolling) -> Rolling:
    """Changes have the columns that ticks have: key, time and answers, whatever the windows."""
    if spec.emit == "changes":
        spec = copy.copy(spec)
        spec.every = duration("1s", "every=")
        spec.windows = {label: Time(spec.every) for label in spec.windows}
    return spec


def _ticks(spec: Rolling, schema: T.StructType) -> tuple[int, int]:
    """How far ticks are apart and where one of them is, in microseconds."""
    if spec.every is None:
        return 0, 0
    step = clock(schema, str(spec.time)).length(spec.every, "every=")
    if spec.origin is None:
        return step, 0
    own = clock_of(spec.origin, spec.unit)
    if own.unit is None:
        raise BadSpecification(f"origin={spec.origin!r} is not a time like those of the stream")
    ticks = own.to_ticks(spec.origin) * NANOSECONDS[own.unit]
    whole, rest = divmod(ticks, NANOSECONDS["us"])
    if rest:
        raise BadSpecification(f"origin={spec.origin!r} is finer than the stream's times")
    return step, whole


def _nullable(field: T.StructField, spec: Rolling, options: StreamOptions) -> T.StructField:
    """Late rows have no answers, and may have no time."""
    answers = {name for name, _, _ in spec.outputs}
    loose = options.late is not None and (field.name in answers or field.name == spec.time)
    return T.StructField(field.name, field.dataType, field.nullable or loose, field.metadata)


def refuse(spec: Rolling, schema: T.StructType, options: StreamOptions) -> None:
    """Say what a stream cannot do, before it is started."""
    refuse_on_streams(spec)
    spec.check_columns([*schema.names])
    if options.late is not None and not spec.answers_rows:
        raise Refused("late= passes late rows on, and here no rows come out, but keys")
    if options.gone is not None and spec.emit != "changes":
        raise Refused('gone= is for emit="changes", where keys without rows come out once more')
    if spec.engine == "native":
        raise Refused('engine="native": Spark has no such operator for streams')
    refuse_other_times(spec, schema)
    refuse_without_tie(spec)
    refuse_without_watermark(spec, schema, options)


def refuse_other_times(spec: Rolling, schema: T.StructType) -> None:
    """Time must be a timestamp."""
    if spec.time is None:
        raise Refused("a stream needs time=, the column that its watermark is about")
    kind = schema[spec.time].dataType
    if not isinstance(kind, T.TimestampType | T.TimestampNTZType):
        raise Refused(
            f"time column {spec.time!r} has type {kind.simpleString()}: Spark's watermarks are "
            "about timestamps. Make one of it with to_timestamp(), or timestamp_micros() of an "
            "integer"
        )


def refuse_without_watermark(spec: Rolling, schema: T.StructType, options: StreamOptions) -> None:
    """A watermark must come from somewhere, and from one place only."""
    assert spec.time is not None
    if isinstance(spec.lateness, int):
        raise BadSpecification(
            f'lateness= needs a unit on Spark: "10 minutes", say, not {spec.lateness}'
        )
    if spec.lateness is None:
        if _DELAY not in schema[spec.time].metadata:
            raise Refused(
                'a stream needs lateness=, how late rows may be: Rolling(..., lateness="10 '
                'minutes"); or a stream that has .withWatermark on the time column already'
            )
        if options.flush is not None:
            raise Refused("flush= moves the watermark, which then must be windrow's: say lateness=")
    elif _DELAY in schema[spec.time].metadata:
        raise Refused(
            f"{spec.time!r} has a watermark already, and Spark stops a query with a second one: "
            "leave lateness= out. (Files that such a stream wrote have only its mark. To take "
            f"that off: .withColumn({spec.time!r}, col({spec.time!r}).cast("
            f'"{schema[spec.time].dataType.simpleString()}")))'
        )
    if options.flush is not None:
        if options.flush not in schema.names:
            raise BadSpecification(f"flush={options.flush!r}: there is no such column")
        if not isinstance(schema[options.flush].dataType, T.BooleanType):
            raise BadSpecification(f"flush={options.flush!r}: the column must be boolean")


def watermarked(df: Any, spec: Rolling, schema: T.StructType, options: StreamOptions) -> Any:
    """The stream with a watermark on its rows' times."""
    if spec.lateness is None:
        return df
    assert isinstance(spec.lateness, Duration)
    delay = f"{-(-spec.lateness.nanoseconds // 1_000_000)} milliseconds"
    name = str(spec.time)
    time = F.col(quoted(name))
    if isinstance(schema[name].dataType, T.TimestampNTZType):  # which Spark has no watermarks for
        time = F.timestamp_micros(axis(schema, name, None))
    if options.flush is not None:
        end = F.lit(_END_OF_TIME).cast("timestamp")
        time = F.when(F.col(quoted(options.flush)), end).otherwise(time)
    return df.withColumn(_WATERMARK, time).withWatermark(_WATERMARK, delay).drop(_WATERMARK)


def _bucket(spec: Rolling, schema: T.StructType, options: StreamOptions) -> Any:
    if not spec.key:
        return F.lit(0)
    keys = [key_expression(schema, name) for name in spec.key]
    return F.pmod(F.xxhash64(*keys), F.lit(options.buckets)).cast("int")


def _packer(spec: Rolling, schema: T.StructType, options: StreamOptions) -> Any:
    names, flush = schema.names, options.flush
    ids = bucket_ids(options.buckets if spec.key else 1)

    def windrow_pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from packed(batches, names, ids, flush)
        settled()

    return named(windrow_pack, spec)


def _packer_of_nothing(buckets: int) -> Any:
    ids = bucket_ids(buckets)

    def windrow_begin(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield envelopes_of(ids, [None] * len(ids))

    return windrow_begin


def unpacker(spec: Rolling) -> Any:
    """What takes answers out of their envelopes."""

    def windrow_unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from unpacked(batches)
        settled()

    return named(windrow_unpack, spec)


def _metrics() -> list[Any]:
    """What ``StreamingQueryProgress.observedMetrics`` shows under ``windrow``."""
    times = ("latest", "frontier")
    shared = ("rules", "rejected_rules")
    nothing = F.lit(0).cast("long")
    sums = [
        F.coalesce((F.max if n in shared else F.sum)(n), nothing).alias(n)
        for n in METRICS
        if n not in times
    ]
    frontier = F.min("frontier")
    lag = (F.max("latest") - frontier) / F.lit(1e6)
    return [
        *sums,
        (frontier / F.lit(1e6)).alias("frontier_timestamp_seconds"),  # a time's text has a zone
        lag.alias("watermark_lag_seconds"),
    ]


_WHEN = {
    "rows": "for every row, when the watermark has passed it",
    "immediately": "for every row, in the batch in which it comes, over the rows that have come",
    "ticks": "for every key at every tick, when the watermark has passed it",
    "changes": "for every key whose answers changed, with each batch that moves the watermark",
}


def explain(spec: Rolling, df: Any, **given: Any) -> str:
    """How the stream runs: its operator, its state, and what each answer costs."""
    options = options_of(given)
    if spec.masked:
        spec, df, *_ = masked.plain(spec, df)
    spec, schema = ready(spec, df)
    plan, out = planned(spec, schema, options)
    by = f"by {', '.join(spec.key)}" if spec.key else "without a key: one task"
    lateness = getattr(spec.lateness, "label", "as its watermark says")
    lines = [
        f"Spark stream {by}, in {plan.buckets} buckets; rows may be late by {lateness}",
        f"answers come out {_WHEN[plan.emission]}",
        f"kept of each row: {', '.join(plan.kept) or 'nothing'}",
    ]
    forms = {aggregate: form_of(aggregate, plan.schema) for aggregate in plan.folded}
    for name, aggregate, label in spec.outputs:
        kind = out[name].dataType.simpleString()
        about = f"; {aggregate.approximation}" if aggregate.approximate else ""
        lines.append(f"answer {name}: {kind}, {_how(spec, label, aggregate, forms)}{about}")
    return "\n".join(lines)


def _how(spec: Rolling, label: str, aggregate: Aggregate, forms: dict[Aggregate, Form]) -> str:
    if aggregate.kind == "sequential":
        bound = metadata(aggregate, label, spec.windows[label])
        assert bound is not None
        return (
            "from a counter for each key, in chunks of keys; compiled; error at most "
            f"{bound['windrow.error_bound']:g}"
        )
    slot = forms[aggregate].slot
    how = "by Python, one value at a time" if isinstance(slot, PythonSlot) else "compiled"
    if isinstance(spec.windows[label], Rows):
        return f"from the last rows of every key, written anew with each batch; {how}"
    if spec.windows[label].kind == "ever":
        return f"from a total for each key, in chunks of keys, for good; rows that come; {how}"
    if spec.windows[label].kind == "session":
        return (
            "from a total for each key's session, in chunks of keys, until it is over; rows that "
            f"come; {how}"
        )
    if aggregate.kind != "bounded":
        return f"by replaying the window's rows in every batch; {how}"
    return f"rows that leave, folded segments (DABA Lite), rows that come; {how}"
