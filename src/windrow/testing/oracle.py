"""Run the same operations on a window and on Recalc, and compare everything after every step."""

from collections.abc import Iterable
from typing import Any

from windrow.aggregates import Aggregate, Partial, as_aggregate
from windrow.windows import Recalc, Window
from windrow.windows.compare import close, equal

Operation = tuple[Any, ...]


class Twin:
    """A window beside its oracle; each operation is done on both, and their answers compared."""

    def __init__(self, algorithm: type[Window], aggregate: Aggregate | type[Aggregate]) -> None:
        self.aggregate = as_aggregate(aggregate)
        self.window = algorithm(self.aggregate)
        self.oracle = Recalc(self.aggregate)
        self._lift = self.aggregate.lifter()
        self._rows: list[Partial] = []

    def insert(self, value: Any) -> None:
        """Insert into both."""
        self._rows.append(self._lift(value))
        self.window.insert(value)
        self.oracle.insert(value)

    def evict(self) -> None:
        """Evict from both."""
        self.window.evict()
        self.oracle.evict()
        del self._rows[0]

    def bulk_evict(self, n: int) -> None:
        """Evict the n oldest from both."""
        self.window.bulk_evict(n)
        self.oracle.bulk_evict(n)
        del self._rows[:n]

    def reload(self) -> None:
        """Replace the window by what its bytes say."""
        self.window = type(self.window).from_bytes(self.window.to_bytes(), self.aggregate)

    def query(self) -> None:
        """Compare the answers."""
        self.compare()

    def compare(self, query: bool = True) -> None:
        """Invariants hold, lengths agree, and so do the answers (or the errors in their place)."""
        self.window.check_invariants(self._rows)
        assert len(self.window) == len(self.oracle), (len(self.window), len(self.oracle))
        if query:
            found, expected = _outcome(self.window), _outcome(self.oracle)
            agree = equal(found, expected) or (
                not self.aggregate.reproducible and close(found, expected)
            )
            assert agree, (
                f"{self.window!r} answers {found!r}, Recalc {expected!r}, for {self._rows!r}"
            )
            self.window.check_invariants(self._rows)


def _outcome(window: Window) -> Any:
    try:
        return window.query()
    except OverflowError as error:
        return f"error: {error}"


def check_against_recalc(
    algorithm: type[Window],
    aggregate: Aggregate | type[Aggregate],
    program: Iterable[Operation],
) -> None:
    """Run the same operations on a window and on Recalc.

    They are ``("insert", x)``, ``("evict",)``, ``("bulk_evict", n)``, ``("query",)`` and
    ``("reload",)``. After every step invariants are checked and the answers compared;
    ``AssertionError`` says how they differ. Evictions of more rows than there are evict what there
    is.

    >>> import windrow as wr
    >>> check_against_recalc(wr.windows.DabaLite, wr.Max(), [("insert", 3), ("evict",)])
    """
    twin = Twin(algorithm, aggregate)
    for name, *arguments in program:
        held = len(twin.oracle)
        if name == "bulk_evict":
            twin.bulk_evict(min(arguments[0], held))
        elif name != "evict" or held:
            getattr(twin, name)(*arguments)
        twin.compare()


def rolling(rows: int, values: Iterable[Any]) -> list[Operation]:
    """The program of a window that holds the last ``rows`` values."""
    program: list[Operation] = []
    for i, value in enumerate(values):
        if i >= rows:
            program.append(("evict",))
        program.append(("insert", value))
    return program
