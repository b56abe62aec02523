"""Spark's own window operator, where it gives the same bits and is faster."""

from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.aggregates import Aggregate, Count, Max, Min, Sum
from windrow.rolling import Rolling
from windrow.slides import Rows
from windrow.spark.axis import quoted
from windrow.spark.keyed import key_expression, or_raise, order

_SUMMABLE = (T.ByteType, T.ShortType, T.IntegerType)
_ORDERED = (*_SUMMABLE, T.LongType, T.FloatType, T.DoubleType, T.DateType, T.TimestampType)
FRAME_ROWS = 25
"""Rows that Spark looks at, over all its frames, in the time that crossing to Python takes."""
_FRAME_ROWS_WITH_SETTINGS = 7
"""The same with ``table_settings()``."""
TREE = "spark.sql.window.segmentTree.enabled"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def why_not_native(spec: Rolling, schema: T.StructType) -> str | None:
    """The first thing that Spark's operator cannot do with the same bits; None: it can do all."""
    if spec.every is not None:
        return "ticks are not rows"
    if not spec.key:
        return "without a key Spark moves all rows to one task"
    for label, window in spec.windows.items():
        if not isinstance(window, Rows):
            return f"window {label!r} is not a rows window"
        if window.within is not None:
            return f"window {label!r} has two limits, rows and time, and a frame has one"
        if max(window.n + window.ending, window.after) >= 1 << 31:
            return f"window {label!r} reaches further than Spark's frames can"
    if spec.time is not None and isinstance(schema[spec.time].dataType, T.FloatType | T.DoubleType):
        return "Spark would take floats that are no time"
    for aggregate in spec.aggregates:
        reason = _why_not(aggregate, schema)
        if reason is not None:
            return f"{aggregate!r}: {reason}"
    return None


def _why_not(aggregate: Aggregate, schema: T.StructType) -> str | None:
    if type(aggregate) not in (Count, Min, Max, Sum):
        return "Spark has no such aggregate with the same bits"
    kinds = [schema[name].dataType for name in aggregate.columns]
    if type(aggregate) is Sum and not isinstance(kinds[0], _SUMMABLE):
        return "Spark's sums of this type round or overflow in their own way"
    if type(aggregate) in (Min, Max) and not isinstance(kinds[0], _ORDERED):
        return "Spark may order values of this type in its own way"
    return None


def frame_rows(session: Any) -> int:
    """``FRAME_ROWS`` of a session; with the segment tree Spark pays for it even in short frames."""
    if str(session.conf.get(TREE, "false")).lower() == "true":
        return 0
    limit = str(session.conf.get(_BATCH_BYTES, None))
    crosses_fast = limit.startswith("-") or (limit.isdigit() and int(limit) >= 1 << 30)
    return _FRAME_ROWS_WITH_SETTINGS if crosses_fast else FRAME_ROWS


def is_faster(spec: Rolling, most: int) -> bool:
    """Whether Spark is expected to be faster: it looks at every row of every frame again."""
    windows = [spec.windows[label] for _, _, label in spec.outputs]
    return sum(w.n + w.after for w in windows if isinstance(w, Rows)) <= most


def native(df: Any, spec: Rolling, schema: T.StructType, partitions: int | None) -> Any:
    """The same specification, in Spark's own words."""
    keys = [key_expression(schema, name) for name in spec.key]
    if partitions is not None:
        df = df.repartition(partitions, *keys)
    within = Window.partitionBy(*keys).orderBy(*_order(spec, schema))
    columns = {}
    for name, aggregate, label in spec.outputs:
        window = spec.windows[label]
        assert isinstance(window, Rows)
        start, end = -window.ending - window.n + 1, window.after - window.ending
        columns[name] = _expression(
            aggregate, schema, within.rowsBetween(start, end), spec.min_rows
        )
    return df.withColumns(columns)


def _order(spec: Rolling, schema: T.StructType) -> list[Any]:
    """What rows are ordered by; a row without a time is an error."""
    columns = order(spec, schema)
    if spec.time is not None:
        says = f"time column {spec.time!r} is missing in some rows: drop or fill these rows first"
        columns[0] = or_raise(columns[0], schema[spec.time], says)
    return columns


def _expression(aggregate: Aggregate, schema: T.StructType, frame: Any, least: int) -> Any:
    if not aggregate.columns:
        counted = F.count(F.lit(1)).over(frame)
        return F.when(counted >= least, counted) if least else counted
    column = F.col(quoted(aggregate.columns[0]))
    kind = schema[aggregate.columns[0]].dataType
    if isinstance(kind, T.FloatType | T.DoubleType) and aggregate.nan == "missing":
        column = F.when(~F.isnan(column), column)
    counted = F.count(column).over(frame)
    if type(aggregate) is Count:
        return F.when(counted >= least, counted) if least else counted
    function = {Min: F.min, Max: F.max, Sum: F.sum}[type(aggregate)]
    found = function(column).over(frame)
    if isinstance(kind, T.FloatType | T.DoubleType):
        found = found + F.lit(0.0).cast(kind)  # -0.0 comes out as 0.0
    return F.when(counted >= least, found) if least > 1 else found
