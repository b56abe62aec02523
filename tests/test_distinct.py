"""Distinct values: how many, and which, against Recalc and Python's sets."""

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.test_rolling import FLOATS, WINDOWS, check, tables
from windrow.columns import sorted_blocks
from windrow.errors import BadSpecification, BadValue
from windrow.testing import check_laws
from windrow.windows import DabaLite, Recalc
from windrow.windows.compare import equal

INF, NAN = math.inf, math.nan
BOTH: list[Any] = [wr.Distinct("x"), wr.Distinct("x", values=True)]


@pytest.mark.parametrize(
    ("values", "count", "listed"),
    [
        ([], 0, None),
        ([None], 0, None),
        ([3, 1, 3, None], 2, [1, 3]),
        ([NAN, 1.0, -NAN, INF], 3, [1.0, INF, NAN]),
        ([0.0, -0.0], 1, [0.0]),
        ([1, 1.0, True], 1, [1]),
        (["b", "", "b"], 2, ["", "b"]),
        ([Decimal("1.0"), Decimal("1.00")], 1, [Decimal("1.0")]),
        ([date(2024, 1, 2), date(2024, 1, 1)], 2, [date(2024, 1, 1), date(2024, 1, 2)]),
    ],
    ids=repr,
)
def test_literal_answers(values: list[Any], count: int, listed: Any) -> None:
    for algorithm in (Recalc, DabaLite, wr.windows.Fiba):
        for aggregate, expected in ((wr.Distinct(), count), (wr.Distinct(values=True), listed)):
            window = algorithm(aggregate)
            window.insert(values[0] if values else None)
            window.evict()
            for value in values:
                window.insert(value)
            assert equal(window.query(), expected), algorithm


def test_names_options_and_laws() -> None:
    assert wr.Distinct("x").output_name == "x_distinct"
    assert wr.Distinct("x", values=True).output_name == "x_distinct_values"
    assert repr(wr.Distinct("x")) == "Distinct('x')"
    assert repr(wr.Distinct("x", values=True)) == "Distinct('x', values=True)"
    with pytest.raises(BadSpecification, match="values="):
        wr.Distinct("x", values="yes")  # type: ignore[arg-type]
    window = DabaLite(wr.Distinct())
    window.insert(1)
    with pytest.raises(BadValue, match="cannot be combined"):
        window.insert("a")
    check_laws(wr.Distinct(values=True))


@given(tables(FLOATS), st.sampled_from(WINDOWS), st.booleans(), st.integers(0, 3))
@examples(60)
def test_floats(table: pa.Table, window: Any, keyed: bool, min_rows: int) -> None:
    key = "k" if keyed else None
    check(
        wr.Rolling(key=key, time="t", windows=[window], aggregates=BOTH, min_rows=min_rows), table
    )


@given(tables(st.integers(-2, 2)), st.data(), st.sampled_from(["auto", "b_int", "recalc"]))
@examples(25)
def test_bounds_that_move_back(table: pa.Table, data: Any, algorithm: str) -> None:
    size = table.num_rows
    for name in ("lo", "hi"):
        bound = data.draw(st.lists(st.integers(-3, 14), min_size=size, max_size=size))
        table = table.append_column(name, pa.array(bound, pa.int64()))
    window = wr.bounds("lo", "hi")
    check(
        wr.Rolling(key="k", time="t", windows=[window], aggregates=BOTH, algorithm=algorithm), table
    )


@pytest.mark.parametrize("distinct", [3, 200, 10**9])
def test_many_blocks(monkeypatch: pytest.MonkeyPatch, distinct: int) -> None:
    monkeypatch.setattr(sorted_blocks, "LEAST", 4)
    monkeypatch.setattr(sorted_blocks, "TIMES", 2)
    generator = np.random.default_rng(2)
    x = generator.integers(0, distinct, 900)
    spec = wr.Rolling(windows=[wr.rows(70), wr.rows(9)], aggregates=BOTH, threads=2)
    found = spec(pa.table({"x": x}))
    for rows in (70, 9):
        wanted = [sorted(set(x[max(0, i - rows + 1) : i + 1].tolist())) for i in range(len(x))]
        assert found[f"x_distinct_values_{rows}rows"].to_pylist() == wanted
        assert found[f"x_distinct_{rows}rows"].to_pylist() == list(map(len, wanted))


def test_types() -> None:
    columns = {
        "s": pa.array(["b", None, "a", "b"]),
        "d": pa.array([date(2024, 1, 3), None, date(2024, 1, 1), date(2024, 1, 3)]),
        "i": pa.array([3, None, 1, 3], pa.int16()),
        "b": pa.array([True, None, False, True]),
        "n": pa.array([Decimal("0.3"), None, Decimal("0.1"), Decimal("0.3")], pa.decimal128(5, 1)),
        "f": pa.array([0.5, None, NAN, 0.5], pa.float32()),
        "y": pa.array([b"b", None, b"a", b"b"]),
        "o": pa.array(["b", None, "a", "b"]).dictionary_encode(),
    }
    aggregates: list[Any] = [wr.Distinct(name, values=True) for name in columns]
    aggregates += [wr.Distinct(name) for name in columns]
    spec = wr.Rolling(windows=[wr.rows(3)], aggregates=aggregates)
    table = pa.table(columns)
    found, empty = spec(table), spec(table.slice(0, 0))
    for name, column in columns.items():
        kind = column.type.value_type if name == "o" else column.type
        assert found[f"{name}_distinct_values_3rows"].type == pa.list_(kind)
        assert empty[f"{name}_distinct_values_3rows"].type == pa.list_(kind)
        assert found[f"{name}_distinct_3rows"].to_pylist() == [1, 1, 2, 2]
    assert found["s_distinct_values_3rows"].to_pylist() == [["b"], ["b"], ["a", "b"], ["a", "b"]]
    assert equal(found["f_distinct_values_3rows"].to_pylist()[2], [0.5, NAN])


def test_other_tables() -> None:
    import pandas as pd
    import polars as pl

    spec = wr.Rolling(windows=[wr.rows(2)], aggregates=BOTH)
    x = [2, 1, 1]
    wanted = [[2], [1, 2], [1]]
    for table in (pd.DataFrame({"x": x}), pl.DataFrame({"x": x}), {"x": np.array(x)}):
        found = spec(table)
        assert [list(v) for v in found["x_distinct_values_2rows"]] == wanted
        assert list(found["x_distinct_2rows"]) == [1, 2, 1]
