"""The largest and the smallest, where they are, and how often. NaN is larger than every number."""

from typing import Any

from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.values import canonical, order_family


class Extreme(Aggregate):
    """What Min, Max and their kin share: any values that can be ordered with each other."""

    inputs = ("orderable",)
    schema = Schema.single("value", "extreme")
    lift = staticmethod(canonical)
    family = staticmethod(order_family)


class Max(Extreme):
    """The largest value; of equal ones the youngest.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Max())
    >>> window.insert(3); window.insert(5); window.insert(4)
    >>> window.query()
    5
    """

    commutative = True
    selective = True
    reproducible = True

    @staticmethod
    def combine(a: Any, b: Any) -> Any:
        """The larger; a NaN wins, which only the second comparison can see."""
        return a if a > b or a != a else b

    @staticmethod
    def useless(total: Any, oldest: Any) -> bool:
        """Rows that are all below the maximum."""
        return bool(oldest < total or (total != total and oldest == oldest))


class Min(Extreme):
    """The smallest value; NaN only where there is nothing else."""

    commutative = True
    selective = True
    reproducible = True

    @staticmethod
    def combine(a: Any, b: Any) -> Any:
        """The smaller; a NaN loses."""
        return a if a < b or b != b else b

    @staticmethod
    def useless(total: Any, oldest: Any) -> bool:
        """Rows that are all above the minimum."""
        return bool(oldest > total or (oldest != oldest and total == total))


class MaxCount(Extreme):
    """How often the largest value occurs in the window; 0 where there is none."""

    commutative = True
    reproducible = True
    empty = 0
    schema = Schema((Field("extreme", "value"), Field("times", "int64")))

    @staticmethod
    def lift(value: Any) -> tuple[Any, int]:
        """The value, once."""
        return (canonical(value), 1)

    @staticmethod
    def combine(a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
        """The larger's; both where they are equal, as two NaN are."""
        x, y = a[0], b[0]
        if x == y or (x != x and y != y):
            return (y, a[1] + b[1])
        return a if x > y or x != x else b

    @staticmethod
    def lower(partial: tuple[Any, int]) -> int:
        """The count alone."""
        return partial[1]


class MinCount(MaxCount):
    """How often the smallest value occurs in the window; 0 where there is none."""

    @staticmethod
    def combine(a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
        """The smaller's; both where they are equal, as two NaN are."""
        x, y = a[0], b[0]
        if x == y or (x != x and y != y):
            return (y, a[1] + b[1])
        return a if x < y or y != y else b


class ArgMax(Aggregate):
    """The first column's value in the row where the second is largest; the oldest such row.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.ArgMax())
    >>> window.insert(("ann", 3)); window.insert(("bob", 7)); window.insert(("cid", 7))
    >>> window.query()
    'bob'
    """

    selective = True
    reproducible = True
    inputs = ("any", "orderable")
    schema = Schema((Field("argument", "value"), Field("extreme", "value")))

    @staticmethod
    def family(value: Any) -> Any:
        """Only what is ordered by must be of one family."""
        return order_family(value[1])

    @staticmethod
    def lift(argument: Any, by: Any) -> tuple[Any, Any]:
        """Both, side by side."""
        return (canonical(argument), canonical(by))

    @staticmethod
    def combine(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        """The larger's; the older's where they are equal."""
        x, y = a[1], b[1]
        return b if (y > x or y != y) and x == x else a

    @staticmethod
    def lower(partial: tuple[Any, Any]) -> Any:
        """The argument alone."""
        return partial[0]


class ArgMin(ArgMax):
    """The first column's value in the row where the second is smallest; the oldest such row."""

    @staticmethod
    def combine(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
        """The smaller's; the older's where they are equal."""
        x, y = a[1], b[1]
        return b if y < x or (x != x and y == y) else a
