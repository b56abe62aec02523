"""The oldest and the youngest value of the window."""

from typing import Any

from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Schema
from windrow.aggregates.values import canonical


class First(Aggregate):
    """The oldest value that is not missing."""

    selective = True
    reproducible = True
    schema = Schema.single("value", "first")
    lift = staticmethod(canonical)

    @staticmethod
    def combine(a: Any, _: Any) -> Any:
        """The older."""
        return a


class Last(Aggregate):
    """The youngest value that is not missing."""

    selective = True
    invertible = True
    reproducible = True
    schema = Schema.single("value", "last")
    lift = staticmethod(canonical)

    @staticmethod
    def combine(_: Any, b: Any) -> Any:
        """The younger."""
        return b

    @staticmethod
    def inverse(total: Any, _: Any) -> Any:
        """Older rows leave no trace in the youngest."""
        return total
