"""Numeric aggregates: correctly rounded by exact arithmetic, on hard data, with odd values."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.aggregates.power_sums import PowerSums
from windrow.columns import power_sums
from windrow.errors import BadSpecification, BadValue, SumOverflow
from windrow.windows import Recalc

PAIRED: list[PowerSums] = [
    wr.Covariance("x", "y"),
    wr.Correlation("x", "y"),
    wr.Slope("x", "y"),
    wr.WeightedMean("x", "y"),
]
SINGLE: list[PowerSums] = [
    wr.Skewness("x"),
    wr.Kurtosis("x"),
    wr.Skewness("x", population=True),
    wr.Kurtosis("x", population=True),
]


def folded(aggregate: wr.Aggregate, rows: Sequence[Any]) -> Any:
    window = Recalc(aggregate)
    for row in rows:
        window.insert(row)
    return window.query()


# --- rounding ------------------------------------------------------------------------------------


def square_or_value(aggregate: PowerSums, rows: list[Any]) -> tuple[Any, int] | None:
    """The true answer, or its square with its sign, by fractions around the mean; None: NaN."""
    n = len(rows)
    single = len(aggregate.input_kinds) == 1
    xs = [Fraction(row if single else row[0]) for row in rows]
    mean = Fraction(sum(xs)) / n
    m: dict[int, Any] = {k: sum((x - mean) ** k for x in xs) / n for k in (2, 3, 4)}
    if isinstance(aggregate, wr.Skewness):
        factor = Fraction(1) if aggregate.population else Fraction(n * (n - 1), (n - 2) ** 2)
        return (factor * m[3] ** 2 / m[2] ** 3, 2 if m[3] >= 0 else -2) if m[2] else None
    if isinstance(aggregate, wr.Kurtosis):
        if not m[2]:
            return None
        ratio = m[4] / m[2] ** 2
        if aggregate.population:
            return ratio - 3, 1
        return Fraction(n - 1, (n - 2) * (n - 3)) * ((n + 1) * ratio - 3 * (n - 1)), 1
    ys = [Fraction(row[1]) for row in rows]
    if isinstance(aggregate, wr.WeightedMean):
        total = sum(ys)
        return (sum(x * y for x, y in zip(xs, ys, strict=True)) / total, 1) if total else None
    other = sum(ys) / n
    both = sum((x - mean) * (y - other) for x, y in zip(xs, ys, strict=True))
    second = sum((y - other) ** 2 for y in ys)
    if isinstance(aggregate, wr.Covariance):
        return both / (n - aggregate.ddof), 1
    if isinstance(aggregate, wr.Slope):
        return (both / second, 1) if second else None
    product = m[2] * n * second
    return (both**2 / product, 2 if both >= 0 else -2) if product else None


def rounded(answer: float, truth: tuple[Any, int] | None) -> bool:
    """Whether an answer is the float nearest to the truth, which may be known by its square."""
    if truth is None:
        return math.isnan(answer)
    value, power = truth
    if power == 1:
        try:
            return answer == float(value)
        except OverflowError:
            return math.isinf(answer) and (answer > 0) == (value > 0)
    answer = answer if power == 2 else -answer
    if answer < 0 or not math.isfinite(answer):
        return False
    low = (Fraction(math.nextafter(answer, 0)) + Fraction(answer)) / 2
    high = (Fraction(math.nextafter(answer, math.inf)) + Fraction(answer)) / 2
    return bool(low**2 <= value <= high**2 or answer == value == 0)


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e3, 1e3),
    st.integers(-20, 20).map(float),
    st.integers(0, 9).map(lambda i: 1e8 + i),
)


@pytest.mark.parametrize("aggregate", [*PAIRED, *SINGLE, wr.Covariance(ddof=0)], ids=repr)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=4, max_size=9))
def test_correctly_rounded(aggregate: PowerSums, rows: list[Any]) -> None:
    """Within half a unit in the last place of exact rational arithmetic, for all values."""
    used = rows if len(aggregate.input_kinds) == 2 else [x for x, _ in rows]
    plain = type(aggregate)(**aggregate.options())
    assert rounded(folded(plain, used), square_or_value(plain, used))


def hard_columns(n: int) -> dict[str, np.ndarray[Any, Any]]:
    """Columns that power sums in one or two words get wrong."""
    generator = np.random.default_rng(5)
    walk = 100 + np.cumsum(generator.standard_normal(n))
    spiky = np.where(generator.random(n) < 0.02, 1e15, generator.standard_normal(n))
    steps = np.repeat(generator.integers(0, 5, n // 20 + 1), 20)[:n] * 0.1
    return {
        "offset": 1e8 + generator.standard_normal(n),
        "walk": walk,
        "spiky": spiky,
        "ramp": np.arange(n) * 0.01,
        "steps": steps,
        "small integers": generator.integers(0, 3, n).astype(float),
        "tiny": generator.standard_normal(n) * 1e-90,
        "decades": generator.standard_normal(n) * 10.0 ** generator.integers(-12, 12, n),
    }


@pytest.mark.parametrize("threads", [1, 3])
def test_hard_columns(threads: int) -> None:
    """The same bits as exact arithmetic, row by row."""
    n = 260
    columns = hard_columns(n)
    names = list(columns)
    aggregates: list[Any] = []
    for i, name in enumerate(names):
        other = names[(i + 1) % len(names)]
        aggregates += [type(a)(name, other) for a in PAIRED]
        aggregates += [type(a)(name, **a.options()) for a in SINGLE[:2]]
    aggregates = [a.alias(f"{i}") for i, a in enumerate(aggregates)]
    width = 25
    spec = wr.Rolling(windows={"w": wr.rows(width)}, aggregates=aggregates, threads=threads)
    answers = spec(columns)
    for i, aggregate in enumerate(aggregates):
        rows: list[Any] = [*zip(*(columns[c].tolist() for c in aggregate.columns), strict=True)]
        if len(aggregate.columns) == 1:
            rows = [row[0] for row in rows]
        plain = type(aggregate)(**aggregate.options())
        for row in range(threads - 1, n, 13):
            want = folded(plain, rows[max(0, row - width + 1) : row + 1])
            got = float(answers[f"{i}_w"][row])
            want = math.nan if want is None else want
            assert got == want or (got != got and want != want), (aggregate, row, got, want)


def test_ordinary_rows_are_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what nobody could tell from two or three words is left to Python."""
    left: list[int] = []
    real = power_sums.decided

    def counted(*arguments: Any) -> Any:
        left.append(len(arguments[-1]))
        return real(*arguments)

    monkeypatch.setattr(power_sums, "decided", counted)
    columns = hard_columns(5000)
    for name in ("offset", "walk", "ramp", "steps", "small integers"):
        data = {"x": columns[name], "y": columns["walk"]}
        wr.Rolling(windows=[wr.rows(50)], aggregates=[*PAIRED, *SINGLE[:2]])(data)
    assert len(left) == 30
    assert sum(left[:12] + left[24:]) == 0
    assert sum(left[12:24]) < 500  # terms that cancel exactly, in evenly spaced values


def test_as_pandas() -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.standard_normal((300, 2)), columns=["x", "y"])
    frame.loc[::17, "x"] = np.nan
    spec = wr.Rolling(windows={"w": wr.rows(20)}, aggregates=[*PAIRED[:2], *SINGLE[:2]], min_rows=4)
    found = spec(frame)
    window = frame.rolling(20, min_periods=4)
    both = frame["x"].rolling(20, min_periods=4)
    for name, want in {
        "x_cov_w": both.cov(frame["y"].where(frame["x"].notna())),
        "x_corr_w": both.corr(frame["y"].where(frame["x"].notna())),
        "x_skew_w": window["x"].skew(),
        "x_kurt_w": window["x"].kurt(),
    }.items():
        np.testing.assert_allclose(found[name], want, rtol=1e-9, atol=1e-12)


def test_when_the_longest_run_was() -> None:
    start = datetime(2024, 1, 1)
    values = [5, 1, 2, 3, 0, 4, 4, 5, 6, 2]
    for answer, column in (("first", 0), ("last", 1), ("interval", 2)):
        window = wr.Sliding(wr.rows(6), wr.LongestRunTime(answer=answer))
        for i, _ in enumerate(values):
            got = window.insert((start + timedelta(minutes=i * i), values[i]))
            rows = range(max(0, i - 5), i + 1)
            runs = [
                (a, b)
                for a in rows
                for b in rows
                if a <= b and all(values[j] < values[j + 1] for j in range(a, b))
            ]
            first, last = max(runs, key=lambda run: (run[1] - run[0], -run[0]))
            ends = [start + timedelta(minutes=j * j) for j in (first, last)]
            assert got == [*ends, ends[1] - ends[0]][column]
    with pytest.raises(BadValue, match="have no difference"):
        folded(wr.LongestRunTime(answer="interval"), [("a", 1)])
    with pytest.raises(BadSpecification, match="answer= is one of first, last, interval"):
        wr.LongestRunTime(answer="rows")
    assert wr.LongestRunTime("t", "x", answer="last").output_name == "t_longest_run_last"


# --- odd values, and what is refused -------------------------------------------------------------


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e300, 1e-300])
def test_odd_values_leave_no_trace(odd: float) -> None:
    x = [1.0, 2.0, 4.0, odd, 3.0, 5.0, 9.0, 1.0, 2.0]
    y = [float(i * i % 7) for i in range(len(x))]
    spec = wr.Rolling(windows={"w": wr.rows(4)}, aggregates=[*PAIRED, *SINGLE[:2]])
    found = spec(pa.table({"x": x, "y": y}))
    alone = spec(pa.table({"x": x[4:], "y": y[4:]}))
    for name, aggregate, _ in spec.outputs:
        assert found[name].to_pylist()[7:] == alone[name].to_pylist()[3:]
        if not math.isfinite(odd):
            assert math.isnan(found[name].to_pylist()[5]), aggregate


def test_too_few_rows_are_null_and_no_spread_is_nan() -> None:
    for aggregate, few in (
        (wr.Skewness(), 2),
        (wr.Kurtosis(), 3),
        (wr.Skewness(population=True), 1),
    ):
        assert folded(aggregate, range(few)) is None
        assert math.isnan(folded(aggregate, [2.5] * (few + 1)))
    assert folded(wr.Covariance(), [(1, 2)]) is None
    assert folded(wr.Covariance(ddof=0), [(1, 2)]) == 0.0
    assert folded(wr.Correlation(), [(1, 2)]) is None
    assert math.isnan(folded(wr.Correlation(), [(1, 2), (1, 3)]))
    assert math.isnan(folded(wr.Slope(), [(1, 2), (3, 2)]))
    assert math.isnan(folded(wr.WeightedMean(), [(1, 2), (3, -2)]))
    assert folded(wr.Correlation(), [(1, 2), (None, 3), (3, 4)]) == 1.0


def test_spread_and_relative_variation() -> None:
    assert folded(wr.Spread(), [0.1, 0.3]) == 0.3 - 0.1
    assert folded(wr.Spread(), [1, 2.5]) == 1.5
    assert folded(wr.Spread(), [2**63 - 1, -1.0]) == float(2**63)
    assert folded(wr.Spread(), [1.7e308, -1.7e308]) == math.inf
    assert math.isnan(folded(wr.Spread(), [1.0, math.nan]))
    assert math.isnan(folded(wr.Spread(), [math.inf, math.inf]))
    assert folded(wr.RelativeVariation(), [-1, 0]) == math.inf
    assert math.isnan(folded(wr.RelativeVariation(), [0, 0]))
    assert folded(wr.RelativeVariation(), [-4, -2]) == -1.0
    assert folded(wr.Spread(overflow="null"), [2**63 - 1, -1]) is None
    with pytest.raises(SumOverflow, match="lie 9223372036854775808 apart"):
        folded(wr.Spread(), [2**63 - 1, -1])
    table = pa.table({"x": pa.array([2**63 - 1, -1])})
    with pytest.raises(SumOverflow, match="window of row 1, column 'x', is 9223372036854775808"):
        wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Spread("x")])(table)


def test_products() -> None:
    assert folded(wr.Product(), [3, -4, True]) == -12
    assert folded(wr.Product(), [2**31, 2**31, -2]) == -(2**63)
    assert folded(wr.Product(), [2**62, 2**62, 0]) == 0
    assert folded(wr.Product(), [3037000499, 3037000499]) == 3037000499**2
    assert folded(wr.Product(), [10**400, 0.5]) == math.inf
    assert folded(wr.Product(), [1e-200, 1e-200, 0.0]) == 0.0
    assert folded(wr.Product(), [5e-324, 0.5, 2.0]) == 5e-324
    assert math.isnan(folded(wr.Product(), [math.inf, 0.0]))
    assert folded(wr.Product(overflow="null"), [2**62, 2]) is None
    with pytest.raises(SumOverflow, match=r"about 0.5·2\*\*64"):
        folded(wr.Product(), [2**62, 2])
    x = pa.array([2**31, 2**31, -2, 1, 2**32 + 1, 2**31 - 1, 3])
    spec = wr.Rolling(windows={"w": wr.rows(3)}, aggregates=[wr.Product("x", overflow="null")])
    found = spec(pa.table({"x": x}))["x_product_w"].to_pylist()
    wanted = [math.prod(x.to_pylist()[max(0, i - 2) : i + 1]) for i in range(len(x))]
    assert found == [w if -(2**63) <= w < 2**63 else None for w in wanted]
    with pytest.raises(SumOverflow, match="window of row 6"):
        wr.Rolling(windows=[wr.rows(3)], aggregates=[wr.Product("x")])(pa.table({"x": x}))


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=60))
def test_products_are_right_to_the_last_bit_or_nearly(values: list[float]) -> None:
    exactly = math.prod(map(Fraction, values))
    got = folded(wr.Product(), values)
    assert abs(Fraction(got) - exactly) <= Fraction(math.ulp(got)) * Fraction(1001, 2000)


def test_what_is_refused() -> None:
    with pytest.raises(BadValue, match="only integers have bits"):
        folded(wr.BitAnd(), [1.0])
    with pytest.raises(BadValue, match="not a boolean"):
        folded(wr.All(), [1])
    table = pa.table({"x": [1.0, 2.0], "s": ["a", "b"], "i": [1, 2]})
    for aggregate, message in (
        (wr.BitOr("x"), "'x' has type double: only integers have bits"),
        (wr.Any("i"), "'i' has type int64, not booleans"),
        (wr.Product("s"), "'s' has type string, which cannot be multiplied"),
        (wr.Slope("x", "s"), "'s' has type string, which cannot be added"),
        (wr.Spread("s"), "'s' has type string, which cannot be added"),
    ):
        with pytest.raises(BadValue, match=message):
            wr.Rolling(windows=[wr.rows(2)], aggregates=[aggregate])(table)
    with pytest.raises(BadSpecification, match="population="):
        wr.Kurtosis(population=1)  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="takes 2 column"):
        wr.Correlation("x")
    assert repr(wr.Skewness("x", population=True)) == "Skewness('x', population=True)"


def test_plans_say_what_is_done() -> None:
    table = pa.table({"x": [1.0, 2.0], "i": [1, 2]})
    aggregates: list[Any] = [wr.Correlation("x", "i"), wr.Spread("x"), wr.Product("i")]
    text = wr.Rolling(windows=[wr.rows(2)], aggregates=[*aggregates, wr.BitXor("i")]).explain(table)
    assert "Correlation('x', 'i'): subtract_on_evict, compiled" in text
    assert "sums of powers in three parts, each answer proven" in text
    assert "two extremes, then their difference" in text
    assert "two words and an exponent" in text
    assert "interpreted" not in text
