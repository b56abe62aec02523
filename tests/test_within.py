"""The last n rows, but none older than a time: the same window on every engine."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.spark_session import assert_same, check, frame, random_table, spark  # noqa: F401
from tests.tables import expected, members
from windrow.columns.as_of import IS_LABEL, AsOf, joined
from windrow.columns.carry import Carry
from windrow.errors import BadSpecification, Refused
from windrow.windows.compare import equal

AGGREGATES: list[Any] = [
    wr.Count(),
    wr.Sum("x"),
    wr.Mean("x"),
    wr.Max("x"),
    wr.Last("x"),
    wr.Concat("s"),
]
row_windows = st.builds(
    wr.rows,
    st.integers(1, 6),
    ending=st.integers(0, 4),
    within=st.one_of(st.integers(1, 15), st.just(10**19)),
)
beside = st.sampled_from([{}, {"ahead": wr.rows(1, after=3)}, {"time": wr.time(2)}])


@st.composite
def tables(draw: Any, most: int = 40) -> pa.Table:
    """Rows in no order, with ties in time, missing inputs, and a missing key."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from([None, "a", "b"]),
                st.integers(-5, 20),
                st.one_of(st.none(), st.floats(-1e9, 1e9)),
                st.one_of(st.none(), st.sampled_from("abc")),
            ),
            min_size=1,
            max_size=most,
        )
    )
    k, t, x, s = zip(*rows, strict=True)
    return pa.table(
        {
            "k": pa.array(k, pa.string()),
            "t": pa.array(t, pa.int64()),
            "id": pa.array(range(len(rows))),
            "x": pa.array(x, pa.float64()),
            "s": pa.array(s, pa.string()),
        }
    )


def rolling(**changed: Any) -> wr.Rolling:
    given: dict[str, Any] = {
        "key": "k",
        "time": "t",
        "tie": "id",
        "aggregates": AGGREGATES,
    }
    return wr.Rolling(**(given | changed))


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in ("k", "t", "id")])


def assert_as_defined(found: pa.Table, spec: wr.Rolling, rows: list[dict[str, Any]]) -> None:
    for name, aggregate, label in spec.outputs:
        column = found[name].to_pylist()
        for i in range(len(rows)):
            wanted = expected(rows, spec, aggregate, members(rows, spec, spec.windows[label], i))
            assert equal(column[i], wanted), f"{name} of row {i}: {column[i]!r}, not {wanted!r}"


# --- what it means -------------------------------------------------------------------------------


@given(
    tables(),
    st.lists(row_windows, min_size=1, max_size=3, unique_by=lambda window: window.label),
    st.booleans(),
    st.sampled_from(["auto", "two_stacks_lite", "daba_lite", "greedy", "b_int", "recalc"]),
    st.integers(0, 2),
)
def test_columns_equal_the_definition(
    table: pa.Table, windows: list[Any], keyed: bool, algorithm: str, min_rows: int
) -> None:
    aggregates = AGGREGATES if algorithm == "auto" else [wr.Min("x"), wr.Max("x")]
    spec = rolling(
        key="k" if keyed else None,
        windows=windows,
        aggregates=aggregates,
        algorithm=algorithm,
        min_rows=min_rows,
    )
    assert_as_defined(spec(table), spec, table.to_pylist())


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), max_size=40),
    row_windows,
    st.sampled_from(["auto", "DabaLite", "Recalc", "FlatFit"]),
)
def test_sliding_equals_the_definition(
    steps: list[tuple[int, str]], window: Any, algorithm: str
) -> None:
    sliding = wr.Sliding(window, wr.Concat(), algorithm)
    spec = wr.Rolling(time="t", windows=[window], aggregates=[wr.Concat("s")])
    rows: list[dict[str, Any]] = []
    now = 0
    for gap, text in steps:
        now += gap
        rows.append({"t": now, "s": text})
        answer = sliding.insert(text, at=now)
        held = members(rows, spec, window, len(rows) - 1)
        assert answer == expected(rows, spec, spec.aggregates[0], held)
        assert len(sliding) == len(held)
        assert sliding.waiting == min(window.ending, len(rows))
        assert sliding.oldest == (rows[held[0]]["t"] if held else None)


def test_time_passes_without_a_row() -> None:
    sliding = wr.Sliding(wr.rows(3, within=10), wr.Sum())
    assert [sliding.insert(x, at=t) for x, t in [(1, 0), (2, 5), (4, 6), (8, 7)]] == [1, 3, 7, 14]
    assert sliding.advance(15) == 12
    assert sliding.advance(17) is None
    assert sliding.insert(16, at=17) == 16


@given(
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc")), min_size=1, max_size=30),
    row_windows,
)
def test_sliding_with_lateness(rows: list[tuple[int, str]], window: Any) -> None:
    sliding = wr.Sliding(window, wr.Concat(), lateness=20)
    sorted_one = wr.Sliding(window, wr.Concat())
    for t, text in rows:
        sliding.insert(text, at=t)
    answers = [sorted_one.insert(text, at=t) for t, text in sorted(rows, key=lambda row: row[0])]
    assert sliding.drain() == answers[-1]


def test_datetimes() -> None:
    start = datetime(2024, 3, 10, tzinfo=UTC)
    times = [start + timedelta(days=day) for day in (0, 10, 29, 30, 30, 75)]
    window = wr.rows(3, within="30d")
    sliding = wr.Sliding(window, wr.Sum())
    values = [1, 2, 4, 8, 16, 32]
    wanted = [1, 3, 7, 14, 28, 32]
    assert [sliding.insert(x, at=t) for x, t in zip(values, times, strict=True)] == wanted
    for unit in ("s", "us", "ns"):
        table = pa.table({"t": pa.array(times, pa.timestamp(unit, "UTC")), "x": values})
        found = wr.Rolling(time="t", windows=[window], aggregates=[wr.Sum("x")])(table)
        assert found["x_sum_3rows_within_30d"].to_pylist() == wanted


def test_threads_share_the_rows() -> None:
    table = random_table(100_000, keys=5, span=20_000)
    changed = {"windows": [wr.rows(40, within=25)], "aggregates": [wr.Count(), wr.Last("id")]}
    one, three = (rolling(**changed, threads=threads)(table) for threads in (1, 3))
    assert_same(one, three, rolling(**changed))


# --- rows that come in pieces --------------------------------------------------------------------


def together(pieces: list[pa.Table]) -> pa.Table:
    """One table; a piece without any text has no type for it."""
    return pa.concat_tables(pieces, promote_options="permissive")


@pytest.mark.parametrize("size", [1, 7, 1000])
@given(tables(), row_windows, beside)
def test_carry_equals_one_call(size: int, table: pa.Table, window: Any, others: Any) -> None:
    table, spec = in_order(table), rolling(windows={"w": window} | others)
    carry = Carry(spec)
    pieces = [table.slice(start, size) for start in range(0, len(table), size)]
    found = together([carry.push(p, last=p is pieces[-1]) for p in pieces])
    assert found["id"].to_pylist() == table["id"].to_pylist()
    assert_as_defined(found, spec, table.to_pylist())


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("ahead", [0, 3])
def test_carry_of_longer_tables(size: int, ahead: int) -> None:
    table = in_order(random_table(120, keys=2, span=80))
    windows = {"w": wr.rows(5, within=4), "past": wr.rows(3, ending=2, within=7)}
    spec = rolling(windows=windows | {"ahead": wr.rows(1, after=ahead)}, aggregates=[wr.Count()])
    carry = Carry(spec)
    pieces = [table.slice(start, size) for start in range(0, len(table), size)]
    found = together([carry.push(p, last=p is pieces[-1]) for p in pieces])
    assert_as_defined(found, spec, table.to_pylist())


@pytest.mark.parametrize("size", [1, 7, 1000])
@given(tables(), row_windows, beside)
def test_batches_equal_one_call(size: int, table: pa.Table, window: Any, others: Any) -> None:
    table = table.sort_by([("t", "ascending"), ("id", "ascending")])
    spec = rolling(windows={"w": window} | others)
    stream = spec.stream()
    pieces = [stream.push(table.slice(start, size)) for start in range(0, len(table), size)]
    found = together([*pieces, stream.finish()])
    assert_as_defined(found.sort_by("id"), spec, table.sort_by("id").to_pylist())


@pytest.mark.parametrize(
    ("window", "live"),
    [(wr.rows(50, within=20), 20), (wr.rows(20, within=50), 19), (wr.rows(9, within=10**19), 8)],
)
def test_only_live_rows_are_kept(window: Any, live: int) -> None:
    size = 500
    table = pa.table({"k": [1] * size, "t": range(size), "id": range(size), "x": [1.0] * size})
    spec = rolling(windows=[window], aggregates=[wr.Sum("x")])
    labels = pa.table({"k": [1], "t": [size]})
    events = joined(spec, table, labels, None).slice(0, size)
    for carry, rows in (
        (Carry(spec), table),
        (spec.stream(), table),
        (AsOf(spec, strict=True), events),
    ):
        for start in range(0, size, 100):
            carry.push(rows.slice(start, 100))
            assert live - 1 <= carry.rows_kept <= live + 2


# --- labels --------------------------------------------------------------------------------------


def known_at(label: dict[str, Any], events: list[dict[str, Any]], strict: bool) -> list[int]:
    t = label["t"]
    own = [
        j
        for j, event in enumerate(events)
        if event["k"] == label["k"] and (event["t"] < t or (event["t"] == t and not strict))
    ]
    return sorted(own, key=lambda j: (events[j]["t"], events[j]["id"]))


def members_at(window: Any, label: dict[str, Any], events: list[Any], known: list[int]) -> Any:
    last = known[: max(0, len(known) - window.ending)][-window.n :]
    return [j for j in last if events[j]["t"] > label["t"] - window.within]


@given(tables(), tables(15), row_windows, st.booleans(), st.sampled_from([1, 7, 1000]))
def test_as_of(events: pa.Table, asked: pa.Table, window: Any, strict: bool, size: int) -> None:
    labels = asked.select(["k", "t"])
    spec = rolling(windows={"w": window})
    found = spec.as_of(events, labels, strict=strict)
    rows = events.to_pylist()
    for i, label in enumerate(labels.to_pylist()):
        held = members_at(window, label, rows, known_at(label, rows, strict))
        for name, aggregate, _ in spec.outputs:
            assert equal(found[name][i].as_py(), expected(rows, spec, aggregate, held))
    both = joined(spec, events, labels, None)
    place = pa.array(range(len(both)))
    order = [(name, "ascending") for name in ("k", "t", IS_LABEL, "id", "place")]
    both = both.append_column("place", place).sort_by(order)
    carry = AsOf(spec, strict)
    pieces = [both.slice(start, size) for start in range(0, len(both), size)]
    carried = together([carry.push(p, last=p is pieces[-1]) for p in pieces])
    carried = carried.sort_by("place")
    for name, _, _ in spec.outputs:
        assert carried[name].to_pylist() == found[name].to_pylist()


# --- Spark ---------------------------------------------------------------------------------------

LONGER: dict[str, Any] = {
    "short": wr.rows(3, within=2),
    "some": wr.rows(20, within=45),
    "past": wr.rows(10, ending=3, within=60),
    "rows": wr.rows(12),
    "time": wr.time(30),
}


@pytest.mark.parametrize("key", ["k", None])
@pytest.mark.parametrize("seed", [0, 1])
def test_spark_equals_columns(spark: Any, key: str | None, seed: int) -> None:  # noqa: F811
    table = random_table(300, keys=3, seed=seed, span=200)
    check(spark, rolling(key=key, windows=LONGER), table, partitions=4)


def test_spark_timestamps(spark: Any) -> None:  # noqa: F811
    table = random_table(200, seed=3)
    times = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=d) for d in table["t"].to_pylist()]
    table = table.set_column(1, "t", pa.array(times, pa.timestamp("us", "UTC")))
    check(spark, rolling(windows=[wr.rows(20, within="30d")]), table)


@pytest.mark.parametrize("strict", [True, False])
def test_spark_as_of(spark: Any, strict: bool) -> None:  # noqa: F811
    events = random_table(200, seed=5, span=100)
    labels = random_table(80, seed=6, span=120).select(["k", "t", "id"])
    labels = labels.rename_columns(["k", "t", "label"])
    spec = rolling(windows=LONGER)
    found = spec.as_of(frame(spark, events), frame(spark, labels), strict=strict).toArrow()
    assert_same(found, spec.as_of(events, labels, strict=strict), spec, by="label")


def test_spark_plans(spark: Any) -> None:  # noqa: F811
    table = random_table(120, keys=1)
    given = frame(spark, table)
    windows, counts = [wr.rows(2, within=9)], [wr.Count()]
    keyed = rolling(windows=windows, aggregates=counts)
    assert "keyed" in keyed.explain(given).splitlines()[0]
    assert "native: window '2rows_within_9' has two limits" in keyed.explain(given)
    assert "hot keys (from 10 rows on): 0" in keyed.explain(given, hot_rows=10)
    check(spark, keyed, table, hot_rows=10)
    one_task = rolling(key=None, windows=windows, aggregates=counts).explain(given)
    assert "one task (no key, and rows within a time, which are two limits" in one_task
    with pytest.raises(Refused, match="two limits"):
        rolling(windows=windows, aggregates=counts, engine="native")(given)
    with pytest.raises(Refused, match="counts rows, which needs a total order"):
        rolling(windows=windows, tie=None)(given)


# --- labels of windows, plans, refusals ----------------------------------------------------------


def test_labels() -> None:
    assert wr.rows(100, within="30d").label == "100rows_within_30d"
    assert wr.rows(100, within=timedelta(hours=36)).label == "100rows_within_36h"
    assert wr.rows(100, ending=5, within=7).label == "100rows_ending_5_within_7"
    found = rolling(windows=[wr.rows(2, within=3)], aggregates=[wr.Count()])
    assert [name for name, _, _ in found.outputs] == ["count_2rows_within_3"]


def test_explain() -> None:
    table = random_table(50)
    spec = rolling(key=None, windows=[wr.rows(5, within=9)], aggregates=[wr.Max("x")])
    text = spec.explain(table, count_combines=True)
    assert "window 5rows_within_9: ranges that only move forward" in text
    assert "5rows_within_9" in wr.Sliding(wr.rows(5, within=9), wr.Max()).explain()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"within": "1d", "after": 2}, "not both"),
        ({"within": 0}, "within must be positive, not 0"),
        ({"within": "0s"}, "within must be positive"),
        ({"within": -3}, "within must be positive"),
        ({"within": "soon"}, r"rows\(within=\): cannot read 'soon'"),
        ({"within": 1.5}, r"rows\(within=\): 1.5 is not a length of time"),
    ],
)
def test_what_rows_refuses(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSpecification, match=says):
        wr.rows(10, **arguments)


def test_it_needs_times() -> None:
    window = wr.rows(2, within=3)
    with pytest.raises(BadSpecification, match="'2rows_within_3' is about time: say which column"):
        wr.Rolling(windows=[window], aggregates=[wr.Count()])
    with pytest.raises(BadSpecification, match=r"insert\(value, at=...\)"):
        wr.Sliding(window, wr.Sum()).insert(1)
    with pytest.raises(BadSpecification, match="every="):
        rolling(windows=[window], every=5)


def test_units_must_fit() -> None:
    table = pa.table({"k": ["a"], "t": [1], "id": [0], "x": [1.0], "s": ["a"]})
    with pytest.raises(BadSpecification, match=r"'2rows_within_1h'.*times are integers"):
        rolling(windows=[wr.rows(2, within="1h")])(table)
    with pytest.raises(BadSpecification, match=r"within=.*needs a unit"):
        wr.Sliding(wr.rows(2, within=5), wr.Sum()).insert(1, at=datetime(2024, 1, 1))
