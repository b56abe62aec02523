"""All values of the window, in order."""

from typing import Any

from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Schema
from windrow.aggregates.values import canonical


class Collect(Aggregate):
    """The list of the window's values, oldest first; missing ones are left out.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(3), wr.Collect())
    >>> [window.insert(x) for x in ["b", "a", None, "b"]]
    [['b'], ['b', 'a'], ['b', 'a'], ['a', 'b']]

    A window without values has no list: null. The partial holds every value of the window: this is
    a holistic aggregate.
    """

    kind = "holistic"
    invertible = True
    reproducible = True
    inputs = ("any",)
    schema = Schema.single("value", "values")

    @staticmethod
    def lift(value: Any) -> tuple[Any, ...]:
        """A list of one."""
        return (canonical(value),)

    @staticmethod
    def combine(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """One after the other."""
        return a + b

    @staticmethod
    def inverse(total: tuple[Any, ...], oldest: tuple[Any, ...]) -> tuple[Any, ...]:
        """Cut the oldest off."""
        return total[len(oldest) :]

    @staticmethod
    def lower(values: tuple[Any, ...]) -> list[Any]:
        """As a list."""
        return list(values)
