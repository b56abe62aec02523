"""Pipelines with rules on streams and from files, approximate aggregates, and policies."""

import copy
import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import windrow as wr
from tests.pipelines import payments, prepared, windrow, write_csv
from tests.spark_session import local_session
from tests.test_pipeline import RULES
from windrow.cli.screen import rules_line
from windrow.pipeline.building import RulesFrom
from windrow.pipeline.checking import load
from windrow.pipeline.running import explain, run

ALERTS = {"format": "json", "path": "alerts"}
FILE = """
[[rule]]
name = "busy"
when = 'count("1h") >= 4'
until = 'count("1h") < 2'

[[rule]]
name = "high"
when = "amount > 2 * amount_mean_1d and amount > 50"
"""
SECOND = """
[[rule]]
name = "busy"
when = 'count("1h") >= 4'
until = 'count("1h") < 2'

[[rule]]
name = "broken"
when = 'count("1h") >='

[[rule]]
name = "some"
when = 'count("6h") >= 2'
"""
POLICIES = """
def wide(total, oldest):
    return total[0] > oldest[0] and total[1] - oldest[1] >= 4
"""
BOTH = [wr.Max("amount"), wr.Count()]


def wide_rows(total: Any, oldest: Any) -> Any:
    """What ``POLICIES`` says."""
    return total[0] > oldest[0] and total[1] - oldest[1] >= 4


STREAM: dict[str, Any] = {
    "mode": "stream-available-now",
    "engine": "spark",
    "source": {"format": "csv", "path": "days", "options": {"maxFilesPerTrigger": 1}},
    "columns": {
        "payment": "long",
        "user": "string",
        "at": "timestamp",
        "amount": "double",
        "note": "string",
    },
    "features.lateness": "1 minute",
    "sink": {"format": "parquet", "path": "answers", "checkpoint": "c/features"},
    "rules": {"file": "rules.toml"},
    "alerts": {**ALERTS, "checkpoint": "c/rules", "longest": "1d"},
    "spark": {"buckets": 2},
}


def told(folder: Path) -> list[dict[str, Any]]:
    files = [folder] if folder.is_file() else sorted(folder.glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


# --- in process -----------------------------------------------------------------------------------


def test_approximate_aggregates_and_policies(tmp_path: Path) -> None:
    """What the library answers."""
    rows = [{**row, "amount": int(row["amount"])} for row in payments()]
    write_csv(tmp_path / "payments.csv", rows)
    sums = {"epsilon": 0.001, "tick": "1m", "maximum": 400, "clamp": True}
    counts = {"epsilon": 0.002, "tick": "1m", "maximum": 5}
    (tmp_path / "windrow_own_policies.py").write_text(POLICIES)
    light = {"at_most": 60, "of": {"aggregate": "Sum", "column": "amount"}}
    high = {"aggregate": "Max", "column": "amount"}
    wide = {"policy": "windrow_own_policies:wide", "of": [high, {"aggregate": "Count"}]}
    cases: list[tuple[Any, Any, wr.Rolling]] = [
        (
            ["1h", {"rows": 50}],
            [
                {"aggregate": "ApproxSum", "column": "amount", **sums},
                {"aggregate": "ApproxCount", **counts},
            ],
            wr.Rolling(
                key="user",
                time="at",
                tie="payment",
                windows=["1h", wr.rows(50)],
                aggregates=[
                    wr.ApproxSum("amount", epsilon=0.001, tick="1m", maximum=400, clamp=True),
                    wr.ApproxCount(epsilon=0.002, tick="1m", maximum=5),
                ],
            ),
        ),
        (
            [light, {**light, "and": {"rows": 3}, "name": "few"}, {**light, "and": "1h"}],
            [{"aggregate": "Count"}, {"aggregate": "Max", "column": "amount"}],
            wr.Rolling(
                key="user",
                time="at",
                tie="payment",
                windows={
                    (label or window.label): window
                    for label, window in (
                        ("", wr.at_most(wr.Sum("amount"), 60)),
                        ("few", wr.at_most(wr.Sum("amount"), 60) & wr.rows(3)),
                        ("", wr.at_most(wr.Sum("amount"), 60) & wr.time("1h")),
                    )
                },
                aggregates=[wr.Count(), wr.Max("amount")],
            ),
        ),
        (
            [{"useful": high, "name": "u"}, {**wide, "and": {"rows": 9}}, {**wide, "name": "w"}],
            [{"aggregate": "Count"}, {"aggregate": "Sum", "column": "amount"}],
            wr.Rolling(
                key="user",
                time="at",
                tie="payment",
                windows={
                    "u": wr.useful(wr.Max("amount")),
                    "wide_and_9rows": wr.policy(wide_rows, over=BOTH) & wr.rows(9),
                    "w": wr.policy(wide_rows, over=BOTH),
                },
                aggregates=[wr.Count(), wr.Sum("amount")],
            ),
        ),
    ]
    for windows, aggregates, spec in cases:
        changes = {
            "columns": {"amount": "long"},
            "features.windows": windows,
            "features.aggregates": aggregates,
            "sink.mode": "overwrite",
        }
        run(load(prepared(tmp_path, changes=changes)))
        found = pq.read_table(tmp_path / "out.parquet").sort_by("payment")
        wanted = spec(found.select(["payment", "user", "at", "amount", "note"]))
        assert found.column_names == wanted.column_names
        for name, _, _ in spec.outputs:
            assert found[name].to_pylist() == wanted[name].to_pylist(), name
            assert len(set(found[name].to_pylist())) > 2, name


def test_rules_from_a_file_are_those_of_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(FILE)
    answers = []
    for place, rules in enumerate((RULES["rules"], {"file": "rules.toml"})):
        ends = {"alerts": {"format": "json", "path": f"{place}.json"}, "sink": None}
        run(load(prepared(tmp_path, changes={"rules": rules, **ends})))
        answers.append(told(tmp_path / f"{place}.json"))
    assert answers[0] == answers[1]
    assert len(answers[0]) > 10


@pytest.mark.parametrize(
    ("changes", "text", "said"),
    [
        ({}, SECOND, "p.toml:LINE: rules.file: rules.toml, line 7: cannot read 'count(\"1h\") >='"),
        ({}, FILE + FILE, "rules.toml, line 11: there is a rule 'busy' in line 2 already"),
        ({}, "[[rule]]\nname = 3", "rules.file: rules.toml, line 1: a rule has name, when"),
        ({}, "# nothing", "rules.file: there are no rules in"),
        ({}, FILE.replace("count", "cuont"), "rules.toml, line 2: in 'cuont(\"1h\") >= 4'"),
        ({}, FILE.replace('"1h"', '"2d"'), "rules.toml, line 2: 2d is longer than longest="),
        ({}, FILE.replace("amount >", "amont >"), "line 7: there is no column 'amont'"),
        ({"mode": "batch"}, FILE.replace("amount >", "amont >"), "line 7: there is no column"),
        ({"mode": "batch"}, FILE.replace("count", "cuont"), "rules.toml, line 2: in 'cuont"),
        ({"rules.file": "none.toml"}, FILE, "none.toml cannot be read: No such file"),
        ({"rules.file": None}, FILE, "rules: give one of file, table; there is none of them"),
        ({"rules.reread": "5s"}, FILE, "rules.reread: a file is looked at before every batch"),
        ({"rules": {"table": "t"}, "mode": "batch"}, FILE, "rules.table: rules from a table are"),
        ({"alerts.longest": None}, FILE, 'for so long rows are kept: longest = "1d"'),
        ({"alerts.checkpoint": None}, FILE, "alerts: a stream needs a folder for its state"),
        ({"alerts.format": "csv"}, FILE, "alerts.format: an event has a map of values"),
        ({"alerts": None}, FILE, "rules: [alerts] is missing: say where what rules tell goes"),
        (
            {
                "rules": [
                    {"name": "a", "when": 'count("1h") > 1'},
                    {"name": "b", "when": "amont > 1"},
                ]
            },
            FILE,
            "rules[1]: there is no column 'amont'",
        ),
        (
            {"features.windows": [{"at_most": 3, "of": {"aggregate": "Count"}}]},
            FILE,
            "a policy may keep rows for ever",
        ),
    ],
)
def test_mistakes_have_their_lines(
    tmp_path: Path, capsys: Any, changes: dict[str, Any], text: str, said: str
) -> None:
    (tmp_path / "days").mkdir()
    (tmp_path / "rules.toml").write_text(text)
    batch = changes.get("mode") == "batch"
    ends: dict[str, Any] = {}
    if batch:
        ends = {"source": {"format": "csv", "path": "payments.csv"}, "sink": None, "alerts": ALERTS}
    path = prepared(tmp_path, changes=copy.deepcopy({**STREAM, **ends, **changes}))
    code, _, errors = windrow(capsys, "run", path, "--check")
    lines = path.read_text().splitlines()
    place = next((n for n, line in enumerate(lines, 1) if line.startswith('"file"')), 0)
    assert (code, said.replace("LINE", str(place)) in errors) == (2, True), errors
    assert "p.toml:" in errors


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"features.windows": [{"at_most": 3}]},
            'windows[0]: of what? { at_most = 100, of = { aggregate = "Sum"',
        ),
        (
            {"features.windows": [{"at_most": 3, "of": {"aggregate": "Mean", "column": "amount"}}]},
            "windows[0]: at_most(): Mean('amount') does not grow with the window",
        ),
        (
            {"features.windows": [{"at_most": 3, "of": {"aggregate": "Sum", "column": "amont"}}]},
            "windows[0].of.column: there is no column 'amont'; did you mean 'amount'?",
        ),
        (
            {"features.windows": [{"at_most": 3, "of": {"aggregate": "Count"}, "closed": "left"}]},
            "windows[0]: closed is not for at_most, which has of and and",
        ),
        (
            {"features.windows": [{"useful": {"aggregate": "Sum", "column": "amount"}}]},
            "windows[0]: useful(): Sum('amount') does not say which rows cannot matter",
        ),
        (
            {"features.windows": [{"useful": {"aggregate": "Max", "column": "amont"}}]},
            "windows[0].useful.column: there is no column 'amont'; did you mean 'amount'?",
        ),
        (
            {"features.windows": [{"policy": "windrow_none:f"}]},
            'windows[0]: of what? { policy = "my_module:too_old"',
        ),
        (
            {"features.windows": [{"policy": "windrow_none:f", "of": {"aggregate": "Count"}}]},
            "windows[0].policy: there is no module 'windrow_none' beside this file, nor installed",
        ),
        (
            {"features.windows": [{"policy": "windrow:rolls", "of": {"aggregate": "Count"}}]},
            "windows[0].policy: module 'windrow' has no 'rolls'",
        ),
        (
            {"features.windows": [{"policy": "windrow:__name__", "of": {"aggregate": "Count"}}]},
            "windows[0]: policy() takes a function of two answers, not 'windrow'",
        ),
        (
            {"features.windows": [{"at_most": 3, "of": [{"aggregate": "Count"}] * 2}]},
            "windows[0]: several aggregates are for a policy; at_most is about one",
        ),
        (
            {"features.aggregates": [{"aggregate": "ApproxCount"}]},
            "aggregates[0]: ApproxCount does not take these options",
        ),
        (
            {"features.aggregates": [{"aggregate": "ApproxCount", "epsilon": 0.1}]},
            "aggregates[0]: window '1h': ApproxCount(maximum=1, epsilon=Fraction(1, 10)",
        ),
    ],
)
def test_mistakes_in_windows_and_counters(
    tmp_path: Path, capsys: Any, changes: dict[str, Any], said: str
) -> None:
    code, _, errors = windrow(capsys, "run", prepared(tmp_path, changes=changes), "--check")
    assert (code, said in errors) == (2, True), errors


def test_rules_on_the_screen() -> None:
    event = {"batch": 3, "rows": 1200, "seconds": 0.5, "rules": 4, "rejected_rules": 1, "events": 7}
    assert rules_line(event) == (
        "rules, batch 3: 1,200 rows in 0.5 s, 4 rules and 1 rejected, 7 events"
    )
    assert "rejected" not in rules_line({**event, "rejected_rules": 0})


# --- on a stream ----------------------------------------------------------------------------------


def put(path: Path, text: str, age: float) -> None:
    """A file that has been there for a while."""
    path.write_text(text)
    moment = datetime.now().timestamp() - age
    os.utime(path, (moment, moment))


@pytest.fixture
def spark_elsewhere() -> Iterator[Any]:
    """A session in another zone than a pipeline's, which is UTC."""
    spark, name = local_session(), "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, "Asia/Tokyo")
    yield spark
    spark.conf.set(name, before)


def test_rules_on_a_stream(tmp_path: Path, spark_elsewhere: Any) -> None:
    """Events are those of plain rules in process; the file that was changed is in force next."""
    spark = spark_elsewhere
    start = datetime(2024, 3, 1)
    rows = [  # no ties: in process, rows of one time come one after the other
        {**row, "at": str(start + timedelta(minutes=7 * place))}
        for place, row in enumerate(payments(300))
    ]
    (tmp_path / "days").mkdir()
    write_csv(tmp_path / "days" / "0.csv", rows[:200])
    put(tmp_path / "rules.toml", FILE, 90)
    pipeline = load(prepared(tmp_path, changes=copy.deepcopy(STREAM)))
    text = explain(pipeline)
    assert "Spark stream by user, in 2 buckets" in text
    assert "2 rules in" in text
    assert "rules.toml, read again when it changes" in text
    made = run(pipeline)
    first = told(tmp_path / "alerts")
    seen = [e["frontier"] for e in made.events if e["event"] == "rules" and e["frontier"]]
    frontier = datetime.fromisoformat(seen[-1]).replace(tzinfo=None)
    rules = wr.Rules(
        [(r["name"], r["when"], r.get("until")) for r in RULES["rules"]],
        key="user",
        time="at",
        features={"amount_mean_1d": (wr.Mean("amount"), "1d")},
    )
    given = [
        {**row, "at": datetime.fromisoformat(str(row["at"]))}
        for row in rows[:200]
        if datetime.fromisoformat(str(row["at"])) < frontier
    ]
    changes = rules.insert_many(given) + rules.advance(frontier - timedelta(microseconds=1))
    wanted = [("started" if c.started else "stopped", c.rule, c.key, c.at) for c in changes]
    found = [
        (t["event"], t["rule"], t["user"], datetime.fromisoformat(t["at"][:19])) for t in first
    ]
    assert sorted(found) == sorted(wanted)
    assert len(wanted) > 10
    assert made.alerts == len(first)
    assert made.rows == pq.read_table(tmp_path / "answers").num_rows
    assert len({t["version"] for t in first}) == 1
    assert all("amount_mean_1d" in t["values"] for t in first if t["rule"] == "high")

    put(tmp_path / "rules.toml", SECOND, 60)
    write_csv(tmp_path / "days" / "1.csv", rows[200:])
    pipeline.sink = None  # the file has a mistake by now: of that the stream itself tells
    made = run(pipeline)
    second = [t for t in told(tmp_path / "alerts") if t not in first]
    assert made.rows is None
    assert made.alerts == len(second)
    assert {t["version"] for t in second}.isdisjoint({t["version"] for t in first})
    (rejected,) = [t for t in second if t["event"] == "rejected"]
    assert rejected["rule"] == "broken"
    assert rejected["message"].startswith("line 7: cannot read")
    assert {t["rule"] for t in second if t["event"] == "started"} >= {"some"}
    gone = [t for t in second if t["rule"] == "high"]
    assert all(t["event"] == "stopped" and t["message"] for t in gone)

    rows_of = [("busy", 'count("1h") >= 4', 'count("1h") < 2'), ("odd", "amont > 1", None)]
    table = spark.createDataFrame(rows_of, "name string, when string, until string")
    table.write.parquet(str(tmp_path / "table"))
    spark.sql(f"CREATE TABLE windrow_rules USING parquet LOCATION '{tmp_path}/table'")
    try:
        pipeline.rules_from = RulesFrom(table="windrow_rules", reread="5s")
        run(pipeline)
    finally:
        spark.sql("DROP TABLE windrow_rules")
    third = [t for t in told(tmp_path / "alerts") if t not in first and t not in second]
    assert {t["version"][:6] for t in third} == {"table "}
    assert [t["rule"] for t in third if t["event"] == "rejected"] == ["odd"]
    assert {(t["rule"], t["event"]) for t in third} >= {("some", "stopped")}
