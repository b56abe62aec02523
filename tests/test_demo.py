"""The demo: its data, its own aggregate, its pictures, and that its comparison can fail."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from tests.spark_session import SLOW, spark  # noqa: F401
from windrow.cli import main
from windrow.demo import running
from windrow.demo.comparing import compared, recomputed
from windrow.demo.flights import Arrivals, carrier_names, drop_files, flights
from windrow.demo.pictures import HEIGHTS, bar, months, stretches, ticks
from windrow.demo.screen import Timeline
from windrow.demo.spell import ALLOWED, WorstSpell
from windrow.testing import check_laws


@pytest.fixture(scope="module")
def year() -> pa.Table:
    return flights()


@pytest.fixture(scope="module")
def february(year: pa.Table) -> pa.Table:
    """The first weeks of February, with the storm, numbered anew."""
    times = ticks(year, "at")
    edges = np.array(["2013-02-04", "2013-02-11"], "datetime64[us]").astype(np.int64)
    part = year.take(pa.array(np.flatnonzero((times >= edges[0]) & (times < edges[1]))))
    return part.set_column(0, "flight", pa.array(np.arange(part.num_rows)))


def test_the_flights_are_those_of_the_package(year: pa.Table, tmp_path: Path) -> None:
    assert year.num_rows == 336_776
    assert sorted(year["origin"].unique().to_pylist()) == ["EWR", "JFK", "LGA"]
    assert year["late"].null_count == int(np.sum(year["cancelled"].to_numpy())) == 8255
    assert set(year["carrier"].unique().to_pylist()) == set(carrier_names())
    first = year.slice(0, 1).to_pylist()[0]
    assert (first["plane"], first["late"]) == ("N14228", 2.0)
    assert first["at"].isoformat() == "2013-01-01T10:15:00+00:00"
    arrivals = drop_files(year, tmp_path, 5)
    assert arrivals.disordered > 100_000
    assert 1200 < arrivals.furthest < 24 * 60  # within the lateness that is allowed
    import pyarrow.parquet as pq

    parts = [pq.read_table(path) for path in sorted(arrivals.folder.iterdir())]
    dropped = pa.concat_tables(parts)
    assert dropped["is_end"].to_pylist().count(True) == 1
    assert dropped["is_end"][-1].as_py()
    rows = dropped.slice(0, year.num_rows).drop_columns("is_end").sort_by("flight")
    assert rows.equals(year.sort_by("flight"))


def test_the_worst_spell_keeps_the_laws_and_is_the_worst() -> None:
    generator = np.random.default_rng(2)
    delays = generator.integers(-20, 90, 24).astype(float).tolist()
    check_laws(WorstSpell(), delays, rounds=200)
    from windrow.windows import Recalc

    window = Recalc(WorstSpell())
    for count, late in enumerate(delays, 1):
        window.insert(late)
        over = [value - ALLOWED for value in delays[:count]]
        every = [sum(over[i:j]) for i in range(count) for j in range(i + 1, count + 1)]
        assert window.query() == max(0.0, *every)


def flipped(column: pa.ChunkedArray, row: int) -> pa.Array:
    """The same numbers, but for the last bit of one."""
    values = column.to_numpy().copy()
    values.view(np.int64)[row] ^= 1
    return pa.array(values)


def test_one_bit_is_found() -> None:
    table = pa.table(
        {
            "flight": [2, 0, 1],
            "x": [0.0, 1.5, 2.5],
            "y": pa.array([None, 2.0, float("nan")]),
            "n": ["a", None, "b"],
        }
    )
    same = compared(table.take(pa.array([1, 0, 2])), table, "flight")
    assert (same.values, same.different) == (12, 0)

    def differing(found: pa.Table) -> int:
        return compared(found, table, "flight").different

    for row in range(3):
        assert differing(table.set_column(1, "x", flipped(table["x"], row))) == 1
    assert differing(table.set_column(1, "x", pa.array([-0.0, 1.5, 2.5]))) == 1
    assert differing(table.set_column(2, "y", pa.array([0.0, 2.0, float("nan")]))) == 1
    assert differing(table.set_column(2, "y", pa.array([None, 2.0, None]))) == 1
    assert differing(table.set_column(3, "n", pa.array(["a", "", "b"]))) == 1
    assert differing(table.set_column(1, "x", pa.array([0, 1, 2]))) == 3
    assert differing(table.drop_columns("x")) == 3
    assert differing(table.slice(1)) == 12
    assert differing(pa.concat_tables([table, table.slice(0, 1)])) == 12


def test_the_oracle_finds_a_wrong_answer(february: pa.Table) -> None:
    spec = running.features("origin")
    answers = spec(february)
    some = [0, 700, february.num_rows - 1]
    right = recomputed(spec, answers, some)
    assert (right.values, right.different) == (3 * len(spec.outputs), 0)
    place = answers.column_names.index("late_mean_7d")
    wrong = answers.set_column(place, "late_mean_7d", flipped(answers["late_mean_7d"], 700))
    assert recomputed(spec, wrong, some).different == 1


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_tables_show_the_storm(
    width: int,
    february: pa.Table,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    screen = Timeline()
    made = [
        running.Made(key, called, running.features(key)) for key, called in running.KEYS.items()
    ]
    for one in made:
        one.answers = dict.fromkeys(("columns", "table", "stream"), one.spec(february))
    assert running._compare(made)
    running._show(screen, made, True)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert "Sat 9 Feb" in out if width >= 80 else "Newark" in out
    assert "NOT the same" not in out
    if width >= 100:
        assert "…" not in out, out
        assert out.count("Airlines") == 0
        assert "ExpressJet" in out


def test_pictures() -> None:
    assert len(months(52)) == 52
    assert months(30).split() == list("JFMAMJJASOND")
    noon = int(np.datetime64("2013-07-03T12:00", "us").astype(np.int64))
    parts = stretches(np.array([noon, noon, noon]), np.array([1.0, 3.0, np.nan]), 4)
    assert np.array_equal(parts, [np.nan, np.nan, 3.0, np.nan], equal_nan=True)
    assert bar(10.0, 10.0, 5).plain == 5 * HEIGHTS[-1]


def test_without_spark_or_flights_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["demo"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("windrow: the demo runs on Spark. JAVA_HOME is ")
    assert said.count("\n") == 1
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(["demo"]) == 1
    assert "pip install 'windrow[demo]'" in capsys.readouterr().err


def test_table_and_stream_give_the_same_bits(
    spark: Any,  # noqa: F811
    february: pa.Table,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(running.BUCKETS))
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    screen = Timeline()
    whole = running.features("origin")
    spec = (
        whole
        if SLOW
        else wr.Rolling(  # what takes long to compile is left to the long run
            key="origin",
            time="at",
            tie="flight",
            windows=["6h", "24h"],
            aggregates=[wr.Mean("late"), whole.aggregates[-1]],
            lateness="1 day",
        )
    )
    made = [running.Made("origin", "airport", spec)]
    running._in_process(screen, made, february)
    running._as_tables(screen, session, tmp_path, made, february)
    arrivals = drop_files(february, tmp_path, 2)
    assert isinstance(arrivals, Arrivals)
    running._as_streams(screen, session, tmp_path, made, arrivals)
    assert running._compare(made)
    for result in made[0].compared.values():
        assert result.values >= 48
    assert "0 late" in capsys.readouterr().out
    stream = made[0].answers["stream"]
    place = stream.column_names.index("spell_24h")
    changed = flipped(stream["spell_24h"], 5)
    made[0].answers["stream"] = stream.set_column(place, "spell_24h", changed)
    assert not running._compare(made)
    assert made[0].compared["stream"].different == 1


@pytest.mark.skipif(not SLOW, reason="a minute or two: the long run")
def test_the_whole_demo(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "windrow", "demo", "--report", "year.html"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr.strip()
    assert "336,776 flights" in done.stdout
    assert "Sat 9 Feb" in done.stdout
    assert done.stdout.strip().splitlines()[-2] == f"report: {tmp_path / 'year.html'}"
    assert b"<html" in (tmp_path / "year.html").read_bytes()[:1000]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tmp", "year.html"]
    left = [path.name for path in (tmp_path / "tmp").iterdir()]
    assert not [name for name in left if name.startswith(("windrow-demo", "spark"))], left
