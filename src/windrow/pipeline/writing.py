"""Tables to files, in process: Parquet, CSV, JSON lines, one file at a time and whole or not."""

import contextlib
import inspect
import io
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from windrow.errors import WindrowError
from windrow.pipeline.building import Sink, bare
from windrow.pipeline.values import as_json, listed, plain

_ENDINGS = {
    "parquet": (".parquet",),
    "csv": (".csv", ".tsv"),
    "json": (".json", ".jsonl", ".ndjson"),
}
_SINGLE = sum(_ENDINGS.values(), ())
_PACKED = (".gz", ".bz2", ".zst", ".zip", ".xz")


def write_table(table: pa.Table, sink: Sink) -> None:
    """Write to the sink: a file if its path ends like one, else a folder with a file in it."""
    if sink.format == "console":
        return
    assert sink.path is not None
    target = Path(bare(sink.path))
    single = target.suffix.lower() in _SINGLE
    if target.exists():
        if sink.mode == "ignore":
            return
        if sink.mode == "error":
            raise WindrowError(
                f'{target} is there already: mode = "overwrite" replaces it, "append" adds to it'
            )
        if sink.mode == "append" and single:
            raise WindrowError(f"{target} is a file: to append, name a folder")
    try:
        _write(table, sink, target, single)
    except OSError as error:
        raise WindrowError(f"{target} cannot be written: {error.strerror or error}") from error


def _write(table: pa.Table, sink: Sink, target: Path, single: bool) -> None:
    """Beside the target first, then renamed: a reader never sees half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    name = f"part-{uuid.uuid4().hex[:12]}.{sink.format}"
    if not single and sink.mode == "append":
        target.mkdir(exist_ok=True)
        with _removed_unless_done(target / f".{name}") as file:
            _to_file(table, sink, file)
        os.replace(target / f".{name}", target / name)
        return
    hidden = target.parent / f".{target.name}-{uuid.uuid4().hex[:12]}"
    with _removed_unless_done(hidden):
        if not single:
            hidden.mkdir()
        _to_file(table, sink, hidden if single else hidden / name)
    if target.is_dir():
        shutil.rmtree(target)
    elif target.exists() and not single:
        target.unlink()
    os.replace(hidden, target)


@contextlib.contextmanager
def _removed_unless_done(place: Path) -> Iterator[Path]:
    try:
        yield place
    except BaseException:  # Ctrl-C among them, or a disk that is full
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        raise


def why_not_of_format(sink: Sink) -> str | None:
    """Why a path does not fit what is written there; None where it does."""
    path = Path(sink.path or "")
    ending = path.suffix.lower()
    if ending in _PACKED:
        return f"files are written unpacked here: name it {path.with_suffix('').name}"
    if ending in _SINGLE and ending not in _ENDINGS[sink.format]:
        fitting = path.with_suffix(_ENDINGS[sink.format][0]).name
        return (
            f"{path.name} is not what a file of format {sink.format} is called: name it {fitting}"
        )
    return None


def known_options(form: str) -> tuple[str, ...]:
    """The options of a format that writing in process knows."""
    if form != "parquet":
        return {"csv": ("header", "sep", "delimiter")}.get(form, ())
    return tuple(
        name
        for name, one in inspect.signature(pq.write_table).parameters.items()
        if one.default is not one.empty
    )


def why_not_written_so(table: pa.Table, sink: Sink) -> str | None:
    """Why such columns, or with such options, are not written; None where they are."""
    try:
        _to_file(table.select([]), sink, io.BytesIO())
    except (pa.ArrowException, TypeError, ValueError) as error:
        return f"an option of {sink.format} is wrong: {str(error).splitlines()[0]}"
    for name in table.column_names:
        try:
            _to_file(table.select([name]), sink, io.BytesIO())
        except pa.ArrowException:
            others = " or ".join(form for form in _ENDINGS if form != sink.format)
            return (
                f"column {name!r} is {table[name].type}, for which {sink.format} has no form: "
                f"take {others}"
            )
    return None


def _to_file(table: pa.Table, sink: Sink, path: Path | io.BytesIO) -> None:
    if sink.format == "parquet":
        pq.write_table(table, path, **sink.options)
    elif sink.format == "csv":
        header = sink.options.get("header", True) in (True, "true")
        delimiter = str(sink.options.get("sep", sink.options.get("delimiter", ",")))
        options = arrow_csv.WriteOptions(include_header=header, delimiter=delimiter)
        arrow_csv.write_csv(table, path, options)
    elif isinstance(path, Path):  # JSON has a form for everything
        with path.open("w", encoding="utf-8") as file:
            for batch in table.to_batches(max_chunksize=10_000):
                for row in zip(*map(listed, batch.columns), strict=True):
                    named = zip(batch.schema.names, row, strict=True)
                    held = {name: value for name, value in named if value is not None}
                    file.write(as_json(held, plain) + "\n")
