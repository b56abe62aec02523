"""The Arrow types of answers that Python makes, where they follow from those of the inputs."""

import datetime
import decimal
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pyarrow as pa

from windrow.aggregates import (
    M4,
    Aggregate,
    ApproxDistinct,
    ApproxQuantile,
    ArgMax,
    ArgMin,
    Bloom,
    BottomK,
    Collect,
    Concat,
    CountMin,
    Entropy,
    First,
    FrequentItems,
    GeometricMean,
    Histogram,
    Last,
    LongestRunTime,
    Max,
    Mean,
    Min,
    Mode,
    Product,
    RelativeVariation,
    Spread,
    Sum,
    TopK,
)
from windrow.columns.power_kernels import KINDS as POWERS
from windrow.errors import BadSpecification, BadValue

Kinds = list[pa.DataType]
Type = Callable[[Any, Kinds], pa.DataType | None]
DIGITS = 38
"""Of decimals that were added: as many as there can be."""


def corners(kinds: Kinds) -> pa.DataType:
    """Values and times in turn."""
    names = [field.name for field in M4.schema.fields]
    return pa.struct(list(zip(names, [kinds[0], kinds[1]] * 4, strict=True)))


def counted_values(kind: pa.DataType) -> pa.DataType:
    """A value and how often it occurs."""
    return pa.struct([("value", kind), ("count", pa.int64())])


def _frequent(kinds: Kinds) -> pa.DataType:
    counts = [(name, pa.int64()) for name in ("count", "least", "most")]
    return pa.list_(pa.struct([("value", kinds[0]), *counts]))


def _added(_: Any, kinds: Kinds) -> pa.DataType | None:
    return pa.decimal128(DIGITS, kinds[0].scale) if pa.types.is_decimal(kinds[0]) else None


def _multiplied(_: Any, kinds: Kinds) -> pa.DataType:
    whole = pa.types.is_integer(kinds[0]) or pa.types.is_boolean(kinds[0])
    return pa.int64() if whole else pa.float64()


def _joined(_: Any, kinds: Kinds) -> pa.DataType:
    return pa.binary() if pa.types.is_fixed_size_binary(kinds[0]) else kinds[0]


def _of_values(_: Any, kinds: Kinds) -> pa.DataType:
    return kinds[0]


def _run_time(aggregate: Any, kinds: Kinds) -> pa.DataType | None:
    return None if aggregate.answers == "interval" else kinds[0]


def _float(*_: Any) -> pa.DataType:
    return pa.float64()


_FLOATS = (Mean, GeometricMean, RelativeVariation, Entropy, ApproxQuantile)
_TYPES: dict[type[Aggregate], Type] = {
    **dict.fromkeys((*_FLOATS, *POWERS), _float),
    Sum: _added,
    Spread: _added,
    Product: _multiplied,
    Concat: _joined,
    M4: lambda _, kinds: corners(kinds),
    TopK: lambda _, kinds: pa.list_(kinds[0]),
    BottomK: lambda _, kinds: pa.list_(kinds[0]),
    Collect: lambda _, kinds: pa.list_(kinds[0]),
    Histogram: lambda _, kinds: pa.list_(counted_values(kinds[0])),
    **dict.fromkeys((Min, Max, First, Last, ArgMin, ArgMax, Mode), _of_values),
    LongestRunTime: _run_time,
    Bloom: lambda *_: pa.binary(),
    ApproxDistinct: lambda *_: pa.int64(),
    FrequentItems: lambda _, kinds: _frequent(kinds),
    CountMin: lambda aggregate, _: pa.int64() if aggregate.asks else pa.binary(),
}


def declared(aggregate: Aggregate) -> pa.DataType | None:
    """The type that an aggregate says its answers have."""
    kind = aggregate.answer_type
    if kind is None or isinstance(kind, pa.DataType):
        return kind
    try:
        return pa.type_for_alias(kind)
    except (TypeError, ValueError, AttributeError) as error:
        raise BadSpecification(
            f"{aggregate!r}: answer_type is a type of Arrow's or its name, such as "
            f'"double" or "string", not {kind!r}'
        ) from error


def answer_type(aggregate: Aggregate, kinds: Kinds) -> pa.DataType | None:
    """The type of an aggregate's answers over columns of some types; None: as values show it."""
    found = declared(aggregate)
    if found is None and kinds and type(aggregate) in _TYPES:
        return _TYPES[type(aggregate)](aggregate, kinds)
    return found


def typed(aggregate: Aggregate, answers: pa.Array) -> pa.Array:
    """Answers of the type that the aggregate says, where it does."""
    said = declared(aggregate)
    return answers if said is None else fitting(repr(aggregate), answers, said)


def fitting(name: str, answers: Any, kind: pa.DataType) -> Any:
    """Answers of one type as another, or an error that says whose they are."""
    try:
        return answers.cast(kind)
    except pa.ArrowInvalid as error:
        raise BadValue(
            f"{name}: answers of type {answers.type} came where {kind} was expected: {error}. "
            f"{_DECLARE}"
        ) from error


_DECLARE = 'Declare what all answers fit into in the aggregate\'s class, answer_type = "double"'
_EXAMPLES: dict[str, Callable[[int], Any]] = {
    "string": lambda i: "abc"[i],
    "large_string": lambda i: "abc"[i],
    "binary": lambda i: b"abc"[i : i + 1],
    "large_binary": lambda i: b"abc"[i : i + 1],
    "bool": lambda i: i != 1,
}
_ROWS = 3


def _example(kind: pa.DataType, i: int) -> Any:
    if str(kind) in _EXAMPLES:
        return _EXAMPLES[str(kind)](i)
    if pa.types.is_integer(kind):
        return i + 1
    if pa.types.is_floating(kind):
        return i + 1.0
    if pa.types.is_fixed_size_binary(kind):
        return b"abc"[i : i + 1] * kind.byte_width
    if pa.types.is_date(kind):
        return datetime.date(2000, 1, 1 + i)
    if pa.types.is_decimal(kind):
        return decimal.Decimal(i + 1).quantize(decimal.Decimal(1).scaleb(-kind.scale))
    if pa.types.is_timestamp(kind):
        return datetime.datetime(2000, 1, 1 + i, tzinfo=datetime.UTC if kind.tz else None)
    if pa.types.is_duration(kind):
        return datetime.timedelta(seconds=i + 1)
    if pa.types.is_time(kind):
        return datetime.time(i + 1)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_example(kind.value_type, i)]
    if pa.types.is_struct(kind):
        return {field.name: _example(field.type, i) for field in kind}
    raise BadSpecification(f"there is no example of a value of type {kind}")


def examples(kinds: Kinds) -> list[Any]:
    """A few ordinary rows, as an aggregate takes them."""
    rows = [tuple(_example(kind, i) for kind in kinds) for i in range(_ROWS)]
    return [row if len(row) > 1 else row[0] if row else 0 for row in rows]


def type_by_example(aggregate: Aggregate, kinds: Kinds) -> pa.DataType:
    """The type of an interpreted aggregate's answers, from what it makes of a few ordinary rows."""
    tried: Any = kinds
    try:
        tried = examples(kinds)
        lift, merge = aggregate.lifter(), aggregate.merger()
        partials = [lift(row) for row in tried]
        runs = [*partials, *accumulate(partials, merge)]
        answers = [answer for run in runs if (answer := aggregate.answer(run)) is not None]
        found = {pa.array([answer]).type for answer in answers}
        if len(found) > 1 and not any(pa.types.is_struct(kind) for kind in found):
            found = {pa.array(answers).type}  # of whole and other numbers: floats
    except Exception as error:
        raise BadSpecification(
            f"{aggregate!r}: the type of its answers is not known, and it could not be tried on "
            f"{tried!r}: {error}. {_DECLARE}"
        ) from error
    if len(found) != 1:
        what = "only None" if not found else f"answers of types {', '.join(map(str, found))}"
        raise BadSpecification(
            f"{aggregate!r}: the type of its answers is not known: it makes {what} of {tried!r}. "
            f"{_DECLARE}"
        )
    (kind,) = found
    return pa.decimal128(DIGITS, kind.scale) if pa.types.is_decimal(kind) else kind


def _array(answers: list[Any], kind: pa.DataType | None) -> pa.Array:
    array = pa.array(answers, kind)
    if kind is not None:
        return array
    # pandas' own times are of columns in nanoseconds, which Arrow cuts off unless it is told
    if pa.types.is_timestamp(array.type) and any(hasattr(a, "nanosecond") for a in answers):
        return pa.array(answers, pa.timestamp("ns", array.type.tz))
    if pa.types.is_duration(array.type) and any(hasattr(a, "nanoseconds") for a in answers):
        return pa.array(answers, pa.duration("ns"))
    return array


def listed(aggregate: Aggregate, answers: list[Any], kinds: Kinds) -> pa.Array:
    """Answers that Python made; where values do not show their type, examples may."""
    said = declared(aggregate)  # not given to pa.array, which would cut floats to integers
    try:
        array = _array(answers, None if said else answer_type(aggregate, kinds))
    except OverflowError as error:
        raise BadValue(
            f"{aggregate!r}: an answer is an integer of more than 64 bits: let lower() make floats "
            "of them"
        ) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadValue(
            f"{aggregate!r}: its answers are not all of one type: {error}. {_DECLARE}"
        ) from error
    if said is not None:
        return fitting(repr(aggregate), array, said)
    if not pa.types.is_null(array.type):
        return array
    try:
        return array.cast(type_by_example(aggregate, kinds))
    except BadSpecification:  # there is nothing that would show it
        return array
