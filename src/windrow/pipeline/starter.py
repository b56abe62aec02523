"""``windrow init``: a commented pipeline file from a data file, by the look of its first rows."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import WindrowError
from windrow.pipeline.building import Source
from windrow.pipeline.data import MISSING_WORDS
from windrow.pipeline.files import found_files, rows_of
from windrow.pipeline.sniffing import (
    DIGITS,
    csv_options,
    day_or_month,
    time_pattern,
    why_text,
    written_as_days,
    written_as_ids,
    written_as_times,
)
from windrow.pipeline.types import TYPES, named_type

_ROWS = 10_000
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_TIMELY = re.compile(r"(^|_)(ts|at|time|timestamp|date|datetime|when|moment)($|_)")
_KEYLY = re.compile(
    r"(^|_)(id|key|user|customer|account|device|host|symbol|sensor|station|origin|name|code)($|_)"
)
_EPOCHS = {"s": 1, "ms": 10**3, "us": 10**6}
_SECONDS = (6 * 10**8, 4 * 10**9)
"""From 1989 to 2096, in seconds since 1970."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Guess:
    """What the columns seem to be."""

    source: Source
    columns: dict[str, str]
    time: str | None = None
    whole_time: bool = False
    days: bool = False
    """Whether the time is a date."""
    span: float = 0.0
    """Seconds, or counts where times are whole numbers of an unknown unit."""
    key: str | None = None
    tie: str | None = None
    numbers: list[str] = field(default_factory=list)
    distinct: str | None = None
    unit: str | None = None
    """What a time that is a float counts."""
    notes: list[str] = field(default_factory=list)
    """What to look at: columns that are not read as what they seem to be."""


def starter(data: str, target: Path) -> tuple[str, str, list[str]]:
    """The text of a file to be written at ``target``, what was found, and what to look at."""
    source = _source_of(data, target)
    table = rows_of(source, {}, _ROWS)
    if not table.num_rows:
        raise WindrowError(f"{data} has no rows: there is nothing to guess from")
    source = _with_missing_word(source, table)
    source, columns, note = _with_forms(source, rows_of(source, {}, _ROWS))
    guess = _guessed(source, rows_of(source, columns, _ROWS), columns)
    guess.notes += [note] if note else []
    path = os.path.relpath(os.path.realpath(source.paths[0]), target.resolve().parent)
    return _written(guess, path), _found(guess), guess.notes


def _source_of(data: str, target: Path) -> Source:
    if not os.path.exists(data):
        raise WindrowError(f"there is no {data}")
    files = found_files(Source("", (data,)))
    if not files:
        raise WindrowError(f"{data}: the folder has no files")
    unreadable = next((file for file in files if not os.access(file, os.R_OK)), None)
    if unreadable:
        raise WindrowError(
            f"no permission to read {unreadable}: look at its owner and mode (ls -l)"
        )
    form = _ENDINGS.get(Path(files[0].removesuffix(".gz")).suffix.lower())
    if form is None:
        raise WindrowError(
            f"{files[0]}: `windrow init` knows files that end with {', '.join(_ENDINGS)}; for "
            "others write the file by hand (docs/pipelines.md has examples)"
        )
    options = csv_options(files[0]) if form == "csv" else {}
    path = os.path.abspath(data)
    if Path(path).resolve() in target.resolve().parents:  # the new file is none of the data
        path = os.path.join(path, "*" + "".join(Path(files[0]).suffixes[-2:]))
    return Source(form, (path,), options=options)


def _with_missing_word(source: Source, table: pa.Table) -> Source:
    """The word that stands for missing values in a CSV file, where there seems to be one."""
    if source.format != "csv":
        return source
    counts: dict[str, int] = {}
    for name in table.column_names:
        if not pa.types.is_string(table[name].type):
            continue
        values = pc.value_counts(table[name]).to_pylist()
        others = [v["values"] for v in values if v["values"] not in (*MISSING_WORDS, None)]
        numeric = all(_is_number(value) for value in others[:100])
        for value in values:
            if value["values"] in MISSING_WORDS and numeric:
                counts[value["values"]] = counts.get(value["values"], 0) + value["counts"]
    if not counts:
        return source
    word = max(counts, key=lambda word: counts[word])
    return Source(source.format, source.paths, options={**source.options, "nullValue": word})


def _with_forms(source: Source, table: pa.Table) -> tuple[Source, dict[str, str], str | None]:
    """The types of columns that would be taken for others, and the pattern of times if any, with
    what to look at."""
    columns: dict[str, str] = {}
    days: list[str] = []
    counted = {f.name: f.type for f in table.schema if _is_numeric(f.type)}
    if source.format == "csv" and counted:
        digits = rows_of(source, dict.fromkeys(counted, "string"), _ROWS)
        ids = [name for name, kind in counted.items() if written_as_ids(digits[name], kind)]
        columns = dict.fromkeys(ids, "string")
        days = [name for name in counted if _is_timely(name) and written_as_days(digits[name])]
    texts = [f.name for f in table.schema if pa.types.is_string(f.type)]
    columns |= {name: "timestamp" for name in texts if written_as_times(table[name])}
    known = "timestamp" in columns.values() or any(
        pa.types.is_timestamp(t) for t in table.schema.types
    )
    if source.format == "parquet" or known:
        return source, columns, None
    for name in (*days, *texts):
        pattern = DIGITS if name in days else time_pattern(table[name])
        if pattern is not None:
            options = {**source.options, "timestampFormat": pattern}
            source = Source(source.format, source.paths, options=options)
            note = day_or_month(name, table[name], pattern)
            return source, {**columns, name: "timestamp"}, note
    return source, columns, None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- guesses -------------------------------------------------------------------------------------


def _guessed(source: Source, table: pa.Table, columns: dict[str, str]) -> Guess:
    for place, one in enumerate(table.schema):
        if pa.types.is_dictionary(one.type):
            table = table.set_column(place, one.name, table[one.name].cast(one.type.value_type))
    found = {f.name: named_type(f.type) for f in table.schema if named_type(f.type) in TYPES}
    guess = Guess(source, columns if source.format == "parquet" else found)
    _guess_time(guess, table)
    rows, distinct = table.num_rows, {}
    for name in table.column_names:
        kind = table[name].type
        if name != guess.time and (pa.types.is_string(kind) or pa.types.is_integer(kind)):
            distinct[name] = pc.count_distinct(table[name]).as_py()
    unique = [n for n, count in distinct.items() if count == rows > 1 and _whole(table, n)]
    unique = [n for n in unique if _is_keyly(n) or _is_rising(table[n])]  # others are amounts
    guess.tie = unique[0] if unique else None
    notes = {n: why_text(n, table[n]) for n in distinct if pa.types.is_string(table[n].type)}
    guess.notes += [note for note in notes.values() if note is not None]
    keys = [
        n for n, count in distinct.items() if 1 < count <= max(2, rows // 3) and not notes.get(n)
    ]
    keys.sort(key=lambda n: (not _is_keyly(n), not pa.types.is_string(table[n].type), distinct[n]))
    keys = [n for n in keys if pa.types.is_string(table[n].type) or _is_keyly(n)]
    guess.key = keys[0] if keys else None
    texts = [n for n in notes if n != guess.key and not notes[n]]
    guess.distinct = max(texts, key=lambda n: distinct[n]) if texts else None
    taken = {guess.time, guess.key, *unique}
    numbers = [
        n
        for n in table.column_names
        if n not in taken and _is_numeric(table[n].type) and table[n].null_count < rows
    ]
    numbers.sort(key=lambda n: (not pa.types.is_floating(table[n].type), _is_keyly(n)))
    guess.numbers = numbers[:2]
    return guess


def _words(name: str) -> str:
    """A column's name as words between underscores.

    >>> _words("orderTime (UTC)")
    'order_time_utc_'
    """
    return re.sub(r"\W+", "_", re.sub(r"([a-z])([A-Z])", r"\1_\2", name)).lower()


def _is_timely(name: str) -> bool:
    return _TIMELY.search(_words(name)) is not None


def _is_keyly(name: str) -> bool:
    return _KEYLY.search(_words(name)) is not None


def _whole(table: pa.Table, name: str) -> bool:
    return bool(pa.types.is_integer(table[name].type)) and not table[name].null_count


def _is_rising(column: pa.ChunkedArray) -> bool:
    whole = column.combine_chunks()
    return bool(pc.all(pc.greater(whole[1:], whole[:-1])).as_py())


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    )


def _guess_time(guess: Guess, table: pa.Table) -> None:
    """A timestamp or date without gaps; else a number that counts from 1970; else one in order."""
    gaps = [n for n in table.column_names if table[n].null_count]
    present = [n for n in table.column_names if n not in gaps]
    stamps = [n for n in present if pa.types.is_timestamp(table[n].type)]
    stamps = stamps or [n for n in present if pa.types.is_date(table[n].type)]
    if stamps:
        guess.time = next((n for n in stamps if _is_timely(n)), stamps[0])
        seconds = table[guess.time].cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        ends = pc.min_max(seconds).as_py()
        guess.span = ends["max"] - ends["min"]
        guess.days = pa.types.is_date(table[guess.time].type)
        clocks = [f.name for f in table.schema if pa.types.is_time(f.type)]
        if guess.days and clocks:
            guess.notes.append(
                f"{clocks[0]!r} is a time of day apart from {guess.time!r}: for windows shorter "
                "than a day, write both in one column"
            )
        return
    for name in gaps:
        if pa.types.is_timestamp(table[name].type) or pa.types.is_date(table[name].type):
            guess.notes.append(
                f"{name!r} could be the time, but {table[name].null_count:,} of the first "
                f"{table.num_rows:,} rows have none: drop or fill these rows first, then say "
                f"time = {_quoted(name)}"
            )
    _guess_counted_time(guess, table, present)


def _guess_counted_time(guess: Guess, table: pa.Table, present: list[str]) -> None:
    counted = [n for n in present if _is_numeric(table[n].type)]
    for name in sorted(counted, key=lambda n: not _is_timely(n)):
        ends, whole = pc.min_max(table[name]).as_py(), pa.types.is_integer(table[name].type)
        for unit, factor in _EPOCHS.items():
            if _SECONDS[0] * factor <= ends["min"] <= ends["max"] <= _SECONDS[1] * factor:
                if not whole and not (unit == "s" and _is_timely(name)):
                    continue
                guess.time, guess.span = name, float(ends["max"] - ends["min"]) / factor
                if whole:
                    guess.columns[name] = f"timestamp[{unit}]"
                else:
                    guess.unit = unit
                return
    named = [n for n in counted if _is_timely(n) and pa.types.is_integer(table[n].type)]
    if named:
        ends = pc.min_max(table[named[0]]).as_py()
        guess.time, guess.whole_time = named[0], True
        guess.span = float(ends["max"] - ends["min"])


def _windows(guess: Guess) -> list[str]:
    if guess.time is None:
        return ["{ rows = 10 }", "{ rows = 100 }"]
    if guess.whole_time:
        length = max(1, int(guess.span) // 100)
        return [f"{{ time = {length} }}", f"{{ time = {length * 10} }}"]
    day = 86_400
    if guess.days:
        return ['"7d"', '"30d"'] if guess.span >= 60 * day else ['"1d"', '"7d"']
    for least, lengths in ((14 * day, "1h 1d 7d"), (2 * day, "1h 6h 1d"), (7200, "5m 1h")):
        if guess.span >= least:
            return [f'"{length}"' for length in lengths.split()]
    return ['"10s"', '"1m"', '"10m"']


# --- the text ------------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _option(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else _quoted(value)


def _name(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _found(guess: Guess) -> str:
    parts = [f"time {guess.time!r}" if guess.time else "no time column"]
    parts.append(f"key {guess.key!r}" if guess.key else "no key")
    parts.append(
        f"numbers {', '.join(map(repr, guess.numbers))}" if guess.numbers else "no numbers"
    )
    return f"guessed {', '.join(parts)}; change what is wrong"


def _aggregates(guess: Guess) -> list[str]:
    out = ['{ aggregate = "Count" },']
    for name in guess.numbers:
        column = f"column = {_quoted(name)}"
        out += [f'{{ aggregate = "Mean", {column} }},', f'{{ aggregate = "Max", {column} }},']
    for name in guess.numbers[:1]:
        out.append(f'# {{ aggregate = "Quantile", column = {_quoted(name)}, phi = 0.95 }},')
    if guess.distinct:
        out.append(f'# {{ aggregate = "Distinct", column = {_quoted(guess.distinct)} }},')
    out.append(
        '# { aggregate = "my_module:MyAggregate", column = "…" },  # your own, beside this file'
    )
    return out


def _beside(text: str, comment: str) -> str:
    return f"{text:<20} # {comment}"


def _written(guess: Guess, path: str) -> str:
    stem = re.sub(r"\W+", "_", Path(path).stem) or "rows"
    options = ", ".join(f"{_name(k)} = {_option(v)}" for k, v in guess.source.options.items())
    lines = [
        "# A windrow pipeline. `windrow run FILE --check` finds mistakes, `--sample 10` shows",
        "# answers, `windrow run FILE` runs it; `windrow schema` prints a JSON schema for editors.",
        "",
        'mode = "batch"       # "stream": until stopped; "stream-available-now": until all is read',
        'engine = "columns"   # in this process; "spark": the same answers on Spark (needs Java)',
        "",
        "[source]             # paths are relative to this file",
        f'format = "{guess.source.format}"',
        f"path = {_quoted(path)}",
    ]
    lines += [f"options = {{ {options} }}"] if options else []
    lines += ['# secrets come from the environment: password = "${MY_PASSWORD}"', ""]
    if guess.columns:
        lines.append("[columns]            # types, as they were found in the first rows")
        lines += [f'{_name(name)} = "{kind}"' for name, kind in guess.columns.items()]
    lines += [f"# {note}" for note in guess.notes]
    lines += [""] if guess.columns or guess.notes else []
    lines.append("[features]           # for every row, over each window before it")
    if guess.key:
        lines.append(_beside(f"key = {_quoted(guess.key)}", "every value has windows of its own"))
    else:
        lines.append('# key = "…"           # a column whose values each have windows of their own')
    if guess.time:
        lines.append(f"time = {_quoted(guess.time)}")
        lines += [_beside(f'unit = "{guess.unit}"', "what these times count")] if guess.unit else []
    if guess.tie:
        lines.append(_beside(f"tie = {_quoted(guess.tie)}", "orders rows of equal time"))
    else:
        lines.append('tie = "any"          # rows of equal time may stand in any order')
    lines.append(f"windows = [{', '.join(_windows(guess))}]   # or {{ rows = 100 }}, or both")
    if guess.time and not guess.whole_time:
        lines.append(
            '# lateness = "10 minutes"   # streams: how much later than others a row may come'
        )
    lines += ["aggregates = [", *(f"    {one}" for one in _aggregates(guess)), "]", ""]
    lines += [
        "[sink]",
        'format = "parquet"',
        f'path = "{stem}_features"',
        'mode = "overwrite"   # streams: leave this out, and say checkpoint = "checkpoint"',
        "",
        "# [spark]",
        '# master = "local[*]"',
        '# settings = { "spark.sql.shuffle.partitions" = 8 }',
    ]
    return "\n".join(lines) + "\n"
