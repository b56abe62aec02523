"""Distributed Two-Stacks: rows without a key, or of a hot key, cut into stretches of time.

Every row goes to the stretch it is in, and once more to the stretch during which it leaves a
window; what lies between is worked out by one small job and sent along as middles. So a row is
copied once per lookback at most, however long the lookback is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.columns.middles import NOTHING, Middle
from windrow.columns.stretch import OWN, SEGMENT_BITS, Reach, time_reach
from windrow.errors import BadSpecification, BadValue
from windrow.rolling import Rolling
from windrow.slides import Rows, Time
from windrow.spark.axis import axis, bucket, clock, quoted
from windrow.spark.jobs import described, parallelism
from windrow.spark.keyed import comparable, crossed, key_expression, named, order
from windrow.spark.schema import read_columns

SEGMENT, ROLES, PLACE = "__windrow_segment", "__windrow_roles", "__windrow_place"
HOT, OWN_SEGMENT = "__windrow_hot", "__windrow_own"
_HASHABLE = (
    *(T.NumericType, T.StringType, T.BinaryType, T.BooleanType, T.DateType),
    *(T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType),
)
_QUANTILES = 256
_SHARE, _SEED, _ENOUGH = 0.1, 7, 20_000
_TINY = 50_000
_LIMIT = 1 << 63
_CHANGED = (
    "windrow: a row is before or after all those that were counted first, so the table gives other "
    "rows each time it is read: cache() it, or write it down first"
)


@dataclass
class Line:
    """One key's rows in order, cut into stretches: where each begins, in time and in places."""

    key: tuple[Any, ...]
    rows: int
    times: list[int]
    """Where each stretch begins, and where the last one ends."""
    first: int = 0
    """The number of its first stretch, over all lines."""
    places: list[int] = field(default_factory=list)

    @property
    def stretches(self) -> int:
        """How many."""
        return len(self.times) - 1

    def borders(self, on: str) -> list[int]:
        """The borders along an axis."""
        return self.times if on == "time" else self.places


@dataclass
class Layout:
    """How the rows of some keys (or of none) are cut up."""

    lines: list[Line]
    reaches: list[Reach]
    axis_column: str

    @property
    def stretches(self) -> int:
        """How many partitions."""
        return sum(line.stretches for line in self.lines)

    @property
    def by_place(self) -> bool:
        """Whether rows must be numbered."""
        return any(reach.axis == "place" for reach in self.reaches)

    def needs_middles(self, number: int) -> bool:
        """Whether any window of this reach spans a whole stretch, and something beside it."""
        reach = self.reaches[number]
        return any(
            end + reach.start < start + reach.near
            for line in self.lines
            for start, end in pairwise(line.borders(reach.axis))
        )


def reaches_of(spec: Rolling, schema: T.StructType, span: int, rows: int) -> list[Reach]:
    """Where each window looks; lengths beyond the table's span and rows make no difference."""
    out = []
    for label, window in spec.windows.items():
        if isinstance(window, Rows):
            n, ending, after = (min(x, rows + 1) for x in (window.n, window.ending, window.after))
            start, end = -ending - n + 1, after - ending + 1
            out.append(Reach(label, "place", start, end))
            continue
        assert isinstance(window, Time)
        assert spec.time is not None
        ticks = clock(schema, spec.time)
        length, ending, after = (
            min(ticks.length(x, f"window {label!r}"), span + 1) if x else 0
            for x in (window.length, window.ending, window.after)
        )
        out.append(time_reach(window, label, length, ending, after))
    return out


def lay_out(
    df: Any,
    spec: Rolling,
    schema: T.StructType,
    hot: bool,
    rows_each: int,
    partitions: int | None,
) -> Layout:
    """Count, sample and cut: one job, and one more where windows count rows."""
    column = spec.time or spec.tie[0]
    on = axis(schema, column, spec.unit)
    keys = spec.key if hot else ()
    columns = [comparable(schema, name) for name in keys]
    found = _sampled(df, columns, on, _SHARE)
    if any(sample.sampled < min(sample.present, _ENOUGH) for sample in found):
        found = _sampled(df, columns, on, None)
    total = sum(sample.rows for sample in found)
    cores = parallelism(df.sparkSession)
    lines = []
    for sample in found:
        if sample.present < sample.rows and spec.time is not None:
            odd = "" if spec.unit is None else ", or no time that int64 nanoseconds can hold,"
            raise BadValue(
                f"time column {column!r} is missing{odd} in {sample.rows - sample.present:,} of "
                f"{sample.rows:,} rows: drop or fill these rows first"
            )
        if not sample.rows:
            continue
        if not sample.present:  # a tie that no row has
            lines.append(Line(sample.key, sample.rows, [0, 1]))
            continue
        wanted = _how_many(sample.rows, rows_each, cores)
        if partitions is not None:
            wanted = max(1, round(partitions * sample.rows / total))
        cuts = {int(sample.at[_QUANTILES * i // wanted - 1]) for i in range(1, wanted)}
        cuts = {sample.low, *(cut for cut in cuts if sample.low < cut <= sample.high)}
        lines.append(Line(sample.key, sample.rows, [*sorted(cuts), sample.high + 1]))
    first = 0
    for line in lines:
        line.first = first
        first += line.stretches
    span = max((line.times[-1] - line.times[0] for line in lines), default=1)
    most = max((line.rows for line in lines), default=1)
    layout = Layout(lines, reaches_of(spec, schema, span, most), column)
    farthest = max((max(map(abs, line.times)) for line in lines), default=0)
    if farthest + max(max(-reach.start, reach.end) for reach in layout.reaches) + 2 >= _LIMIT:
        raise BadSpecification(f"column {column!r}: its times are too far from 0 for int64")
    if layout.by_place and lines:
        _count_places(df, spec, schema, layout)
    return layout


@dataclass
class Sample:
    """What is known of a key's rows before they are cut."""

    key: tuple[Any, ...]
    rows: int
    present: int
    low: int
    high: int
    sampled: int
    at: list[int]


def _sampled(df: Any, keys: list[Any], on: Any, share: float | None) -> list[Sample]:
    """Rows, first and last time, and quantiles from a share of the rows (None: from all)."""
    quantiles = [i / _QUANTILES for i in range(1, _QUANTILES)]
    some = on if share is None else F.when(F.rand(_SEED) < share, on)
    names = [f"__windrow_key_{i}" for i in range(len(keys))]
    keyed = [key.alias(name) for key, name in zip(keys, names, strict=True)]
    rows = df.select(*keyed, on.alias("__windrow_on"), some.alias("__windrow_some"))
    aggregates = [
        F.count(F.lit(1)).alias("__windrow_rows"),
        F.count("__windrow_on").alias("__windrow_present"),
        F.min("__windrow_on").alias("__windrow_low"),
        F.max("__windrow_on").alias("__windrow_high"),
        F.count("__windrow_some").alias("__windrow_sampled"),
        F.percentile_approx("__windrow_some", quantiles, 2000).alias("__windrow_at"),
    ]
    with described(df.sparkSession, "windrow: borders of the stretches"):
        found = rows.groupBy(*names).agg(*aggregates).collect()
    return [Sample(tuple(row[: len(keys)]), *row[len(keys) :]) for row in found]


def _how_many(rows: int, rows_each: int, cores: int) -> int:
    """Enough stretches for memory and for all cores, but none tiny: longer ones copy fewer rows."""
    wanted = max(min(2 * cores, rows // _TINY), -(-rows // rows_each))
    wanted = max(1, -(-wanted // cores) * cores if wanted > cores else wanted)
    return min(_QUANTILES, wanted)


def _count_places(df: Any, spec: Rolling, schema: T.StructType, layout: Layout) -> None:
    with described(df.sparkSession, "windrow: rows of each stretch"):
        counted = with_own(df, spec, schema, layout).groupBy(OWN_SEGMENT).count().collect()
    counts = {row[OWN_SEGMENT]: row["count"] for row in counted}
    for line in layout.lines:
        places = [0]
        for segment in range(line.first, line.first + line.stretches):
            places.append(places[-1] + counts.get(segment, 0))
        line.places = places


def is_hot(spec: Rolling, schema: T.StructType, hot: list[tuple[Any, ...]]) -> Any:
    """Whether a row's key is one of these; null is a key."""
    found = F.lit(False)
    for key in hot:
        found = found | _is_key(spec, schema, key)
    return found


def _is_key(spec: Rolling, schema: T.StructType, key: tuple[Any, ...]) -> Any:
    same = F.lit(True)
    for name, value in zip(spec.key, key, strict=True):
        same = same & comparable(schema, name).eqNullSafe(F.lit(value))
    return same


def _per_line(layout: Layout, values: list[Any]) -> Any:
    """The value for a row's line."""
    if len(values) == 1:
        return values[0]
    chosen = F.when(F.col(HOT) == 0, values[0])
    for number, value in enumerate(values[1:], 1):
        chosen = chosen.when(F.col(HOT) == number, value)
    return chosen


def with_own(df: Any, spec: Rolling, schema: T.StructType, layout: Layout) -> Any:
    """Each row's line and its own stretch."""
    hot = F.lit(0)
    if len(layout.lines) > 1:
        hot = F.when(_is_key(spec, schema, layout.lines[0].key), 0)
        for number, line in enumerate(layout.lines[1:], 1):
            hot = hot.when(_is_key(spec, schema, line.key), number)
    df = df.withColumn(HOT, hot)
    on = axis(schema, layout.axis_column, spec.unit)
    own = [_own(on, line) for line in layout.lines]
    return df.withColumn(OWN_SEGMENT, _per_line(layout, own))


def _own(on: Any, line: Line) -> Any:
    """A row's own stretch; an error where it is in none of those that were counted."""
    changed = F.raise_error(F.lit(_CHANGED)).cast("int")
    inside = (on >= F.lit(line.times[0])) & (on < F.lit(line.times[-1]))
    own = bucket(on, line.times[:-1], line.first)
    return F.when(inside | on.isNull(), own).otherwise(changed)


def with_places(df: Any, spec: Rolling, schema: T.StructType, layout: Layout) -> Any:
    """Each row's number in its line: by time, tie, and a hash of the row where these are equal."""
    from pyspark.sql import Window

    hashable = [key_expression(schema, f.name) for f in schema.fields if _hashable(f.dataType)]
    within = Window.partitionBy(OWN_SEGMENT).orderBy(*order(spec, schema), F.xxhash64(*hashable))
    starts = [F.lit(place) for line in layout.lines for place in line.places[:-1]]
    start = F.element_at(F.array(*starts), F.col(OWN_SEGMENT) + 1)
    return df.withColumn(PLACE, F.row_number().over(within).cast("long") - 1 + start)


def _hashable(kind: T.DataType) -> bool:
    """Whether Spark can make a hash of any value of this type."""
    if isinstance(kind, T.ArrayType):
        return _hashable(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(_hashable(field.dataType) for field in kind.fields)
    return isinstance(kind, _HASHABLE)


def with_ends(df: Any, spec: Rolling, schema: T.StructType, layout: Layout) -> Any:
    """For each reach, the stretch in which a row leaves (far) and the one in which it comes (near).

    Numbers are those within the line, from -1 (before its first) to its number of stretches.
    """
    columns = {}
    for number, reach in enumerate(layout.reaches):
        on = F.col(PLACE)
        if reach.axis == "time":
            on = axis(schema, layout.axis_column, spec.unit)
        for name, shift in ((far(number), reach.start), (near(number), reach.near)):
            found = [bucket(on - shift, line.borders(reach.axis)) for line in layout.lines]
            columns[name] = _per_line(layout, found)
    return df.withColumns(columns)


def marked(df: Any, spec: Rolling, schema: T.StructType, layout: Layout) -> Any:
    """Each row with all that decides where it goes."""
    df = with_own(df, spec, schema, layout)
    if layout.by_place:
        df = with_places(df, spec, schema, layout)
    return with_ends(df, spec, schema, layout)


def far(number: int) -> str:
    """The column with the stretch in which a row leaves."""
    return f"__windrow_far_{number}"


def near(number: int) -> str:
    """The column with the stretch in which a row comes."""
    return f"__windrow_near_{number}"


def routed(df: Any, spec: Rolling, schema: T.StructType, layout: Layout) -> Any:
    """One copy of a row for every stretch that needs it, with what it is needed for."""
    targets = [F.col(OWN_SEGMENT)]
    for number in range(len(layout.reaches)):
        for name in (far(number), near(number)):
            targets.append(_segment(layout, F.col(name)))
    every = F.array_distinct(F.filter(F.array(*targets), lambda target: target >= 0))
    df = df.withColumn(SEGMENT, F.explode(every))
    at = F.col(SEGMENT)
    own = at == F.col(OWN_SEGMENT)
    roles = F.when(own, F.lit(1 << OWN)).otherwise(F.lit(0))
    for number in range(len(layout.reaches)):
        ends = [at == _segment(layout, F.col(name)) for name in (far(number), near(number))]
        roles = roles + F.when(ends[0] | ends[1], F.lit(1 << number)).otherwise(F.lit(0))
    used = read_columns(spec)
    columns = []
    for column in schema.fields:
        value = F.col(quoted(column.name))
        if column.name not in used:  # copies carry only what windows read
            value = F.when(own, value)
        columns.append(value.alias(column.name))
    extra = [F.col(PLACE)] if layout.by_place else []
    packed = roles.cast("long") + at.cast("long") * F.lit(1 << SEGMENT_BITS)
    return df.select(*columns, at, packed.alias(ROLES), *extra)


def _segment(layout: Layout, within: Any) -> Any:
    """The number over all lines of a stretch within its line; -1 where there is none."""
    firsts = _per_line(layout, [F.lit(line.first) for line in layout.lines])
    counts = _per_line(layout, [F.lit(line.stretches) for line in layout.lines])
    return F.when((within >= 0) & (within < counts), within + firsts).otherwise(F.lit(-1))


def middles(df: Any, spec: Rolling, layout: Layout) -> dict[int, dict[str, Middle]]:
    """Every stretch's middles: one job that folds the rows between ends, composed here in order."""
    numbers = [n for n in range(len(layout.reaches)) if layout.needs_middles(n)]
    if not numbers:
        return {}
    ordered = any(
        not aggregate.commutative
        for _, aggregate, label in spec.outputs
        for n in numbers
        if layout.reaches[n].label == label
    )
    worth = F.lit(False)
    for n in numbers:
        worth = worth | (F.col(far(n)) - F.col(near(n)) >= 2)
    names = read_columns(spec)
    names += [HOT, OWN_SEGMENT, *(name for n in numbers for name in (far(n), near(n)))]
    names += [PLACE] if layout.by_place and ordered else []
    rows = df.where(worth).select(*[F.col(quoted(name)) for name in names])
    if not ordered:
        rows = rows.withColumn(OWN_SEGMENT, F.lit(0))
    if ordered:
        rows = rows.repartitionById(layout.stretches, F.col(OWN_SEGMENT))
    schema = "hot int, own int, reach int, far int, near int, output int, rows long, partial binary"
    with described(df.sparkSession, "windrow: middles of the stretches"):
        worker = fold_worker(spec, layout, numbers, ordered)
        found = crossed(rows, worker, names, schema).collect()
    found.sort(key=lambda r: (r["hot"], r["own"], r["far"], r["near"]))
    out: dict[int, dict[str, Middle]] = {}
    for row in found:
        name, aggregate, _ = spec.outputs[row["output"]]
        line = layout.lines[row["hot"]]
        piece = Middle(aggregate.from_bytes(bytes(row["partial"])), row["rows"])
        for within in range(max(0, row["near"] + 1), min(line.stretches, row["far"])):
            known = out.setdefault(line.first + within, {})
            known[name] = known.get(name, NOTHING).then(aggregate, piece)
    return out


def fold_worker(spec: Rolling, layout: Layout, numbers: list[int], ordered: bool) -> Any:
    """The partials of the rows between two ends, of each batch, or of a whole stretch in order."""
    labels = {number: layout.reaches[number].label for number in numbers}

    def windrow_middles(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from windrow.spark.worker import fold_batches

        yield from fold_batches(spec, batches, labels, ordered)

    return windrow_middles


def stretch_worker(
    spec: Rolling,
    layout: Layout,
    found: dict[int, dict[str, Middle]],
    names: list[str],
    kinds: dict[str, pa.DataType],
) -> Any:
    """The answers of one stretch's own rows."""
    aggregates = {name: aggregate for name, aggregate, _ in spec.outputs}
    encoded = {
        segment: {
            name: (aggregates[name].to_bytes(middle.partial), middle.rows)
            for name, middle in by_name.items()
            if middle.rows
        }
        for segment, by_name in found.items()
    }
    begins = {
        line.first + i: {
            "time": line.times[i],
            **({"place": line.places[i]} if line.places else {}),
        }
        for line in layout.lines
        for i in range(line.stretches)
    }
    reaches = layout.reaches

    def windrow_stretch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from windrow.spark.worker import answer_stretches

        yield from answer_stretches(spec, batches, reaches, begins, encoded, names, kinds)

    return named(windrow_stretch, spec)
