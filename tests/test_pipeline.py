"""Pipelines in a file: lines, schema, starter files, runs in process and on Spark, streams."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import windrow as wr
from tests.pipelines import PIPELINE, command, payments, prepared, toml, windrow, write_csv
from tests.spark_session import JAVA, SLOW, assert_same, local_session
from windrow import report
from windrow.cli.screen import Live, batch_line
from windrow.pipeline.bench import agreement
from windrow.pipeline.building import Source
from windrow.pipeline.checking import load
from windrow.pipeline.declaration import PIPELINE as DECLARED
from windrow.pipeline.declaration import json_schema
from windrow.pipeline.files import rows_of
from windrow.pipeline.kinds import checked
from windrow.pipeline.lines import lines_of
from windrow.pipeline.peers import PEERS, ROW, part_for
from windrow.pipeline.reading import BadPipeline, read
from windrow.pipeline.running import run

ROOT = Path(__file__).parent.parent


# --- where keys stand ----------------------------------------------------------------------------

NAMES = st.text("ab.é\"' -_#[]=\\", min_size=1, max_size=4)
SCALARS = st.one_of(
    st.integers(-9, 9), st.booleans(), st.text("ab#\"'[]{}=,\\ ", max_size=6), st.floats(0, 9)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


class Writer:
    """Writes TOML in several styles, and knows on which line each thing came to stand."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.text = draw, ""
        self.lines: dict[Any, int] = {}

    def line(self) -> int:
        return self.text.count("\n") + 1

    def gap(self, breaks: bool) -> None:
        if breaks and self.draw(st.booleans()):
            self.text += self.draw(st.sampled_from(["\n", " # [x] = {\n", "\n\n"]))

    def key(self, name: str) -> None:
        bare = re.fullmatch("[A-Za-z0-9_-]+", name) and self.draw(st.booleans())
        self.text += name if bare else json.dumps(name)

    def value(self, path: Any, value: Any, breaks: bool) -> None:
        if isinstance(value, dict):
            self.text += "{"
            for place, (name, held) in enumerate(value.items()):
                self.text += ", " if place else ""
                self.lines[(*path, name)] = self.line()
                self.key(name)
                self.text += " = "
                self.value((*path, name), held, False)
            self.text += "}"
        elif isinstance(value, list):
            self.text += "["
            for place, held in enumerate(value):
                self.gap(breaks)
                self.lines[(*path, place)] = self.line()
                self.value((*path, place), held, breaks)
                self.gap(breaks)
                self.text += "," if place < len(value) - 1 else ""
            self.gap(breaks)
            self.text += "]"
        elif isinstance(value, str) and "'" not in value and self.draw(st.booleans()):
            self.text += f"'''\n{value}'''" if breaks and self.draw(st.booleans()) else f"'{value}'"
        else:
            self.text += json.dumps(value)

    def table(self, path: Any, table: dict[str, Any]) -> None:
        for name, held in table.items():
            self.gap(True)
            self.lines[(*path, name)] = self.line()
            self.key(name)
            self.text += " = "
            self.value((*path, name), held, True)
            self.text += " # end\n"


@given(st.data())
def test_lines_are_where_things_were_written(data: Any) -> None:
    writer = Writer(data.draw)
    top = data.draw(st.dictionaries(NAMES, VALUES, max_size=3))
    tables = data.draw(st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES), max_size=3))
    arrays = data.draw(
        st.dictionaries(NAMES, st.lists(st.dictionaries(NAMES, VALUES), min_size=1, max_size=2))
    )
    writer.table((), top)
    expected: dict[str, Any] = dict(top)
    for name, table in tables.items():
        if name not in expected:
            expected[name] = table
            writer.lines[(name,)] = writer.line()
            writer.text += f"[{json.dumps(name)}]\n"
            writer.table((name,), table)
    for name, listed in arrays.items():
        if name not in expected:
            expected[name] = listed
            for place, table in enumerate(listed):
                writer.lines.setdefault((name,), writer.line())
                writer.lines[(name, place)] = writer.line()
                writer.text += f"[[ {json.dumps(name)} ]] # [[no]]\n"
                writer.table((name, place), table)
    assert tomllib.loads(writer.text) == expected
    found = lines_of(writer.text)
    assert {path: found.get(path) for path in writer.lines} == writer.lines


def test_dotted_keys_and_tables_in_arrays_of_tables() -> None:
    text = 'a.b . "c" = 1\n[[x.y]]\nz.w = """\n2"""\n[x.y.v]\nu = [\n{ t = 1 }]\n[[x.y]]\n'
    found = lines_of(text)
    assert found[("a", "b", "c")] == 1
    assert (found[("x", "y", 0)], found[("x", "y", 1)]) == (2, 8)
    assert found[("x", "y", 0, "z", "w")] == 3
    assert found[("x", "y", 0, "v", "u", 0, "t")] == 7


# --- the declaration -----------------------------------------------------------------------------


def test_schema_is_up_to_date() -> None:
    kept = json.loads((ROOT / "docs" / "pipeline.schema.json").read_text())
    assert kept == json_schema(), "run `make docs`"


def test_schema_and_check_have_the_same_keys() -> None:
    """Both come from one declaration; an editor must not refuse what the command takes."""

    def valid(value: Any, schema: dict[str, Any]) -> bool:
        if "anyOf" in schema:
            return any(valid(value, one) for one in schema["anyOf"])
        kinds = {"object": dict, "array": list, "string": str, "boolean": bool}
        kind = schema.get("type")
        if kind == "object" and isinstance(value, dict):
            known, other = schema["properties"], schema["additionalProperties"]
            fits = (
                valid(v, known[k]) if k in known else bool(other) and valid(v, other)
                for k, v in value.items()
            )
            one = [r["required"][0] in value for r in schema.get("oneOf", [])]
            return (
                all(fits)
                and set(schema.get("required", [])) <= set(value)
                and sum(one) == bool(one)
            )
        if kind == "array" and isinstance(value, list):
            return len(value) >= schema.get("minItems", 0) and all(
                valid(v, schema["items"]) for v in value
            )
        if kind in ("integer", "number"):
            return isinstance(value, int | float) and not isinstance(value, bool)
        plain = kind is None or isinstance(value, kinds[kind])
        plain = plain and value in schema.get("enum", [value])
        return plain and ("pattern" not in schema or bool(re.search(schema["pattern"], value)))

    changed: list[dict[str, Any]] = [
        {},
        {"mode": "bach"},
        {"features": {**PIPELINE["features"], "windows": [{"rows": 3, "within": "1d"}]}},
        {"features": {**PIPELINE["features"], "windows": [{"rows": 3, "time": "1d"}]}},
        {"features": {**PIPELINE["features"], "windows": []}},
        {"features": {**PIPELINE["features"], "tie": 3}},
        {"features": {**PIPELINE["features"], "aggregates": [{"aggregate": "a:B", "any": 1}]}},
        {"features": {**PIPELINE["features"], "aggregates": [{"aggregate": "Mena"}]}},
        {"columns": {"a": "decimal(10, 2)"}},
        {"columns": {"a": "text"}},
        {"sink": {"path": "x"}},
        {"spark": {"settings": {"a.b": True}, "buckets": 3}},
        {"unknown": 1},
    ]
    for change in changed:
        value = {**PIPELINE, **change}
        assert valid(value, json_schema()) == (not list(checked(value, DECLARED))), change


def test_all_mistakes_at_once_with_their_lines(tmp_path: Path, capsys: Any) -> None:
    write_csv(tmp_path / "payments.csv", payments())
    path = tmp_path / "p.toml"
    path.write_text(
        'engine = "colums"\n'
        "[source]\n"
        'format = "csv"\n'
        'path = "payments.csv"\n'
        "[features]\n"
        'key = "usr"\n'
        'time = "at"\n'
        'windows = ["1h",\n'
        '  "2 wks"]\n'
        "aggregates = [\n"
        '  { aggregate = "Max", column = "amount" },\n'
        '  { aggregate = "Sum", column = "nte" },\n'
        "]\n"
        "[sink]\n"
        'format = "parquet"\n'
    )
    code, _, errors = windrow(capsys, "run", path, "--check")
    lines = [int(line) for line in re.findall(r"p\.toml:(\d+):", errors)]
    assert (code, lines) == (2, [1, 6, 9, 12, 14]), errors
    code, out, _ = windrow(capsys, "run", path, "--check", "--json-log")
    told = [json.loads(line) for line in out.splitlines()]
    assert [(one["event"], one["line"]) for one in told] == [("mistake", n) for n in lines]
    with pytest.raises(BadPipeline, match="did you mean 'user'"):
        load(path)


def test_variables_and_secrets(tmp_path: Path) -> None:
    path = prepared(tmp_path, changes={"source.options": {"a": "x${A_B}y$${C}", "b": "${NO}"}})
    document = read(path, {"A_B": "hunter2"})
    assert document.data["source"]["options"]["a"] == "xhunter2y${C}"
    assert [problem.place for problem in document.mistakes] == ["source.options.b"]
    assert document.redacted("with hunter2 in it") == "with *** in it"
    assert "hunter2" not in "".join(p.message for p in document.problems)
    path = prepared(tmp_path, changes={"source.options": {"url": "jdbc:x://me:hunter2@host/db"}})
    assert "looks like a secret" in read(path, {}).mistakes[0].message
    path = prepared(tmp_path, changes={"source.options": {"ssl.keystore.location": "/a/key"}})
    assert not read(path, {}).mistakes


# --- in this process -----------------------------------------------------------------------------


def expected(folder: Path, **words: Any) -> pa.Table:
    """The same specification on the same rows, without a file."""
    rows = payments()
    table = pa.table(
        {
            "payment": [row["payment"] for row in rows],
            "user": [row["user"] for row in rows],
            "at": pa.array([row["at"] + "Z" for row in rows]).cast(pa.timestamp("us", "UTC")),
            "amount": [row["amount"] for row in rows],
            "note": [row["note"] for row in rows],
        }
    )
    words = {
        "windows": ["1h", "1d"],
        "aggregates": [wr.Mean("amount"), wr.Count()],
        **words,
    }
    return wr.Rolling(key="user", time="at", tie="payment", **words)(table)


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "folder"])
def test_run_in_process(form: str, tmp_path: Path, capsys: Any) -> None:
    target = {"folder": "out"}.get(form, f"out.{form}")
    sink = {"format": "parquet" if form == "folder" else form, "path": target, "mode": "overwrite"}
    path = prepared(tmp_path, sink=sink)
    for _ in range(2):  # overwrites
        code, _, errors = windrow(capsys, "run", path)
        assert code == 0, errors
    assert re.search(rf"400 rows in .* → {sink['format']} .*{target}", errors)
    want = expected(tmp_path)
    if sink["format"] == "parquet":
        assert pq.read_table(tmp_path / target).equals(want)
        return
    found = rows_of(Source(form, (str(tmp_path / target),)), {"at": "timestamp"})
    for field in want.schema:
        assert found[field.name].cast(field.type).equals(want[field.name]), field.name


def test_windows_and_words_of_all_kinds(tmp_path: Path) -> None:
    windows = [
        "90m",
        {"rows": 5, "ending": 1, "name": "before"},
        {"rows": 9, "within": "2h"},
        {"time": "1h", "closed": "both", "after": "10m"},
        {"session": "20m", "closed": "left"},
    ]
    aggregates = [
        {"aggregate": "Quantile", "column": "amount", "phi": 0.9, "method": "lower"},
        {"aggregate": "StdDev", "column": "amount", "ddof": 0, "alias": "spread"},
        {"aggregate": "Distinct", "columns": ["note"], "over": "before"},
        {"aggregate": "Count", "where": {"note": ["a", "b"], "payment": 7}, "over": ["90m"]},
    ]
    path = prepared(
        tmp_path,
        changes={
            "features.windows": windows,
            "features.aggregates": aggregates,
            "features.min_rows": 2,
        },
    )
    made = run(load(path), detailed=True)
    want = expected(
        tmp_path,
        windows={
            "90m": wr.time("90m"),
            "before": wr.rows(5, ending=1),
            "9rows_within_2h": wr.rows(9, within="2h"),
            "1h_after_10m_both": wr.time("1h", closed="both", after="10m"),
            "session_20m_left": wr.session("20m", closed="left"),
        },
        aggregates=[
            wr.Quantile("amount", 0.9, method="lower"),
            wr.StdDev("amount", ddof=0).alias("spread"),
            wr.Distinct("note").over("before"),
            wr.Count().where("note", "a", "b").where("payment", 7).over("90m"),
        ],
        min_rows=2,
    )
    assert pq.read_table(tmp_path / "out.parquet").equals(want)
    assert made.sample.num_rows == 20
    assert "columns engine" in made.plan
    assert [e["event"] for e in made.events] == ["started", *["step"] * 4, "ended"]


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        ({"over": "1 h"}, r"over: no window is called '1 h'; did you mean '1h'"),
        ({"over": []}, r"over: .*at least 1"),
        ({"where": "note"}, r"'note' has type string, and is neither true nor false"),
        ({"where": "amout"}, r"where: there is no column 'amout'; did you mean 'amount'"),
        ({"where": {"note": 1}}, r"which is never 1"),
        ({"where": {"note": []}}, r"where"),
    ],
)
def test_mistakes_about_windows_and_rows_of_an_aggregate(
    aggregate: dict[str, Any], message: str, tmp_path: Path, capsys: Any
) -> None:
    aggregates = [{"aggregate": "Mean", "column": "amount"}, {"aggregate": "Count", **aggregate}]
    path = prepared(tmp_path, changes={"features.aggregates": aggregates})
    code, _, errors = windrow(capsys, "run", path, "--check")
    assert code == 2
    assert re.search(message, errors), errors


def test_a_policy_has_no_windows_of_its_own(tmp_path: Path, capsys: Any) -> None:
    for word in ({"over": "1h"}, {"where": {"note": "a"}}):
        about = {"aggregate": "Sum", "column": "amount", **word}
        path = prepared(tmp_path, changes={"features.windows": [{"at_most": 100, "of": about}]})
        code, _, errors = windrow(capsys, "run", path, "--check")
        assert (code, "windows[0]" in errors) == (2, True), errors


def test_ticks_bounds_and_no_time(tmp_path: Path) -> None:
    path = prepared(tmp_path, changes={"features.every": "1d"})
    run(load(path))
    assert pq.read_table(tmp_path / "out.parquet").column_names[:2] == ["user", "at"]
    rows = [{**r, "low": r["at"], "high": r["at"]} for r in payments()]
    write_csv(tmp_path / "payments.csv", rows)
    path = prepared(
        tmp_path,
        changes={"features.windows": [{"bounds": ["low", "high"]}], "sink.mode": "overwrite"},
    )
    run(load(path))
    assert "count_low_to_high" in pq.read_table(tmp_path / "out.parquet").column_names


def test_sample_and_console(tmp_path: Path, capsys: Any) -> None:
    path = prepared(tmp_path, changes={"sink": {"format": "console"}})
    code, out, _ = windrow(capsys, "run", path, "--sample", "3")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["payment", "0", "1", "2"]
    code, out, _ = windrow(capsys, "run", path)
    assert (code, len(out.splitlines())) == (0, 21)
    code, out, _ = windrow(capsys, "explain", path)
    assert (code, out.splitlines()[0]) == (
        0,
        "400 rows by user (5 keys), sorted here; columns engine",
    )


@pytest.mark.parametrize("sink", [("out.csv", "error"), ("out", "overwrite"), ("out", "append")])
def test_what_was_stopped_leaves_nothing(
    sink: tuple[str, str], tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    def half(_: Any, path: Path, *__: Any) -> None:
        if isinstance(path, Path):  # and not the trial before the run
            path.write_text("half")
            handler = signal.getsignal(signal.SIGTERM)
            assert callable(handler)
            handler(signal.SIGTERM, None)

    monkeypatch.setattr("pyarrow.csv.write_csv", half)
    changes = {"sink": {"format": "csv", "path": sink[0], "mode": sink[1]}}
    code, _, errors = windrow(capsys, "run", prepared(tmp_path, changes=changes))
    assert (code, "what was not finished was not written" in errors) == (130, True)
    assert {p.name for p in tmp_path.rglob("*")} <= {"p.toml", "payments.csv", "out"}


def test_json_has_no_number_for_nan(tmp_path: Path, capsys: Any) -> None:
    rows = payments(3)
    for row, amount in zip(rows, ("1.5", "NaN", "inf"), strict=True):
        row["amount"] = amount
    write_csv(tmp_path / "payments.csv", rows)
    path = prepared(tmp_path, changes={"sink": {"format": "json", "path": "out.json"}})
    assert windrow(capsys, "run", path)[0] == 0
    lines = (tmp_path / "out.json").read_text().splitlines()
    code, out, _ = windrow(capsys, "run", path, "--sample", "3", "--json-log")
    assert code == 2  # the sink is there already
    path = prepared(tmp_path, changes={"sink": {"format": "console"}})
    code, out, _ = windrow(capsys, "run", path, "--sample", "3", "--json-log")
    for text in (*lines, *out.splitlines()):
        json.loads(text, parse_constant=pytest.fail)  # called for NaN and Infinity
    assert [json.loads(text)["amount"] for text in lines] == [1.5, "NaN", "Infinity"]


RULES: dict[str, Any] = {
    "rules": [
        {"name": "busy", "when": 'count("1h") >= 4', "until": 'count("1h") < 2'},
        {"name": "high", "when": "amount > 2 * amount_mean_1d and amount > 50"},
    ],
    "alerts": {"format": "json", "path": "alerts.json"},
}


def test_rules_tell_what_the_library_tells(tmp_path: Path, capsys: Any) -> None:
    path = prepared(tmp_path, changes=RULES)
    code, _, errors = windrow(capsys, "run", path)
    assert code == 0, errors
    told = [json.loads(line) for line in (tmp_path / "alerts.json").read_text().splitlines()]
    features = {"amount_mean_1d": (wr.Mean("amount"), "1d")}
    rules = wr.Rules(
        [(r["name"], r["when"], r.get("until")) for r in RULES["rules"]],
        key="user",
        time="at",
        features=features,
    )
    rows = expected(tmp_path).to_pylist()
    changes = rules.insert_many(rows) + rules.advance(rows[-1]["at"])
    assert len(told) > 10
    assert [(t["rule"], t["user"], t["started"], t["at"]) for t in told] == [
        (c.rule, c.key, c.started, c.at.isoformat()) for c in changes
    ]
    assert f"{len(told)} changes of rules" in errors


def test_empty_input_runs(tmp_path: Path, capsys: Any) -> None:
    path = prepared(tmp_path)
    (tmp_path / "payments.csv").write_text("payment,user,at,amount,note\n")
    code, _, errors = windrow(capsys, "run", path)
    assert code == 0, errors
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


# --- starter files -------------------------------------------------------------------------------


def starters(folder: Path) -> dict[str, Path]:
    """The same rows in many guises."""
    rows = payments()
    found = {name: folder / f"{name}.csv" for name in ("plain", "seconds", "millis", "missing")}
    write_csv(found["plain"], rows)
    write_csv(found["seconds"], [{**r, "at": 1_700_000_000 + i} for i, r in enumerate(rows)])
    write_csv(found["millis"], [{**r, "at": 1_700_000_000_000 + i} for i, r in enumerate(rows)])
    write_csv(
        found["missing"], [{**r, "amount": "NA" if i % 7 else 1.5} for i, r in enumerate(rows)]
    )
    found["odd names"] = folder / "odd.csv"
    write_csv(found["odd names"], [{"user id": r["user"], "the.x": r["amount"]} for r in rows])
    found["semicolons"] = folder / "semi.csv"
    found["semicolons"].write_text(found["plain"].read_text().replace(",", ";"))
    found["json"] = folder / "rows.json"
    found["json"].write_text("\n".join(json.dumps(row) for row in rows))
    found["parquet"] = folder / "rows.parquet"
    pq.write_table(expected(folder).select(["user", "at", "amount"]), found["parquet"])
    return found


def test_starter_files_pass_and_run(tmp_path: Path, capsys: Any) -> None:
    for name, data in starters(tmp_path).items():
        target = tmp_path / f"{name}.toml"
        code, out, errors = windrow(capsys, "init", data, "-o", target)
        assert code == 0, (name, errors)
        code, _, errors = windrow(capsys, "run", target, "--check")
        assert (code, "warning" in errors) == (0, False), (name, errors, target.read_text())
        code, _, errors = windrow(capsys, "run", target)
        assert (code, errors.count("400 rows")) == (0, 1), (name, errors)
        if "odd" not in name:
            assert "guessed time 'at', key 'user', numbers 'amount'" in out, (name, out)
    assert 'at = "timestamp[s]"' in (tmp_path / "seconds.toml").read_text()
    assert 'at = "timestamp[ms]"' in (tmp_path / "millis.toml").read_text()
    assert 'nullValue = "NA"' in (tmp_path / "missing.toml").read_text()
    code, _, errors = windrow(capsys, "init", tmp_path / "plain.csv", "-o", tmp_path / "plain.toml")
    assert (code, "--force overwrites it" in errors) == (1, True)


# --- peers ---------------------------------------------------------------------------------------


def test_peers_answer_the_same_questions() -> None:
    """Without ties, every answer of every peer is windrow's: what is timed is the same work."""
    rows = expected(ROOT)
    seconds = pa.array([1_600_000_000 + (i * 37) % 401 for i in range(400)])
    times = seconds.cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))
    table = rows.set_column(2, "at", times).append_column(ROW, pa.array(range(400)))
    spec = wr.Rolling(
        key="user",
        time="at",
        windows=["20s", wr.time("90s", closed="left"), wr.time("90s", closed="both"), wr.rows(7)],
        aggregates=[
            wr.Sum("amount"),
            wr.Mean("amount"),
            wr.Min("amount"),
            wr.Max("amount"),
            wr.Count(),
            wr.StdDev("amount"),
            wr.Variance("amount", ddof=0),
            wr.Median("amount"),
            wr.Quantile("amount", 0.9),
            wr.Distinct("note"),
        ],
    )
    for peer in PEERS:
        part = part_for(peer, spec)
        assert part is not None
        assert len(part.outputs) >= 36
        want, ready = part(table), peer.prepare(part, table)
        answer = peer.answer(part, ready)
        for name, _, _ in part.outputs:
            said = agreement({name: want[name]}, {name: peer.columns(answer, name)})
            assert said.startswith("yes"), (peer.name, name, said)


def test_bench_prints_and_compares(tmp_path: Path, capsys: Any) -> None:
    path = prepared(tmp_path)
    words = ("bench", path, "--no-spark", "--repeat", "1")
    code, out, _ = windrow(capsys, *words)
    assert code == 0
    assert re.search(r"^windrow columns +4 .* 1\.0  –$", out, re.MULTILINE)
    assert re.search(r"^DuckDB +4 .*yes, within 1e-9$", out, re.MULTILINE)
    code, out, _ = windrow(capsys, *words, "--json-log", "--data", tmp_path / "payments.csv")
    result = json.loads(out.splitlines()[-1])
    assert (result["event"], result["rows"]) == ("bench", 400)
    code, _, errors = windrow(capsys, *words, "--data", tmp_path / "none.csv")
    assert (code, "none.csv, which --data names" in errors) == (1, True)
    assert agreement({"x": pa.array([1.0, 2.0])}, {"x": pa.array([1.0, 3.0])}) == (
        "differs in 50.0% of the rows"
    )


# --- on Spark ------------------------------------------------------------------------------------

OWN = """
import windrow as wr

class Squares(wr.Aggregate):
    identity = 0.0
    commutative = True

    def lift(self, x):
        return x * x * self.factor

    def combine(self, a, b):
        return a + b

    def __init__(self, *columns, factor=1.0):
        super().__init__(*columns)
        self.factor = factor

def many(total, oldest):
    return total - oldest >= 4
"""


def test_spark_gives_the_answers_of_this_process(tmp_path: Path, capsys: Any) -> None:
    local_session()
    (tmp_path / "windrow_own_module.py").write_text(OWN)
    aggregates = [
        {"aggregate": "Mean", "column": "amount"},
        {"aggregate": "Last", "column": "note"},
        {"aggregate": "windrow_own_module:Squares", "column": "amount", "factor": 2.0},
    ]
    changes = {
        **RULES,
        "features.windows": [
            *("1h", {"rows": 10}),
            {"policy": "windrow_own_module:many", "of": {"aggregate": "Count"}},
        ],
        "features.aggregates": aggregates,
        "rules": [RULES["rules"][0]],
    }
    rows = payments()
    odd = ['"x ""y"", z"', '""', None, '"a;b"']
    write_csv(tmp_path / "payments.csv", [{**r, "note": odd[i % 4]} for i, r in enumerate(rows)])
    answers = {}
    for engine in ("columns", "spark"):
        sink = {"format": "parquet", "path": engine}
        alerts = {"format": "json", "path": f"{engine}_alerts"}
        ends = {"engine": engine, "sink": sink, "alerts": alerts}
        path = prepared(tmp_path, changes={**changes, **ends})
        code, _, errors = windrow(capsys, "run", path, "--report", tmp_path / f"{engine}.html")
        assert code == 0, errors
        told = sorted((tmp_path / alerts["path"]).glob("*.json"))
        changed = [json.loads(line) for file in told for line in file.read_text().splitlines()]
        changed = sorted((c["rule"], c["user"], c["at"][:19], c["started"]) for c in changed)
        answers[engine] = (pq.read_table(tmp_path / engine), changed)
    assert set(answers["columns"][0]["note"].to_pylist()) == {'x "y", z', None, "a;b"}
    ours, theirs = answers["columns"][0], answers["spark"][0].sort_by("payment")
    assert ours.schema.names == theirs.schema.names
    for name in ours.column_names:
        assert ours[name].to_pylist() == theirs[name].cast(ours[name].type).to_pylist(), name
    assert answers["columns"][1] == answers["spark"][1]
    assert len(answers["spark"][1]) > 5
    assert drawn(tmp_path / "columns.html") == drawn(tmp_path / "spark.html")


def drawn(file: Path) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """The lines of a report, by key and answer."""
    text = file.read_text()
    assert "could not be looked at" not in text
    (held,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    (made,) = json.loads(held)["runs"]
    found = {}
    for key in made["keys"]:
        for name, line in key["lines"].items():
            times = np.cumsum(line["t"]) * made["step"] + line["s"]
            found[key["label"], name] = sorted(zip(times.tolist(), line["v"], strict=True))
    assert len(found) == 5 * 6  # users, and answers that are numbers
    return found


STREAMED = """
mode = "stream"
[source]
format = "csv"
path = "days"
options = { maxFilesPerTrigger = 1 }
[columns]
payment = "long"
user = "string"
at = "timestamp"
amount = "double"
note = "string"
[features]
key = "user"
time = "at"
windows = ["1h", "1d"]
lateness = "1 minute"
aggregates = [{ aggregate = "Mean", column = "amount" }, { aggregate = "Count" }]
[sink]
format = "parquet"
path = "answers"
checkpoint = "checkpoint"
[spark]
master = "local[2]"
buckets = 2
[spark.settings]
"spark.ui.enabled" = false
"spark.driver.memory" = "1g"
"spark.driver.extraJavaOptions" = "JAVA"
""".replace("JAVA", JAVA)


def late_of(made: Any) -> int:
    """Rows that had no answer when the stream ended."""
    return int(made.batches[-1]["waiting_rows"])


def test_ctrl_c_stops_a_stream_and_it_goes_on(tmp_path: Path) -> None:
    """A terminal sends SIGINT to the whole group, Spark's processes included."""
    rows = payments()
    (tmp_path / "days").mkdir()
    for place in range(4):
        path = tmp_path / "days" / f"{place}.csv"
        write_csv(path, rows[place * 100 : (place + 1) * 100])
        os.utime(path, (1000 + place, 1000 + place))
    pipeline = tmp_path / "p.toml"
    pipeline.write_text(STREAMED)
    run_it = [sys.executable, "-m", "windrow", "run", str(pipeline), "--json-log"]
    process = subprocess.Popen(
        run_it, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "batch" and events[-1]["answered_rows"]:
                os.killpg(process.pid, signal.SIGINT)
                break
        out, errors = process.communicate(timeout=90)
        events += [json.loads(line) for line in out.splitlines()]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert events[-1]["event"] == "ended"
    assert events[-1]["interrupted"] is True
    assert {"lag_seconds", "late_rows", "rows_per_second", "state_bytes"} <= set(
        next(event for event in events if event["event"] == "batch")
    )
    if not SLOW:
        return
    local_session()  # and on, until all is read
    text = STREAMED.replace('"stream"', '"stream-available-now"')
    pipeline.write_text(text)
    made = run(load(pipeline), detailed=True)
    assert not made.interrupted
    assert made.sample.num_rows == 20
    assert made.plan.startswith("Spark stream by user, in 2 buckets")
    assert made.section.answers.rows == made.section.data.rows == 400 - late_of(made)
    assert report.write(tmp_path / "stream.html", made) < 2_000_000
    assert made.batches[-1]["waiting_rows"] <= 2
    found = pq.read_table(tmp_path / "answers")
    times = found["at"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    found = found.set_column(found.column_names.index("at"), "at", times)
    want = expected(tmp_path)
    late = made.batches[-1]["waiting_rows"]
    assert found.num_rows == 400 - late
    spec = wr.Rolling(
        key="user", time="at", windows=["1h", "1d"], aggregates=[wr.Mean("amount"), wr.Count()]
    )
    kept = want.slice(0, 400 - late) if late else want
    assert_same(found, kept, spec, by="payment")


# --- the command ---------------------------------------------------------------------------------


def test_command_in_a_process_of_its_own(tmp_path: Path) -> None:
    prepared(tmp_path)
    started = time.perf_counter()
    done = command("run", "p.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "p: csv payments.csv → parquet out.parquet" in done.stderr
    assert time.perf_counter() - started < 60
    done = command("run", "p.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "p.toml:15: sink.path: " in done.stderr
    done = command("nonsense")
    assert done.returncode == 2
    assert "invalid choice: 'nonsense'" in done.stderr


BATCH = {
    "event": "batch",
    "batch": 7,
    "rows": 12_345,
    "seconds": 0.5,
    "rows_per_second": 24_690.0,
    "answered_rows": 12_000,
    "waiting_rows": 345,
    "late_rows": 2,
    "rows_without_time": 1,
    "lag_seconds": 90.0,
    "kept_rows": 99_000,
    "state_bytes": 1_500_000,
}


def test_a_batch_on_the_screen() -> None:
    assert batch_line(BATCH) == (
        "batch 7: 12,345 rows in 0.5 s (24,690 rows/s), 12,000 answered, 345 waiting, 3 late, "
        "lag 90 s, state 99,000 rows 1.5 MB"
    )
    console = Console(file=io.StringIO(), width=100)
    screen = Live()
    screen.errors, screen.out, screen.live.console = console, console, console
    for event in ({"event": "step", "step": "run"}, BATCH, {**BATCH, "batch": 8}):
        screen.event(event)
    screen.close()
    screen.say("features.windows[0] is no markup")
    screen.table(expected(ROOT).slice(0, 9), "nine rows")
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"batch +rows +seconds +rows/s +answered +waiting +late +lag", shown)
    assert re.search(r"total +24,690 +24,000 +6", shown)
    assert "features.windows[0] is no markup" in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert shown.count("payment") == 2  # what does not fit follows below, with the first column


def test_command_loads_nothing_heavy_for_help() -> None:
    probe = "import sys, windrow.cli; print(sorted({m.partition('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not {"numba", "pyspark", "pandas", "pyarrow", "rich"} & set(eval(done.stdout))


def test_helper_writes_toml() -> None:
    assert tomllib.loads(f"x = {toml(PIPELINE)}")["x"] == PIPELINE


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, True),
        ({"coerce_timestamps": "us"}, False),
        ({"use_deprecated_int96_timestamps": True}, False),
    ],
)
def test_nanoseconds_that_spark_does_not_read(
    options: dict[str, Any], told: bool, tmp_path: Path, capsys: Any
) -> None:
    at = pa.array([1_700_000_000_000_000_000], pa.timestamp("ns"))
    table = pa.table({"user": ["a"], "at": at, "amount": [1.0], "payment": [1]})
    pq.write_table(table, tmp_path / "rows.parquet", **options)
    source = {"format": "parquet", "path": "rows.parquet"}
    changes = {"engine": "spark", "source": source, "columns": None}
    errors = windrow(capsys, "check", prepared(tmp_path, changes=changes))[2]
    assert ("column 'at' is in nanoseconds, which Spark does not read" in errors) == told, errors
