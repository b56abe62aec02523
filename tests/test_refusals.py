"""Illegal pairs are refused when built, with the reason and the way out."""

import pytest

import windrow as wr
from tests.pairs import AGGREGATES
from windrow.errors import BadSpecification, Refused
from windrow.windows import ALGORITHMS, MonotoneDeque, SubtractOnEvict


@pytest.mark.parametrize("name", [n for n, a in AGGREGATES.items() if not a.invertible])
def test_subtract_on_evict_refuses_without_inverse(name: str) -> None:
    with pytest.raises(Refused, match=r"is not invertible.*Use TwoStacksLite or DabaLite"):
        SubtractOnEvict(AGGREGATES[name])


@pytest.mark.parametrize("name", [n for n, a in AGGREGATES.items() if not a.selective])
def test_monotone_deque_refuses_what_is_not_selective(name: str) -> None:
    with pytest.raises(Refused, match=r"is not selective.*Use .*TwoStacksLite"):
        MonotoneDeque(AGGREGATES[name])


def test_the_named_ones() -> None:
    with pytest.raises(Refused, match=r"SubtractOnEvict\(Max\(\)\) is refused"):
        SubtractOnEvict(wr.Max())
    with pytest.raises(Refused, match=r"MonotoneDeque\(Sum\(\)\) is refused"):
        MonotoneDeque(wr.Sum())


def test_subtract_on_evict_refuses_rounded_floats() -> None:
    class FloatSum(wr.Aggregate):
        identity = 0.0
        invertible = True

        @staticmethod
        def combine(a: float, b: float) -> float:
            return a + b

        @staticmethod
        def inverse(total: float, oldest: float) -> float:
            return total - oldest

    with pytest.raises(Refused, match="rounding errors stay when a row leaves"):
        SubtractOnEvict(FloatSum())
    # and rightly so: this is what it would have done
    assert (1e16 + 1.0) - 1e16 != 1.0
    # windrow's own sum keeps floats exactly, so it may
    window = SubtractOnEvict(wr.Sum())
    window.insert(1e16)
    window.insert(1.0)
    window.evict()
    assert window.query() == 1.0


def test_everything_else_is_accepted() -> None:
    for name, algorithm in ALGORITHMS.items():
        if name not in ("SubtractOnEvict", "MonotoneDeque"):
            for aggregate in AGGREGATES.values():
                assert algorithm.refuses(aggregate) is None


def test_unknown_algorithm_lists_the_known() -> None:
    with pytest.raises(BadSpecification, match="DabaLite"):
        wr.Sliding(wr.rows(3), wr.Max(), algorithm="Dabba")
    with pytest.raises(BadSpecification, match="worst_case"):
        wr.Sliding(wr.rows(3), wr.Max(), latency="low")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="not invertible"):
        wr.Sliding(wr.rows(3), wr.Max(), algorithm="SubtractOnEvict")
