"""Reports: what is kept of a table, what is found in it, and what a file may hold."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.pipelines import payments, prepared, windrow, write_csv
from tests.reports import HOSTILE, batches, readings, specification
from tests.spark_session import SLOW, frame, local_session
from windrow import report
from windrow.looks.axis import Axis
from windrow.looks.points import Columns, corners, line, numbers
from windrow.looks.spread import BARS, histograms, spread
from windrow.looks.tables import answer_facts, data_facts
from windrow.report.markup import embedded
from windrow.windows import Recalc

MOST = 2_000_000


# --- lines ---------------------------------------------------------------------------------------

VALUES = st.one_of(st.integers(-5, 5).map(float), st.sampled_from([math.nan, math.inf]))


@given(st.lists(st.tuples(st.integers(0, 40), VALUES), min_size=1), st.integers(1, 6))
def test_corners_are_those_of_m4(rows: list[tuple[int, float]], count: int) -> None:
    """Every column has the first, smallest, largest and last of its finite rows, and no other."""
    rows = sorted(rows, key=lambda row: row[0])
    times, values = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    columns = Columns(rows[0][0], rows[-1][0], count)
    drawn = corners(times, values, columns)
    assert np.all(np.diff(drawn) > 0)
    for place in range(count):
        here = np.flatnonzero(columns.of(times) == place)
        kept = [int(i) for i in drawn if i in here]
        finite = [int(i) for i in here if math.isfinite(values[i])]
        if not finite:
            assert len(kept) == min(1, len(here))
            continue
        oracle = Recalc(wr.M4())
        for i in finite:
            oracle.insert((float(values[i]), int(times[i])))
        wanted = oracle.query()
        assert len(kept) <= 4
        assert (values[kept[0]], values[kept[-1]]) == (wanted["first"], wanted["last"])
        assert {wanted["min"], wanted["max"]} <= {values[i] for i in kept}
        assert min(values[kept]) == wanted["min"]
        assert max(values[kept]) == wanted["max"]


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(0, 60), st.integers(1, 4))
def test_corners_of_corners_are_the_corners(values: list[float], cut: int, count: int) -> None:
    """Parts of a table may be reduced apart."""
    times, held = np.arange(len(values)), np.array(values)
    columns = Columns(0, len(values) - 1, count)
    whole = corners(times, held, columns)
    parts = [np.arange(min(cut, len(values))), np.arange(min(cut, len(values)), len(values))]
    kept = np.concatenate([part[corners(times[part], held[part], columns)] for part in parts])
    again = kept[corners(times[kept], held[kept], columns)]
    assert [(t, numbers(held[[t]])) for t in again] == [(t, numbers(held[[t]])) for t in whole]


def test_few_rows_are_all_drawn() -> None:
    times, values = np.arange(40), np.arange(40) % 7 * 1.0
    assert line(times, values, Columns(0, 39, 10)).whole
    assert len(line(times, values, Columns(0, 39, 9)).times) <= 36
    assert numbers(np.array([1.0, 2.5, math.nan, -math.inf, 1 / 3])) == [
        1,
        2.5,
        None,
        None,
        0.333333333,
    ]


def test_histograms_share_a_range_where_they_can() -> None:
    values = np.append(np.arange(1000.0), 1e9)
    large, none = histograms([spread(values, 1001, 0), spread(np.array([]), 5, 5)])
    assert none is None
    assert large is not None
    assert large.high < 2000  # one row of a thousand does not flatten the others
    assert (sum(large.heights), len(large.heights)) == (1001, BARS)
    alike = histograms([spread(np.arange(100.0) + shift, 100, 0) for shift in (0, 50)])
    assert len({(one.low, one.high) for one in alike if one}) == 1
    unlike = histograms([spread(np.arange(100.0) * by, 100, 0) for by in (1, 50)])
    assert len({(one.low, one.high) for one in unlike if one}) == 2
    (whole,) = histograms([spread(np.array([1.0, 1.0, 3.0]), 3, 0)])
    assert whole is not None
    assert whole.heights == [2, 0, 1]
    huge = spread(np.array([-1.7e308, 1.7e308]), 2, 0)
    assert huge.mean == 0
    assert sum(histograms([huge])[0].heights) == 2  # type: ignore[union-attr]


# --- findings ------------------------------------------------------------------------------------


def found(section: Any) -> dict[str, Any]:
    return {finding.check: finding for finding in section.findings.found}


def test_findings_are_what_was_put_in() -> None:
    """Each oddity is counted by hand."""
    minutes = [0, 1, 1, 2, 200, 150, 300]
    table = pa.table(
        {
            "k": ["a", "a", "a", "b", "a", "a", None],
            "t": pa.array([60_000_000 * m for m in minutes], pa.timestamp("us")),
            "x": [1.0, None, math.nan, math.inf, 2.0, 3.0, None],
            "same": [5] * 7,
        }
    )
    spec = wr.Rolling(
        key="k", time="t", windows=["10m", "1h"], aggregates=[wr.Sum("x"), wr.Max("same")]
    )
    seen = report.section(spec, spec(table))
    by = [(f.check, f.what.partition(" ")[0], f.count, f.of) for f in seen.findings.found]
    assert sorted(by) == [
        ("constant", "same", 7, 7),
        ("disordered", "Rows", 1, 7),
        ("equal", "Rows", 1, 7),
        ("infinities", "x", 1, 7),
        ("nans", "x", 1, 7),
        ("nulls", "k", 1, 7),
        ("nulls", "x", 2, 7),
        ("pauses", "Pauses", 2, 7),
    ]
    told = found(seen)
    assert told["disordered"].example == "key a, 1970-01-01 02:30, row 6"
    assert told["infinities"].example == "key b, 1970-01-01 00:02, row 4"
    assert told["pauses"].what == "Pauses longer than a window: 10m 2, 1h 1"
    assert told["pauses"].example.startswith("longest 2.48 h, up to key a, 1970-01-01 02:30")
    assert 'nan = "missing"' in told["nans"].meaning
    assert seen.findings.clean == ["an empty input"]  # seven rows are too few to speak of silence


def test_silence_and_batches() -> None:
    times = np.arange(5000)
    times[2500:] += 3000
    table = pa.table({"t": times, "x": np.arange(5000.0)})
    spec = wr.Rolling(time="t", windows=[wr.time(10)], aggregates=[wr.Sum("x")])
    seen = report.section(spec, spec(table), batches=batches())
    told = found(seen)
    step = 7999 / 120
    assert told["silence"].count == math.floor(5500 / step) - math.ceil(2500 / step)
    assert (told["late"].count, told["late"].example) == (3, "batch 4 has 3")
    assert told["waiting"].count == 10
    assert "NaN" in seen.findings.clean


@given(st.integers(0, 10_000))
def test_facts_against_plain_loops(seed: int) -> None:
    generator = np.random.default_rng(seed)
    size = int(generator.integers(1, 60))
    keys, times = generator.integers(0, 4, size).tolist(), generator.integers(0, 30, size).tolist()
    table = pa.table({"k": keys, "t": times, "x": np.arange(float(size))})
    spec = wr.Rolling(key="k", time="t", windows=[wr.time(3)], aggregates=[wr.Sum("x")])
    made = data_facts(spec, table, True)
    assert made.order is not None
    equal = disordered = pauses = 0
    for key in set(keys):
        mine = [t for k, t in zip(keys, times, strict=True) if k == key]
        disordered += sum(t < max(mine[: i + 1]) for i, t in enumerate(mine))
        steps = np.diff(sorted(mine))
        equal += int((steps == 0).sum())
        pauses += int((steps > 3).sum())
    assert (made.order.equal, made.order.disordered) == (equal, disordered)
    assert made.order.pauses == {"3": pauses}
    assert sum(made.stretches) == size


# --- on Spark ------------------------------------------------------------------------------------
def test_large_spark_tables_are_looked_at_like_small_ones(tmp_path: Path) -> None:
    """Jobs with small results find what is found with all rows at hand, and draw the same lines."""
    spark = local_session()
    table = readings(keys=("a", "b`.c", None, "d e"), zone="UTC")
    spec = specification()
    answers = spec(table)
    df = frame(spark, answers, 4)
    few = report.Limits(cells=0, points=10_900, keys=3, sample=1000)
    seen = report.section(spec, df, limits=few)
    made, data = seen.answers, seen.data
    wanted = answer_facts(spec, answers, few)
    plain = data_facts(spec, answers, False)
    assert made is not None
    assert data is not None
    assert (data.rows, data.first, data.last) == (plain.rows, plain.first, plain.last)
    assert data.stretches == plain.stretches
    assert data.order is not None
    assert plain.order is not None
    assert (data.order.equal, data.order.pauses) == (plain.order.equal, plain.order.pauses)
    assert data.order.longest == plain.order.longest
    for ours, theirs in zip(data.columns, plain.columns, strict=True):
        assert (ours.name, ours.nulls, ours.nans, ours.infinities, ours.constant) == (
            theirs.name,
            theirs.nulls,
            theirs.nans,
            theirs.infinities,
            theirs.constant,
        )
        assert set(ours.examples) == set(theirs.examples)
    assert [k.label for k in made.chosen] == ["a", "b`.c", "null"]
    assert made.chosen == wanted.chosen
    assert made.keys_exact is False
    assert set(made.lines) == set(wanted.lines)
    for place, ours_ in made.lines.items():
        theirs_ = wanted.lines[place]
        assert ours_.columns == theirs_.columns is not None
        assert ours_.times.tolist() == theirs_.times.tolist(), place
        assert numbers(ours_.values) == numbers(theirs_.values)
    for name, ours__ in made.spreads.items():
        theirs__ = wanted.spreads[name]
        assert (ours__.missing, ours__.odd) == (theirs__.missing, theirs__.odd)
        assert ours__.sampled
        assert [ours__.quantiles[i] for i in (0, -1)] == [theirs__.quantiles[i] for i in (0, -1)]
        assert 800 < len(ours__.sample) + ours__.odd <= 1200
    assert report.write(tmp_path / "r.html", seen) < MOST
    if SLOW:
        asked = report.section(spec, df, keys=["d e"], limits=few).answers
        assert asked is not None
        assert [key.label for key in asked.chosen] == ["d e"]


# --- the file ------------------------------------------------------------------------------------


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    spec = specification()
    seen = report.section(spec, spec(readings()), name=HOSTILE[1], about={"Source": HOSTILE[0]})
    path = tmp_path / "r.html"
    report.write(path, seen)
    text = path.read_text()
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "\u2028" not in text.partition('id="data">')[2].partition("</script>")[0]
    held = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert held is not None
    keys = json.loads(held[1])["runs"][0]["keys"]
    assert [key["label"] for key in keys] == list(HOSTILE)
    assert embedded("<>&\u2028") == '"\\u003c\\u003e\\u0026\\u2028"'


CASES: dict[str, Any] = {
    "empty": lambda: readings().slice(0, 0),
    "one row": lambda: readings().slice(0, 1),
    "one key": lambda: readings(200, keys=("a",)),
    "all null": lambda: readings(50).set_column(2, "value", pa.nulls(50, pa.float64())),
    "many keys": lambda: readings(120_000, keys=[f"key {n}" for n in range(100_000)]),
    "long names": lambda: readings(300, keys=["x" * 10_000, "y" * 10_000]),
}


@pytest.mark.parametrize("case", CASES)
def test_odd_tables_are_reported(case: str, tmp_path: Path) -> None:
    spec, table = specification(), CASES[case]()
    seen = report.section(spec, spec(table))
    assert report.write(tmp_path / "r.html", seen) < MOST
    text = (tmp_path / "r.html").read_text()
    said = {
        "empty": "There are no rows, so there is nothing to draw",
        "one row": "Every row is drawn",
        "one key": "There is one key: every row is in the same windows",
        "all null": "value is null in every row",
        "many keys": "8 of ",
        "long names": "…",
    }[case]
    assert said in text


def test_size_is_bounded(tmp_path: Path) -> None:
    """Many answers, many sections: fewer points, never a larger file."""
    windows = [f"{n}m" for n in range(1, 36)]
    spec = specification(windows=windows)
    rows = spec(readings(5000))
    seen = report.section(spec, rows)
    assert seen.answers is not None
    assert "answers are drawn, to keep this file small" in seen.answers.left_out[0]
    assert report.write(tmp_path / "r.html", *[seen] * 3) < MOST
    plain = specification()
    long = report.section(plain, plain(readings(300)), batches=batches(9000))
    assert report.write(tmp_path / "r.html", long) < 400_000


def test_ticks_rows_and_own_keys() -> None:
    table = readings()
    ticks = specification(every="1h")
    seen = report.section(ticks, ticks(table), table)
    assert seen.data is not None
    assert seen.data.rows == 3000
    assert seen.answers is not None
    assert seen.answers.rows != 3000
    assert report.section(ticks, ticks(table)).findings.unchecked[0].startswith("the input")
    rows = wr.Rolling(windows=[wr.rows(3)], aggregates=[wr.Max("value"), wr.Last("unit")])
    seen = report.section(rows, rows(table))
    assert seen.answers is not None
    assert seen.answers.axis == Axis("row")
    assert seen.answers.left_out == ["unit_last_3rows: not numbers, so they are not drawn"]
    spec = specification(key=["sensor", "unit"])
    seen = report.section(spec, spec(table), keys=[(HOSTILE[4], "°C")])
    assert seen.answers is not None
    assert [key.label for key in seen.answers.chosen] == [f"{HOSTILE[4]} · °C"]


# --- the command ---------------------------------------------------------------------------------


def test_run_writes_a_report(tmp_path: Path, capsys: Any) -> None:
    path = prepared(tmp_path, changes={"report": {"title": "Payments", "keys": ["user3"]}})
    target = tmp_path / "out.html"
    code, _, errors = windrow(capsys, "run", path, "--report", target)
    assert code == 0, errors
    assert "report → " in errors
    text = target.read_text()
    assert "<h1>Payments</h1>" in text
    assert "columns engine" in text
    assert "[features]" in text  # the specification as it was written
    assert ">user3 (" in text
    assert ">user1 (" not in text
    sink = {"format": "csv", "path": "out2.csv"}
    path = prepared(tmp_path, changes={"report": {"path": "r.html"}, "sink": sink})
    code, out, _ = windrow(capsys, "run", path, "--json-log")
    assert code == 0
    told = json.loads(out.splitlines()[-1])
    assert told["event"] == "report"
    assert told["bytes"] == (tmp_path / "r.html").stat().st_size


def test_a_report_that_cannot_be_written_is_found_before_the_run(
    tmp_path: Path, capsys: Any
) -> None:
    path = prepared(tmp_path)
    (tmp_path / "file").write_text("")
    for target, said in (
        (tmp_path, "is a folder: name a file in it"),
        (tmp_path / "no" / "r.html", "there is no folder"),
        (tmp_path / "file" / "r.html", "is a file, not a folder"),
    ):
        code, _, errors = windrow(capsys, "run", path, "--report", target)
        assert (code, said in errors, "nothing was run" in errors) == (2, True, True), errors
    assert not (tmp_path / "out.parquet").exists()
    code, _, errors = windrow(capsys, "run", path, "--check", "--report", tmp_path / "r.html")
    assert code == 2
    assert "leave --check" in errors
    path = prepared(tmp_path, changes={"report": {"path": "no/r.html"}})
    code, _, errors = windrow(capsys, "run", path, "--check")
    assert code == 2
    assert re.search(r"p\.toml:\d+: report\.path: there is no folder", errors)


def test_secrets_are_not_reported(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("HIDDEN_WORD", "hunter2")
    path = prepared(tmp_path, changes={"source.options": {"nullValue": "${HIDDEN_WORD}"}})
    code, _, errors = windrow(capsys, "run", path, "--report", tmp_path / "r.html")
    assert code == 0, errors
    text = (tmp_path / "r.html").read_text()
    assert "${HIDDEN_WORD}" in text
    assert "hunter2" not in text


def test_reports_of_odd_files(tmp_path: Path, capsys: Any) -> None:
    rows = payments(40)
    odd = {"none": [], "one": rows[:1], "null": [{**row, "amount": None} for row in rows]}
    for name, held in odd.items():
        folder = tmp_path / name
        folder.mkdir()
        write_csv(folder / "payments.csv", held or rows)
        if not held:
            (folder / "payments.csv").write_text("payment,user,at,amount,note\n")
        code, _, errors = windrow(capsys, "run", prepared(folder), "--report", folder / "r.html")
        assert code == 0, errors
    assert "There are no rows" in (tmp_path / "none" / "r.html").read_text()
    assert "amount is null in every row" in (tmp_path / "null" / "r.html").read_text()
