"""Where the newest value stands among all values of the window."""

from bisect import bisect_left, bisect_right
from typing import Any, Literal, Unpack, get_args

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.sorted_runs import Run, before_nan, merged, without
from windrow.aggregates.values import canonical, order_family
from windrow.errors import BadSpecification

RankMethod = Literal["average", "min", "max"]


def ranked(smaller: int, equal: int, rows: int, method: str, percent: bool) -> float:
    """The rank of a value that ``smaller`` values are below, itself one of ``equal``."""
    if method == "average":
        rank = smaller + (equal + 1) / 2.0
    else:
        rank = float(smaller + (1 if method == "min" else equal))
    return rank / rows if percent else rank


class Rank(Aggregate):
    """The rank of the newest value among the window's values, from 1 for the smallest, as pandas'.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.Rank())
    >>> [window.insert(x) for x in [3, 1, 4, 1, 5]]
    [1.0, 1.0, 3.0, 1.5, 4.0]

    Of equal values each gets their average rank, or with ``method=`` the ``min`` or ``max`` of
    their ranks; ``pct=True`` divides by the number of values (the column is called ``…_rank_pct``).
    Always a float. The newest value is that of the last row that has one: rows without a value are
    skipped, as everywhere. NaN is the largest value.
    """

    kind = "holistic"
    invertible = True
    reproducible = True
    inputs = ("orderable",)
    schema = Schema((Field("values", "value"), Field("newest", "value")))
    family = staticmethod(order_family)
    name = "rank"

    def __init__(
        self,
        *columns: str,
        method: RankMethod = "average",
        pct: bool = False,
        **options: Unpack[Options],
    ) -> None:
        if method not in get_args(RankMethod):
            raise BadSpecification(
                f"method= is one of {', '.join(get_args(RankMethod))}, not {method!r}"
            )
        if not isinstance(pct, bool):
            raise BadSpecification(f"pct= is True or False, not {pct!r}")
        super().__init__(*columns, **options)
        self.method = method
        self.pct = pct
        if pct:
            self.name = "rank_pct"

    def options(self) -> dict[str, Any]:
        """What is not the default."""
        usual = {"method": "average", "pct": False}
        found = super().options()
        return {k: v for k, v in found.items() if k != "name" and usual.get(k) != v}

    @staticmethod
    def lift(value: Any) -> tuple[Run, Any]:
        """A run of one, and the newest."""
        value = canonical(value)
        return ((value,), value)

    @staticmethod
    def combine(a: tuple[Run, Any], b: tuple[Run, Any]) -> tuple[Run, Any]:
        """Merge; the newest is that of the later rows."""
        return (merged(a[0], b[0]), b[1])

    @staticmethod
    def inverse(total: tuple[Run, Any], oldest: tuple[Run, Any]) -> tuple[Run, Any]:
        """Take the oldest out; the newest stays."""
        return (without(total[0], oldest[0]), total[1])

    def lower(self, partial: tuple[Run, Any]) -> float:
        """Count what is smaller, and what is equal."""
        run, newest = partial
        solid = before_nan(run)
        smaller, end = solid, len(run)
        if newest == newest:
            smaller = bisect_left(run, newest, 0, solid)
            end = bisect_right(run, newest, smaller, solid)
        return ranked(smaller, end - smaller, len(run), self.method, self.pct)
