"""Spark tables: which path a specification takes, and why."""

import copy
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from windrow.aggregates import Aggregate
from windrow.columns.answer_types import examples
from windrow.columns.ordered import ORDER
from windrow.columns.own import keep_texts, with_floats
from windrow.columns.stretch import MOST_WINDOWS
from windrow.errors import BadSpecification, BadValue, Refused
from windrow.rolling import Rolling
from windrow.slides import Bounds, Kept, Rows, Session
from windrow.spark import masked, stretches
from windrow.spark.axis import can_be_cut
from windrow.spark.jobs import described
from windrow.spark.keyed import comparable, crossed, keyed_worker, shown
from windrow.spark.native import FRAME_ROWS, frame_rows, is_faster, native, why_not_native
from windrow.spark.order import by_number, how_sorted, place
from windrow.spark.schema import can_cross, empty_table, output_schema, schema_of
from windrow.support import require

STRETCH_ROWS = 5_000_000
_MOST_HOT_KEYS = 32
_MOST = (1 << 31) - 1
"""Partitions that Spark can number."""


@dataclass(frozen=True)
class Options:
    """What only Spark needs to know."""

    schema: Any = None
    hot_rows: int | None = None
    partitions: int | None = None
    stretch_rows: int = STRETCH_ROWS

    def __post_init__(self) -> None:
        for name in ("hot_rows", "partitions", "stretch_rows"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise BadSpecification(f"{name}= is a number from 1 on, not {value!r}")
        if self.partitions is not None and self.partitions > _MOST:
            raise BadSpecification(f"partitions= is a number up to {_MOST}, not {self.partitions}")


def options_of(given: dict[str, Any]) -> Options:
    """The options as given, each of them known."""
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            raise BadSpecification(f"there is no option {name!r} for Spark: {', '.join(known)}")
    return Options(**given)


@dataclass(frozen=True)
class Choice:
    """A path, and why it was taken."""

    path: str
    reason: str


def choose(spec: Rolling, schema: StructType, options: Options, most: int = FRAME_ROWS) -> Choice:
    """Native, keyed, stretches, or one task; raises where none will do.

    ``most``: so many rows in all frames make Spark's own operator the faster one.
    """
    _refuse(spec)
    because = why_not_native(spec, schema)
    if spec.engine == "native":
        if because is not None:
            raise Refused(f'engine="native": {because}; use "auto" or "kernel"')
        return Choice("native", "asked for")
    if spec.engine == "auto" and because is None and is_faster(spec, most) and not options.hot_rows:
        return Choice("native", "few rows a window, and the same bits: Spark's operator is faster")
    if spec.key:
        return Choice("keyed", "rows are shuffled by key")
    reason = _why_one_task(spec, schema)
    if reason is not None:
        return Choice("one task", reason)
    return Choice("stretches", "no key: time is cut into stretches")


def worth_crossing(df: Any, options: Options) -> int:
    """From how many rows on; settings are not asked for while a pipeline is defined."""
    return FRAME_ROWS if options.schema is not None else frame_rows(df.sparkSession)


def _why_one_task(spec: Rolling, schema: StructType) -> str | None:
    if spec.every is not None:
        return "no key, and ticks: all rows go to one task"
    for _, aggregate, _ in spec.sequential:
        return f"no key, and {aggregate!r}, which goes row by row: all rows go to one task"
    if len(spec.windows) > MOST_WINDOWS:
        return f"no key, and more than {MOST_WINDOWS} windows: all rows go to one task"
    if any(isinstance(window, Bounds) for window in spec.windows.values()):
        return "no key, and bounds from columns: all rows go to one task"
    if any(isinstance(window, Kept) for window in spec.windows.values()):
        return "no key, and policies, which decide row by row: all rows go to one task"
    if any(isinstance(window, Session) for window in spec.windows.values()):
        return "no key, and sessions, which may reach back any time: all rows go to one task"
    if any(isinstance(window, Rows) and window.needs_time for window in spec.windows.values()):
        return "no key, and rows within a time, which are two limits: all rows go to one task"
    column = spec.time or (spec.tie[0] if spec.tie else None)
    if column is None or not can_be_cut(schema, column, spec.unit if spec.time else None):
        return "no key, and nothing that orders rows along a line: all rows go to one task"
    return None


def _refuse(spec: Rolling) -> None:
    spec.refuse_emission("a Spark table")
    for _, aggregate, label in spec.outputs:
        require("Spark tables", aggregate.kind, spec.windows[label].kind)
    refuse_without_tie(spec)


def refuse_without_tie(spec: Rolling) -> None:
    """Where the order of rows matters, it must be said what it is."""
    if spec.tie or spec.any_tie:
        return
    way_out = (
        "Spark has no order of rows: say tie=... with columns that order rows of equal time, or "
        'tie="any" to accept any order among them'
    )
    for label, window in spec.windows.items():
        if isinstance(window, Rows):
            raise Refused(f"window {label!r} counts rows, which needs a total order. {way_out}")
        if isinstance(window, Kept):
            raise Refused(
                f"window {label!r} is kept by policies, which decide row by row. {way_out}"
            )
    for aggregate in spec.aggregates:
        if not aggregate.commutative:
            raise Refused(
                f"{aggregate!r} depends on the order of rows. {way_out}. (An aggregate of your own "
                "whose order does not matter says commutative = True)"
            )


def apply(spec: Rolling, df: Any, **given: Any) -> Any:
    """The table with its answers: lazy, but for borders and counts where those are needed."""
    options = options_of(given)
    if spec.masked:
        spec, df, schema, made = masked.plain(spec, df, options.schema)
        return apply(spec, df, **given | {"schema": schema}).drop(*made)
    spec, schema = ready(spec, df, options.schema)
    out = output_schema(spec, schema)
    chosen = choose(spec, schema, options, worth_crossing(df, options))
    if options.schema is not None:
        df = df.to(schema)  # whose columns are then known without asking
    if chosen.path == "native":
        return native(df, spec, schema, options.partitions)
    can_cross(schema)
    if options.schema is not None and (chosen.path == "stretches" or options.hot_rows):
        raise Refused(
            "schema= is for declarative pipelines, where no job may run while the query is built; "
            "tables without a key, and hot_rows=, need one"
        )
    if chosen.path == "stretches" or options.hot_rows is not None:
        _refuse_without_bytes(spec, schema)
    if chosen.path == "stretches":
        return _stretched(df, spec, schema, out, None, options)
    if chosen.path == "keyed" and options.hot_rows is not None:
        return _with_hot_keys(df, spec, schema, out, options)
    return _keyed(df, spec, schema, out, options)


def _refuse_without_bytes(spec: Rolling, schema: StructType) -> None:
    """Middles travel as bytes: partials that have none are found before any job."""
    for aggregate in spec.aggregates:
        kinds = [field.type for field in empty_table(schema, list(aggregate.columns)).schema]
        try:
            partial = aggregate.lifter()(examples(kinds)[0])
        except Exception:  # an ordinary row is not one of this aggregate's
            continue
        try:
            aggregate.to_bytes(partial)
        except BadValue as error:
            raise Refused(
                f"{aggregate!r}: without a key, and with hot_rows=, partials travel as bytes, and "
                f"{error} Declare schema= in the aggregate's class, or give a key"
            ) from error


def ready(spec: Rolling, df: Any, schema: Any = None) -> tuple[Rolling, StructType]:
    """A copy that can travel, and the table's columns."""
    schema = schema_of(df, schema)
    spec = copy.copy(spec)
    spec.threads = 1
    travelling = {id(aggregate): _fitting(aggregate, schema) for aggregate in spec.aggregates}
    spec.aggregates = list(travelling.values())
    spec.outputs = [(name, travelling[id(found)], label) for name, found, label in spec.outputs]
    kept = [window for window in spec.windows.values() if isinstance(window, Kept)]
    asked = [about for window in kept for policy in window.policies for about in policy.over]
    for aggregate in (*spec.aggregates, *asked):
        if aggregate.kind != "sequential":  # which is no function of yours
            keep_texts(aggregate)
    return spec, schema


def _fitting(aggregate: Aggregate, schema: StructType) -> Aggregate:
    """A copy whose partials can be kept and sent: with floats in its identity where it makes some.

    An identity such as 0 says integers, and is written for floats all the same.
    """
    other = copy.copy(aggregate)
    named = all(column in schema.names for column in aggregate.columns)
    if type(aggregate).__module__.startswith("windrow.") or not named:
        return other
    kinds = [field.type for field in empty_table(schema, list(aggregate.columns)).schema]
    lift = aggregate.lifter()
    for row in examples(kinds):
        try:
            partial = lift(row)
        except Exception:  # an ordinary row is not one of this aggregate's
            continue
        other = with_floats(other, partial if isinstance(partial, tuple) else (partial,))
    return other


def _keyed(df: Any, spec: Rolling, schema: StructType, out: StructType, options: Options) -> Any:
    placed = place(df, spec, schema, options.partitions)
    crossing = StructType(list(schema.fields))
    if by_number(spec, schema):
        crossing = crossing.add(ORDER, "long")
    if options.schema is not None:
        placed = placed.to(crossing)  # known without asking, as in apply()
    worker = keyed_worker(spec, kinds_of(spec, out), by_number(spec, schema))
    return crossed(placed, worker, crossing.names, out)


def kinds_of(spec: Rolling, out: StructType) -> dict[str, Any]:
    """The Arrow types of the answers."""
    names = [name for name, _, _ in spec.outputs]
    arrow = to_arrow_schema(StructType([out[name] for name in names]), timezone="UTC")
    return {name: arrow.field(name).type for name in names}


def hot_keys(df: Any, spec: Rolling, schema: StructType, rows: int) -> list[tuple[Any, ...]]:
    """The keys with at least so many rows, the most frequent first."""
    if spec.every is not None or _why_one_task(spec, schema) is not None:
        return []
    with described(df.sparkSession, "windrow: rows of each key"):
        found = (
            df.groupBy(*[comparable(schema, name).alias(name) for name in spec.key])
            .agg(F.count(F.lit(1)).alias("__windrow_rows"))
            .where(F.col("__windrow_rows") >= rows)
            .orderBy(F.desc("__windrow_rows"))
            .limit(_MOST_HOT_KEYS)
            .collect()
        )
    return [tuple(row[: len(spec.key)]) for row in found]


def _with_hot_keys(
    df: Any, spec: Rolling, schema: StructType, out: StructType, options: Options
) -> Any:
    assert options.hot_rows is not None
    hot = hot_keys(df, spec, schema, options.hot_rows)
    if not hot:
        return _keyed(df, spec, schema, out, options)
    is_hot = stretches.is_hot(spec, schema, hot)
    return _keyed(df.where(~is_hot), spec, schema, out, options).union(
        _stretched(df.where(is_hot), spec, schema, out, hot, options)
    )


def _stretched(
    df: Any,
    spec: Rolling,
    schema: StructType,
    out: StructType,
    hot: list[tuple[Any, ...]] | None,
    options: Options,
) -> Any:
    layout = stretches.lay_out(
        df, spec, schema, bool(hot), options.stretch_rows, options.partitions
    )
    if not layout.lines:
        return _keyed(df, spec, schema, out, options)
    marked = stretches.marked(df, spec, schema, layout)
    found = stretches.middles(marked, spec, layout)
    routed = stretches.routed(marked, spec, schema, layout)
    placed = routed.repartitionById(layout.stretches, F.col(stretches.SEGMENT))
    placed = placed.drop(stretches.SEGMENT)
    kinds = kinds_of(spec, out)
    worker = stretches.stretch_worker(spec, layout, found, schema.names, kinds)
    hidden = [stretches.ROLES, *([stretches.PLACE] if layout.by_place else [])]
    return crossed(placed, worker, [*schema.names, *hidden], out)


def explain(spec: Rolling, df: Any, **given: Any) -> str:
    """Which path, how many partitions, how many copies of a row; counts rows where it must."""
    options = options_of(given)
    if spec.masked:
        spec, df, schema, _ = masked.plain(spec, df, options.schema)
        return explain(spec, df, **given | {"schema": schema})
    spec, schema = ready(spec, df, options.schema)
    out = output_schema(spec, schema)
    chosen = choose(spec, schema, options, worth_crossing(df, options))
    by = f"by {', '.join(spec.key)}" if spec.key else "without a key"
    lines = [f"Spark table {by}: {chosen.path} ({chosen.reason})"]
    because = why_not_native(spec, schema)
    if chosen.path != "native":
        lines.append(f"native: {because or 'possible, but not expected to be faster'}")
    if chosen.path in ("keyed", "one task"):
        count = options.partitions or "as Spark's settings say"
        count = 1 if chosen.path == "one task" else count
        lines.append(f"partitions: {count}; copies of a row: 1")
        lines.append(f"sorted by {how_sorted(spec, schema)}")
        whole = any(isinstance(window, Bounds | Kept) for window in spec.windows.values())
        who = "one key, and of those that share its bits" if by_number(spec, schema) else "one key"
        rows = f"all rows of {who}" if whole else f"the live rows of {who}, twice at most"
        lines.append(f"kept in a worker: {rows}, and a batch")
    hot = None
    if chosen.path == "keyed" and options.hot_rows is not None:
        hot = hot_keys(df, spec, schema, options.hot_rows)
        lines.append(f"hot keys (from {options.hot_rows:,} rows on): {len(hot)}")
    if chosen.path == "stretches" or hot:
        part = df if hot is None else df.where(stretches.is_hot(spec, schema, hot))
        lines += _explained(part, spec, schema, hot, options)
    about = {n: f"; {a.approximation}" for n, a, _ in spec.outputs if a.approximate}
    lines += [
        f"answer {f.name}: {f.dataType.simpleString()}{about.get(f.name, '')}"
        for f in out.fields
        if _new(f, schema)
    ]
    return "\n".join(lines)


def _new(field: Any, schema: StructType) -> bool:
    return field.name not in schema.names


def _explained(
    df: Any, spec: Rolling, schema: StructType, hot: list[tuple[Any, ...]] | None, options: Options
) -> list[str]:
    layout = stretches.lay_out(
        df, spec, schema, bool(hot), options.stretch_rows, options.partitions
    )
    lines = []
    for line in layout.lines:
        key = [shown(schema, *part) for part in zip(spec.key, line.key, strict=False)]
        who = f"key {', '.join(key)}" if line.key else "all rows"
        lines.append(f"{who}: {line.rows:,} rows in {line.stretches} stretches, one partition each")
    if not layout.lines:
        return ["no rows"]
    if layout.by_place:
        lines.append("rows are numbered first: one shuffle more")
    marked = stretches.marked(df, spec, schema, layout)
    with described(df.sparkSession, "windrow: copies of rows"):
        copies = stretches.routed(marked, spec, schema, layout).count()
    total = sum(line.rows for line in layout.lines)
    lines.append(f"copies of a row: {copies / total:.2f} on average")
    spanning = [r.label for n, r in enumerate(layout.reaches) if layout.needs_middles(n)]
    lines.append(
        f"middles for: {', '.join(spanning) or 'no window, all are shorter than a stretch'}"
    )
    return lines
