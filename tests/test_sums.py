"""Float sums are correctly rounded, whatever enters and leaves."""

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.pairs import accepted, pair_name
from windrow.aggregates import exact
from windrow.columns.decimals import divided, floats_of
from windrow.errors import BadValue, SumOverflow
from windrow.windows import Recalc, Window
from windrow.windows.compare import equal

SUM_ALGORITHMS = accepted(wr.Sum())


def true_sum(values: list[float]) -> float:
    """``math.fsum``, with the documented infinity where the sum is beyond the largest float."""
    odd = [x for x in values if not math.isfinite(x)]
    if odd:
        return sum(odd) + 0.0
    try:
        return math.fsum(values) + 0.0
    except OverflowError:
        exact_sum = sum(map(Fraction, values))
        try:
            return float(exact_sum)
        except OverflowError:
            return math.inf if exact_sum > 0 else -math.inf


def twenty_decades(count: int, seed: int) -> list[float]:
    generator = random.Random(seed)
    values = [generator.uniform(-1, 1) * 10.0 ** generator.uniform(-10, 10) for _ in range(count)]
    for position, outlier in ((count // 7, 1e15), (count // 5, -1e18), (count // 3, 1e18)):
        values[position] = outlier
    values[count // 2] = values[count // 2 + 1] = 1.7e308
    values[count // 4] = math.nan
    values[2 * count // 5] = math.inf
    values[3 * count // 5] = -math.inf
    values[3 * count // 5 + 1] = math.inf
    return values


@pytest.mark.parametrize("algorithm", SUM_ALGORITHMS, ids=pair_name)
@pytest.mark.parametrize("rows", [2, 16, 1000])
def test_three_thousand_windows_equal_fsum(algorithm: type[Window], rows: int) -> None:
    values = twenty_decades(3000 + rows, rows)
    window = algorithm(wr.Sum())
    checked = wrong = 0
    for i, value in enumerate(values):
        if i >= rows:
            window.evict()
        window.insert(value)
        if i >= rows:
            expected = true_sum(values[i - rows + 1 : i + 1])
            wrong += not equal(window.query(), expected)
            checked += 1
    assert (checked, wrong) == (3000, 0)


@pytest.mark.parametrize("algorithm", SUM_ALGORITHMS, ids=pair_name)
def test_massive_cancellation(algorithm: type[Window]) -> None:
    window = algorithm(wr.Sum())
    for value in (1e20, 1.0, 1e-20, -1e20, -1.0):
        window.insert(value)
    assert window.query() == 1e-20
    window.evict()
    assert window.query() == -1e20
    window.evict()
    assert window.query() == math.fsum([1e-20, -1e20, -1.0])


@pytest.mark.parametrize("algorithm", SUM_ALGORITHMS, ids=pair_name)
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1.7e308])
def test_odd_values_leave_without_trace(algorithm: type[Window], odd: float) -> None:
    sums, means = algorithm(wr.Sum()), algorithm(wr.Mean())
    for value in (0.1, odd, odd, 0.2, 0.3):
        sums.insert(value)
        means.insert(value)
    expected = odd if odd != 1.7e308 else math.inf
    assert equal(sums.query(), expected)
    assert equal(means.query(), expected)
    for window in (sums, means):
        window.bulk_evict(3)
    assert sums.query() == 0.5
    assert means.query() == 0.25


@given(st.lists(st.floats(), max_size=40))
def test_sum_is_the_correctly_rounded_sum(values: list[float]) -> None:
    window = Recalc(wr.Sum())
    for value in values:
        window.insert(value)
    assert equal(window.query(), true_sum(values) if values else None)


@given(st.lists(st.floats(-1e150, 1e150), min_size=2, max_size=30))
def test_variance_and_deviation_are_correctly_rounded(values: list[float]) -> None:
    mean = Fraction(0) + sum(map(Fraction, values)) / len(values)
    squares = sum((Fraction(x) - mean) ** 2 for x in values)
    for ddof in (0, 1):
        variance = squares / (len(values) - ddof)
        window, root = Recalc(wr.Variance(ddof=ddof)), Recalc(wr.StdDev(ddof=ddof))
        for value in values:
            window.insert(value)
            root.insert(value)
        assert window.query() == float(variance)
        found = root.query()
        below, above = (Fraction(math.nextafter(found, d)) for d in (-math.inf, math.inf))
        # found is nearest: the variance lies between the squares of the two midpoints
        low, high = (Fraction(found) + below) / 2, (Fraction(found) + above) / 2
        assert max(low, Fraction(0)) ** 2 <= variance <= high**2


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30))
def test_exact_totals_add_and_subtract(values: list[float]) -> None:
    total = sum(map(exact.of_float, values))
    assert exact.parts(total).floats == len(values)
    assert Fraction(exact.parts(total).total, exact.FLOAT_UNIT) == sum(map(Fraction, values))
    assert total - sum(map(exact.of_float, values)) == 0


def test_moments_of_odd_values() -> None:
    for odd in (math.nan, math.inf, -math.inf):
        window = Recalc(wr.StdDev())
        for value in (1.0, odd, 2.0, 4.0):
            window.insert(value)
        assert math.isnan(window.query())
        window.bulk_evict(2)
        assert window.query() == math.sqrt(2)
        window.evict()
        assert window.query() is None  # the sample deviation of one row


def test_integers() -> None:
    window = wr.windows.SubtractOnEvict(wr.Sum("clicks"))
    for value in (2**63 - 1, 1, np.int64(-5), True, np.uint8(3)):
        window.insert(value)
    assert window.query() == 2**63 - 1
    assert type(window.query()) is int
    window.insert(1)
    with pytest.raises(SumOverflow, match=r"Sum\('clicks'\).*9223372036854775808.*int64"):
        window.query()
    with pytest.raises(SumOverflow):  # not swallowed by the cache
        window.query()
    window.evict()
    assert window.query() == 1
    silent = wr.windows.SubtractOnEvict(wr.Sum(overflow="null"))
    silent.insert(2**63 - 1)
    silent.insert(1)
    assert silent.query() is None


def test_mean_of_wide_integers_does_not_overflow() -> None:
    window = Recalc(wr.Mean())
    window.insert(2**63 - 1)
    window.insert(2**63 - 1)
    assert window.query() == float(2**63)


def test_decimals() -> None:
    window = wr.windows.DabaLite(wr.Sum())
    for text in ("0.10", "0.2", "-0.05"):
        window.insert(Decimal(text))
    assert window.query() == Decimal("0.25")
    assert isinstance(window.query(), Decimal)
    with pytest.raises(BadValue, match="cannot be combined with"):
        window.insert(0.5)
    with pytest.raises(BadValue, match="not finite"):
        window.insert(Decimal("Infinity"))
    mean = Recalc(wr.Mean())
    mean.insert(Decimal("0.1"))
    mean.insert(Decimal("0.2"))
    assert mean.query() == 0.15


@given(st.integers(-(10**38), 10**38), st.integers(-76, 38))
def test_totals_of_decimals_are_exact(digits: int, exponent: int) -> None:
    number = Decimal(f"{digits}e{exponent}")
    total = exact.of_decimal(number)
    back = exact.to_number(total)
    assert Fraction(total >> exact.MARK_BITS, 10**76) == Fraction(number) == Fraction(back)
    assert isinstance(back, Decimal)
    _, shown, last = back.as_tuple()
    assert last == 0 or (int(last) < 0 and shown[-1])


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e77", "1e-77", "5e-77", "1e-999999"])
def test_decimals_that_no_arrow_decimal_can_hold(text: str) -> None:
    with pytest.raises(BadValue, match="no Arrow decimal can hold"):
        exact.of_decimal(Decimal(text))


@pytest.mark.parametrize(
    ("digits", "scale"), [(9, 2), (16, 0), (18, 4), (18, 22), (18, 23), (30, 5)]
)
def test_columns_of_decimals(digits: int, scale: int) -> None:
    """Sums beyond 64 bits, means of sums beyond a float's 53, and units beyond 64 bits."""
    chance = random.Random(digits)
    rows: list[Decimal | None] = [
        Decimal(chance.randint(-(10**digits), 10**digits)).scaleb(-scale) for _ in range(60)
    ]
    rows[7] = rows[20] = rows[21] = None
    kind = pa.decimal128(38, scale)
    table = pa.table({"x": pa.array([Decimal(0).scaleb(-scale), *rows], kind)}).slice(1)
    wide = wr.Rolling(windows=[wr.rows(2), wr.rows(50)], aggregates=[wr.Sum("x"), wr.Mean("x")])
    found = wide(table)
    for length in (2, 50):
        sums, means = found[f"x_sum_{length}rows"], found[f"x_mean_{length}rows"]
        assert sums.type == kind
        for i in range(60):
            held = [x for x in rows[max(0, i + 1 - length) : i + 1] if x is not None]
            total = sum(map(Fraction, held), Fraction(0))
            assert (sums[i].as_py() is None) == (means[i].as_py() is None) == (not held)
            if held:
                assert Fraction(sums[i].as_py()) == total
                assert means[i].as_py() == float(total) / len(held)
    deviation = wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.StdDev("x")])
    assert "interpreted" in deviation.explain(table)
    assert ("interpreted" in wide.explain(table)) == (digits == 30 or scale == 23)


@given(st.lists(st.integers(-(10**20), 10**20)), st.sampled_from([0, 1, 2, 22, 23]))
def test_decimals_as_floats(whole: list[int], scale: int) -> None:
    for some in (whole, [x // 1000 for x in whole]):
        numbers = [Decimal(f"{x}e-{scale}") for x in some]
        found = floats_of(pa.array(numbers, pa.decimal128(30, scale)))
        assert found.tolist() == [float(x) for x in numbers]


MOMENTS = [
    *(wr.Variance("x"), wr.StdDev("x", ddof=0), wr.Skewness("x"), wr.Kurtosis("x")),
    *(wr.Covariance("x", "y"), wr.Slope("n", "x"), wr.Correlation("x", "n")),
    *(wr.WeightedMean("x", "y"), wr.WeightedMean("x", "n"), wr.Correlation("x", "f")),
]


@pytest.mark.parametrize("digits", [2, 17, 19])
@pytest.mark.parametrize("aggregate", MOMENTS, ids=repr)
def test_moments_of_columns_of_decimals(aggregate: wr.Aggregate, digits: int) -> None:
    """Short numbers, long ones, and some that 64 bits do not hold; beside others, too."""
    chance = random.Random(digits)
    whole = [[chance.randint(-(10**digits), 10**digits) for _ in range(40)] for _ in range(2)]
    columns: dict[str, list[Any]] = {
        "x": [None if i % 7 == 3 else Decimal(f"{n}e-2") for i, n in enumerate(whole[0])],
        "y": [None if i % 9 == 3 else Decimal(f"{n}e-5") for i, n in enumerate(whole[1])],
        "n": [None if i % 8 == 3 else i % 5 - 2 for i in range(40)],
        "f": [chance.gauss(0, 1) for _ in range(40)],
    }
    kinds = {
        "x": pa.decimal128(30, 2),
        "y": pa.decimal128(30, 5),
        "n": pa.int8(),
        "f": pa.float64(),
    }
    table = pa.table({name: pa.array(columns[name], kinds[name]) for name in columns})
    inputs = [columns[name] for name in aggregate.columns]
    answers, wanted = [], []
    for length in (1, 4, 30):
        spec = wr.Rolling(windows=[wr.rows(length)], aggregates=[aggregate.alias("answer")])
        answers += spec(table)[f"answer_{length}rows"].to_pylist()
        for i in range(40):
            window = Recalc(aggregate)
            for row in list(zip(*inputs, strict=True))[max(0, i + 1 - length) : i + 1]:
                window.insert(row if len(row) > 1 else row[0])
            wanted.append(window.query())
    assert all(equal(a, b) for a, b in zip(answers, wanted, strict=True))


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1), st.integers(0, 22))
def test_integers_divided_by_powers_of_ten(whole: list[int], scale: int) -> None:
    """Wherever it is said to be certain, it is the nearest float; halfway cases are said not to."""
    halfway = [(2 * abs(x) + 1) << 9 for x in whole if abs(x) < 1 << 53]
    found, certain = divided(np.array([*whole, *halfway, 1 << 60]), 10.0**scale)
    exactly = [x / 10**scale for x in (*whole, *halfway, 1 << 60)]
    assert [x for x, sure in zip(found, certain, strict=True) if sure] == [
        x for x, sure in zip(exactly, certain, strict=True) if sure
    ]
    assert certain[-1] or scale == 0


def test_geometric_mean() -> None:
    window = wr.windows.DabaLite(wr.GeometricMean())
    for value in (1e300, 1e300, 1e-300, 1e-300):
        window.insert(value)
    assert window.query() == pytest.approx(1.0)
    window.insert(0)
    assert window.query() == 0.0
    window.insert(-1.0)
    assert math.isnan(window.query())
    window.bulk_evict(5)
    window.insert(2.0)
    window.evict()
    assert window.query() == pytest.approx(2.0)


def test_numpy_and_nan_missing() -> None:
    window = wr.windows.DabaLite(wr.Sum(nan="missing"))
    for value in (np.float32(0.5), np.float64("nan"), math.nan, None, 1):
        window.insert(value)
    assert window.query() == 1.5
    window.bulk_evict(1)
    window.bulk_evict(3)
    window.evict()
    assert window.query() is None
