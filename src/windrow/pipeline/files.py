"""Files in process: CSV, JSON lines and Parquet as Arrow tables, with the types the file says."""

import contextlib
import glob
import os
import re
from collections import Counter
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from windrow.errors import BadSpecification, BadValue
from windrow.pipeline.building import Source, bare
from windrow.pipeline.patterns import parsed
from windrow.pipeline.types import EPOCH_UNITS, arrow_type
from windrow.pipeline.values import listed

_TRUE = {True: True, "true": True, "True": True, False: False, "false": False, "False": False}
CSV_OPTIONS = (
    "header",
    "sep",
    "delimiter",
    "quote",
    "escape",
    "nullValue",
    "encoding",
    "multiLine",
    "timestampFormat",
)
"""Spark's options of CSV that mean the same here; Spark's others are told of."""
_STAMPS = ("timestamp", "timestamp_ntz")
IGNORED = (
    "inferSchema",
    "mode",
    "maxFilesPerTrigger",
    "latestFirst",
    "cleanSource",
    "recursiveFileLookup",
)
_BAD_CSV = re.compile(
    r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to (.+): invalid value '(.*)'",
    re.S,
)
_ZONED = r"(?i):\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.S)
_FILE = re.compile(r"input source '([^']+)'")
_TWICE = re.compile(r"multiple columns named (.*)")


def known_options(form: str) -> tuple[str, ...]:
    """The options of a format that mean something in process."""
    return {"csv": CSV_OPTIONS, "json": ("timestampFormat",)}.get(form, ())


def other_options(source: Source) -> list[str]:
    """The options that only Spark knows."""
    known = (*known_options(source.format), *IGNORED)
    return [name for name in source.options if name not in known]


def found_files(source: Source) -> list[str]:
    """The files behind the paths: patterns are filled in, folders looked through."""
    out: list[str] = []
    for path in source.paths:
        plain = bare(path)
        for match in sorted(glob.glob(plain)) if glob.has_magic(plain) else [plain]:
            if os.path.isdir(match):
                inside = (p for p in sorted(FilePath(match).rglob("*")) if p.is_file())
                out += [str(p) for p in inside if not p.name.startswith((".", "_"))]
            else:
                out.append(match)
    return out


def rows_of(
    source: Source, columns: dict[str, str], first: int | None = None, time: str | None = None
) -> pa.Table:
    """The rows, all of them or the first so many, with the types that the file says.

    ``time``: which column is a time, of whatever type where there are no rows to see it by.
    """
    table = _read(source, columns, first)
    if source.format != "parquet":
        table = _in_microseconds(table)
    if not table.num_rows and time in table.column_names and time not in columns:
        place = table.column_names.index(time)
        if pa.types.is_null(table.schema.field(place).type):
            table = table.set_column(place, time, table[time].cast(pa.timestamp("us", "UTC")))
    for name, kind in columns.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _cast(table[name], name, kind, source))
    return _as_spark_has_it(table, source, columns)


def _read(source: Source, columns: dict[str, str], first: int | None) -> pa.Table:
    files = found_files(source)
    plain = {
        name: arrow_type(kind)
        for name, kind in columns.items()
        if not kind.startswith(("timestamp", "date"))
    }
    if "timestampFormat" in source.options:
        plain |= {n: pa.string() for n, kind in columns.items() if kind in _STAMPS}
    form: Any = {"parquet": "parquet", "json": "json"}.get(source.format)
    if source.format == "csv":
        form = _csv_format(source, plain)
    try:
        if form is None:
            raise BadSpecification(f"{source.format} cannot be read in process")
        data = ds.dataset(files, format=form)
        schema = data.schema
        names = schema.names
        if source.format == "csv" and not _header(source):
            names = [f"_c{place}" for place in range(len(names))]
        if first is None:
            table = data.to_table()
        else:  # and nothing is read ahead
            table = data.head(first, batch_readahead=0, fragment_readahead=0)
        return table.rename_columns(names)
    except FileNotFoundError as error:
        raise BadValue(f"there is no {error}") from error
    except UnicodeDecodeError as error:
        raise BadValue(_not_unicode(files)) from error
    except (pa.ArrowInvalid, OSError) as error:
        raise BadValue(_explained(error, source, files)) from error
    except pa.ArrowNotImplementedError as error:
        raise BadValue(f"{', '.join(files[:3])}: {error}") from error


def _header(source: Source) -> bool:
    return _said(source, "header", True)


def _said(source: Source, option: str, otherwise: bool) -> bool:
    return _TRUE.get(source.options.get(option, otherwise), otherwise)


def _csv_format(source: Source, kinds: dict[str, pa.DataType]) -> Any:
    read, parse, convert = _csv_parts(source, kinds)
    return ds.CsvFileFormat(parse_options=parse, convert_options=convert, read_options=read)


def _csv_parts(source: Source, kinds: dict[str, pa.DataType]) -> tuple[Any, Any, Any]:
    """How Arrow is to read, to parse and to convert."""
    options = source.options
    quote = options.get("quote", '"')
    escape = options.get("escape", quote)
    parse = arrow_csv.ParseOptions(
        delimiter=str(options.get("sep", options.get("delimiter", ","))).replace("\\t", "\t"),
        quote_char=quote or False,
        escape_char=False if escape in (quote, "") else escape,
        double_quote=escape == quote,
        newlines_in_values=_said(source, "multiLine", False),
    )
    if not _header(source):  # Arrow's names for such columns are others than Spark's
        kinds = {name.replace("_c", "f", 1): kind for name, kind in kinds.items()}
    missing = {"", str(options.get("nullValue", ""))}
    convert = arrow_csv.ConvertOptions(
        column_types=kinds,
        null_values=sorted(missing),
        strings_can_be_null=True,
        true_values=["true", "True", "TRUE"],
        false_values=["false", "False", "FALSE"],
    )
    read = arrow_csv.ReadOptions(
        encoding=str(options.get("encoding", "utf8")),
        autogenerate_column_names=not _header(source),
    )
    return read, parse, convert


def _explained(error: Exception, source: Source, files: list[str]) -> str:
    text = str(error)
    bad = _BAD_CSV.search(text)
    name = files[0] if len(files) == 1 else f"{len(files)} files ({files[0]}, …)"
    which = _FILE.search(text)
    name = which[1] if which else name
    if bad:
        row = f", row {bad[2]}" if bad[2] else ""
        return (
            f"{name}{row}: {bad[4]!r} in {_column(files, source, int(bad[1]))} cannot be read as "
            f"{bad[3]}. If it stands for a missing value, say source.options.nullValue = "
            f'"{bad[4]}"; else say what the column is under [columns], as "double" or "string"'
        )
    ragged = _RAGGED.search(text)
    if ragged:
        many = f"{ragged[3]} column{'' if ragged[3] == '1' else 's'}"
        return (
            f"{name}, row {ragged[1]}: it has {many}, and the rows before it have {ragged[2]}: "
            f"{_short(ragged[4])!r}. Is source.options.sep right, or is something missing? If "
            "values have line breaks within quotes, say source.options.multiLine = true"
        )
    if "newlines_in_values" in text:
        return f"{name}: values have line breaks within quotes: say source.options.multiLine = true"
    twice = _TWICE.search(text)
    if twice:
        called = f"are called {twice[1]!r}: rename one" if twice[1] else "have no name: name them"
        return f"{name}: two columns {called} in the file"
    if "duplicate field names" in text:
        return f"{name}: two columns are called {_named_twice(files)!r}: rename one in the file"
    if "invalid UTF8" in text:
        return _not_unicode(files)
    if "Empty CSV file" in text or "Empty JSON file" in text:
        return f"{name} is empty: there is not even a header"
    if source.format == "parquet" and ("magic bytes" in text or "minimum file footer" in text):
        return f"{name} is not a Parquet file"
    if "inflate" in text or "compressed stream" in text:
        return not_packed(name)
    if isinstance(error, OSError):
        return f"{name} cannot be read: {text.rpartition('Error: ')[2]}"
    reason = text.rpartition("Invalid: ")[2].partition(" in row")[0]
    if source.format == "json" and "changed from object to array" in text:
        return (
            f"{name} is one JSON array, and needed is one object a line, without brackets and "
            "commas around them: `jq -c '.[]' FILE` makes that of it"
        )
    if source.format == "json":
        return f"{name} is not JSON with one object a line: {reason}"
    return f"{name}: {reason}"


def not_packed(file: str) -> str:
    """What is said of a file whose name ends with .gz, and that is something else."""
    return f"{file} is not packed with gzip, or not all of it is there: is its name right?"


def _column(files: list[str], source: Source, number: int) -> str:
    """The name of a column, which Arrow only counts."""
    if _header(source):
        with contextlib.suppress(pa.ArrowInvalid, OSError):
            read, parse, _ = _csv_parts(source, {})
            with arrow_csv.open_csv(files[0], read, parse) as opened:
                return f"column {opened.schema.names[number]!r}"
    return f"column '_c{number}'"


def in_nanoseconds(files: list[str]) -> str | None:
    """A column of Parquet files that is in nanoseconds; INT96, as Spark writes it, is not."""
    for file in files:
        with contextlib.suppress(pa.ArrowInvalid, OSError):
            schema = pq.ParquetFile(file).schema
            for column in map(schema.column, range(len(schema.names))):
                if "nanoseconds" in str(column.logical_type):
                    return str(column.path)
    return None


def _named_twice(files: list[str]) -> str:
    for file in files:
        for name, count in Counter(pq.read_schema(file).names).items():
            if count > 1:
                return str(name)
    return ""


def _short(text: str) -> str:
    if not text.isprintable():
        return "…"
    return text if len(text) <= 60 else f"{text[:59]}…"


def _not_unicode(files: list[str]) -> str:
    return (
        f"{', '.join(files[:3])}: this is not UTF-8 text. Say how it is written, "
        'source.options.encoding = "ISO-8859-1", say, or save it as UTF-8'
    )


def _cast(column: pa.ChunkedArray, name: str, kind: str, source: Source) -> pa.ChunkedArray:
    wanted = arrow_type(kind)
    try:
        if kind in EPOCH_UNITS:
            return _from_epoch(column, name, kind)
        if kind in _STAMPS and "timestampFormat" in source.options:
            return _by_pattern(column, name, source.options["timestampFormat"]).cast(wanted)
        if kind == "timestamp":
            column = _as_utc(column)
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        example = next((v for v in listed(column) if v is not None), None)
        raise BadValue(
            f"column {name!r} is {column.type} in {source.format} ({example!r}, say) and cannot be "
            f"made {kind!r}: {str(error).splitlines()[0]}"
        ) from error


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Times in texts without their digits beyond microseconds, which Spark cuts as well."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            cut = pc.floor_temporal(table.column(place), unit="microsecond")
            kind = pa.timestamp("us", field.type.tz)
            table = table.set_column(place, field.name, cut.cast(kind))
    return table


def _as_utc(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times without a zone are UTC, as they are in a Spark session whose zone is UTC."""
    if pa.types.is_string(column.type):
        return times_of(column)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        return pc.assume_timezone(column.cast(pa.timestamp("us")), "UTC")
    if pa.types.is_integer(column.type):
        raise pa.ArrowInvalid('numbers need their unit: "timestamp[s]", "[ms]" or "[us]"')
    return column


def times_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts as times; those that say no zone are UTC. Digits beyond microseconds are cut."""
    column = pc.replace_substring_regex(column, r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(column, _ZONED)
    nothing = pa.scalar(None, column.type)
    there = pc.if_else(zoned, column, nothing).cast(pa.timestamp("us", "UTC"))
    without = pc.if_else(zoned, nothing, column).cast(pa.timestamp("us"))
    return pc.coalesce(there, pc.assume_timezone(without, "UTC"))


def _by_pattern(column: pa.ChunkedArray, name: str, pattern: str) -> pa.ChunkedArray:
    times = parsed(column, pattern)
    if times is not None:
        return times
    bad = next(
        text
        for text in column
        if text.is_valid and parsed(pa.chunked_array([[text.as_py()]]), pattern) is None
    )
    raise BadValue(
        f"column {name!r}: {bad.as_py()!r} is not a time of the form "
        f'source.options.timestampFormat = "{pattern}"'
    )


def _from_epoch(column: pa.ChunkedArray, name: str, kind: str) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        raise BadValue(f'column {name!r} holds timestamps, not numbers: write "timestamp"')
    if pa.types.is_floating(column.type):
        raise BadValue(f"column {name!r} holds numbers with a fraction: make them whole first")
    whole = column.cast(pa.int64())
    return whole.cast(pa.timestamp(EPOCH_UNITS[kind], "UTC")).cast(pa.timestamp("us", "UTC"))


def _as_spark_has_it(table: pa.Table, source: Source, columns: dict[str, str]) -> pa.Table:
    """Timestamps in microseconds, and of the zone UTC where texts were read, as Spark has them."""
    for place, field in enumerate(table.schema):
        if not pa.types.is_timestamp(field.type):
            continue
        column = table.column(place)
        if source.format != "parquet" and field.type.tz is None and field.name not in columns:
            column = _as_utc(column)
        kind = pa.timestamp("us", None if column.type.tz is None else "UTC")
        if field.type != kind:
            with contextlib.suppress(pa.ArrowInvalid):  # finer than microseconds: it stays so
                table = table.set_column(place, field.name, column.cast(kind))
    return table
