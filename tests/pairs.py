"""Every algorithm with every aggregate it accepts, from the two registries."""

# mypy: disable-error-code="misc,arg-type,index"

import math
import os

from windrow import Aggregate, Concat, Count, Max, Mean, Several, StdDev, Sum, Variance
from windrow.aggregates import REGISTRY
from windrow.windows import ALGORITHMS, Window


class GeoMean(Aggregate):
    """The user's aggregate of the design, as a user writes it."""

    identity = (0.0, 0)
    commutative = True

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return (math.log(x), 1)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return (a[0] + b[0], a[1] + b[1])

    def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
        return math.exp(p[0] / p[1])


AGGREGATES: dict[str, Aggregate] = {
    **{name: kind() for name, kind in REGISTRY.items()},
    "Variance(ddof=0)": Variance(ddof=0),
    "StdDev(ddof=0)": StdDev(ddof=0),
    "Sum(overflow=null)": Sum(overflow="null"),
    "Sum(nan=missing)": Sum(nan="missing"),
    "Max(nan=missing)": Max(nan="missing"),
    "Concat(separator)": Concat(separator=","),
    "Several": Several(Sum(), Max(), Mean(), Count()),
}

LIKE_OTHERS = {
    *("ArgMin", "MinCount", "RelativeVariation", "All", "Any", "BitAnd", "BitOr"),
    "LongestRunTime",
    *("WeightedMean", "Covariance", "Correlation", "Skewness"),
}
"""They combine as one of the others does: with every algorithm only in the long run."""

THINNED = (
    *("M4", "TopK", "BottomK", "Collect", "Mode", "Histogram", "Entropy", "Bloom"),
    *("ApproxDistinct", "ApproxQuantile", "FrequentItems", "CountMin"),
)
"""Aggregates that CI pairs with every fourth algorithm, each with others; the long run with all."""


def _in_this_run(algorithm: int, aggregate: str) -> bool:
    if os.environ.get("WINDROW_TESTS") == "slow":
        return True
    if aggregate not in THINNED:
        return aggregate not in LIKE_OTHERS
    return (algorithm + THINNED.index(aggregate)) % 4 == 0


PAIRS = [
    (algorithm, aggregate)
    for place, algorithm in enumerate(ALGORITHMS.values())
    for name, aggregate in AGGREGATES.items()
    if algorithm.refuses(aggregate) is None and _in_this_run(place, name)
]


def pair_name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def accepted(aggregate: Aggregate) -> list[type[Window]]:
    return [a for a in ALGORITHMS.values() if a.refuses(aggregate) is None]
