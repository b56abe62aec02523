"""Greedy SWA: right, with the fewest combines there can be."""

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.pairs import AGGREGATES, pair_name
from windrow.columns.builtin import kernels
from windrow.errors import BadSpecification
from windrow.greedy import Greedy, sliding_window
from windrow.testing import CombineCounter
from windrow.windows.compare import same

Interval = tuple[int, int]


def combines(values: int, windows: list[Interval]) -> int:
    counter = CombineCounter(wr.Concat())
    letters = [chr(97 + i) for i in range(values)]
    answers = sliding_window(counter.aggregate, letters, windows)
    assert answers == ["".join(letters[a : b + 1]) for a, b in windows]
    return counter.take()


@cache
def fewest(needed: frozenset[Interval]) -> int:
    """The true minimum: over all ways to cut every needed range in two, the fewest ranges in all.

    With associativity alone a combine makes one range of two neighbours, so the cost is the number
    of distinct ranges of two or more rows that are made.
    """
    if not needed:
        return 0
    left, right = max(needed, key=lambda i: (i[1] - i[0], i))
    rest = needed - {(left, right)}
    best = 10**9
    for cut in range(left, right):
        parts = {p for p in ((left, cut), (cut + 1, right)) if p[0] < p[1]}
        best = min(best, fewest(rest | parts))
    return best + 1


def chains(n: int) -> list[list[Interval]]:
    """All sequences of windows over n rows whose margins never fall, without repeats."""
    windows = [(a, b) for a in range(n) for b in range(a, n)]
    found: list[list[Interval]] = []

    def extend(chain: list[Interval]) -> None:
        if chain:
            found.append(chain)
        for w in windows:
            if not chain or (w != chain[-1] and w[0] >= chain[-1][0] and w[1] >= chain[-1][1]):
                extend([*chain, w])

    extend([])
    return found


def check_minimal(n: int, windows: list[Interval]) -> None:
    assert combines(n, windows) == fewest(frozenset(w for w in windows if w[0] < w[1])), windows


def test_the_papers_example() -> None:
    counter = CombineCounter(wr.Sum())
    answers = sliding_window(counter.aggregate, (2, 4, 5, 2), [(0, 2), (0, 3), (1, 3)])
    assert answers == [11, 13, 11]
    assert counter.take() == 4
    assert sum(b - a for a, b in [(0, 2), (0, 3), (1, 3)]) == 7  # what the naive way takes


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_minimal_on_all_inputs(n: int) -> None:
    for windows in chains(n):
        check_minimal(n, windows)


def test_minimal_on_all_inputs_of_five() -> None:
    """Each set of windows once: the order within it is the only one there is."""
    for windows in chains(5):
        check_minimal(5, windows)


def test_minimal_on_a_sample_of_six_and_seven() -> None:
    generator = random.Random(2)
    for _ in range(400):
        n = generator.choice((6, 6, 7))
        windows: list[Interval] = []
        left = right = 0
        while right < n and len(windows) < 8:
            if left <= right and (not windows or windows[-1] != (left, right)):
                windows.append((left, right))
            left += generator.choice((0, 0, 1, 2))
            right = max(right + generator.choice((0, 1, 1, 2)), left)
        check_minimal(n, windows)


def random_windows(n: int, generator: random.Random) -> list[Interval]:
    windows: list[Interval] = []
    left = right = 0
    while right < n:
        windows.append((left, right))
        right += generator.choice((0, 1, 1, 2, 5))
        left = min(left + generator.choice((0, 0, 1, 1, 2, 9)), right)
    return windows


def test_minimal_for_fixed_windows() -> None:
    for n in range(4, 10):
        for width in range(2, n):
            check_minimal(n, [(i, i + width - 1) for i in range(n - width + 1)])


def test_fewer_than_three_a_row_on_large_inputs() -> None:
    """Linear, as Lemma 4 says. The minimum itself can exceed 2n: for the last 100 of 5,000 rows it
    is 14,555, that of blocks of W rows (3 − 4/W a row), so no algorithm can promise less than 3."""
    generator = random.Random(4)
    for n in (100, 1000, 5000):
        windows = random_windows(n, generator)
        assert combines(n, windows) < 2 * n
    fixed = [(max(0, i - 99), i) for i in range(5000)]
    assert 2 * 5000 < combines(5000, fixed) == 14_555 < 3 * 5000


def test_a_repeated_window_costs_nothing() -> None:
    online = Greedy((counter := CombineCounter(wr.Sum())).aggregate)
    for i in range(10):
        online.insert(i)
    online.window(2, 8)
    counter.take()
    assert online.window(2, 8) == 35
    assert counter.take() == 0


@pytest.mark.parametrize(
    "aggregate", [a for a in AGGREGATES.values() if len(a.input_kinds) < 2], ids=pair_name
)
@given(st.data())
def test_online_equals_recalc_and_keeps_the_conditions(aggregate: wr.Aggregate, data: Any) -> None:
    text = aggregate.input_kinds[-1:] in (("text",), ("string",))
    online = Greedy(aggregate)
    lift = aggregate.lifter()
    rows: list[Any] = []
    left = right = 0
    for i in range(data.draw(st.integers(1, 25))):
        value = data.draw(st.text(max_size=2)) if text else data.draw(st.integers(0, 9))
        value = value > 4 if aggregate.input_kinds == ("boolean",) else value
        online.insert(value)
        rows.append(lift(value))
        if data.draw(st.booleans()):
            right = data.draw(st.integers(right, i))
            left = data.draw(st.integers(left, right))
            found = online.total(left, right)
            expected = wr.aggregates.EMPTY
            for row in rows[left : right + 1]:
                expected = aggregate.merger()(expected, row)
            assert same(aggregate, found, expected)
            online.check_invariants(rows)
            assert online.stored_partials() <= 2 * (right - left + 1)


def test_mistakes() -> None:
    online = Greedy(wr.Sum())
    online.insert(1)
    with pytest.raises(BadSpecification, match="within the 1 rows"):
        online.window(0, 1)
    online.insert(2)
    online.window(1, 1)
    with pytest.raises(BadSpecification, match=r"\(0, 1\) follows \(1, 1\) and moves back.*BInt"):
        online.window(0, 1)
    assert online.window(1, 1) == 2


@given(st.integers(1, 60), st.integers(0, 10**6))
def test_the_compiled_form_makes_the_same_combines(n: int, seed: int) -> None:
    generator = random.Random(seed)
    windows = random_windows(n, generator)
    x = np.array([generator.random() for _ in range(n)])
    lo = np.array([a for a, _ in windows])
    hi = np.array([b + 1 for _, b in windows])
    out = np.empty(len(windows))
    spent = kernels("max").greedy(x, lo, hi, 0, len(windows), -np.inf, 0.0, out)
    assert out.tolist() == [x[a : b + 1].max() for a, b in windows]
    assert spent == combines(n, windows)
