"""Mistakes that a new user makes: each gives one clear message that says what to do."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import windrow as wr
from tests.pipelines import payments, prepared, windrow, write_csv
from tests.spark_session import local_session
from windrow.errors import WindrowError
from windrow.spark.said import said

BAD, FAILED, DONE = 2, 1, 0


@dataclass(frozen=True)
class Mistake:
    """What is changed in a good file, and what must be said, at which key."""

    name: str
    changes: dict[str, Any]
    says: str
    words: tuple[str, ...] = ("--check",)
    code: int = BAD
    spark: bool = False
    data: list[dict[str, Any]] | None = None
    environment: dict[str, str | None] = field(default_factory=dict)


def aggregates(**one: Any) -> dict[str, Any]:
    return {"features.aggregates": [one]}


def with_value(column: str, value: Any, place: int = 200) -> list[dict[str, Any]]:
    rows = payments(max(400, place + 10))
    rows[place][column] = value
    return rows


def epochs(factor: int) -> list[dict[str, Any]]:
    rows = payments()
    for place, row in enumerate(rows):
        row["at"] = (1_700_000_000 + 60 * place) * factor
    return rows


STREAM = {
    "engine": "spark",
    "mode": "stream-available-now",
    "features.lateness": "1 minute",
    "sink.path": "out",
    "sink.checkpoint": "checkpoint",
    "spark": {"buckets": 2},
}
KAFKA = {
    **STREAM,
    "source": {
        "format": "kafka",
        "value": "json",
        "options": {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "payments"},
    },
    "columns": {"user": "string", "at": "timestamp", "amount": "double", "payment": "long"},
}
MISTAKES = [
    Mistake(
        "wrong column",
        aggregates(aggregate="Mean", column="amout"),
        r"p.toml:\d+: features.aggregates\[0\].column: there is no column 'amout'; "
        r"did you mean 'amount'\?",
    ),
    Mistake(
        "wrong type",
        aggregates(aggregate="Mean", column="note"),
        r"aggregates\[0\]: column 'note' has type string, which cannot be added. "
        r'Say note = "double" under \[columns\], or use Count',
    ),
    Mistake("a type of another language", {"columns.amount": "float64"}, r"write 'double'"),
    Mistake("a column that is not there", {"columns.amoun": "double"}, r"did you mean 'amount'"),
    Mistake(
        "missing Java",
        {"engine": "spark"},
        r"Java was not found, which Spark needs: pip install 'windrow\[java\]' brings one along, "
        r"or install Java 17 or newer .*engine = \"columns\"",
        words=(),
        environment={"PATH": "/nowhere", "JAVA_HOME": None},
    ),
    Mistake(
        "JAVA_HOME that leads nowhere",
        {"engine": "spark"},
        r"JAVA_HOME is /nowhere, but .*set JAVA_HOME to Java 17 or newer",
        words=(),
        environment={"JAVA_HOME": "/nowhere"},
    ),
    Mistake(
        "window '7 dayz'",
        {"features.windows": ["1h", "7 dayz"]},
        r"features.windows\[1\]: cannot read '7 dayz' .*Did you mean '7 day'\?",
    ),
    Mistake(
        "months have no length",
        {"features.windows": ["1 month"]},
        r"Months and years have no fixed length: say how many days",
    ),
    Mistake(
        "duplicate names of answers",
        {"features.aggregates": [{"aggregate": "Count"}, {"aggregate": "Count"}]},
        r"aggregates\[1\]: its answers would be called count_….*alias = ",
    ),
    Mistake(
        "the same window twice",
        {"features.windows": ["1h", "60m", "1h"]},
        r"windows\[2\]: a second window is called '1h': give one a name",
    ),
    Mistake(
        "an answer that hides a column",
        aggregates(aggregate="Count", alias="x"),
        r"the source has a column 'x_1h' already.*alias",
        data=[{**row, "x_1h": 1} for row in payments()],
    ),
    Mistake("an unknown key", {"features.keey": "user"}, r"did you mean 'key'\?"),
    Mistake(
        "an unknown aggregate",
        aggregates(aggregate="mean", column="amount"),
        r"did you mean 'Mean'",
    ),
    Mistake(
        "an unknown option",
        aggregates(aggregate="Quantile", column="amount", phy=0.9),
        r"did you mean 'phi'\?",
    ),
    *(
        Mistake(f"{word}, a word of others", aggregates(aggregate=word, column="amount"), says)
        for word, says in (("Avg", "'Mean'"), ("nunique", "'Distinct'"), ("P95", "'Quantile'"))
    ),
    Mistake(
        "a text for a list of columns",
        aggregates(aggregate="Mean", columns="amount"),
        r"aggregates\[0\].columns: 'amount' is a text; it must be a list.*\n1 mistake",
    ),
    Mistake(
        "a window of rows as a text",
        {"features.windows": ["100 rows"]},
        r"So many rows are rows\(100\), in a file \{ rows = 100 \}",
    ),
    Mistake(
        "another separator",
        {"source.options": {"sep": ";"}},
        r"options.sep: there is one column, 'payment,user.*sep = ','\n1 mistake",
    ),
    Mistake(
        "an option of another library",
        {"source.options": {"separator": ";"}},
        r"source.options.separator: not known in process \(known: header, sep, ",
    ),
    Mistake("no file fits", {"source.path": "*.parquet"}, r"no files are here: .*/\*.parquet"),
    Mistake(
        "an address in process",
        {"source.path": "s3://bucket/payments.csv"},
        r"""source.path: engine = "columns" reads files of this machine; for s3://bucket/""",
    ),
    Mistake("no column for Mean", aggregates(aggregate="Mean"), r"Mean needs a column"),
    Mistake(
        "no such module",
        aggregates(aggregate="nowhere:Own", column="amount"),
        r"there is no module 'nowhere' beside this file, nor installed",
    ),
    Mistake(
        "no such class",
        aggregates(aggregate="windrow:Maxx", column="amount"),
        r"module 'windrow' has no 'Maxx'; did you mean 'Max'\?",
    ),
    Mistake("no sink", {"sink": None}, r"\[sink\] is missing: say where rows go"),
    Mistake("no windows", {"features.windows": None}, r"features: windows is missing"),
    Mistake("no time", {"features.time": None}, r"about time: say which column, features.time"),
    Mistake(
        "unreachable Kafka",
        KAFKA,
        r"kafka.bootstrap.servers: Kafka does not answer: 127.0.0.1:1: .*Is it running",
        words=(),
    ),
    Mistake(
        "a sink below a file",
        {"sink.path": "payments.csv/out"},
        r"sink.path: .*payments.csv is a file, not a folder",
    ),
    Mistake("the sink is the source", {"sink.path": "payments.csv"}, r"this is the source"),
    Mistake(
        "the sink is there",
        {"sink.path": "there"},
        r'there is there already: mode = "overwrite" replaces it',
    ),
    Mistake(
        "no such file",
        {"source.path": "payment.csv"},
        r"there is no .*payment.csv; did you mean 'payments.csv'\?",
    ),
    Mistake(
        "no rows",
        {"source.path": "no_rows.csv"},
        r"warning: source.path: there are columns but no rows",
        code=DONE,
    ),
    Mistake(
        "an empty file", {"source.path": "empty.csv"}, r"empty.csv is empty: there is not even"
    ),
    Mistake(
        "an all-null column",
        {"columns": None},
        r"warning: .*column 'amount' has no value in the first 400 rows",
        code=DONE,
        data=[{**row, "amount": None} for row in payments()],
    ),
    Mistake(
        "seconds taken for milliseconds",
        {"columns.at": "timestamp[ms]"},
        r"times lie between 1970-01-20 and 1970-01-20: does the column count seconds\? "
        r'Then say "timestamp\[s\]"',
        code=DONE,
        data=epochs(1),
    ),
    Mistake(
        "milliseconds taken for seconds",
        {"columns.at": "timestamp[s]"},
        r'does the column count milliseconds\? Then say "timestamp\[ms\]"',
        code=DONE,
        data=epochs(1000),
    ),
    Mistake(
        "whole numbers as times, windows with a unit",
        {},
        r'column \'at\' holds whole numbers.*at = "timestamp\[s\]" .*or give the window as',
        data=epochs(1),
    ),
    Mistake(
        "times that are texts",
        {},
        r"features.time: column 'at' is read as text.*at = \"timestamp\"",
        data=[{**row, "at": "Monday"} for row in payments()],
    ),
    Mistake(
        "a time is missing",
        {},
        r"features.time: column 'at' has no time in 1 of the first 400 rows: drop or fill",
        data=with_value("at", None),
    ),
    Mistake(
        "NA among numbers",
        {"columns": None},
        r'some rows hold \'NA\'. If that means missing, say source.options.nullValue = "NA"',
        data=with_value("amount", "NA"),
    ),
    Mistake(
        "a text among numbers",
        {},
        r"amount: .*payments.csv, row \d+: 'abc' in column 'amount' cannot be read as double",
        data=with_value("amount", "abc"),
    ),
    Mistake(
        "a secret in the file",
        {"source.options": {"password": "hunter2"}},
        r'source.options.password: this looks like a secret.*write "\$\{PASSWORD\}"',
    ),
    Mistake(
        "a variable that is not set",
        {"source.path": "${WINDROW_NOT_SET}/x.csv"},
        r"the environment variable WINDROW_NOT_SET is not set: export WINDROW_NOT_SET=…",
    ),
    Mistake(
        "rows of Spark have no order",
        {"engine": "spark", "features.tie": None, "features.windows": [{"rows": 10}]},
        r"windows\[0\]: window '10rows' counts rows, which needs a total order.*tie",
    ),
    Mistake(
        "a stream without lateness",
        {**STREAM, "features.lateness": None, "source.path": "days"},
        r'features: a stream needs lateness.*lateness = "10 minutes"',
    ),
    Mistake(
        "a sink that holds the source",
        {"sink.path": ".", "sink.mode": "overwrite"},
        r"sink.path: \S*payments.csv is in this folder, and would be removed with what is there",
    ),
    Mistake(
        "a sink that holds the source of Spark",
        {"engine": "spark", "sink.path": ".", "sink.mode": "overwrite"},
        r"sink.path: \S*payments.csv is in this folder, and would be removed with what is there",
    ),
    Mistake(
        "a source by another way",
        {"sink.path": "there/../payments.csv", "sink.mode": "overwrite"},
        r"sink.path: this is the source: it would be overwritten",
    ),
    Mistake(
        "answers among the rows",
        {"source.path": "days", "sink.path": "days/answers"},
        r"sink.path: this is in the source's folder: the next run would read it as rows",
    ),
    Mistake(
        "answers and alerts in one place",
        {
            "rules": [{"name": "busy", "when": 'count("5m") > 3'}],
            "sink.path": "out",
            "alerts": {"format": "parquet", "path": "there/../out"},
        },
        r"alerts.path: this is sink.path as well: name another",
    ),
    Mistake(
        "answers in the folder of alerts",
        {
            "rules": [{"name": "busy", "when": 'count("5m") > 3'}],
            "sink.path": "out/answers",
            "alerts": {"format": "parquet", "path": "out", "mode": "overwrite"},
        },
        r"alerts.path: \S*out/answers is in this folder: name another",
    ),
    Mistake(
        "a checkpoint for two",
        {
            **STREAM,
            "source.path": "days",
            "rules": [{"name": "busy", "when": 'count("5m") > 3'}],
            "alerts": {
                "format": "parquet",
                "path": "alerts",
                "checkpoint": "checkpoint",
                "longest": "1d",
            },
        },
        r"alerts.checkpoint: this is sink.checkpoint as well: name another",
    ),
    Mistake(
        "a report over the answers, by the command line",
        {"sink": {"format": "csv", "path": "out.csv"}},
        r"out.csv is where answers go: name another path with --report",
        words=("--report", "{folder}/out.csv"),
    ),
    Mistake(
        "a report over the answers",
        {"sink": {"format": "csv", "path": "out.csv"}, "report": {"path": "out.csv"}},
        r"report.path: this is sink.path as well: name another",
    ),
    Mistake(
        "a sink elsewhere, in this process",
        {"sink.path": "s3://bucket/out"},
        r'sink.path: engine = "columns" writes files of this machine; for s3://bucket/out say',
    ),
    Mistake(
        "a packed sink",
        {"sink": {"format": "csv", "path": "out.csv.gz"}},
        r"sink.path: files are written unpacked here: name it out.csv",
    ),
    Mistake(
        "a sink with the ending of another format",
        {"sink.path": "out.csv"},
        r"sink.path: out.csv is not what a file of format parquet is called: name it out.parquet",
    ),
    Mistake(
        "a misspelt option of a sink",
        {"sink": {"format": "csv", "path": "out", "options": {"headr": False}}},
        r"sink.options.headr: not known in process; did you mean 'header'",
    ),
    Mistake(
        "an option of a sink that has no such value",
        {"sink.options": {"compression": "best"}},
        r"sink: an option of parquet is wrong: Unsupported compression: best",
    ),
    Mistake(
        "an encoding that Spark has to be told to know",
        {"engine": "spark", "source.options": {"encoding": "windows-1252"}},
        r"encoding: Spark knows utf-8, .*, and windows-1252 with settings = "
        r'\{ "spark.sql.legacy.javaCharsets" = true \} under \[spark\]',
    ),
    Mistake(
        "lists in CSV",
        {
            **aggregates(aggregate="Collect", column="amount"),
            "sink": {"format": "csv", "path": "out"},
        },
        r"sink: column 'amount_collect_1h' is list<item: double>, for which csv has no form: take "
        "parquet or json",
    ),
    Mistake(
        "a report over the source",
        {"report": {"path": "payments.csv"}},
        r"report.path: \S*payments.csv is there already, and is no report: name another path",
    ),
    Mistake(
        "a stream without a checkpoint",
        {**STREAM, "sink.checkpoint": None, "source.path": "days"},
        r"sink: a stream needs a folder for its state: checkpoint = ",
    ),
    Mistake(
        "a stream in this process",
        {**STREAM, "engine": "columns", "source.path": "days"},
        r'mode: engine = "columns" runs batches: streams need engine = "spark"',
    ),
    Mistake(
        "a stream that looks ahead",
        {**STREAM, "features.windows": [{"time": "1h", "after": "5m"}], "source.path": "days"},
        r"windows\[0\]: window '1h_after_5m' looks ahead, at rows that have not come yet",
    ),
    Mistake(
        "a rule that cannot be read",
        {
            "rules": [{"name": "busy", "when": 'cuont("5m") > 3'}],
            "alerts": {"format": "json", "path": "alerts.json"},
        },
        r"rules\[0\]: .*cuont",
    ),
    Mistake(
        "rows that are late",
        {**STREAM, "source.path": "days", "source.options": {"maxFilesPerTrigger": 1}},
        r"\d+ late rows left out: .*Raise it, or keep them with late = \"is_late\"",
        words=(),
        code=DONE,
        spark=True,
    ),
    Mistake(
        "a stream of one file",
        STREAM,
        r"source.path: a stream reads a folder, whose new files are its new rows: name the folder",
    ),
    Mistake(
        "an aggregate of one's own that fails",
        {"engine": "spark", **aggregates(aggregate="windrow_picky:Picky", column="amount")},
        r"windrow: ValueError: no negative amounts: -5.0\n",
        words=(),
        code=FAILED,
        spark=True,
        data=with_value("amount", -5.0),
    ),
    Mistake(
        "a format that Spark does not have",
        {"engine": "spark", "source": {"format": "excel", "path": "payments.csv"}},
        r"excel.*[Nn]ame the Maven package of the format",
        words=(),
        code=FAILED,
        spark=True,
    ),
    Mistake(
        "a text among numbers, in a file that only Spark can read",
        {"engine": "spark", "source.options": {"comment": "#"}},
        r"[Ii]s the type under \[columns\] right\?",
        words=(),
        code=FAILED,
        spark=True,
        data=with_value("amount", "abc"),
    ),
]
PICKY = """
import windrow as wr

class Picky(wr.Aggregate):
    identity = 0.0
    commutative = True

    def lift(self, x):
        if x < 0:
            raise ValueError(f"no negative amounts: {x}")
        return x

    def combine(self, a, b):
        return a + b
"""


def folder_with_data(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Files of all sorts, and days of which the first one comes last."""
    (folder / "there").mkdir()
    (folder / "empty.csv").write_text("")
    (folder / "no_rows.csv").write_text("payment,user,at,amount,note\n")
    (folder / "windrow_picky.py").write_text(PICKY)
    write_csv(folder / "payments.csv", rows)
    (folder / "days").mkdir()
    for place, part in enumerate((rows[200:300], rows[300:], rows[:200])):
        path = folder / "days" / f"{place}.csv"
        write_csv(path, part)
        os.utime(path, (1000 + place, 1000 + place))


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_mistake(mistake: Mistake, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    if mistake.spark:
        local_session()
    for name, value in mistake.environment.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    folder_with_data(tmp_path, mistake.data or payments())
    path = prepared(tmp_path, changes=mistake.changes)
    words = [word.format(folder=tmp_path) for word in mistake.words]
    code, out, errors = windrow(capsys, "run", path, *words)
    assert re.search(mistake.says, errors, re.DOTALL), errors
    assert code == mistake.code, errors
    assert "Traceback" not in errors + out
    told = re.findall(r"^\S+p\.toml(?::\d+)?: (?!no mistakes)", errors, re.MULTILINE)
    assert mistake.words != ("--check",) or len(told) == 1, errors  # one mistake, one message


TEXTS = [
    ("format = csv", r"p.toml:2: not valid TOML: Invalid value, at 'format = csv'. Texts stand in"),
    ('format = "csv', r"p.toml:2: not valid TOML"),
    ("header = True", r"Write true, in small letters"),
    ("options = { header = False }", r"Write false, in small letters"),
    ('path = "a"\npath = "b"', r"p.toml:3: not valid TOML: .*The key is there twice"),
    ("path", r"A line is: key = value"),
    ("path = [", r"not valid TOML"),
]


@pytest.mark.parametrize(("text", "says"), TEXTS)
def test_bad_toml(text: str, says: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "p.toml"
    path.write_text(f"[source]\n{text}\n")
    code, _, errors = windrow(capsys, "run", path)
    assert code == BAD
    assert re.search(says, errors), errors


def test_files_that_are_none(tmp_path: Path, capsys: Any) -> None:
    prepared(tmp_path)
    code, _, errors = windrow(capsys, "run", tmp_path / "q.toml")
    assert (code, "There are p.toml in that folder" in errors) == (BAD, True)
    code, _, errors = windrow(capsys, "run", tmp_path)
    assert (code, "this is a folder" in errors) == (BAD, True)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    code, _, errors = windrow(capsys, "run", tmp_path / "x.toml")
    assert (code, "save it as UTF-8" in errors) == (BAD, True)
    code, _, errors = windrow(capsys, "run", tmp_path / "payments.csv")
    assert (code, "not valid TOML" in errors) == (BAD, True)
    code, _, errors = windrow(capsys, "init", tmp_path / "nothing.csv")
    assert (code, "there is no" in errors) == (FAILED, True)
    code, _, errors = windrow(capsys, "init", tmp_path / "p.toml", "-o", tmp_path / "new.toml")
    assert (code, "knows files that end with .csv" in errors) == (FAILED, True)


def test_missing_extra(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """``None`` in ``sys.modules`` is how Python itself says that a package is not there."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    code, _, errors = windrow(capsys, "run", prepared(tmp_path, engine="spark"))
    assert code == BAD
    assert "pyspark is not installed, which Spark needs: pip install 'windrow[spark]'" in errors
    monkeypatch.delitem(sys.modules, "windrow.spark", raising=False)
    with pytest.raises(
        ImportError,
        match=r"windrow.spark needs pyspark, which is not installed: pip install 'windrow\[spa",
    ):
        importlib.import_module("windrow.spark")
    code, _, errors = windrow(capsys, "run", prepared(tmp_path, engine="spark"), "--check")
    assert code == DONE  # a warning: it may run elsewhere
    assert "warning: pyspark is not installed" in errors


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that another user can look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


AS_NOBODY = """
import os, sys
from windrow.cli import main
assert main(["run", sys.argv[1], "--check"]) == 0  # and everything is loaded
os.getuid() or os.setuid(65534)  # no mode of a file stops root
sys.exit(main(["run", sys.argv[2]]))
"""


def test_no_permission(shared_folder: Path) -> None:
    good = prepared(shared_folder)
    path = shared_folder / "q.toml"
    closed = shared_folder / "closed"
    closed.mkdir(mode=0o555)
    text = good.read_text().replace("out.parquet", "closed/out.parquet")
    path.write_text(text.replace("payments.csv", "secret.csv"))
    write_csv(shared_folder / "secret.csv", payments())
    (shared_folder / "secret.csv").chmod(0o000)
    run = [sys.executable, "-c", AS_NOBODY, str(good), str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == BAD, done.stderr
    assert re.search(r"source.path: no permission to read .*secret.csv: look at", done.stderr)
    assert re.search(r"sink.path: no permission to write .*closed: choose another", done.stderr)
    assert "2 mistakes, nothing was run" in done.stderr


SPARK_SAYS = [
    (
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 "
        "failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 (TID 2) (host executor "
        "driver): org.apache.kafka.common.errors.TimeoutException: Topic payments not present in "
        "metadata after 60000 ms.\n\tat x.y\nCaused by: a.b.UnknownTopicOrPartitionException: gone",
        "Topic payments not present in metadata after 60000 ms. (gone). Create the topic, or look "
        "at its name in the options",
    ),
    (
        "[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03",
        "[PATH_NOT_FOUND] Path does not exist: file:/x. SQLSTATE: 42K03. Look at source.path",
    ),
    (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: boom\nTraceback (most recent "
        'call last):\n  File "x.py"\nwindrow.errors.Refused: a longer window: rows are gone\n',
        "a longer window: rows are gone",
    ),
    (
        'x\nTraceback (most recent call last):\n  File "x.py"\nValueError: no negative amounts\n',
        "ValueError: no negative amounts",
    ),
]


@pytest.mark.parametrize(("text", "says"), SPARK_SAYS)
def test_what_spark_says_in_a_sentence(text: str, says: str) -> None:
    assert said(RuntimeError(text)) == says


TABLE = pa.table({"k": ["a"], "t": [1], "x": ["1"], "l": [[1]]})
FRAME = pd.DataFrame({"at": pd.to_datetime(["2024-01-01", "2024-01-02"]), "x": [1.0, 2.0]})


def rolling(time: str | None = None, **options: Any) -> wr.Rolling:
    return wr.Rolling(time=time, windows=[wr.rows(2)], aggregates=[wr.Mean("x")], **options)


class NotIterable:
    """As a column of Spark: it has the method, which says that there is none."""

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("Column is not iterable")


LIBRARY = [
    (lambda: wr.Rolling(time="t", windows=["7 dayz"], aggregates=[wr.Count()]), "'7 day'"),
    (
        lambda: wr.Rolling(time="t", windows=["1h"], aggregates=["mean"]),  # type: ignore[list-item]
        r"wr.Mean|windrow.Mean",
    ),
    (
        lambda: wr.Rolling(key="kk", windows=[wr.rows(2)], aggregates=[wr.Count()])(TABLE),
        "key: there is no column 'kk'; did you mean 'k'",
    ),
    (
        lambda: wr.Rolling(key="l", windows=[wr.rows(2)], aggregates=[wr.Count()])(TABLE),
        "key column 'l' has type list<.*cannot be a key",
    ),
    (
        lambda: wr.Rolling(key="k", windows=[wr.rows(2)], aggregates=[wr.Sum("x")])(TABLE),
        "column 'x' has type string, which cannot be added. Cast it",
    ),
    (
        lambda: wr.Rolling(windows=[wr.rows(1)], aggregates={"x": "mean"}),  # type: ignore[dict-item]
        r"aggregates= is a list, and each says its column: \[windrow.Mean",
    ),
    (
        lambda: wr.Rolling(windows=[wr.rows(1)], aggregates=["price"]),  # type: ignore[list-item]
        r"write windrow.Max\('price'\)",
    ),
    (
        lambda: wr.Rolling(key="K", windows=[wr.rows(1)], aggregates=[wr.Count()])(TABLE),
        "there is no column 'K'; did you mean 'k'",
    ),
    (lambda: rolling(key=NotIterable()), "key= takes names of columns, not <.*NotIterable"),
    (lambda: rolling(tie=FRAME["x"]), "tie= takes names of columns, not 1.0"),
    (
        lambda: rolling()(pd.DataFrame({0: [1.0]})),
        "no column 'x'; the table has 0: names are texts, rename them",
    ),
    (lambda: wr.Rolling(windows=[10], aggregates=[wr.Count()]), r"time\(3600\) where times are"),  # type: ignore[list-item]
    (lambda: rolling(nan="skip"), 'nan= is "value" or "missing", not \'skip\''),
    (lambda: rolling(overflow="wrap"), 'overflow= is "error" or "null", not \'wrap\''),
    (lambda: rolling()([1]), "^a list is not a table windrow knows"),
    (
        lambda: rolling(time="at")(FRAME.set_index("at").rename_axis(None)),
        r"no column 'at', but the index .* holds times: give frame.reset_index\(names='at'\)",
    ),
    (
        lambda: rolling()(FRAME.assign(x=[1, "b"])),
        r"column 'x' \(object\) cannot be taken: Could not convert 'b'.*Convert it",
    ),
    (
        lambda: rolling()(FRAME.assign(x=[2**70, 1])),
        r"column 'x' \(object\) cannot be taken: Python int too large",
    ),
    (
        lambda: wr.Rules([("a", "count(1h) > 3")], key="k", time="t"),
        r'stand in quotes: count\("1h"\)',
    ),
    (lambda: wr.Rules([("a", "x = 3")], key="k", time="t"), "To compare, write =="),
    (lambda: wr.Rules([("a", "x => 3")], key="k", time="t"), "Write >= or <="),
    (lambda: wr.Rules([("a", "x > 3 && x < 5")], key="k", time="t"), "Write and, or"),
]


def test_names_of_other_libraries() -> None:
    for name, says in (("Avg", "Mean"), ("std", "StdDev"), ("sum", "Sum"), ("Rollin", "Rolling")):
        with pytest.raises(AttributeError, match=rf"Did you mean windrow.{says}\?"):
            getattr(wr, name)
    assert not hasattr(wr, "__wrapped__")
    assert not hasattr(wr, "EMA")  # what is near Max by its letters only


@pytest.mark.parametrize(
    ("kind", "word", "says"),
    [
        (wr.Rolling, "partition_by", "Rolling has no partition_by=; say key="),
        (wr.Rolling, "min_periods", "say min_rows="),
        (wr.Rolling, "windws", "say windows="),
        (wr.Rolling, "closed", r'a window has it, wr.time\("1h", closed="left"\)'),
        (wr.Rolling, "inplace", "no inplace=; it has windows=, aggregates=, key=, time="),
        (wr.Quantile, "q", "Quantile has no q=; say phi="),
        (wr.Mean, "alias", r'Mean has no alias=; a method has it, wr.Mean\("amount"\).alias'),
    ],
)
def test_arguments_of_other_libraries(kind: Any, word: str, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        kind(**{word: 1})


def test_names_are_listed() -> None:
    assert {"Hub", "Rules", "spark", "serving", "testing"} <= set(dir(wr))
    assert "importlib" not in dir(wr)


@pytest.mark.parametrize(("work", "says"), LIBRARY)
def test_library(work: Any, says: str) -> None:
    with pytest.raises(WindrowError, match=says):
        work()
