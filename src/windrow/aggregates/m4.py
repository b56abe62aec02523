"""What a line chart needs of a stretch of rows: its four corners."""

from typing import Any

from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.values import canonical, order_family

Corners = tuple[Any, Any, Any, Any, Any, Any, Any, Any]
CORNERS = ("first", "min", "max", "last")


class M4(Aggregate):
    """First, smallest, largest and last value of the first column, each with its time (the second).

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.M4())
    >>> for row in [(20, 1), (18, 2), (25, 3), (22, 4)]: window.insert(row)
    >>> window.query()
    {'first': 20, 'first_time': 1, 'min': 18, 'min_time': 2,
     'max': 25, 'max_time': 3, 'last': 22, 'last_time': 4}

    A chart of these four points of each pixel's rows is the chart of all rows (Jugel et al., VLDB
    2014). Of equal extremes the oldest counts. NaN is larger than every number, and smallest only
    where there is nothing else. In tables the answer is a struct, null for a window without rows.
    """

    name = "m4"
    reproducible = True
    inputs = ("orderable", "any")
    schema = Schema(
        tuple(Field(f"{corner}{end}", "value") for corner in CORNERS for end in ("", "_time"))
    )

    @staticmethod
    def family(value: Any) -> Any:
        """Only the values must be of one family."""
        return order_family(value[0])

    @staticmethod
    def lift(value: Any, time: Any) -> Corners:
        """One row is all four."""
        value, time = canonical(value), canonical(time)
        return (value, time, value, time, value, time, value, time)

    @staticmethod
    def combine(a: Corners, b: Corners) -> Corners:
        """The older's first, the younger's last, the better of both extremes."""
        low = b if b[2] < a[2] or (a[2] != a[2] and b[2] == b[2]) else a
        high = b if b[4] > a[4] or (b[4] != b[4] and a[4] == a[4]) else a
        return (a[0], a[1], low[2], low[3], high[4], high[5], b[6], b[7])

    @staticmethod
    def lower(corners: Corners) -> dict[str, Any]:
        """By name."""
        names = [field.name for field in M4.schema.fields]
        return dict(zip(names, corners, strict=True))
