"""Quantiles, medians and ranks equal Recalc, NumPy and pandas, on every engine but Spark."""

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.test_rolling import FLOATS, WINDOWS, check, tables
from windrow.aggregates.codec import Reader, decode, encode
from windrow.aggregates.quantile import INTERPOLATES, PICKS, interpolated
from windrow.columns import bits, sorted_blocks
from windrow.columns.column import Column
from windrow.columns.sorted_blocks import Span, sort_rows
from windrow.errors import BadSpecification, BadValue
from windrow.testing import check_laws
from windrow.windows import DabaLite, Recalc
from windrow.windows.compare import equal

INF, NAN = math.inf, math.nan
ALL: list[Any] = [
    wr.Quantile("x", 0.9),
    wr.Quantile("x", 0.25, method="hazen"),
    wr.Quantile("x", 0.3, method="lower"),
    wr.Median("x"),
    wr.Rank("x"),
    wr.Rank("x", method="min", pct=True).alias("share"),
]


def of_values(aggregate: wr.Aggregate, values: Any) -> Any:
    window = Recalc(aggregate)
    for value in values:
        window.insert(value)
    return window.query()


# --- what a quantile is --------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in (*INTERPOLATES, *PICKS) if m != "lower"])
def test_methods_are_numpys(method: Any) -> None:
    """``lower`` is the paper's; see below."""
    generator = np.random.default_rng(0)
    for rows in (1, 2, 3, 4, 5, 10, 20, 33):
        values = generator.standard_normal(rows)
        for phi in (0.0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.95, 0.999, 1.0):
            found = of_values(wr.Quantile(phi, method=method), values)
            assert found == np.quantile(values, phi, method=method), (rows, phi)


def test_lower_is_the_papers() -> None:
    """The element at place ⌊φN⌋ of 1 … N; ⌊φN⌋ = 0 is read as the first."""
    for rows in range(1, 30):
        for phi in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
            found = of_values(wr.Quantile(phi, method="lower"), range(1, rows + 1))
            assert found == max(1, math.floor(phi * rows))
    assert np.quantile([1, 2, 3], 0.5, method="lower") == 2, "NumPy's is another one"


@pytest.mark.parametrize(
    ("aggregate", "values", "expected"),
    [
        (wr.Median(), [], None),
        (wr.Median(), [None], None),
        (wr.Median(), [3, 1], 2.0),
        (wr.Median(), [True, False], 0.5),
        (wr.Median(), [1.0, NAN], NAN),
        (wr.Median(), [1.0, NAN, 2.0], 2.0),
        (wr.Median(nan="missing"), [1.0, NAN, 2.0], 1.5),
        (wr.Median(), [INF, INF], INF),
        (wr.Median(), [1.0, INF], INF),
        (wr.Median(), [-INF, 1.0], -INF),
        (wr.Median(), [-INF, INF], NAN),
        (wr.Median(), [-1.7e308, 1.7e308], 0.0),
        (wr.Median(), [-0.0], 0.0),
        (wr.Median(), [Decimal("0.1"), Decimal("0.3")], 0.2),
        (wr.Median(method="lower"), ["b", "a", "c", "d"], "b"),
        (wr.Median(method="higher"), [date(2024, 1, 2), date(2024, 1, 1)], date(2024, 1, 2)),
        (wr.Quantile(0.0), [5, 3, NAN], 3.0),
        (wr.Quantile(1.0), [5, 3, NAN], NAN),
        (wr.Quantile(0.5, method="nearest"), [1, 2, 3, 4], 3),
        (wr.Quantile(0.75), [1, 9, 4, 2], 5.25),
        (wr.Rank(), [], None),
        (wr.Rank(), [3, 1, 4, 1], 1.5),
        (wr.Rank(method="min"), [3, 1, 4, 1], 1.0),
        (wr.Rank(method="max"), [3, 1, 4, 1], 2.0),
        (wr.Rank(pct=True), [3, 1, 4, 1], 0.375),
        (wr.Rank(), [1.0, NAN, INF, NAN], 3.5),
        (wr.Rank(), [2, 5, None], 2.0),
        (wr.Rank(), ["b", "a"], 1.0),
    ],
    ids=repr,
)
def test_literal_answers(aggregate: wr.Aggregate, values: list[Any], expected: Any) -> None:
    for algorithm in (Recalc, DabaLite, wr.windows.SubtractOnEvict, wr.windows.Fiba):
        window = algorithm(aggregate)
        window.insert(values[0] if values else None)
        window.evict()
        for value in values:
            window.insert(value)
        assert equal(window.query(), expected), algorithm


def test_names_and_options() -> None:
    assert wr.Quantile("amount", 0.95).output_name == "amount_p95"
    assert wr.Quantile("amount", 0.999).output_name == "amount_p99_9"
    assert wr.Quantile("amount", phi=1).output_name == "amount_p100"
    assert wr.Quantile("amount", 0).output_name == "amount_p0"
    assert wr.Median("amount").output_name == "amount_median"
    assert wr.Rank("amount", pct=True).output_name == "amount_rank_pct"
    assert repr(wr.Quantile("x", 0.95)) == "Quantile('x', phi=0.95)"
    assert repr(wr.Median("x", method="lower")) == "Median('x', method='lower')"
    assert repr(wr.Rank("x", nan="missing")) == "Rank('x', nan='missing')"
    assert repr(wr.Rank("x", method="min")) == "Rank('x', method='min')"
    for bad in (1.5, -0.1, NAN, True, None):
        with pytest.raises(BadSpecification, match="a number from 0 to 1"):
            wr.Quantile("x", bad)
    with pytest.raises(BadSpecification, match="method= is one of linear"):
        wr.Quantile("x", 0.5, method="middle")  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="given twice"):
        wr.Quantile("x", 0.5, phi=0.5)
    with pytest.raises(BadSpecification, match="average, min, max"):
        wr.Rank(method="dense")  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="pct="):
        wr.Rank(pct=1)  # type: ignore[arg-type]
    with pytest.raises(BadSpecification, match="does not grow"):
        wr.at_most(wr.Median("x"), 3)


def test_what_cannot_be_interpolated_is_refused() -> None:
    with pytest.raises(BadValue, match=r'interpolates between numbers, got .a.*method="lower"'):
        DabaLite(wr.Median()).insert("a")
    for column in (pa.array(["a"]), pa.array([date(2024, 1, 1)])):
        spec = wr.Rolling(windows=[wr.rows(2)], aggregates=[wr.Median("x")])
        with pytest.raises(BadValue, match=r"column 'x' has type .*interpolates between numbers"):
            spec(pa.table({"x": column.slice(0, 0)}))


@pytest.mark.parametrize(
    "aggregate", [wr.Quantile(0.3, method="higher"), wr.Rank(method="max")], ids=repr
)
def test_other_forms_keep_their_promises(aggregate: wr.Aggregate) -> None:
    check_laws(aggregate)


def test_many_floats_are_written_as_few() -> None:
    values = (1.5, -0.0, NAN, INF, *map(float, range(20)))
    tagged = b"(" + bytes([len(values)]) + b"".join(map(encode, values))
    assert encode(values) == tagged
    assert equal(decode(Reader(tagged)), values)
    mixed = (*values, 3)
    assert equal(decode(Reader(encode(mixed))), mixed)


# --- on columns ----------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, so that a small table has many."""
    monkeypatch.setattr(sorted_blocks, "LEAST", 4)
    monkeypatch.setattr(sorted_blocks, "TIMES", 2)


@given(tables(FLOATS), st.sampled_from(WINDOWS), st.booleans(), st.integers(0, 3))
@examples(30)
def test_floats(table: pa.Table, window: Any, keyed: bool, min_rows: int) -> None:
    key = "k" if keyed else None
    check(wr.Rolling(key=key, time="t", windows=[window], aggregates=ALL, min_rows=min_rows), table)


@given(tables(st.integers(-(2**63), 2**63 - 1)), st.sampled_from(WINDOWS))
@examples(25)
def test_wide_integers(table: pa.Table, window: Any) -> None:
    check(wr.Rolling(key="k", time="t", windows=[window], aggregates=ALL), table)


@given(tables(FLOATS), st.data(), st.sampled_from(["auto", "b_int", "recalc"]))
@examples(30)
def test_bounds_that_move_back(table: pa.Table, data: Any, algorithm: str) -> None:
    size = table.num_rows
    for name in ("lo", "hi"):
        bound = data.draw(st.lists(st.integers(-3, 14), min_size=size, max_size=size))
        table = table.append_column(name, pa.array(bound, pa.int64()))
    check(
        wr.Rolling(
            key="k",
            time="t",
            windows=[wr.bounds("lo", "hi")],
            aggregates=ALL,
            algorithm=algorithm,
        ),
        table,
    )


@pytest.mark.parametrize("kind", ["floats", "ties", "integers", "rising", "outliers"])
@pytest.mark.parametrize("keys", [0, 7])
@pytest.mark.usefixtures("small_blocks")
def test_many_blocks(kind: str, keys: int) -> None:
    generator = np.random.default_rng(3)
    size = 400
    values = {
        "floats": generator.standard_normal(size),
        "ties": generator.integers(0, 5, size) / 2,
        "integers": generator.integers(-(10**12), 10**12, size),
        "rising": np.cumsum(generator.random(size)),
        "outliers": np.where(
            generator.random(size) < 0.1, 1e300, 1 + generator.random(size) * 1e-12
        ),
    }[kind]
    missing = generator.random(size) < 0.1
    table = pa.table(
        {
            "k": pa.array(generator.integers(0, max(keys, 1), size)),
            "t": pa.array(np.sort(generator.integers(0, 300, size))),
            "x": pa.array(values, mask=missing),
        }
    )
    spec = wr.Rolling(
        key="k" if keys else None,
        time="t",
        windows={"a": wr.rows(5), "b": wr.time(40), "c": wr.rows(60), "d": wr.time(3, ending=5)},
        aggregates=ALL,
        threads=2,
    )
    oracle = wr.Rolling(
        key=spec.key, time="t", windows=spec.windows, aggregates=ALL, algorithm="recalc"
    )
    found, wanted = spec(table), oracle(table)
    for name, _, _ in spec.outputs:
        got, want = found[name].to_pylist(), wanted[name].to_pylist()
        assert all(map(equal, got, want)), name


def test_pandas() -> None:
    generator = np.random.default_rng(5)
    x = generator.standard_normal(20_000)
    frame = pd.DataFrame({"x": x})
    spec = wr.Rolling(
        windows=[wr.rows(50)],
        aggregates=[wr.Median("x"), wr.Quantile("x", 0.95), wr.Rank("x", pct=True)],
        min_rows=50,
    )
    found = spec(frame)
    rolling = frame["x"].rolling(50)
    assert np.allclose(found["x_median_50rows"], rolling.median(), 1e-12, 1e-14, equal_nan=True)
    assert np.allclose(found["x_p95_50rows"], rolling.quantile(0.95), 1e-12, 1e-14, equal_nan=True)
    assert found["x_rank_pct_50rows"].equals(rolling.rank(pct=True))


def test_types() -> None:
    """Methods that pick keep the column's type; the others give floats."""
    columns = {
        "s": pa.array(["b", None, "a", "c"]),
        "d": pa.array([date(2024, 1, 3), None, date(2024, 1, 1), date(2024, 1, 2)]),
        "i": pa.array([3, None, 1, 2], pa.int16()),
        "n": pa.array([Decimal("0.3"), None, Decimal("0.1"), Decimal("0.2")], pa.decimal128(5, 1)),
        "u": pa.array([2**64 - 1, None, 0, 5], pa.uint64()),
    }
    table = pa.table(columns)
    picks = [wr.Quantile(name, 0.5, method="higher") for name in columns]
    floats = [wr.Median(name) for name in ("i", "n", "u")]
    found = wr.Rolling(windows=[wr.rows(3)], aggregates=[*picks, *floats])(table)
    for name, column in columns.items():
        assert found[f"{name}_p50_3rows"].type == column.type
    assert found["s_p50_3rows"].to_pylist() == ["b", "b", "b", "c"]
    assert found["d_p50_3rows"].to_pylist() == [
        date(2024, 1, 3), date(2024, 1, 3), date(2024, 1, 3), date(2024, 1, 2),
    ]  # fmt: skip
    assert found["n_median_3rows"].to_pylist() == [0.3, 0.3, 0.2, interpolated(0.1, 0.2, 0.5)]
    assert found["u_median_3rows"].to_pylist() == [2.0**64, 2.0**64, 2.0**63, 2.5]


def test_ticks_batches_labels_and_policies() -> None:
    generator = np.random.default_rng(8)
    size = 300
    table = pa.table(
        {
            "k": pa.array(generator.integers(0, 4, size)),
            "t": pa.array(np.sort(generator.integers(0, 200, size))),
            "x": pa.array(generator.integers(0, 30, size), mask=generator.random(size) < 0.1),
        }
    )
    aggregates = [wr.Quantile("x", 0.75), wr.Rank("x"), wr.Distinct("x"), wr.Count("x")]
    windows = {"w": wr.time(30), "p": wr.time(9, ending=7)}
    options: dict[str, Any] = {"key": "k", "time": "t", "aggregates": aggregates}
    recalc = options | {"algorithm": "recalc"}
    spec = wr.Rolling(**options, windows=windows, every=10)
    assert spec(table).equals(wr.Rolling(**recalc, windows=windows, every=10)(table))
    labels = pa.table({"k": [0, 1, 2, 9], "t": [50, 100, 199, 10]})
    spec, oracle = (wr.Rolling(**given, windows=windows) for given in (options, recalc))
    assert spec.as_of(table, labels).equals(oracle.as_of(table, labels))
    stream = spec.stream()
    parts = [stream.push(table.slice(i, 40)) for i in range(0, size, 40)]
    found = pa.concat_tables([*parts, stream.finish()]).sort_by([("t", "ascending")])
    wanted = oracle(table)
    for name in ("x_p75_w", "x_rank_p", "x_distinct_w"):
        assert sorted(map(str, found[name].to_pylist())) == sorted(
            map(str, wanted[name].to_pylist())
        )
    kept = {"w": wr.at_most(wr.Distinct("x"), 5) & wr.rows(20)}
    assert wr.Rolling(**options, windows=kept)(table).equals(
        wr.Rolling(**recalc, windows=kept)(table)
    )


def test_one_sort_serves_several(monkeypatch: pytest.MonkeyPatch) -> None:
    sorts: list[Span] = []

    def counted(column: Column, span: Span) -> Any:
        sorts.append(span)
        return sort_rows(column, span)

    monkeypatch.setattr(sorted_blocks, "sort_rows", counted)
    table = pa.table({"x": np.random.default_rng(0).standard_normal(3000)})
    one = wr.Rolling(windows=[wr.rows(200)], aggregates=[wr.Median("x")])
    one(table)
    alone = len(sorts)
    aggregates = [wr.Median("x"), wr.Quantile("x", 0.9), wr.Rank("x"), wr.Distinct("x")]
    many = wr.Rolling(windows=[wr.rows(200), wr.rows(50)], aggregates=aggregates)
    found = many(table)
    assert len(sorts) == 2 * alone
    assert found["x_median_200rows"].equals(one(table)["x_median_200rows"])
    assert "shares the sort of 'x'" in many.explain(table)
    assert "sorted_blocks, compiled; blocks of rows" in one.explain(table)
    assert "shares" not in one.explain(table)


# --- what it is made of --------------------------------------------------------------------------


def test_members_are_found_by_their_place() -> None:
    generator = np.random.default_rng(1)
    size = 3_300_000
    for members in (
        np.sort(generator.choice(size, 3000, replace=False)),
        np.array([0, 5, size - 1]),
        np.concatenate([np.arange(70), np.arange(size - 200, size)]),
    ):
        words, blocks, heaps = bits.made(size)
        for number in members.tolist():
            bits.flip(words, blocks, heaps, np.uint64(number), 1)
        word, before = np.uint64(0), 0
        for k in generator.integers(0, len(members), 500).tolist():
            word, before = bits.seek(words, blocks, heaps, k, np.uint64(word), before)
            found = int(word) * 64 + int(bits.place_in(words[int(word)], k - before))
            assert found == members[k]
            if k + 1 < len(members):
                assert bits.following(words, blocks, np.uint64(found)) == members[k + 1]
        for number in members.tolist():
            bits.flip(words, blocks, heaps, np.uint64(number), -1)
        assert not any(level.any() for level in (words, blocks, heaps))


@pytest.mark.parametrize("place_in", [bits.place_in, bits.halved], ids=["as here", "anywhere"])
def test_places_in_a_word(place_in: Any) -> None:
    for word in (1, 1 << 63, 0x8000000000000001, 0xF0F0, (1 << 64) - 1, 0x123456789ABCDEF0):
        places = [i for i in range(64) if word >> i & 1]
        assert [int(place_in(np.uint64(word), k)) for k in range(len(places))] == places


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).standard_normal(5000),
        np.where(np.arange(5000) % 50 == 0, 1e300, 1.0 + np.arange(5000)[::-1] * 2.0**-52),
        np.array([0.0, -0.0, NAN, -NAN, INF, -INF, 5e-324, -5e-324]),
        np.zeros(300),
        np.empty(0),
        np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 3000),
        np.array([2**63 - 1, -(2**63), 0, -1, 1]),
    ],
    ids=str,
)
def test_sorting(values: Any) -> None:
    floats = values.dtype == np.float64
    column = Column("x", values, None, pa.float64() if floats else pa.int64())
    block = sort_rows(column, Span(0, len(values), 0, len(values)))
    expected = np.sort(values) + (0.0 if floats else 0)
    assert np.array_equal(block.values, expected, equal_nan=floats)
    assert np.array_equal(np.sort(block.rank), np.arange(len(values)))
    assert np.array_equal(block.values[block.rank], values, equal_nan=floats)
