"""Every algorithm equals Recalc: on random programs, on the corpus, after errors, through bytes."""

import contextlib
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import windrow as wr
from tests.pairs import PAIRS, GeoMean, accepted, pair_name
from windrow.errors import BadSpecification, BadValue, EmptyWindow, InvariantBroken
from windrow.testing import cases, check_against_recalc, rolling
from windrow.testing.strategies import window_machine
from windrow.windows import ALGORITHMS, Recalc, Window

PROGRAMS = settings() if os.environ.get("WINDROW_TESTS") == "slow" else settings(max_examples=15)
"""There are some 250 pairs: ten thousand programs in every run."""


@pytest.mark.parametrize(("algorithm", "aggregate"), PAIRS, ids=pair_name)
def test_random_programs_equal_recalc(algorithm: type[Window], aggregate: wr.Aggregate) -> None:
    run_state_machine_as_test(window_machine(algorithm, aggregate), settings=PROGRAMS)


@pytest.mark.parametrize(("algorithm", "aggregate"), PAIRS, ids=pair_name)
def test_corpus_equals_recalc(algorithm: type[Window], aggregate: wr.Aggregate) -> None:
    for case in cases(aggregate):
        for rows in (1, 2, 3, 5):
            check_against_recalc(algorithm, aggregate, rolling(rows, case.values))


@pytest.mark.parametrize("algorithm", accepted(GeoMean()), ids=pair_name)
@given(st.lists(st.floats(1e-3, 1e3), max_size=60), st.integers(1, 20))
def test_a_users_aggregate_equals_recalc(
    algorithm: type[Window], values: list[float], rows: int
) -> None:
    check_against_recalc(algorithm, GeoMean(), rolling(rows, values))


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=pair_name)
def test_any_object_is_a_value(algorithm: type[Window]) -> None:
    class Sets(wr.Aggregate):
        commutative = True
        selective = algorithm.__name__ == "MonotoneDeque"
        invertible = algorithm.__name__ == "SubtractOnEvict"

        def combine(a: Any, b: Any) -> Any:  # noqa: N805
            return b if selective else a | b

        def inverse(total: Any, oldest: Any) -> Any:  # noqa: N805
            return total - oldest

    selective = Sets.selective
    window = algorithm(Sets())
    for item in ({object()}, {1}, {"x"}):
        window.insert(item)
    window.evict()
    assert window.query() == ({"x"} if selective else {1, "x"})


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=pair_name)
def test_empty_windows(algorithm: type[Window]) -> None:
    aggregate = wr.Max() if algorithm.refuses(wr.Max()) is None else wr.Sum()
    window = algorithm(aggregate)
    for _ in range(3):  # empty, filled, emptied, and again
        assert window.query() is None
        assert len(window) == 0
        assert window  # a window is never false
        with pytest.raises(EmptyWindow, match="is empty"):
            window.evict()
        with pytest.raises(EmptyWindow, match="holds 0 rows"):
            window.bulk_evict(1)
        window.bulk_evict(0)
        for value in (None, 3, None):
            window.insert(value)
        assert window.query() == 3
        assert len(window) == 3
        with pytest.raises(EmptyWindow, match="holds 3 rows"):
            window.bulk_evict(4)
        window.bulk_evict(2)
        assert window.query() is None
        assert len(window) == 1
        window.evict()


def test_bulk_evict_takes_a_count() -> None:
    window = wr.windows.DabaLite(wr.Max())
    for wrong in (-1, 1.0, "1"):
        with pytest.raises(BadSpecification, match="number of rows"):
            window.bulk_evict(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=pair_name)
def test_queries_are_cached_until_the_next_change(algorithm: type[Window]) -> None:
    lowered = []

    class Last(wr.Last):
        def lower(p: Any) -> Any:  # noqa: N805
            lowered.append(p)
            return p

    window = algorithm(Last())
    window.insert(1)
    window.insert(2)
    assert [window.query() for _ in range(3)] == [2, 2, 2]
    assert lowered == [2]
    window.evict()
    assert [window.query(), window.query()] == [2, 2]
    assert lowered == [2, 2]


class Explosive(wr.Aggregate):
    """Adds, and raises at a chosen application of ⊕."""

    fuse = 0

    def combine(self, a: int, b: int) -> int:
        self.fuse -= 1
        if self.fuse == 0:
            raise RuntimeError("boom")
        return a + b


@pytest.mark.parametrize("algorithm", accepted(Explosive()), ids=pair_name)
@given(st.integers(0, 40), st.integers(0, 30), st.integers(1, 12), st.booleans())
def test_an_operation_that_raises_changes_nothing(
    algorithm: type[Window], inserted: int, evicted: int, fuse: int, insert: bool
) -> None:
    aggregate = Explosive()
    window = algorithm(aggregate)
    rows: list[int] = []
    for i in range(inserted):
        rows.append(3**i)
        window.insert(3**i)
    for _ in range(min(evicted, len(rows))):
        window.evict()
        del rows[0]
    aggregate.fuse = fuse
    try:
        if insert:
            window.insert(5)
            rows.append(5)
        elif rows:
            window.evict()
            del rows[0]
    except RuntimeError:
        aggregate.fuse = fuse
    with contextlib.suppress(RuntimeError):
        window.query()
    aggregate.fuse = 0
    window.check_invariants(rows)
    assert window.query() == (sum(rows) if rows else None)


@pytest.mark.parametrize("algorithm", accepted(wr.Max()), ids=pair_name)
def test_a_wrong_type_is_refused_when_it_comes(algorithm: type[Window]) -> None:
    window = algorithm(wr.Max())
    for i in range(7):
        window.insert(i)
        with pytest.raises(BadValue, match=r"'text' \(str\) cannot be combined with 0 \(int\)"):
            window.insert("text")
    assert window.query() == 6
    assert len(window) == 7


@pytest.mark.parametrize("algorithm", accepted(wr.Sum()), ids=pair_name)
def test_sum_refuses_text_with_the_way_out(algorithm: type[Window]) -> None:
    window = algorithm(wr.Sum("amount"))
    window.insert(1.5)
    with pytest.raises(BadValue, match=r"'7' is a str.*Convert it first") as caught:
        window.insert("7")
    assert "Sum('amount')" in caught.value.__notes__[0]
    assert window.query() == 1.5


def test_invariants_are_really_checked() -> None:
    """A broken structure, or a combine that is not associative, must not pass."""
    for algorithm in accepted(wr.Sum()):
        window = algorithm(wr.Sum())
        for i in range(6):
            window.insert(i + 1)
        rows = [wr.Sum.lift(i + 1) for i in range(6)]
        window.check_invariants(rows)
        with pytest.raises(InvariantBroken):
            window.check_invariants([*rows[:-1], rows[0]])
        with pytest.raises(InvariantBroken):
            window.check_invariants(rows[1:])


def test_an_aggregate_class_works_like_an_instance() -> None:
    window = Recalc(wr.Max)
    window.insert(4)
    assert window.query() == 4
    with pytest.raises(BadSpecification, match=r"expected an aggregate such as windrow.Max\(\)"):
        Recalc("max")  # type: ignore[arg-type]
