"""Columns as people have them: odd types, odd frames, and what is said of what does not work."""

import datetime as dt
import warnings
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.test_rolling import check
from windrow.errors import WindrowError

LARGE = 2**53 + 1
TWO = [wr.rows(2)]
SUMS = wr.Rolling(windows=TWO, aggregates=[wr.Sum("x"), wr.Max("x")])
MOST = wr.Rolling(windows=TWO, aggregates=[wr.Max("x"), wr.Min("x"), wr.Last("x")])


def answers(spec: wr.Rolling, table: Any) -> Any:
    """The answers alone, as lists."""
    found = spec(table)
    if isinstance(found, dict):
        return [np.asarray(found[name]).tolist() for name, *_ in spec.outputs]
    lists = (found[name] for name, *_ in spec.outputs)
    return [x.to_pylist() if isinstance(x, pa.ChunkedArray) else x.to_list() for x in lists]


# --- pandas and Polars ---------------------------------------------------------------------------


def test_large_integers_stay_whole_beside_missing_ones() -> None:
    spec = wr.Rolling(windows=[wr.rows(1, ending=1)], aggregates=[wr.Last("x"), wr.Count("x")])
    found = spec(pd.DataFrame({"x": [LARGE, 5]}))
    assert found["x_last_1rows_ending_1"].tolist() == [pd.NA, LARGE]
    assert found["x_count_1rows_ending_1"].dtype == np.int64
    small = spec(pd.DataFrame({"x": [7, 5]}))["x_last_1rows_ending_1"]
    assert small.dtype == np.float64  # as pandas has it
    unsigned = spec(pd.DataFrame({"x": np.array([2**64 - 1, 5], np.uint64)}))
    assert unsigned["x_last_1rows_ending_1"].tolist() == [pd.NA, 2**64 - 1]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "chunks"])
def test_categories_with_an_order_keep_it(kind: str) -> None:
    order, x = ["low", "mid", "high"], ["low", "high", None, "mid"]
    category = pd.Categorical(x, categories=order, ordered=True)
    table: Any = pd.DataFrame({"x": category})
    if kind == "polars":
        table = pl.DataFrame({"x": pl.Series(x, dtype=pl.Enum(order))})
    elif kind == "arrow":
        table = pa.table({"x": pa.array(table["x"])})
    elif kind == "chunks":
        table = pa.table(
            {
                "x": pa.chunked_array(
                    pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), order, ordered=True)
                    for codes in ([0, 2], [None, 1])
                )
            }
        )
    assert answers(MOST, table) == [
        ["low", "high", "high", "mid"],
        ["low", "low", "high", "mid"],
        ["low", "high", "high", "mid"],
    ]


def test_categories_as_events_ties_and_batches() -> None:
    x = pa.array(pd.Categorical(["mid", "high", "low"], ["low", "mid", "high"], ordered=True))
    table = pa.table({"t": [1, 1, 1], "x": x})
    timed = wr.Rolling(time="t", windows=[wr.time(9)], aggregates=[wr.Max("x")])
    assert timed.as_of(table, pa.table({"t": [5]}))["x_max_9"].to_pylist() == ["high"]
    stream = timed.stream()
    stream.push(table)
    assert stream.finish()["x_max_9"].to_pylist() == ["high"] * 3
    tied = wr.Rolling(time="t", tie="x", windows=TWO, aggregates=[wr.Collect("x")])
    assert tied(table)["x_collect_2rows"].to_pylist() == [["low", "mid"], ["mid", "high"], ["low"]]


def test_levels_of_an_index_are_columns() -> None:
    times = pd.date_range("2024", periods=3, freq="h", name="at")
    frame = pd.DataFrame({"x": [1, 2, 4]}, index=times)
    spec = wr.Rolling(time="at", windows=["2h"], aggregates=[wr.Sum("x")])
    found = spec(frame)
    assert found["x_sum_2h"].tolist() == [1, 3, 6]
    assert found.index.equals(frame.index)
    labels = pd.DataFrame({"y": [0]}, index=times[2:])
    assert spec.as_of(frame, labels)["x_sum_2h"].tolist() == [2]
    keyed = frame.set_index(pd.MultiIndex.from_arrays([["a", "b", "a"], times]))
    keyed.index.names = ["user", "at"]
    per_user = wr.Rolling(key="user", time="at", windows=["9h"], aggregates=[wr.Sum("x")])
    assert per_user(keyed)["x_sum_9h"].tolist() == [1, 2, 5]
    zoned = frame.tz_localize("America/New_York")
    assert spec(zoned)["x_sum_2h"].tolist() == [1, 3, 6]


def test_rows_without_columns_that_matter() -> None:
    spec = wr.Rolling(windows=TWO, aggregates=[wr.Count()])
    mixed = np.array([1, "a", None], object)
    for table in (
        pd.DataFrame(index=range(3)),
        pd.DataFrame({"y": mixed}),
        pl.DataFrame({"y": pl.Series(mixed.tolist(), dtype=pl.Object)}),
        {"y": mixed, 5: [1, 2, 3]},
    ):
        assert answers(spec, table) == [[1, 2, 2]]


def test_lazy_frames_are_collected() -> None:
    events = pl.LazyFrame({"t": [1, 2], "x": [1, 2]})
    spec = wr.Rolling(time="t", windows=[wr.time(2)], aggregates=[wr.Sum("x")])
    found = spec.as_of(events, pl.LazyFrame({"t": [1, 3]}))
    assert found["x_sum_2"].to_list() == [None, 2]


class Giver:
    """A table of a library that nobody here knows."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


EVENTS = pa.table({"k": ["a", "b", "a"], "t": [1, 2, 3], "x": [1.0, 2.0, 4.0]})
RELATION = "select * from (values ('a', 1, 1.0), ('b', 2, 2.0), ('a', 3, 4.0)) events(k, t, x)"


@pytest.mark.parametrize(
    "give",
    [
        Giver,
        lambda table: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        lambda _: duckdb.connect().sql(RELATION),
    ],
    ids=["a library", "reader", "DuckDB"],
)
def test_what_gives_itself_to_arrow_is_a_table(give: Any) -> None:
    """And answers come back in a table of Arrow's."""
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(5)], aggregates=[wr.Sum("x")])
    found = spec(give(EVENTS))
    assert isinstance(found, pa.Table)
    assert found.column_names == ["k", "t", "x", "x_sum_5"]
    assert found["x_sum_5"].to_pylist() == [1, 2, 5]
    assert spec.as_of(give(EVENTS), give(EVENTS))["x_sum_5"].to_pylist() == [None, None, 1]
    assert "3 rows by k (2 keys)" in spec.explain(give(EVENTS))


@pytest.mark.parametrize(
    ("column", "way"),
    [
        (pa.chunked_array([[1, 2]]), "what it gives to Arrow is none: .*int64"),
        (pl.Series([1, 2]), r"to_frame\(\) makes one of it$"),
        (pd.Series([1, 2]), r"to_frame\(\) makes one of it$"),
        (pa.array([1, 2]), "as a DuckDB relation$"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_column_is_no_table(column: Any, way: str) -> None:
    kind = f"{type(column).__module__}.{type(column).__name__}"
    with pytest.raises(WindrowError, match=f"a {kind} is not a table windrow knows: .*{way}"):
        SUMS(column)


# --- NumPy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        np.array([1, 2, 4], ">i4"),
        np.array([1, 2, 4], ">f8"),
        pa.array([1, 2, 4]),
        pl.Series([1, 2, 4]),
        [1, 2, 4],
    ],
    ids=lambda x: type(x).__name__,
)
def test_columns_of_a_dict(x: Any) -> None:
    assert answers(SUMS, {"x": x}) == [[1, 3, 6], [1, 2, 4]]


def test_missing_values_of_a_dict() -> None:
    for x in (pa.array([1, None, 4]), pl.Series([1, None, 4]), [1, None, 4]):
        assert answers(SUMS, {"x": x}) == [[1, 1, 4], [1, 1, 4]]
    assert answers(SUMS, {"x": pd.Series([1.0, np.nan, 4.0])}) == [[1, 1, 4], [1, 1, 4]]


@pytest.mark.parametrize(("unit", "step"), [("W", "8d"), ("D", "1d"), ("h", "1h"), ("m", "1m")])
def test_units_of_numpy(unit: str, step: str) -> None:
    at = np.array(["2024-01-04", "2024-01-11"], f"datetime64[{unit}]")
    spec = wr.Rolling(time="at", windows={"w": step}, aggregates=[wr.Max("at"), wr.Max("long")])
    found = spec({"at": at, "long": at - at[0]})
    np.testing.assert_array_equal(found["at_max_w"], at)
    np.testing.assert_array_equal(found["long_max_w"], at - at[0])


# --- Arrow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([b"a", None, b"b"], pa.binary_view()),
        pc.run_end_encode(pa.array(["a", None, "b"])),
        pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal32(4, 1)),
        pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal64(12, 1)),
        pa.array([1.5, None, 2.5], pa.float16()),
    ],
    ids=lambda x: str(x.type),
)
def test_types_that_arrow_does_little_with(x: pa.Array) -> None:
    table = pa.table({"x": x, "t": [1, 2, 3]})
    first, _, second = x.to_pylist()
    assert answers(MOST, table)[:2] == [[first, first, second]] * 2
    keyed = wr.Rolling(key="x", time="t", windows=[wr.time(9)], aggregates=[wr.Count()], every=9)
    assert keyed(table)["x"].to_pylist() == [first, None, second]


def test_extension_types_are_keys() -> None:
    keys = pa.array([b"a" * 16, b"b" * 16, b"a" * 16, None], pa.uuid())
    table = pa.table({"k": keys, "t": [1, 2, 3, 4], "x": [1, 2, 4, 8]})
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(9)], aggregates=[wr.Sum("x")])
    assert answers(spec, table) == [[1, 2, 5, 8]]
    months = pd.PeriodIndex(["2024-01", "2024-02", "2024-01"], freq="M")
    assert answers(spec, pd.DataFrame({"k": months, "t": [1, 2, 3], "x": [1, 2, 4]})) == [[1, 2, 5]]


# --- what does not work --------------------------------------------------------------------------

NAIVE = pa.table({"t": pa.array([1], pa.timestamp("s")), "x": [1]})
ZONED = pa.table({"t": pa.array([1], pa.timestamp("s", "UTC")), "x": [1]})
TICKS = pa.table({"t": [1, 2], "x": [1, 2]})


def ticks(every: Any, **window: Any) -> Any:
    """Answers at ticks."""
    windows = [wr.time(**window)]
    return wr.Rolling(time="t", every=every, windows=windows, aggregates=[wr.Count()])(TICKS)


MISTAKES: list[Any] = [
    (lambda: SUMS(pd.DataFrame([[1, 2]], columns=["x", "x"])), "has 2 columns 'x'"),
    (lambda: SUMS(pa.table([[1], [2]], names=["x", "x"])), "has 2 columns 'x': rename them"),
    (lambda: SUMS(pd.DataFrame([[1, 2]])), "there is no column 'x'; the table has 0, 1"),
    (lambda: SUMS(pd.DataFrame({"x": [1, "a"]})), r"column 'x' \(object\) cannot be taken"),
    (lambda: SUMS({"x": np.array([1j])}), r"column 'x' \(complex128\) cannot be taken"),
    (lambda: SUMS(pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)})), r"column 'x' \(Int128\)"),
    (lambda: SUMS({"x": [1, 2], "k": "a"}), "column 'k' has 0 dimensions"),
    (lambda: SUMS.explain("file.csv"), "a str is not a table"),
    (lambda: SUMS(pd.Series([1])), r"to_frame\(\) makes one"),
    (lambda: SUMS([{"x": 1}]), r"from_pylist\(...\) makes one of rows"),
    (
        lambda: wr.Rolling(time="t", windows=["1h"], aggregates=[wr.Count()])(
            {"t": ["2024-01-01"]}
        ),
        r"type string: .* Convert texts first, with pandas.to_datetime\(\)",
    ),
    (
        lambda: wr.Rolling(windows=TWO, aggregates=[wr.LongestRun("x")])(pa.table({"x": ["a"]})),
        "column 'x' has type string, which is no number",
    ),
    (
        lambda: wr.Rolling(time="t", windows=["1h"], aggregates=[wr.Count()])(
            pd.DataFrame(columns=["t"])
        ),
        "time column 't' has type null",
    ),
    (lambda: wr.Rolling(windows=5, aggregates=[wr.Count()]), "5 is not a window"),  # type: ignore[arg-type]
    (
        lambda: wr.Rolling(windows=TWO, key=1, aggregates=[wr.Count()]),  # type: ignore[arg-type]
        "key= takes names of columns, not 1",
    ),
    (lambda: wr.Rolling(windows=TWO, aggregates="sum"), r"write windrow.Sum"),  # type: ignore[arg-type]
    (lambda: wr.Rolling(windows=TWO, aggregates=[wr.Count()], unit="parsec"), "unit='parsec'"),
    (lambda: ticks(10**30, length=5), "too far from 0"),
    (lambda: ticks(5, length=10**30), "too far from 0"),
    (lambda: ticks(1, length=10**18), "1,000,000,000,000,000,00. ticks"),
    (
        lambda: wr.Rolling(time="t", windows=["1h"], aggregates=[wr.Sum("x")]).as_of(
            NAIVE, ZONED.select(["t"])
        ),
        "one has a zone",
    ),
    (
        lambda: wr.Rolling(time="t", windows=[wr.bounds("z", "z")], aggregates=[wr.Sum("x")])(
            NAIVE.append_column("z", ZONED["t"])
        ),
        "one has a zone",
    ),
]


@pytest.mark.parametrize(("work", "says"), MISTAKES)
def test_what_is_said(work: Any, says: str) -> None:
    with pytest.raises(WindrowError, match=says):
        work()


def test_numbers_of_numpy_and_full_names_are_options() -> None:
    table = pa.table({"t": [0.0, 0.5], "x": [1, 2]})
    spec = wr.Rolling(
        time="t",
        unit="seconds",
        windows=["1s"],
        aggregates=[wr.Sum("x")],
        min_rows=np.int64(2),  # type: ignore[arg-type]
        threads=np.int64(1),  # type: ignore[arg-type]
    )
    assert answers(spec, table) == [[None, 3]]


def test_an_origin_far_from_the_times() -> None:
    table = pa.table({"t": pa.array([-7, 1], pa.int64())})
    for origin in (2, 2 - 5 * 10**18, 2 + 5 * 10**18):
        spec = wr.Rolling(
            time="t", windows=[wr.time(5)], aggregates=[wr.Count()], every=5, origin=origin
        )
        assert spec(table).to_pydict() == {"t": [-3, 2], "count_5": [1, 1]}
    noon = dt.datetime(2024, 1, 1, 0, 0, 30)
    shifted = wr.Rolling(time="t", windows=["1m"], aggregates=[wr.Count()], every="1m", origin=noon)
    assert shifted(NAIVE)["t"].to_pylist() == [dt.datetime(1970, 1, 1, 0, 0, 30)]


# --- times far apart -----------------------------------------------------------------------------


@pytest.mark.parametrize("window", ["365d", "36500d", "ever"])
def test_a_century_of_nanoseconds(window: str) -> None:
    """pandas keeps days in them; a lifetime of prices is no reason to refuse."""
    days = pd.date_range("1925-01-01", "2024-12-31", freq="30D")
    frame = pd.DataFrame({"day": days, "x": np.arange(len(days)) % 7.0})
    assert str(frame["day"].dtype) == "datetime64[ns]"
    spec = wr.Rolling(time="day", windows=window, aggregates=[wr.Max("x"), wr.Count()])
    found = spec(frame)
    theirs = frame.expanding() if window == "ever" else frame.rolling(window, on="day")
    assert found[f"x_max_{window}"].equals(theirs["x"].max().rename(f"x_max_{window}"))
    assert found[f"count_{window}"].tolist() == theirs["x"].count().tolist()


@given(
    st.lists(
        st.one_of(st.integers(-(1 << 62), 1 << 62), st.integers(-9, 9)), min_size=1, max_size=12
    ),
    st.one_of(st.integers(1, 1 << 62), st.integers(1, 5)),
    st.sampled_from(["right", "left", "both", "neither"]),
    st.one_of(st.just(0), st.integers(0, 1 << 60)),
)
@examples(100)
def test_times_far_from_0(times: list[int], length: int, closed: Any, ending: int) -> None:
    """Either right, or refused because int64 cannot hold where a window begins."""
    table = pa.table({"t": pa.array(times, pa.int64()), "x": list(range(len(times)))})
    window = wr.time(length, closed=closed, ending=ending)
    spec = wr.Rolling(time="t", windows={"w": window}, aggregates=[wr.Sum("x"), wr.Count()])
    span = max(times) - min(times) + 1
    reach = max(map(abs, times)) + min(length, span + 1) + min(ending, span + 1)
    if max(reach, span) + 2 >= 1 << 63:
        with pytest.raises(WindrowError, match="too far from 0"):
            spec(table)
        return
    check(spec, table)


def test_many_answers_beside_a_frame_of_pandas() -> None:
    """As if put in one by one, but without pandas' warning of a fragmented frame."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "z": pd.date_range("2024", periods=3, tz="UTC")})
    frame.index = pd.Index([7, 7, 3], name="id")
    frame.columns.name = "columns"
    frame.attrs["from"] = "here"
    windows = [wr.rows(n) for n in range(1, 61)]
    spec = wr.Rolling(windows=windows, aggregates=[wr.Sum("x"), wr.Last("z")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = spec(frame)
    assert found.attrs == frame.attrs
    expected = frame.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(1, 61):
            expected[f"x_sum_{n}rows"] = frame["x"].rolling(n, min_periods=1).sum()
            expected[f"z_last_{n}rows"] = frame["z"]
    pd.testing.assert_frame_equal(found[expected.columns], expected)
    assert list(found.columns) == ["x", "z", *(name for name, _, _ in spec.outputs)]
    assert found is not frame
    found.iloc[0, 0] = 9.0
    assert frame["x"].iloc[0] == 1.0
    two = pd.DataFrame(
        [[1], [2]], columns=pd.MultiIndex.from_tuples([("a", "b")], names=["m", "n"])
    )
    counted = wr.Rolling(windows=[wr.rows(1)], aggregates=[wr.Count()])(two)
    assert list(counted.columns) == [("a", "b"), ("count_1rows", "")]
    assert list(counted.columns.names) == ["m", "n"]
