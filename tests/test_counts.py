"""The papers' figures: applications of ⊕, stored partials, moved rows. Counts, not seconds."""

import random
from collections import deque
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import windrow as wr
from windrow.testing import CountedWindow
from windrow.windows import (
    Daba,
    DabaLite,
    FlatFat,
    FlatFit,
    MonotoneDeque,
    Recalc,
    SubtractOnEvict,
    TwoStacks,
    TwoStacksLite,
    Window,
)

OPERATIONS = st.lists(st.sampled_from(["insert", "insert", "evict", "query"]), max_size=300)


class Counted(CountedWindow):
    """Runs operations by name; evicting nothing costs nothing."""

    def __init__(self, algorithm: type[Window], aggregate: wr.Aggregate | None = None) -> None:
        super().__init__(algorithm, aggregate or wr.Max())

    def run(self, operation: str, value: float = 0.0) -> int:
        if operation == "insert":
            return self.insert(value)
        if operation == "query":
            return self.query()
        return self.evict() if len(self.window) else 0


@pytest.mark.parametrize(
    ("algorithm", "query", "insert", "evict"),
    [(Daba, 1, 4, 3), (DabaLite, 1, 3, 2)],
)
@given(OPERATIONS)
def test_worst_case_of_daba(
    algorithm: type[Window], query: int, insert: int, evict: int, operations: list[str]
) -> None:
    """Theorems 10 and 13, on any program."""
    counted = Counted(algorithm)
    bound = {"query": query, "insert": insert, "evict": evict}
    for i, operation in enumerate(operations):
        assert counted.run(operation, i * 7 % 11) <= bound[operation]


@pytest.mark.parametrize(("algorithm", "insert", "evict"), [(Daba, 2.5, 1.5), (DabaLite, 2, 1)])
def test_average_of_daba(algorithm: Any, insert: float, evict: float) -> None:
    """Within 2 % over at least 100 whole flip cycles at n = 1,000.

    In steady state one kind of operation could always meet the same half of the cycle, so which
    comes first alternates at random; the average is over both.
    """
    counted = Counted(algorithm)
    window: Any = counted.window
    flips = 0
    for i in range(1000):
        counted.run("insert", i)
    generator = random.Random(5)
    spent = {"insert": 0, "evict": 0}
    done = {"insert": 0, "evict": 0}
    while flips < 120:
        front = len(window._L) + len(window._A)
        operation = generator.choice(["insert", "evict"])
        if len(window) < 900:
            operation = "insert"
        elif len(window) > 1100:
            operation = "evict"
        spent[operation] += counted.run(operation, generator.random())
        done[operation] += 1
        flips += front == 0
    assert done["insert"] > 10_000
    assert spent["insert"] / done["insert"] == pytest.approx(insert, rel=0.02)
    assert spent["evict"] / done["evict"] == pytest.approx(evict, rel=0.02)


@pytest.mark.parametrize("algorithm", [Daba, DabaLite])
@given(st.lists(st.booleans(), min_size=20, max_size=400))
def test_between_flips_are_m_shrinks_then_m_shifts(algorithm: Any, steps: list[bool]) -> None:
    """Section 5: a flip (which shrinks once), m − 1 more shrinks, then m shifts."""
    cases: list[str] = []

    class Watched(algorithm):  # type: ignore[misc]
        __slots__ = ()

        def _fixup(self) -> str:
            cases.append(super()._fixup())
            return cases[-1]

    window = Watched(wr.Max())
    for insert in steps:
        if insert or not len(window):
            window.insert(1)
        else:
            window.evict()
    starts = [i for i, case in enumerate(cases) if case in ("flip", "singleton")]
    whole = 0
    for start, end in pairwise(starts):
        cycle, ended_by = cases[start + 1 : end], cases[end]
        if cases[start] == "singleton":
            assert cycle == []  # one row: nothing to turn round
            continue
        shrinks, shifts = cycle.count("shrink") + 1, cycle.count("shift")
        assert cycle == ["shrink"] * (shrinks - 1) + ["shift"] * shifts
        if ended_by == "flip":
            assert shifts == shrinks
            whole += 1
        else:  # emptied before the cycle was over
            assert shifts <= shrinks
    event(f"whole cycles: {min(whole, 3)}")


@pytest.mark.parametrize("algorithm", [Daba, DabaLite])
def test_at_most_two_rows_change_their_sublist_in_any_operation(algorithm: Any) -> None:
    """The queues never copy themselves: moves per operation are bounded at every window size."""
    moves = 0

    class CountingDeque(deque[Any]):
        def append(self, x: Any) -> None:
            nonlocal moves
            moves += 1
            super().append(x)

        def appendleft(self, x: Any) -> None:
            nonlocal moves
            moves += 1
            super().appendleft(x)

        def pop(self) -> Any:  # type: ignore[override]
            nonlocal moves
            moves += 1
            return super().pop()

        def popleft(self) -> Any:
            nonlocal moves
            moves += 1
            return super().popleft()

        def __setitem__(self, *_: Any) -> None:
            raise AssertionError("rows are not moved by index")

        extend = extendleft = rotate = insert = copy = __setitem__  # type: ignore[assignment]

    class Watched(algorithm):  # type: ignore[misc]
        __slots__ = ()
        queue = CountingDeque

    window = Watched(wr.Max())
    worst = 0
    generator = random.Random(1)
    for size in (0, 10, 1000, 20_000):
        while len(window) < size:
            moves = 0
            window.insert(1)
            worst = max(worst, moves)
        for _ in range(3000):
            moves = 0
            if generator.random() < 0.5 or not len(window):
                window.insert(1)
            else:
                window.evict()
            worst = max(worst, moves)
    assert worst == 5  # one row in or out, and at most two rows from one sublist to the next


@pytest.mark.parametrize("algorithm", [TwoStacks, TwoStacksLite])
@given(OPERATIONS)
def test_two_stacks(algorithm: type[Window], operations: list[str]) -> None:
    """Theorems 3 and 7: query and insert at most 1, evict at most n and amortised 1."""
    counted = Counted(algorithm)
    evictions = spent = inserts = 0
    for i, operation in enumerate(operations):
        size = len(counted.window)
        combines = counted.run(operation, i)
        if operation == "evict":
            assert combines <= size
            spent += combines
            evictions += bool(size)
        else:
            assert combines <= 1
            inserts += operation == "insert"
        assert spent <= inserts  # paid for by the coins of the inserts
    assert evictions <= inserts


@pytest.mark.parametrize("algorithm", [TwoStacks, TwoStacksLite])
def test_two_stacks_evicts_for_one_on_average(algorithm: type[Window]) -> None:
    counted = Counted(algorithm)
    for i in range(1000):
        counted.run("insert", i)
    spent = 0
    for i in range(100_000):
        spent += counted.run("evict")
        counted.run("insert", i)
    assert 0.98 <= spent / 100_000 <= 1.0


@pytest.mark.parametrize(
    ("algorithm", "bound"),
    [
        (Recalc, lambda n: n),
        (SubtractOnEvict, lambda n: n + 1),
        (MonotoneDeque, lambda n: n),
        (TwoStacks, lambda n: 2 * n),
        (TwoStacksLite, lambda n: n + 1),
        (Daba, lambda n: 2 * n),
        (DabaLite, lambda n: n + 2),
        (FlatFat, lambda n: 4 * n),
        (FlatFit, lambda n: n),
    ],
)
@given(OPERATIONS)
def test_stored_partials(algorithm: type[Window], bound: Any, operations: list[str]) -> None:
    aggregate = wr.Count() if algorithm is SubtractOnEvict else wr.Max()
    counted = Counted(algorithm, aggregate)
    for i, operation in enumerate(operations):
        counted.run(operation, -i)  # falling: the monotone deque's worst case
        assert counted.window.stored_partials() <= bound(len(counted.window))
        assert counted.window.stored_partials() == _really_stored(counted.window)


def _really_stored(window: Any) -> int:
    """Partials found by looking into the window's own attributes, except the cached answer."""
    names = {
        "Recalc": {"_rows": 1},
        "SubtractOnEvict": {"_rows": 1, "_total": 0},
        "MonotoneDeque": {"_rows": 1},
        "TwoStacks": {"_F": 2, "_B": 2},
        "TwoStacksLite": {"_F": 1, "_B": 1, "_aggB": 0},
        "Daba": dict.fromkeys(("_F", "_L", "_R", "_A", "_B"), 2),
        "DabaLite": dict.fromkeys(("_F", "_L", "_R", "_A", "_B"), 1) | {"_aggRA": 0, "_aggB": 0},
    }.get(type(window).__name__)
    if names is None:  # the trees: every slot that is not EMPTY
        slots = window._tree if isinstance(window, FlatFat) else window._partials
        return sum(slot is not wr.aggregates.EMPTY for slot in slots)
    return sum(each * len(getattr(window, name)) if each else 1 for name, each in names.items())


@pytest.mark.parametrize("n", [16, 256, 4096])
def test_flat_fat_is_logarithmic(n: int) -> None:
    counted = Counted(FlatFat)
    for i in range(n):
        counted.run("insert", i)
    depth = n.bit_length() - 1
    for i in range(3 * n):
        assert counted.run("evict") <= depth
        assert counted.run("insert", i) <= depth
        assert counted.run("query") <= 2 * depth + 1


@pytest.mark.parametrize("n", [16, 1024, 8192])
def test_flat_fit_is_amortised_constant(n: int) -> None:
    counted = Counted(FlatFit)
    for i in range(n):
        assert counted.run("insert", i) == 0
    spent = counted.run("query")
    assert spent <= n - 1
    rounds = 20 * n
    for i in range(rounds):
        assert counted.run("evict") == 0
        assert counted.run("insert", i) == 0
        spent += counted.run("query")
    assert spent <= 3 * (rounds + n)


@given(OPERATIONS)
def test_flat_fit_is_amortised_constant_on_any_program(operations: list[str]) -> None:
    counted = Counted(FlatFit)
    spent = sum(counted.run(operation, i) for i, operation in enumerate(operations))
    assert spent <= 3 * len(operations)


def test_flat_fit_keeps_as_many_indices_as_partials() -> None:
    window: Any = FlatFit(wr.Max())
    for i in range(1000):
        window.insert(i)
    assert window.stored_partials() == 1000
    assert len(window._next) == len(window._partials) <= 2 * 1000


@given(OPERATIONS)
def test_subtract_on_evict_and_monotone_deque(operations: list[str]) -> None:
    subtract, monotone = Counted(SubtractOnEvict, wr.Count()), Counted(MonotoneDeque)
    inserts = spent = 0
    for i, operation in enumerate(operations):
        assert subtract.run(operation, i) <= {"insert": 1, "evict": 1, "query": 0}[operation]
        combines = monotone.run(operation, i * 7 % 5)
        assert combines == 0 or operation == "insert"
        inserts += operation == "insert"
        spent += combines
    assert spent <= 2 * inserts


def test_no_latency_spike() -> None:
    """W = 2**14: DabaLite's largest operation against TwoStacksLite's. The full run is in bench."""
    rounds, size = 40_000, 1 << 14
    largest = {}
    for algorithm in (DabaLite, TwoStacksLite):
        counted = Counted(algorithm)
        for i in range(size):
            counted.run("insert", i * 7919 % 10_007)
        for i in range(rounds):
            counted.evict()
            counted.insert(i * 7919 % 10_007)
            counted.query()
        largest[algorithm] = max(counted.worst.values())
    assert largest == {DabaLite: 3, TwoStacksLite: size - 1}
