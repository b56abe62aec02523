"""What a new user met in the first hour and should not have; each as it was met."""

# mypy: disable-error-code="misc,index,operator"

import datetime as dt
import decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import windrow as wr
from tests.buckets import Stream, plan_of
from tests.pipelines import prepared, windrow
from windrow.aggregates import Field, Schema
from windrow.errors import BadSpecification, BadValue
from windrow.pipeline.bench import agreement
from windrow.testing import check_laws

# --- two tables whose columns are not of one type -------------------------------------------------

DAY, NOON = pd.to_datetime(["2024-01-01"]), pd.to_datetime(["2024-01-02 12:00"])
EVER = wr.Rolling(key="k", time="at", windows=["ever"], aggregates=[wr.Max("x")])


def asked(ours: pa.Array, theirs: pa.Array) -> list[Any]:
    """The answer for a label with one key, of an event with another."""
    events = pa.table({"k": ours, "at": pa.array([1] * len(ours)), "x": [1.0] * len(ours)})
    labels = pa.table({"k": theirs, "at": pa.array([2] * len(theirs))})
    found: list[Any] = EVER.as_of(events, labels)["x_max_ever"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        (pa.array([1], pa.int8()), pa.array([1, 1000, None]), [1.0, None, None]),
        (pa.array([1, 2**63], pa.uint64()), pa.array([1, -1]), [1.0, None]),
        (pa.array([1]), pa.array([1.0, 2.5, None]), [1.0, None, None]),
        (pa.array([1.5, 2.0]), pa.array([2, 1]), [1.0, None]),
        (pa.array(["a"]), pa.array(["a", "b"], pa.large_string()), [1.0, None]),
        (pa.array(["a"]).dictionary_encode(), pa.array(["a", "b"]), [1.0, None]),
        (pa.array([1], pa.timestamp("s")), pa.array([10**6, 1], pa.timestamp("us")), [1.0, None]),
        (pa.array([1]), pa.nulls(1), [None]),
        (pa.array(["a"]), pa.nulls(2), [None, None]),
        (pa.nulls(1), pa.array(["a", None]), [None, 1.0]),
        (pa.array(["a"]), pa.nulls(0), []),
    ],
    ids=str,
)
def test_keys_of_one_kind_are_compared(ours: pa.Array, theirs: pa.Array, found: Any) -> None:
    assert asked(ours, theirs) == found


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (pa.array([1]), pa.array(["01"])),
        (pa.array(["1"]), pa.array([1])),
        (pa.array([1]), pa.array([True])),
        (pa.array([1]), pa.array([dt.date(1970, 1, 2)])),
        (pa.array([dt.date(1970, 1, 2)]), pa.array([dt.datetime(1970, 1, 2)])),
    ],
    ids=str,
)
def test_keys_of_two_kinds_are_refused(ours: pa.Array, theirs: pa.Array) -> None:
    with pytest.raises(BadSpecification, match=r"labels' 'k' has type .* convert one of them"):
        asked(ours, theirs)


def test_labels_within_days_are_not_cut_to_days() -> None:
    days = pd.DataFrame({"at": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)], "x": [1.0, 2.0]})
    features = wr.Rolling(time="at", windows=["2d"], aggregates=[wr.Max("x")])
    with pytest.raises(BadSpecification, match=r"times of column 'at' are date32.*: convert one"):
        features.as_of(days, pd.DataFrame({"at": NOON}))
    between = wr.Rolling(time="at", windows=[wr.bounds("lo", "hi")], aggregates=[wr.Count()])
    with pytest.raises(BadSpecification, match="column 'lo' has type timestamp"):
        between(days.assign(lo=NOON[0], hi=NOON[0]))
    moments = days.assign(at=pd.to_datetime(days["at"]))
    assert features.as_of(moments, pd.DataFrame({"at": NOON}))["x_max_2d"].tolist() == [2.0]


def test_no_labels_have_no_types() -> None:
    events = pd.DataFrame({"k": ["a"], "at": DAY, "x": [1.0]})
    assert EVER.as_of(events, pd.DataFrame({"k": [], "at": []}))["x_max_ever"].tolist() == []


def test_labels_may_be_finer_than_events() -> None:
    events = pa.table({"at": pa.array([1, 2], pa.timestamp("s")), "x": [1, 2]})
    labels = pa.table({"at": pa.array([1500, 2500], pa.timestamp("ms"))})
    features = wr.Rolling(time="at", windows=["10s"], aggregates=[wr.Sum("x")])
    assert features.as_of(events, labels)["x_sum_10s"].to_pylist() == [1, 3]
    small = pa.table({"at": pa.array([1, 2], pa.int8()), "x": [1, 2]})
    counted = wr.Rolling(time="at", windows=[wr.time(10**6)], aggregates=[wr.Sum("x")])
    assert counted.as_of(small, pa.table({"at": [1000]}))["x_sum_1000000"].to_pylist() == [3]


def test_integers_are_no_times_of_a_calendar() -> None:
    seconds = pd.DataFrame({"at": [1704067200], "x": [1.0]})
    features = wr.Rolling(time="at", windows=[wr.time(3600)], aggregates=[wr.Max("x")])
    for labels in (pd.DataFrame({"at": NOON}), pd.DataFrame({"at": ["2024-01-02"]})):
        with pytest.raises(BadSpecification, match="times of column 'at' are int64: convert one"):
            features.as_of(seconds, labels)
    between = wr.Rolling(time="at", windows=[wr.bounds("lo", "hi")], aggregates=[wr.Count()])
    with pytest.raises(BadSpecification, match="column 'lo' has type int64"):
        between(pd.DataFrame({"at": DAY, "lo": [1704000000], "hi": [1705000000]}))


# --- partials with names --------------------------------------------------------------------------


class State(NamedTuple):
    n: int
    s: float


class Avg(wr.Aggregate):
    """A mean whose partial has names."""

    identity = State(0, 0.0)
    commutative = True

    @staticmethod
    def lift(x: float) -> State:
        return State(1, x)

    @staticmethod
    def combine(a: State, b: State) -> State:
        return State(a.n + b.n, a.s + b.s)

    @staticmethod
    def lower(p: State) -> float:
        return p.s / p.n


class Declared(Avg):
    """The same, with a schema that says what it holds."""

    schema = Schema((Field("n", "int64"), Field("s", "float64")))


@pytest.mark.parametrize("kind", [Avg, Declared])
def test_named_tuples_come_back_from_bytes(kind: Any, tmp_path: Path) -> None:
    check_laws(kind(), values=[1.0, 2.0])
    assert type(kind().from_bytes(kind().to_bytes(State(1, 2.0)))) is State
    for last in (2.5, 3.0):
        with wr.Sliding(wr.rows(5), kind(), store=wr.stores.Rocks(tmp_path), name="a") as window:
            for value in (1.0, 2.0, 3.0, 4.0):
                found = window.insert(value)
        assert found == last if last == 2.5 else found == pytest.approx(14 / 5)
    spec = wr.Rolling(time="t", windows=[wr.time(50)], aggregates=[kind("x")])
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64())])
    stream = Stream(plan_of(spec, schema, segment_rows=4))
    table = pa.table({"t": range(200), "x": np.arange(200.0)}, schema=schema)
    for first in range(0, 200, 10):
        stream.turn(table.slice(first, 10), first)
    stream.end()
    assert stream.found()[f"x_{kind().name}_50"].equals(spec(table)[f"x_{kind().name}_50"])


# --- a missing key is a key, for rules as well ----------------------------------------------------


@pytest.mark.parametrize("missing", [None, pd.NaT, pd.NA], ids=str)
def test_rules_of_a_missing_key(missing: Any) -> None:
    rules = wr.Rules([("busy", "count(60) >= 2")], key="k", time="t")
    assert rules.insert({"k": missing, "t": 1}) == []
    rules.insert({"k": "a", "t": 2})
    [change] = rules.insert({"k": missing, "t": 3})
    assert (change.rule, change.key, change.started) == ("busy", None, True)
    assert str(change) == "3: busy started for None"
    assert sorted(rules.keys, key=str) == [None, "a"]
    again = wr.Rules.from_bytes(rules.to_bytes())
    assert again.firing() == rules.firing() == [("busy", None)]
    for one in (rules, again):  # a new rule finds it, though filters know nothing of it
        started = one.add("there", "count(60) >= 1")
        assert sorted((c.key for c in started), key=str) == [None, "a"]
        assert [(c.rule, c.key) for c in one.advance(62)] == [
            ("busy", None),
            ("there", "a"),
        ]


def test_a_pipeline_with_rules_and_a_missing_key(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "d.csv").write_text(
        "user,at,amount\nann,2024-03-01 09:00:00,1\n"
        ",2024-03-01 09:10:00,2\n,2024-03-01 09:20:00,2\n"
    )
    text = """
engine = "columns"
[source]
format = "csv"
path = "d.csv"
[features]
key = "user"
time = "at"
windows = ["WINDOW"]
aggregates = [{ aggregate = "Sum", column = "amount" }]
[[rules]]
name = "busy"
when = 'count("1h") >= 2'
[alerts]
format = "json"
path = "alerts.json"
"""
    path = tmp_path / "p.toml"
    path.write_text(text.replace("WINDOW", "1h"))
    code, _, errors = windrow(capsys, "run", path, "--quiet")
    assert code == 0, errors
    told = (tmp_path / "alerts.json").read_text()
    assert told == '{"rule": "busy", "started": true, "at": "2024-03-01T09:20:00+00:00"}\n'
    path.write_text(text.replace("WINDOW", "1 huor").replace("alerts.json", "other.json"))
    code, _, errors = windrow(capsys, "run", path, "--check")
    assert code == 2
    assert "1 huor" in errors
    assert "rules need a key" not in errors


def test_mistakes_of_other_kinds_are_told_beside_over(tmp_path: Path, capsys: Any) -> None:
    aggregates = [
        {"aggregate": "Sum", "column": "amount", "over": "2 h"},
        {"aggregate": "Sum", "column": "note", "alias": "u"},
    ]
    path = prepared(tmp_path, changes={"features.aggregates": aggregates})
    code, _, errors = windrow(capsys, "run", path, "--check")
    assert code == 2
    assert "no window is called '2 h'" in errors
    assert "cannot be added" in errors


# --- answers and figures --------------------------------------------------------------------------


def test_an_outlier_is_not_what_answers_are_compared_by() -> None:
    ours = np.ones(100)
    ours[5] = 1e12
    theirs = ours.copy()
    theirs[50:] = 1 + 1e-6
    compared = agreement({"x": pa.array(ours)}, {"x": pa.array(theirs)})
    assert compared == "differs in 50.0% of the rows"
    infinite = np.where(np.arange(100) == 3, np.inf, ours)
    close = agreement({"x": pa.array(infinite)}, {"x": pa.array(infinite * (1 + 1e-12))})
    assert close == "yes, within 1e-9"
    zeros = agreement({"x": pa.array(np.zeros(9))}, {"x": pa.array(np.full(9, 1e-30))})
    assert zeros == "differs in 100.0% of the rows"


@pytest.mark.parametrize(
    ("kind", "unit", "wanted"),
    [
        (pa.float64(), "s", [0.5, 1.0, 1.5]),
        (pa.float32(), "s", [0.5, 1.0, 1.5]),
        (pa.float64(), "ms", [500.0, 1000.0, 1500.0]),
    ],
)
def test_ticks_of_float_times_are_such_times(kind: Any, unit: Any, wanted: Any) -> None:
    factor = {"s": 1.0, "ms": 1000.0}[unit]
    table = pa.table({"at": pa.array([0.125 * factor, 0.25 * factor, factor], kind)})
    spec = wr.Rolling(time="at", unit=unit, windows=["1s"], every="500ms", aggregates=[wr.Count()])
    found = spec(table)
    assert found["at"].type == kind
    assert found["at"].to_pylist() == wanted
    assert found["count_1s"].to_pylist() == [2, 3, 1]


def test_ticks_of_our_days_are_the_nearest_floats() -> None:
    now = 1_700_000_000.25
    spec = wr.Rolling(time="at", unit="s", windows=["1s"], every="100ms", aggregates=[wr.Count()])
    found = spec(pa.table({"at": [now]}))["at"].to_pylist()
    assert found == [float(f"1700000000.{tenth}") for tenth in (3, 4, 5, 6, 7, 8, 9)] + [
        1_700_000_001.0,
        1_700_000_001.1,
        1_700_000_001.2,
    ]


def test_decimals_of_38_digits_have_sums() -> None:
    digits = pa.decimal128(38, 0)
    spec = wr.Rolling(windows=[wr.rows(1)], aggregates=[wr.Sum("x")])
    for text in ("9" * 38, "5" + "0" * 37, "-" + "9" * 38):
        table = pa.table({"x": pa.array([decimal.Decimal(text)], digits)})
        assert spec(table)["x_sum_1rows"].to_pylist() == [decimal.Decimal(text)]


# --- words ----------------------------------------------------------------------------------------


def test_lengths_of_python_are_windows() -> None:
    hour, day = dt.timedelta(hours=1), np.timedelta64(1, "D")
    spec = wr.Rolling(time="at", windows=[hour, day, pd.Timedelta("90s")], aggregates=[wr.Count()])
    assert list(spec.windows) == ["1h", "1d", "90s"]
    assert wr.Sliding(hour, wr.Max()).policy == wr.time("1h")


def test_a_specification_shows_which_aggregate_is_over_which_window() -> None:
    spec = wr.Rolling(
        time="at",
        windows=["1h", "2h"],
        aggregates=[
            wr.Sum("x").over("1h").alias("a"),
            wr.Sum("x").over("2h").alias("b"),
            wr.Count(),
        ],
    )
    assert "[Sum('x').over('1h').alias('a'), Sum('x').over('2h').alias('b'), Count()]" in repr(spec)


def test_counting_some_rows_one_value_at_a_time() -> None:
    with pytest.raises(BadSpecification, match=r"count values with Count\(\"x\"\)"):
        wr.Sliding(wr.rows(3), wr.Count().where("b"))
    counted = wr.Sliding(wr.rows(3), wr.Count("x"))
    assert [counted.insert(value) for value in (None, 5, {"x": None}, {"x": 1})] == [0, 1, 1, 2]
    with pytest.raises(BadValue):
        wr.Sliding(wr.rows(3), wr.Sum()).insert("a")
