"""What the sketches of Apache DataSketches share: loading the package, and what they promise.

A partial is the sketch's own bytes; ⊕ is its merge. Bytes are the same in every process: values are
hashed by ``hashing``, never by Python.
"""

import importlib
from functools import cache
from typing import Any, Unpack

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Schema
from windrow.errors import BadSpecification


@cache
def datasketches() -> Any:
    """The package, loaded when it is first needed."""
    try:
        return importlib.import_module("datasketches")
    except ImportError as error:
        raise ImportError(
            "ApproxDistinct, ApproxQuantile, FrequentItems and CountMin need the datasketches "
            "package: pip install 'windrow[sketches]'"
        ) from error


def checked_share(owner: str, name: str, value: Any, least: float, most: float) -> float:
    """A number in a range, or an error that says which."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not good or not least <= value <= most:
        raise BadSpecification(f"{owner}: {name}= is from {least:g} to {most:g}, not {value!r}")
    return float(value)


class Sketch(Aggregate):
    """An estimate with a stated error, from a summary of bounded size."""

    approximate = True
    commutative = True
    schema = Schema.single("value", "sketch")

    def __init__(self, *columns: str, **options: Unpack[Options]) -> None:
        super().__init__(*columns, **options)
        datasketches()  # a missing package is found before any row is read
