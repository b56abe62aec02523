"""How many different values, and which."""

from typing import Any, Unpack

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Schema
from windrow.aggregates.sorted_runs import Run, union
from windrow.aggregates.values import canonical, order_family
from windrow.errors import BadSpecification


class Distinct(Aggregate):
    """How many different values the window holds, exactly; with ``values=True`` their sorted list.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(3), wr.Distinct())
    >>> [window.insert(x) for x in ["b", "a", "b", "b"]]
    [1, 2, 2, 2]
    >>> window = wr.Sliding(wr.rows(3), wr.Distinct(values=True))
    >>> [window.insert(x) for x in ["b", "a", "b", "b"]]
    [['b'], ['a', 'b'], ['a', 'b'], ['a', 'b']]

    All NaN are one value, and so are 0.0 and -0.0. A window without values has 0 of them; its list
    is null. The column of lists is called ``…_distinct_values``. The partial holds every distinct
    value of the window: this is a holistic aggregate.
    """

    kind = "holistic"
    commutative = True
    reproducible = True
    empty: Any = 0
    inputs = ("orderable",)
    schema = Schema.single("value", "values")
    family = staticmethod(order_family)
    name = "distinct"

    def __init__(self, *columns: str, values: bool = False, **options: Unpack[Options]) -> None:
        if not isinstance(values, bool):
            raise BadSpecification(f"values= is True or False, not {values!r}")
        super().__init__(*columns, **options)
        self.values = values
        if values:
            self.name, self.empty = "distinct_values", None

    def options(self) -> dict[str, Any]:
        """``values`` where they are asked for."""
        hidden = {"name", "empty"} | (set() if self.values else {"values"})
        return {k: v for k, v in super().options().items() if k not in hidden}

    @staticmethod
    def lift(value: Any) -> Run:
        """One value."""
        return (canonical(value),)

    @staticmethod
    def combine(a: Run, b: Run) -> Run:
        """All values of both."""
        return union(a, b)

    def lower(self, run: Run) -> Any:
        """Their number, or themselves."""
        return list(run) if self.values else len(run)
