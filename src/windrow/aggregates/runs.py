"""Runs: how long values kept rising."""

from windrow.aggregates.base import Aggregate
from windrow.aggregates.schema import Field, Schema

Run = tuple[int, float, float, int, int, int, int]


class LongestRun(Aggregate):
    """Rows in the longest run of numbers that rise from row to row; they are compared as floats.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.LongestRun())
    >>> for x in (3, 1, 2, 5, 4, 6): window.insert(x)
    >>> window.query()
    3
    """

    reproducible = True
    inputs = ("number",)
    identity = (0, 0.0, 0.0, 0, 0, 0, 0)
    schema = Schema(
        (
            Field("rows", "int64"),
            Field("first", "float64"),
            Field("last", "float64"),
            Field("head", "int64"),  # rows of the run at the old end
            Field("tail", "int64"),  # and at the young end
            Field("longest", "int64"),
            Field("start", "int64"),  # rows before the longest; of equal ones the oldest
        )
    )

    @staticmethod
    def lift(x: float) -> Run:
        """A run of one row."""
        value = float(x) + 0.0
        return (1, value, value, 1, 1, 1, 0)

    @staticmethod
    def combine(a: Run, b: Run) -> Run:
        """The runs that meet are one, where the younger goes on rising."""
        if a[0] == 0 or b[0] == 0:
            return b if a[0] == 0 else a
        head, tail, longest, start = a[3], b[4], a[5], a[6]
        if b[1] > a[2]:
            if a[3] == a[0]:
                head += b[3]
            if b[4] == b[0]:
                tail += a[4]
            if a[4] + b[3] > longest:
                longest, start = a[4] + b[3], a[0] - a[4]
        if b[5] > longest:
            longest, start = b[5], a[0] + b[6]
        return (a[0] + b[0], a[1], b[2], head, tail, longest, start)

    @staticmethod
    def lower(p: Run) -> int:
        """Its rows."""
        return p[5]

    @staticmethod
    def useless(total: Run, oldest: Run) -> bool:
        """Rows before the longest run: what they were part of was shorter, and is over."""
        return total[6] >= oldest[0]
