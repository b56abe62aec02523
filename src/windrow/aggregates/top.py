"""The few largest values, or the few smallest. NaN is larger than every number."""

from typing import Any, Unpack

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Schema
from windrow.aggregates.sorted_runs import Run, merged
from windrow.aggregates.values import canonical, order_family
from windrow.errors import BadSpecification


class _Few(Aggregate):
    """What TopK and BottomK share: a sorted run of at most ``k`` values."""

    commutative = True
    reproducible = True
    inputs = ("orderable",)
    schema = Schema.single("value", "values")
    family = staticmethod(order_family)

    def __init__(self, *columns: Any, k: int | None = None, **options: Unpack[Options]) -> None:
        if columns and not isinstance(columns[-1], str):
            if k is not None:
                raise BadSpecification(f"{type(self).__name__}: k is given twice")
            *columns, k = columns  # type: ignore[assignment]
        k = 10 if k is None else k
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise BadSpecification(f"{type(self).__name__}: k is a number from 1 on, not {k!r}")
        super().__init__(*columns, **options)
        self.k = k
        self.name = f"{type(self).stem}{k}"

    stem = ""
    """What the output column is called, before ``k``."""

    def options(self) -> dict[str, Any]:
        """How many."""
        return {name: value for name, value in super().options().items() if name != "name"}

    @staticmethod
    def lift(value: Any) -> Run:
        """A run of one."""
        return (canonical(value),)


class TopK(_Few):
    """The ``k`` largest values, the largest first; equal ones each count.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.TopK(2))
    >>> [window.insert(x) for x in [3, 1, 4, 1, 5]]
    [[3], [3, 1], [4, 3], [4, 3], [5, 4]]

    ``TopK("price", 3)`` of a column is called ``price_top3``; ``k`` is 10 unless said. A window
    with fewer values gives all of them, one without values null.
    """

    name = "top10"
    stem = "top"

    def combine(self, a: Run, b: Run) -> Run:
        """Merge, and drop what is too small."""
        return merged(a, b)[-self.k :]

    @staticmethod
    def lower(run: Run) -> list[Any]:
        """From the largest down."""
        return list(reversed(run))


class BottomK(_Few):
    """The ``k`` smallest values, the smallest first; equal ones each count.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.BottomK(2))
    >>> [window.insert(x) for x in [3, 1, 4, 1, 5]]
    [[3], [1, 3], [1, 3], [1, 1], [1, 1]]

    ``BottomK("price", 3)`` of a column is called ``price_bottom3``.
    """

    name = "bottom10"
    stem = "bottom"

    def combine(self, a: Run, b: Run) -> Run:
        """Merge, and drop what is too large."""
        return merged(a, b)[: self.k]

    @staticmethod
    def lower(run: Run) -> list[Any]:
        """From the smallest up."""
        return list(run)
