"""``windrow init`` on files as people have them: separators, encodings, forms of times, ids."""

import gzip
import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pipelines import windrow
from windrow.pipeline.patterns import parsed

ROWS = 60
TWICE = io.BytesIO()
pq.write_table(pa.table([[1], [2]], names=["a", "a"]), TWICE)
TIMES = [datetime(2024, 3, 1, 9) + timedelta(hours=5 * i) for i in range(ROWS)]


def csv(head: str, row: Callable[[int, datetime], str], encoding: str = "utf-8") -> bytes:
    """A header, and a line for each time."""
    lines = [head] * bool(head) + [row(i, at) for i, at in enumerate(TIMES)]
    return "\n".join([*lines, ""]).encode(encoding)


def begun(folder: Path, capsys: Any, name: str, content: bytes) -> tuple[str, str, pa.Table]:
    """What is said, the pipeline, and what it answers: it must run as it is."""
    (folder / name).write_bytes(content)
    target = folder / "p.toml"
    code, out, errors = windrow(capsys, "init", folder / name, "-o", target, "--force")
    assert code == 0, errors
    code, _, errors = windrow(capsys, "run", target)
    assert code == 0, (errors, target.read_text())
    return out, target.read_text(), pq.read_table(next(folder.glob("*_features")))


def plain(i: int, at: datetime) -> str:
    return f"{i % 7:04d},{at:%Y-%m-%d %H:%M:%S},{i}.5"


def test_ids_keep_their_zeros(tmp_path: Path, capsys: Any) -> None:
    out, text, answers = begun(tmp_path, capsys, "a.csv", csv("customer,at,x", plain))
    assert "time 'at', key 'customer', numbers 'x'" in out
    assert 'customer = "string"' in text
    assert answers["customer"].to_pylist()[:3] == ["0000", "0001", "0002"]


def test_digits_that_a_float_would_lose_are_texts(tmp_path: Path, capsys: Any) -> None:
    content = csv("card,at,x", lambda i, at: f"{10**21 + i % 5},{at},{i}.5")
    answers = begun(tmp_path, capsys, "a.csv", content)[2]
    assert answers["card"][1].as_py() == str(10**21 + 1)


def test_tabs(tmp_path: Path, capsys: Any) -> None:
    content = csv("customer,at,x", plain).replace(b",", b"\t")
    out, _, answers = begun(tmp_path, capsys, "a.tsv", content)
    assert ("key 'customer'" in out, answers.num_rows) == (True, ROWS)


def test_no_header(tmp_path: Path, capsys: Any) -> None:
    out, text, answers = begun(tmp_path, capsys, "a.csv", csv("", plain))
    assert ("header = false" in text, answers.num_rows) == (True, ROWS)
    assert "time '_c1', key '_c0', numbers '_c2'" in out
    assert answers["_c0"][1].as_py() == "0001"


def test_years_are_names_of_columns(tmp_path: Path, capsys: Any) -> None:
    content = csv("user,2023,2024", lambda i, at: f"u{i % 3},{i},{i}")
    _, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert ("header" not in text, answers.num_rows) == (True, ROWS)


def test_windows_has_signs_that_iso_has_not(tmp_path: Path, capsys: Any) -> None:
    content = csv("user,at,€", lambda i, at: f"“Jörg{i % 4}”,{at},{i}.5", "cp1252")
    out, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert ('encoding = "windows-1252"' in text, "numbers '€'" in out) == (True, True)
    assert answers["user"][1].as_py() == "“Jörg1”"


@pytest.mark.parametrize(("encoding", "said"), [("latin-1", "ISO-8859-1"), ("utf-16", "UTF-16")])
def test_encodings(encoding: str, said: str, tmp_path: Path, capsys: Any) -> None:
    content = csv("Käufer,at,x", lambda i, at: f"Jörg{i % 4},{at},{i}.5", encoding)
    out, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert f'encoding = "{said}"' in text
    assert ("multiLine" in text) == (encoding == "utf-16")  # else Spark reads half characters
    assert "key 'Käufer'" in out
    assert answers["Käufer"][1].as_py() == "Jörg1"


def test_an_encoding_that_is_not_said(tmp_path: Path, capsys: Any) -> None:
    content = csv("Käufer,at,x", lambda i, at: f"Jörg{i % 4},{at},{i}.5", "latin-1")
    begun(tmp_path, capsys, "a.csv", content)
    target = tmp_path / "p.toml"
    target.write_text(target.read_text().replace('options = { encoding = "ISO-8859-1" }', ""))
    code, _, errors = windrow(capsys, "run", target, "--check")
    assert code == 2
    assert 'this is not UTF-8 text. Say how it is written, source.options.encoding = "ISO' in errors


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("%d.%m.%Y %H:%M", "dd.MM.yyyy HH:mm"),
        ("%m/%d/%Y %I:%M %p", "MM/dd/yyyy hh:mm a"),
        ("%Y/%m/%d %H:%M:%S", "yyyy/MM/dd HH:mm:ss"),
        ("%d/%b/%Y:%H:%M:%S +0000", "dd/MMM/yyyy:HH:mm:ss Z"),
        ("%d-%b-%Y %H:%M", "dd-MMM-yyyy HH:mm"),
    ],
)
def test_other_forms_of_times(form: str, pattern: str, tmp_path: Path, capsys: Any) -> None:
    content = csv("user,bestellt am,x", lambda i, at: f"u{i % 3},{at.strftime(form)},{i}.5")
    out, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert f'timestampFormat = "{pattern}"' in text
    assert "time 'bestellt am', key 'user', numbers 'x'" in out
    assert [t.replace(tzinfo=None) for t in answers["bestellt am"].to_pylist()] == TIMES


def test_one_digit_is_enough(tmp_path: Path, capsys: Any) -> None:
    content = csv("user,at,x", lambda i, at: f"u{i % 3},{at.day}.{at.month}.{at.year},{i}.5")
    _, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert 'timestampFormat = "d.M.yyyy"' in text
    assert [t.day for t in answers["at"].to_pylist()] == [t.day for t in TIMES]


def test_days_of_eight_digits(tmp_path: Path, capsys: Any) -> None:
    """Which are no numbers: between 20240131 and 20240201 lies a day, and not 70."""
    content = csv("user,trade date,x", lambda i, at: f"u{i % 3},{at:%Y%m%d},{i}.5")
    _, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert 'timestampFormat = "yyyyMMdd"' in text
    assert [t.date() for t in answers["trade date"].to_pylist()] == [t.date() for t in TIMES]


def test_years_of_two_digits(tmp_path: Path, capsys: Any) -> None:
    content = csv("user,at,x", lambda i, at: f"u{i % 3},{at.month}/{at.day}/{at:%y},{i}.5")
    _, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert 'timestampFormat = "M/d/yy"' in text
    assert [t.date() for t in answers["at"].to_pylist()] == [t.date() for t in TIMES]


def test_years_of_two_digits_are_of_this_century_as_on_spark() -> None:
    found = parsed(pa.chunked_array([["31.12.69", "29.02.72", "01.01.00"]]), "dd.MM.yy")
    assert [t.as_py().year for t in found] == [2069, 2072, 2000]
    assert (found[1].as_py().month, found[1].as_py().day) == (2, 29)


@pytest.mark.parametrize("days", [12, 28])
def test_days_that_could_be_months_are_told(days: int, tmp_path: Path, capsys: Any) -> None:
    content = csv("user,at,x", lambda i, at: f"u{i % 3},{i % days + 1:02d}/03/2024,{i}.5")
    out, text, _ = begun(tmp_path, capsys, "a.csv", content)
    said = "Look at: 'at' is read as MM/dd/yyyy, and dd/MM/yyyy would fit as well ('01/03/2024')"
    assert (said in out) == (days == 12)
    assert ('"MM/dd/yyyy"' in text) == (days == 12)


def test_whole_amounts_that_differ_are_no_names_of_rows(tmp_path: Path, capsys: Any) -> None:
    content = csv("shop,at,revenue", lambda i, at: f"s{i % 3},{at},{i * 7 % 60}")
    out, text, _ = begun(tmp_path, capsys, "a.csv", content)
    assert "numbers 'revenue'" in out
    assert 'tie = "any"' in text
    content = csv("shop,at,order id", lambda i, at: f"s{i % 3},{at},{i * 7 % 60}")
    assert 'tie = "order id"' in begun(tmp_path, capsys, "a.csv", content)[1]


def test_a_time_of_another_form_is_told(tmp_path: Path, capsys: Any) -> None:
    content = csv("user,at,x", lambda i, at: f"u{i % 3},{at:%d.%m.%Y %H:%M},{i}.5")
    begun(tmp_path, capsys, "a.csv", content)
    (tmp_path / "a.csv").write_bytes(content + b"u1,30.02.2024 10:00,7\n")
    code, _, errors = windrow(capsys, "run", tmp_path / "p.toml", "--check")
    assert code == 2
    assert "column 'at': '30.02.2024 10:00' is not a time of the form" in errors
    text = (tmp_path / "p.toml").read_text().replace("HH:mm", "HH:mm SSS")
    (tmp_path / "p.toml").write_text(text)
    code, _, errors = windrow(capsys, "run", tmp_path / "p.toml", "--check")
    assert (code, "'SSS' in the pattern" in errors) == (2, True)


def test_times_with_zones_in_json(tmp_path: Path, capsys: Any) -> None:
    def shown(i: int, at: datetime) -> str:
        east = (at + timedelta(hours=2)).isoformat() + "+02:00"
        return (f"{at.isoformat()}.1234567Z", east, f"{at}")[i % 3]

    rows = [{"ts": shown(i, at), "host": f"h{i % 2}", "ms": i / 2} for i, at in enumerate(TIMES)]
    content = "\n".join(map(json.dumps, rows)).encode()
    for name, packed in (("a.jsonl", content), ("a.ndjson.gz", gzip.compress(content))):
        out, _, answers = begun(tmp_path, capsys, name, packed)
        assert "time 'ts', key 'host', numbers 'ms'" in out
        found = [t.replace(tzinfo=None, microsecond=0) for t in answers["ts"].to_pylist()]
        assert found == TIMES
        assert answers["ts"][0].as_py().microsecond == 123456


def test_dates_get_windows_of_days(tmp_path: Path, capsys: Any) -> None:
    content = csv("ticker,Date,Close", lambda i, at: f"T{i % 2},{at:%Y-%m-%d},{i}.5")
    out, text, _ = begun(tmp_path, capsys, "a.csv", content)
    assert ("time 'Date'" in out, 'windows = ["1d", "7d"]' in text) == (True, True)


def test_a_time_of_day_of_its_own_is_told(tmp_path: Path, capsys: Any) -> None:
    content = csv("user,date,time,x", lambda i, at: f"u{i % 3},{at:%Y-%m-%d,%H:%M:%S},{i}.5")
    out, _, _ = begun(tmp_path, capsys, "a.csv", content)
    assert "'time' is a time of day apart from 'date'" in out


def test_seconds_with_a_fraction(tmp_path: Path, capsys: Any) -> None:
    content = csv("device,ts,x", lambda i, at: f"d{i % 3},{at.timestamp() + 0.25},{i}.5")
    out, text, _ = begun(tmp_path, capsys, "a.csv", content)
    assert ("time 'ts', key 'device'" in out, 'unit = "s"' in text) == (True, True)


def test_dictionaries_are_keys(tmp_path: Path, capsys: Any) -> None:
    users = pa.array([f"u{i % 3}" for i in range(ROWS)]).dictionary_encode()
    pq.write_table(
        pa.table({"user": users, "at": TIMES, "x": [1.0] * ROWS}), tmp_path / "in.parquet"
    )
    content = (tmp_path / "in.parquet").read_bytes()
    out, _, _ = begun(tmp_path, capsys, "a.parquet", content)
    assert "time 'at', key 'user', numbers 'x'" in out


def test_names_in_camel_case_and_with_blanks(tmp_path: Path, capsys: Any) -> None:
    content = csv("Customer Id,shippedAt,orderTime,x", lambda i, at: f"{i % 7},{at},{at},{i}.5")
    out, _, _ = begun(tmp_path, capsys, "a.csv", content)
    assert "time 'shippedAt', key 'Customer Id', numbers 'x'" in out


def test_line_breaks_within_quotes(tmp_path: Path, capsys: Any) -> None:
    """More than a block of Arrow's, where a line break within quotes ended a row."""
    note = "line, and\n" * 4000
    content = csv("user,at,note,x", lambda i, at: f'u{i % 3},{at},"{note}",{i}.5')
    _, text, answers = begun(tmp_path, capsys, "a.csv", content)
    assert ("multiLine = true" in text, answers.num_rows) == (True, ROWS)
    code, shown, _ = windrow(capsys, "run", tmp_path / "p.toml", "--sample", "2")
    assert (code, len(shown.splitlines())) == (0, 4)
    (tmp_path / "p.toml").write_text(text.replace("options = { multiLine = true }", ""))
    code, _, errors = windrow(capsys, "run", tmp_path / "p.toml")
    assert code in (1, 2)
    assert "say source.options.multiLine = true" in errors


def test_a_sample_has_a_line_for_each_row_and_whole_numbers(tmp_path: Path, capsys: Any) -> None:
    content = csv('user,"sold\nat",x', lambda i, at: f"u{i % 3},{at},{i + 1234567}.25")
    begun(tmp_path, capsys, "a.csv", content)
    code, shown, _ = windrow(capsys, "run", tmp_path / "p.toml", "--sample", "2")
    assert (code, len(shown.splitlines())) == (0, 4)
    assert "1234567 " in shown


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (lambda i: f'"1.{i:03d},5"', "numbers with a decimal comma ('1.000,5')"),
        (lambda i: f'"1,{i:03d}.50"', "numbers in groups of three digits ('1,000.50')"),
        (lambda i: f'"${i}.50"', "numbers with a sign ('$0.50')"),
        (lambda i: "2024-01-05" if i else "5 Jan 24 ", "like times"),
        (lambda i: f"{i}.5" if i != 9 else "none", "most like numbers ('0.5'), others do not"),
    ],
)
def test_what_is_not_read_is_told(
    values: Callable[[int], str], said: str, tmp_path: Path, capsys: Any
) -> None:
    content = csv("user,at,x", lambda i, at: f"u{i % 3},{at},{values(i)}")
    out, text, _ = begun(tmp_path, capsys, "a.csv", content)
    assert out.count("Look at: 'x' is text") == 1
    assert said in out.replace("look like", "like")
    assert "# 'x' is text" in text


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "Europe/Berlin")])
def test_nanoseconds_stay_in_parquet(kind: pa.DataType, tmp_path: Path, capsys: Any) -> None:
    at = pa.array([1_704_067_200_123_456_789 + i * 10**9 for i in range(ROWS)], kind)
    pq.write_table(pa.table({"at": at, "x": [1.5] * ROWS}), tmp_path / "source.parquet")
    content = (tmp_path / "source.parquet").read_bytes()
    out, text, answers = begun(tmp_path, capsys, "a.parquet", content)
    assert ("time 'at'" in out, 'windows = ["10s"' in text) == (True, True)
    assert answers["at"].cast(kind).combine_chunks().equals(at)
    code, out, _ = windrow(capsys, "run", tmp_path / "p.toml", "--sample", "1")
    assert (code, ":00:00.123456789" in out) == (0, True)


@pytest.mark.parametrize("zone", ["", "Z"])
def test_nanoseconds_of_texts_are_cut(zone: str, tmp_path: Path, capsys: Any) -> None:
    content = csv("at,x", lambda i, at: f"{at}.123456789{zone},{i}.5")
    answers = begun(tmp_path, capsys, "a.csv", content)[2]
    assert answers["at"][0].as_py().isoformat() == "2024-03-01T09:00:00.123456+00:00"


def test_a_file_in_the_folder_of_the_data_is_none_of_them(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.csv").write_bytes(csv("user,at,x", plain))
    target = tmp_path / "pipeline.toml"
    for words in (("init", tmp_path, "-o", target), ("run", target), ("run", target)):
        assert windrow(capsys, *words)[0] == 0
    assert 'path = "*.csv"' in target.read_text()


def test_times_with_gaps_are_told(tmp_path: Path, capsys: Any) -> None:
    content = csv("user,at,x", lambda i, at: f"u{i % 3},{at if i % 20 else ''},{i}.5")
    out, _, _ = begun(tmp_path, capsys, "a.csv", content)
    assert "'at' could be the time, but 3 of the first 60 rows have none" in out


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"a,a\n1,2\n", "two columns are called 'a'"),
        ("a.csv", b"sep=;\r\na;b\r\n1;2\r\n", "its first line, 'sep=;', is for Excel only"),
        ("a.csv", b"a,,\n1,2,\n", "two columns have no name: name them in the file"),
        ("a.parquet", TWICE.getvalue(), "two columns are called 'a': rename one"),
        ("a.csv", b"a,b\n1,2\n3\n", "row 3: it has 1 column, and the rows before it have 2: '3'"),
        ("a.csv.gz", b"a,b\n1,2\n", "is not packed with gzip, or not all of it is there"),
        (
            "a.csv.gz",
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-12],
            "is not packed with gzip, or not all",
        ),
        ("a.json.gz", b'{"a": 1}', "is not packed with gzip, or not all of it is there"),
        ("a.json", b'[{"a": 1}, {"a": 2}]', "is one JSON array"),
        ("a.json", b'{"a": 1}\n{"a": ', "is not JSON with one object a line: JSON parse error"),
        ("a.parquet", b"no", "is not a Parquet file"),
        ("a.log", b"x", "`windrow init` knows files that end with .csv"),
    ],
)
def test_files_that_cannot_be_read(
    name: str, content: bytes, said: str, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / name).write_bytes(content)
    code, out, errors = windrow(capsys, "init", tmp_path / name, "-o", tmp_path / "p.toml")
    assert (code, out, said in errors) == (1, "", True), errors
    assert "Error creating dataset" not in errors
