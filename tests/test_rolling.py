"""Rolling on tables equals the oracle, for every aggregate, window and kind of column."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.pairs import GeoMean
from tests.tables import expected, members
from windrow.aggregates import REGISTRY
from windrow.testing import CASES
from windrow.windows.compare import close, equal

NUMERIC: list[Any] = [
    wr.Count(),
    wr.Count("x"),
    wr.Sum("x"),
    wr.Mean("x"),
    wr.Variance("x"),
    wr.StdDev("x", ddof=0),
    wr.Min("x"),
    wr.Max("x"),
    wr.MaxCount("x"),
    wr.ArgMax("x", "y"),
    wr.First("x"),
    wr.Last("x"),
]
WINDOWS: list[Any] = [
    wr.rows(1),
    wr.rows(3),
    wr.rows(1000),
    wr.rows(2, ending=2),
    wr.rows(3, after=2),
    wr.time(1),
    wr.time(4),
    wr.time(10**15),
    wr.time(4, closed="left"),
    wr.time(4, closed="both"),
    wr.time(4, closed="neither"),
    wr.time(5, ending=3),
    wr.time(3, after=2),
    wr.time(3, after=2, closed="neither"),
    wr.session(1),
    wr.session(3),
    wr.session(2, closed="left"),
]


def check(
    spec: wr.Rolling, table: pa.Table, unit: str | None = None, ulps: dict[str, int] | None = None
) -> None:
    rows = table.to_pylist()
    answers = spec(table)
    assert answers.column_names[: len(table.column_names)] == table.column_names
    for name, aggregate, label in spec.outputs:
        found = answers[name].to_pylist()
        for i in range(len(rows)):
            want = expected(
                rows, spec, aggregate, members(rows, spec, spec.windows[label], i, unit)
            )
            got = found[i]
            if isinstance(want, bool) or isinstance(got, bool):
                got, want = (None if x is None else int(x) for x in (got, want))
            if isinstance(want, float) and isinstance(got, float):
                good = equal(got, want) or (not aggregate.reproducible and _near(got, want))
            else:
                good = equal(got, want)
            assert good, f"{name} of row {i}: {got!r}, expected {want!r}, in {rows}"


def _near(a: float, b: float) -> bool:
    """Within one unit in the last place, which moments promise."""
    return close(a, b) and (abs(a - b) <= math.ulp(b) or abs(a - b) <= 4e-15 * abs(b))


FLOATS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, -0.0, 1e15, -1e18, 1.7e308, 1e20, -1e20, 1e-20, 1.0, math.nan, math.inf]),
)


@st.composite
def tables(draw: Any, values: Any, keys: int = 3) -> pa.Table:
    size = draw(st.integers(0, 25))
    times = draw(st.lists(st.integers(0, 12), min_size=size, max_size=size))
    if draw(st.booleans()):
        times = sorted(times)
    key = draw(st.lists(st.sampled_from([None, *range(keys)]), min_size=size, max_size=size))
    x = draw(st.lists(st.one_of(st.none(), values), min_size=size, max_size=size))
    y = draw(st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=size, max_size=size))
    kind = pa.float64() if values is FLOATS else pa.int64()
    return pa.table(
        {
            "k": pa.array(key, pa.int64()),
            "t": pa.array(times, pa.int64()),
            "x": pa.array(x, kind),
            "y": pa.array(y, pa.int64()),
        }
    )


@given(tables(FLOATS), st.sampled_from(WINDOWS), st.booleans(), st.integers(0, 3))
@examples(300)
def test_floats(table: pa.Table, window: Any, keyed: bool, min_rows: int) -> None:
    check(
        wr.Rolling(
            key="k" if keyed else None,
            time="t",
            windows=[window],
            aggregates=NUMERIC,
            min_rows=min_rows,
        ),
        table,
    )


@given(tables(st.integers(-(2**40), 2**40)), st.sampled_from(WINDOWS), st.booleans())
def test_integers(table: pa.Table, window: Any, keyed: bool) -> None:
    check(
        wr.Rolling(key="k" if keyed else None, time="t", windows=[window], aggregates=NUMERIC),
        table,
    )


@given(tables(st.integers(-(2**63), 2**63 - 1)), st.sampled_from(WINDOWS))
def test_wide_integers(table: pa.Table, window: Any) -> None:
    aggregates = [
        wr.Sum("x", overflow="null"),
        wr.Mean("x"),
        wr.Min("x"),
        wr.Max("x"),
        wr.Last("x"),
    ]
    check(wr.Rolling(key="k", time="t", windows=[window], aggregates=aggregates), table)


@given(tables(FLOATS), st.sampled_from(WINDOWS), st.sampled_from(["daba_lite", "b_int", "recalc"]))
@examples(60)
def test_forced_algorithms(table: pa.Table, window: Any, algorithm: str) -> None:
    aggregates = [wr.Max("x"), wr.Min("x"), wr.Sum("x"), wr.StdDev("x"), wr.ArgMax("x", "y")]
    if algorithm == "daba_lite":
        aggregates = aggregates[:2]
    check(
        wr.Rolling(key="k", time="t", windows=[window], aggregates=aggregates, algorithm=algorithm),
        table,
    )


@given(tables(FLOATS), st.data())
@examples(60)
def test_bounds(table: pa.Table, data: Any) -> None:
    size = table.num_rows
    low = data.draw(st.lists(st.integers(-3, 14), min_size=size, max_size=size))
    high = data.draw(st.lists(st.integers(-3, 14), min_size=size, max_size=size))
    table = table.append_column("lo", pa.array(low, pa.int64()))
    table = table.append_column("hi", pa.array(high, pa.int64()))
    check(wr.Rolling(key="k", time="t", windows=[wr.bounds("lo", "hi")], aggregates=NUMERIC), table)


@pytest.mark.parametrize("case", [c for c in CASES if c.values], ids=lambda c: c.name)
def test_corpus(case: Any) -> None:
    numbers = case.kind in ("number", "positive")
    try:
        x = pa.array(case.values)
    except pa.ArrowInvalid:
        x = pa.array([None if v is None else float(v) for v in case.values])
    aggregates: list[Any] = [
        wr.Count("x"),
        wr.Min("x"),
        wr.Max("x"),
        wr.First("x"),
        wr.MaxCount("x"),
        wr.Quantile("x", 0.6, method="lower"),
        wr.Rank("x"),
        wr.Distinct("x"),
        wr.Distinct("x", values=True),
        *(wr.M4("x", "t"), wr.TopK("x", 2), wr.BottomK("x", 2), wr.Collect("x"), wr.Mode("x")),
        *(wr.Entropy("x"), wr.Bloom("x", capacity=9), wr.ApproxDistinct("x"), wr.CountMin("x")),
        *(wr.FrequentItems("x"), wr.Histogram("x")),
    ]
    if numbers:
        aggregates += [wr.ApproxQuantile("x", 0.3)]
        aggregates += [wr.Sum("x", overflow="null"), wr.Mean("x"), wr.StdDev("x"), wr.Median("x")]
        aggregates += [wr.Spread("x", overflow="null"), wr.RelativeVariation("x")]
        aggregates += [wr.Product("x", overflow="null"), wr.MinCount("x"), wr.ArgMin("x", "x")]
        aggregates += [wr.Skewness("x"), wr.Kurtosis("x", population=True)]
        aggregates += [wr.Covariance("x", "t"), wr.Correlation("x", "t"), wr.Slope("x", "t")]
        aggregates += [wr.WeightedMean("x", "t")]
    if case.kind == "integer":
        aggregates += [wr.BitAnd("x"), wr.BitOr("x"), wr.BitXor("x")]
    if case.kind == "boolean":
        aggregates += [wr.All("x"), wr.Any("x")]
    if case.kind == "positive":
        aggregates += [wr.GeometricMean("x")]
    if case.kind in ("string", "bytes"):
        aggregates += [wr.Concat("x")]
    n = len(case.values)
    table = pa.table({"x": x, "t": pa.array(range(n), pa.int64())})
    windows = [wr.rows(1), wr.rows(2), wr.rows(3), wr.rows(5), wr.time(3)]
    check(wr.Rolling(time="t", windows=windows, aggregates=aggregates), table)


@given(
    st.lists(st.one_of(st.none(), st.floats(0.5, 100)), max_size=30),
    st.integers(1, 8),
    st.sampled_from(["auto", "daba_lite", "b_int", "recalc"]),
)
@examples(40)
def test_a_users_aggregate(values: list[Any], rows: int, algorithm: str) -> None:
    table = pa.table({"x": pa.array(values, pa.float64())})
    check(
        wr.Rolling(windows=[wr.rows(rows)], aggregates=[GeoMean("x")], algorithm=algorithm), table
    )


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float16(), pa.float32(), pa.bool_(), pa.decimal128(10, 2),
    ],
    ids=str,
)  # fmt: skip
def test_types_of_numbers(kind: pa.DataType) -> None:
    plain = [1, 0, None, 1, 1, 0, 1]
    values: list[Any] = [None if v is None else bool(v) for v in plain]
    if not pa.types.is_boolean(kind):
        values = [None if v is None else v * 3 for v in plain]
    if pa.types.is_decimal(kind):
        values = [None if v is None else Decimal(v) / 4 for v in plain]
    if pa.types.is_float16(kind):
        values = [None if v is None else np.float16(v) for v in plain]
    table = pa.table({"x": pa.array(values, kind)})
    spec = wr.Rolling(
        windows=[wr.rows(2), wr.rows(4)],
        aggregates=[
            wr.Sum("x"),
            wr.Mean("x"),
            wr.Max("x"),
            wr.Min("x"),
            wr.Last("x"),
            wr.StdDev("x"),
            wr.Spread("x"),
            wr.Product("x"),
            wr.RelativeVariation("x"),
            wr.Skewness("x"),
        ],
    )
    check(spec, table)
    out = spec(table)
    assert out["x_max_2rows"].type == kind
    assert out["x_last_4rows"].type == kind
    sums = [None if v is None else float(v) for v in out["x_sum_2rows"].to_pylist()]
    flat = [None if v is None else float(v) for v in values]
    for i, got in enumerate(sums):
        present = [v for v in flat[max(0, i - 1) : i + 1] if v is not None]
        assert got == (sum(present) if present else None)


@pytest.mark.parametrize("name", REGISTRY)
@given(tables(FLOATS), st.sampled_from(WINDOWS), st.data())
@examples(25)
def test_every_registered_aggregate(name: str, table: pa.Table, window: Any, data: Any) -> None:
    """By its input kinds: numbers, numbers above 0, or texts."""
    kind = REGISTRY[name]
    size = table.num_rows
    positive = st.one_of(st.none(), st.floats(1e-3, 1e3))
    texts = st.one_of(st.none(), st.text("abc", max_size=2))
    for column, source, type_ in (("p", positive, pa.float64()), ("s", texts, pa.string())):
        values = data.draw(st.lists(source, min_size=size, max_size=size))
        table = table.append_column(column, pa.array(values, type_))
    inputs = kind("x").input_kinds if name == "Count" else kind().input_kinds
    columns = {"any": "x", "number": "x", "orderable": "y", "positive": "p", "text": "s"}
    columns |= {"integer": "y", "boolean": "b"}
    truths = table["y"].to_pylist()
    table = table.append_column(
        "b", pa.array([y if y is None else y > 1 for y in truths], pa.bool_())
    )
    aggregate = kind(*(columns[k] for k in inputs))
    if inputs == ("number", "number"):
        aggregate = kind("x", "y")
    check(wr.Rolling(key="k", time="t", windows=[window], aggregates=[aggregate]), table)
    if "number" not in inputs and ("orderable" in inputs or "any" in inputs):
        words = kind(*("s" for _ in inputs))
        check(wr.Rolling(key="k", time="t", windows=[window], aggregates=[words]), table)


def test_what_is_said_is_shown() -> None:
    said: dict[str, Any] = {"tie": ["id"], "min_rows": 2, "lateness": "5m", "threads": 1}
    spec = wr.Rolling(time="at", windows=["1h"], aggregates=[wr.Sum("x")], **said)
    assert repr(spec) == (
        "Rolling(time='at', tie=['id'], windows=['1h'], aggregates=[Sum('x')], lateness='5m', "
        "threads=1, min_rows=2)"
    )
    assert repr(wr.Rolling(tie="any", windows=[wr.rows(2)], aggregates=[wr.Sum("x")])) == (
        "Rolling(tie='any', windows=['2rows'], aggregates=[Sum('x')])"
    )
