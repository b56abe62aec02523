"""One number to sort rows by: bits of the key's hash above bits of time.

Spark sorts rows by one long column with a radix sort, much faster than by key and time. The worker
puts right what the number leaves open (``windrow.columns.ordered``).
"""

from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.columns.ordered import ORDER, TIME_BITS
from windrow.rolling import Rolling
from windrow.spark.axis import axis, quoted
from windrow.spark.keyed import key_expression, order, shuffled, sorted_by_key

HASH_BITS = 64 - TIME_BITS
_WHOLE = (
    *(T.ByteType, T.ShortType, T.IntegerType, T.LongType),
    *(T.TimestampType, T.TimestampNTZType, T.DateType),
)
LINES = ((0, 0), (10, 2**41 - 2**31), (22, 2**41 + 2**42 - 2**31 - 2**30))
"""How far a time is shifted, and what is added: below 2^41 nothing is lost, below 2^52 one part in
1,024 (a millisecond, for microseconds up to the year 2112), beyond it one in 2^22."""


def by_number(spec: Rolling, schema: T.StructType) -> bool:
    """Whether rows are sorted by one number; otherwise by key, time and tie.

    Ticks, rows without a time, and floats, which need not be a time at all, are not.
    """
    if not spec.key or spec.time is None or spec.every is not None:
        return False
    return isinstance(schema[spec.time].dataType, _WHOLE)


def how_sorted(spec: Rolling, schema: T.StructType) -> str:
    """By what, in words."""
    if by_number(spec, schema):
        return f"one number: {HASH_BITS} bits of the key's hash, {TIME_BITS} bits of {spec.time}"
    names = [*spec.key, *([spec.time] if spec.time else []), *spec.tie]
    return ", ".join(names) or "nothing"


def place(df: Any, spec: Rolling, schema: T.StructType, partitions: int | None) -> Any:
    """All rows of a key in one partition, sorted for the worker."""
    if not by_number(spec, schema):
        return sorted_by_key(df, spec, schema, partitions, order(spec, schema))
    names = [F.col(quoted(name)) for name in schema.names]
    number = number_of(spec, schema).alias(ORDER)
    return shuffled(df, spec, schema, partitions).select(*names, number).sortWithinPartitions(ORDER)


def number_of(spec: Rolling, schema: T.StructType) -> Any:
    """The number of a row; one without a time has one too, and the worker names it."""
    assert spec.time is not None
    keys = [key_expression(schema, name) for name in spec.key]
    prefix = F.xxhash64(*keys).bitwiseAND(F.lit((1 << HASH_BITS) - 1))
    time = F.coalesce(time_bits(axis(schema, spec.time, spec.unit)), F.lit(0))
    return F.shiftleft(prefix, TIME_BITS).bitwiseOR(time)


def time_bits(time: Any) -> Any:
    """Fewer bits of an int64 that never fall where it rises: the least of three rising lines.

    Times before 0 mirror those from 0 on: ``x ^ -1`` is ``-1 - x``.
    """
    sign = F.shiftright(time, 63)
    size = time.bitwiseXOR(sign)
    least = F.least(*[F.shiftright(size, shift) + F.lit(more) for shift, more in LINES])
    return least.bitwiseXOR(sign) + F.lit(1 << (TIME_BITS - 1))
