"""The Arrow types of answers that Python makes, where they follow from those of the inputs."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from windrow.aggregates import (
    M4,
    Aggregate,
    ApproxDistinct,
    ApproxQuantile,
    Bloom,
    BottomK,
    Collect,
    CountMin,
    Entropy,
    FrequentItems,
    Mode,
    Sum,
    TopK,
)

Kinds = list[pa.DataType]


def corners(kinds: Kinds) -> pa.DataType:
    """Values and times in turn."""
    names = [field.name for field in M4.schema.fields]
    return pa.struct(list(zip(names, [kinds[0], kinds[1]] * 4, strict=True)))


def _frequent(kinds: Kinds) -> pa.DataType:
    counts = [(name, pa.int64()) for name in ("count", "least", "most")]
    return pa.list_(pa.struct([("value", kinds[0]), *counts]))


def _sum(kinds: Kinds) -> pa.DataType | None:
    return pa.decimal128(38, kinds[0].scale) if pa.types.is_decimal(kinds[0]) else None


_TYPES: dict[type[Aggregate], Callable[[Any, Kinds], pa.DataType | None]] = {
    Sum: lambda _, kinds: _sum(kinds),
    M4: lambda _, kinds: corners(kinds),
    TopK: lambda _, kinds: pa.list_(kinds[0]),
    BottomK: lambda _, kinds: pa.list_(kinds[0]),
    Collect: lambda _, kinds: pa.list_(kinds[0]),
    Mode: lambda _, kinds: kinds[0],
    Entropy: lambda *_: pa.float64(),
    Bloom: lambda *_: pa.binary(),
    ApproxDistinct: lambda *_: pa.int64(),
    ApproxQuantile: lambda *_: pa.float64(),
    FrequentItems: lambda _, kinds: _frequent(kinds),
    CountMin: lambda aggregate, _: pa.int64() if aggregate.asks else pa.binary(),
}


def answer_type(aggregate: Aggregate, kinds: Kinds) -> pa.DataType | None:
    """The type of an aggregate's answers over columns of some types; None: as values show it."""
    found = _TYPES.get(type(aggregate))
    return None if found is None or not kinds else found(aggregate, kinds)
