"""Moments by running sums in strips: the bits of exact arithmetic, or NaN and another kernel."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from windrow.aggregates.power_sums import PowerSums
from windrow.columns import power_sums, strips, sums
from windrow.columns.strip_kernels import strip_kernels
from windrow.windows import Recalc, SubtractOnEvict

SINGLE: list[PowerSums] = [
    wr.Variance("x"),
    wr.StdDev("x", ddof=0),
    wr.StdDev("x"),
    wr.Skewness("x"),
    wr.Skewness("x", population=True),
    wr.Kurtosis("x"),
    wr.Kurtosis("x", population=True),
]
PAIRED: list[PowerSums] = [
    wr.Covariance("x", "y"),
    wr.Correlation("x", "y"),
    wr.Slope("x", "y"),
    wr.WeightedMean("x", "y"),
]
ALL = [*SINGLE, *PAIRED]


def data(kind: str, n: int, seed: int) -> np.ndarray[Any, Any]:
    """Columns with what makes power sums wrong."""
    generator = np.random.default_rng(seed)
    normal = generator.standard_normal(n)
    places = generator.integers(0, n, max(1, n // 100))
    spoilt = normal.copy()
    large = [1e15, -1e18, 3e100, 1e150, -1e300, 1e-200]
    spoilt[places] = generator.choice([math.nan, math.inf] if kind == "odd" else large, len(places))
    return {
        "normal": normal,
        "outliers": spoilt,
        "odd": spoilt,
        "walk": normal.cumsum() * 100,
        "price": 1e6 + normal.cumsum(),
        "clock": 1.7e9 + np.arange(n) * 0.1,
        "offset": 1e8 + generator.random(n),
        "cents": generator.integers(0, 10_000, n) / 100,
        "whole": generator.integers(-5, 6, n).astype(np.float64),
        "steps": np.repeat(normal[: n // 50 + 1], 50)[:n],
        "mostly 0": np.where(generator.random(n) < 0.9, 0.0, normal),
        "decades": normal * 10.0 ** generator.integers(-8, 8, n),
        "tiny": normal * 1e-110,
        "huge": normal * 1e115,
        "powers of 2": 2.0 ** (np.arange(n) % 90 - 45.0),
        "two neighbours": np.where(np.arange(n) % 2, 1.0, 1.0 + 2.0**-52),
    }[kind]


COMMON = ["normal", "walk", "price", "offset", "cents", "whole", "decades"]
HARD = ["outliers", "odd", "clock", "steps", "mostly 0", "tiny", "huge"]
KINDS = [*COMMON, *HARD, "powers of 2", "two neighbours"]


def exactly(
    aggregate: PowerSums, rows: list[Any], lo: np.ndarray[Any, Any], hi: np.ndarray[Any, Any]
) -> list[float | None]:
    """Every answer from exact sums, rounded once."""
    window = SubtractOnEvict(type(aggregate)(**aggregate.options()))
    answers, low, high = [], 0, 0
    for start, end in zip(lo.tolist(), hi.tolist(), strict=True):
        for row in rows[high:end]:
            window.insert(row)
        high = max(high, end)
        while low < min(start, high):
            window.evict()
            low += 1
        answers.append(window.query())
    return answers


def check(
    x: np.ndarray[Any, Any],
    y: np.ndarray[Any, Any],
    missing: np.ndarray[Any, Any],
    window: Any,
    aggregates: list[PowerSums],
) -> None:
    """A window's answers have the bits of exact arithmetic."""
    n = len(x)
    time = np.cumsum(np.random.default_rng(n).integers(0, 4, n))
    table = pa.table({"x": pa.array(x, mask=missing), "y": y, "at": time})
    named = [aggregate.alias(str(i)) for i, aggregate in enumerate(aggregates)]
    found = wr.Rolling(time="at", tie="at", windows={"w": window}, aggregates=named)(table)
    if window.kind == "rows":
        hi = np.maximum(np.arange(n) + 1 - window.ending, 0)
        lo = np.maximum(hi - window.n, 0)
    else:
        lo = np.searchsorted(time, time - window.length - window.ending, side="right")
        hi = np.searchsorted(time, time - window.ending, side="right")
    values = [None if gone else v for v, gone in zip(x.tolist(), missing.tolist(), strict=True)]
    pairs = list(zip(values, y.tolist(), strict=True))
    for i, aggregate in enumerate(aggregates):
        wanted = exactly(aggregate, pairs if aggregate in PAIRED else values, lo, hi)
        got = found[f"{i}_w"].to_pylist()
        for row, (a, b) in enumerate(zip(got, wanted, strict=True)):
            assert a == b or (a is not None and b is not None and a != a and b != b), (row, a, b)


WINDOWS = st.one_of(
    st.builds(wr.rows, st.one_of(st.integers(2, 6), st.integers(100, 400))),
    st.builds(lambda n, late: wr.rows(n, ending=late), st.integers(2, 50), st.integers(0, 200)),
    st.builds(lambda t, late: wr.time(t, ending=late), st.integers(1, 600), st.integers(0, 300)),
)


@examples(60)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
    st.integers(1, 700),
    WINDOWS,
    st.booleans(),
    st.integers(0, 99),
)
def test_the_bits_of_exact_arithmetic(
    first: str, second: str, n: int, window: Any, nulls: bool, seed: int
) -> None:
    """Of every moment, on all data, over windows of rows and of time."""
    x, y = data(first, n, seed), data(second, n, seed + 1)
    missing = np.random.default_rng(seed).random(n) < 0.1 * nulls
    check(x, y, missing, window, [SINGLE[seed % 7], PAIRED[seed % 4]])


@pytest.mark.parametrize("kind", KINDS)
def test_regions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into small regions, some of which one large row spoils."""
    monkeypatch.setattr(strips, "_REGION", 600)
    monkeypatch.setattr(strips, "_SMALLEST", 100)
    n = 1500
    x, y = data(kind, n, 3), data("walk", n, 4)
    for window in (wr.rows(40), wr.rows(200), wr.time(60), wr.time(30, ending=20)):
        check(x, y, np.zeros(n, np.bool_), window, [SINGLE[2], SINGLE[5], PAIRED[1]])


TOUCHED: dict[str, Any] = {
    "the row that leaves first": (wr.rows(40), None, [400 - 40]),
    "rows between windows": (wr.time(9, ending=34), None, range(0, 1300, 97)),
    "rows between windows of ticks": (wr.time(20), 50, range(0, 1300, 97)),
    "rows around windows without the row itself": (wr.time(4, closed="neither"), None, [550]),
}
"""Windows whose running sums add up, and take out, rows that no answer near them looks at."""


@pytest.mark.parametrize("large", [1e6, 1e9, 1e14, 1e40])
@pytest.mark.parametrize("name", TOUCHED)
@pytest.mark.parametrize("aggregate", [wr.Sum("x"), wr.Mean("x"), *SINGLE[:2], PAIRED[1]], ids=repr)
def test_large_rows_outside_of_windows(
    aggregate: Any, name: str, large: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outlier leaves no trace, wherever it stands: at the border of a region, in a gap."""
    window, every, places = TOUCHED[name]
    for module in (strips, sums):
        monkeypatch.setattr(module, "_REGION", 400)
    n = 1300
    generator = np.random.default_rng(5)
    time = np.cumsum(generator.choice([1, 1, 3, 30], n))
    x, y = generator.standard_normal(n), generator.standard_normal(n)
    x[places] = large
    x[950] = 1e50  # so that sums begin anew where they can
    table = pa.table({"at": time, "x": x, "y": y})
    found, exact = (
        wr.Rolling(
            time="at",
            tie="at",
            windows={"w": window},
            aggregates=[aggregate.alias("a")],
            every=every,
            algorithm=algorithm,
        )(table)["a_w"].to_pylist()
        for algorithm in ("auto", "recalc")
    )
    assert len(found) > 100
    assert repr(found) == repr(exact)  # NaN is as good as NaN


@pytest.mark.parametrize("aggregate", ALL, ids=repr)
@pytest.mark.parametrize("window", [wr.rows(300), wr.time(300)], ids=["rows", "time"])
def test_common_data_are_certain(
    aggregate: PowerSums, window: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hardly a row is left to slower kernels, which the other tests could not tell."""
    left = 0

    def proven(of: Any, inputs: Any, weights: Any, parts: bool, ranges: Any) -> Any:
        nonlocal left
        left += len(ranges)
        return kernels(of, inputs, weights, parts, ranges)

    kernels = power_sums._proven
    monkeypatch.setattr(power_sums, "_proven", proven)
    n = 5000
    spec = wr.Rolling(time="at", tie="at", windows=window, aggregates=[aggregate])
    for kind in COMMON:
        table = {"at": np.arange(n), "x": data(kind, n, 1), "y": 1.0 + np.abs(data("walk", n, 2))}
        spec(table)
    assert left < len(COMMON) * n * 0.01


@pytest.mark.parametrize("aggregate", ALL, ids=repr)
def test_windows_that_do_not_change(aggregate: PowerSums) -> None:
    """Of 0.1 alone, whose sums are not exact: the deviation is 0, and what divides by it NaN."""
    n = 400
    x, y = np.full(n, 0.1), np.arange(n) * 0.3 + 1
    missing = np.arange(n) % 7 == 0
    x[200:] = 0.7
    for window in (wr.rows(50), wr.time(90)):
        check(x, y, missing, window, [aggregate])
        if aggregate in PAIRED:
            check(y, x, missing, window, [aggregate])


def variance(rows: list[float]) -> float | None:
    """Of some rows, exactly."""
    window = Recalc(wr.Variance())
    for row in rows:
        window.insert(row)
    answer: float | None = window.query()
    return answer


def test_windows_far_apart() -> None:
    """More rows between two answers than a strip has, and windows without rows."""
    generator = np.random.default_rng(0)
    time = np.sort(np.concatenate([generator.integers(0, 10**6, 3000), [2 * 10**6, 3 * 10**6]]))
    x = generator.standard_normal(len(time))
    table = pa.table({"at": time, "x": x, "from": time - 20_000, "to": time})
    ticks = wr.Rolling(time="at", windows=[wr.time(90_000)], aggregates=[SINGLE[0]], every=80_000)
    answers = ticks(table)
    for tick, answer in zip(*(answers[n].to_pylist() for n in ("at", "x_var_90000")), strict=True):
        inside = x[(time > tick - 90_000) & (time <= tick)].tolist()
        assert answer == variance(inside)
    bounded = wr.Rolling(time="at", windows={"w": wr.bounds("from", "to")}, aggregates=[SINGLE[0]])
    for row, answer in enumerate(bounded(table)["x_var_w"].to_pylist()):
        inside = x[(time >= time[row] - 20_000) & (time <= time[row])].tolist()
        assert answer == variance(inside)


# --- the arithmetic's bounds ------------------------------------------------------------------

MODULE = strip_kernels("corr", wr.Correlation.monomials)
Words = tuple[float, float, float]
HIGH = st.builds(
    math.ldexp,
    st.one_of(st.floats(1, 2), st.sampled_from([1.0, 1 + 2.0**-52, 2 - 2.0**-52, 1.5])),
    st.integers(-60, 60),
)
WORDS = st.builds(
    lambda high, sign, low, wide: (sign * high, low * high * 2.0**-53, wide * high * 2.0**-90),
    HIGH,
    st.sampled_from([-1, 1]),
    st.integers(-(2**53) + 1, 2**53 - 1).map(lambda i: i * 2.0**-53),
    st.one_of(st.just(0.0), st.integers(0, 2**53).map(lambda i: i * 2.0**-53)),
)


def ends(words: Words) -> list[Fraction]:
    """The smallest and the largest number that it may be."""
    high, low, wide = map(Fraction, words)
    return [high + low - wide, high + low + wide]


def holds(found: Words, truths: list[Fraction]) -> bool:
    """Whether it may be all of them; bounds are rounded too, for which ``certain`` allows."""
    low, high = ends((*found[:2], found[2] * (1 + 1e-9)))
    return all(low <= truth <= high for truth in truths)


@given(WORDS, WORDS)
def test_sums_products_and_quotients_hold_the_truth(s: Words, t: Words) -> None:
    """Whatever the words left out: added, multiplied, divided."""
    pairs = [(a, b) for a in ends(s) for b in ends(t)]
    assert holds(MODULE.add(s, t), [a + b for a, b in pairs])
    assert holds(MODULE.less(s, t), [a - b for a, b in pairs])
    assert holds(MODULE.times(s, t), [a * b for a, b in pairs])
    assert holds(MODULE.over(s, t), [a / b for a, b in pairs])
    near = (-t[0], -t[1] * 0.75, t[2])  # of which little is left
    assert holds(MODULE.add(t, near), [a + b for a in ends(t) for b in ends(near)])


@given(WORDS)
def test_roots_hold_the_truth(t: Words) -> None:
    """By their squares."""
    t = (abs(t[0]), *t[1:])
    high, low, wide = MODULE.root(t)
    low, high = ends((high, low, wide * (1 + 1e-9)))
    assert all(low**2 <= truth <= high**2 for truth in ends(t))


@given(st.integers(1, 10**7), WORDS, WORDS, WORDS, st.booleans())
def test_differences_of_products_hold_the_truth(
    n: int, s: Words, a: Words, b: Words, near: bool
) -> None:
    """n·s − a·b, also where they are nearly the same."""
    if near:
        middle = Fraction(a[0]) * Fraction(b[0]) / n
        s = (float(middle), float(middle - Fraction(float(middle))), 0.0)
    truths = [n * x - y * z for x in ends(s) for y in ends(a) for z in ends(b)]
    assert holds(MODULE.apart(float(n), s, a, b), truths)


@given(HIGH, HIGH, HIGH)
def test_three_words_become_two(a: float, b: float, c: float) -> None:
    """In any order of size."""
    assert holds(MODULE.words(a, b, c, 0.0), [Fraction(a) + Fraction(b) + Fraction(c)])


@given(WORDS)
def test_what_is_certain_is_right(t: Words) -> None:
    """The float nearest to all that it may be."""
    found = MODULE.certain(t, True)
    assert found != found or all(found == float(truth) for truth in ends(t))
