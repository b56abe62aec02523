"""Runs: how long values kept rising, and when."""

from typing import Any, Unpack

from windrow.aggregates import exact
from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.values import canonical
from windrow.errors import BadSpecification, BadValue

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
        value = float(exact.as_number(x)) + 0.0
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


TimedRun = tuple[int, float, float, int, int, int, int, Any, Any, Any, Any]
_ANSWERS = ("first", "last", "interval")


class LongestRunTime(Aggregate):
    """When the longest run of rising numbers was: the first column's value where it begins.

    The second column is what rises. ``answer="last"`` gives the first column's value where the run
    ends, ``answer="interval"`` the last less the first, for times and numbers. Of equal runs the
    oldest counts. How many rows it has is ``LongestRun``.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.LongestRunTime(answer="interval"))
    >>> for at, x in ((10, 3), (11, 1), (14, 2), (20, 5), (21, 4)): window.insert((at, x))
    >>> window.query()
    9
    """

    reproducible = True
    inputs = ("any", "number")
    name = "longest_run_first"
    schema = Schema(
        (
            *LongestRun.schema.fields,
            Field("head_end", "value"),
            Field("tail_begin", "value"),
            Field("run_begin", "value"),
            Field("run_end", "value"),
        )
    )

    def __init__(self, *columns: str, answer: str = "first", **options: Unpack[Options]) -> None:
        if answer not in _ANSWERS:
            raise BadSpecification(f"answer= is one of {', '.join(_ANSWERS)}, not {answer!r}")
        super().__init__(*columns, **options)
        self.answers = answer
        if answer != "first":
            self.name = f"longest_run_{answer}"

    def options(self) -> dict[str, Any]:
        """``answer`` only where it is not the default."""
        found = {k: v for k, v in super().options().items() if k not in ("name", "answers")}
        return found if self.answers == "first" else {**found, "answer": self.answers}

    @staticmethod
    def lift(at: Any, x: float) -> TimedRun:
        """A run of one row, which begins and ends there."""
        at = canonical(at)
        return (*LongestRun.lift(x), at, at, at, at)

    @staticmethod
    def combine(a: TimedRun, b: TimedRun) -> TimedRun:
        """As without times; those go with the runs whose ends they are."""
        meet = b[1] > a[2]
        run = LongestRun.combine(a[:7], b[:7])
        head = b[7] if meet and a[3] == a[0] else a[7]
        tail = a[8] if meet and b[4] == b[0] else b[8]
        longest, times = a[5], a[9:]
        if meet and a[4] + b[3] > longest:
            longest, times = a[4] + b[3], (a[8], b[7])
        if b[5] > longest:
            times = b[9:]
        return (*run, head, tail, *times)

    def lower(self, p: TimedRun) -> Any:
        """Where it begins, where it ends, or how far that is apart."""
        if self.answers != "interval":
            return p[9] if self.answers == "first" else p[10]
        try:
            return p[10] - p[9]
        except TypeError:
            raise BadValue(
                f"{self!r}: {p[10]!r} and {p[9]!r} have no difference: give times or numbers, or "
                'say answer="first"'
            ) from None

    @staticmethod
    def useless(total: TimedRun, oldest: TimedRun) -> bool:
        """Rows before the longest run, as without times."""
        return total[6] >= oldest[0]
