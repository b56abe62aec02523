"""Everything that can be known to be wrong with a pipeline before it runs, all at once."""

import importlib.util
import os
import socket
from pathlib import Path as FilePath
from typing import Any

from windrow.aggregates import Count
from windrow.errors import WindrowError
from windrow.pipeline.building import IN_FILES, Pipeline, Sink, built
from windrow.pipeline.data import check_data
from windrow.pipeline.declaration import IN_PROCESS
from windrow.pipeline.lines import Path
from windrow.pipeline.problems import did_you_mean
from windrow.pipeline.reading import BadPipeline, Document, read
from windrow.pipeline.types import arrow_type
from windrow.rolling import Rolling, window_columns
from windrow.slides import rows as one_row

SPARK_FORMATS = (*IN_FILES, "kafka", "rate", "rate-micro-batch", "socket", "jdbc", "iceberg")
_SECONDS = 2.0


def load(path: str | os.PathLike[str]) -> Pipeline:
    """The pipeline in a file; raises ``BadPipeline`` with all mistakes."""
    document, pipeline = checked_file(path)
    if document.mistakes or pipeline is None:
        raise BadPipeline(document.file, document.mistakes)
    return pipeline


def checked_file(
    path: str | os.PathLike[str], rows: int = 10_000, running: bool = True
) -> tuple[Document, Pipeline | None]:
    """The file with all its problems, and what it says where that is clear enough to run.

    ``rows``: of how many rows the data are looked at. ``running``: where it is to run now, what is
    out of reach is a mistake; else a warning, for it may be in reach elsewhere.
    """
    document = read(path)
    pipeline = built(document)
    if pipeline is None:
        return document, None
    schema = _schema_of(document, pipeline, rows)
    if schema is not None:
        _check_columns(document, pipeline, schema)
        _check_types(document, pipeline, schema)
    _check_mode(document, pipeline, schema)
    if pipeline.sink is not None:
        _check_sink(document, pipeline, "sink", pipeline.sink)
    elif not pipeline.rules and "sink" not in document.data:
        document.say((), "[sink] is missing: say where rows go, with format and path")
    if pipeline.alerts is not None:
        _check_sink(document, pipeline, "alerts", pipeline.alerts)
    _check_surroundings(document, pipeline, running)
    return document, pipeline


# --- columns and types ---------------------------------------------------------------------------


def _schema_of(document: Document, pipeline: Pipeline, rows: int) -> Any:
    """The source's columns as an Arrow schema; None where only Spark can tell."""
    import pyarrow as pa

    source, columns = pipeline.source, pipeline.columns
    if document.has_mistake(("source", "path"), ("source", "format"), ("source", "value")):
        return None
    declared = {name: arrow_type(kind) for name, kind in columns.items()}
    if source.format == "kafka":
        own = {} if source.value else _KAFKA
        if source.value and not columns:
            document.say(("source", "value"), "say the fields of the messages under [columns]")
            return None
        return pa.schema({**{n: arrow_type(k) for n, k in own.items()}, **declared})
    if source.format == "rate":
        return pa.schema({"timestamp": arrow_type("timestamp"), "value": pa.int64(), **declared})
    if source.format not in IN_PROCESS or any(_is_address(path) for path in source.paths):
        if source.format not in SPARK_FORMATS and source.table is None and "." not in source.format:
            hint = did_you_mean(source.format, SPARK_FORMATS)
            if hint:
                document.say(("source", "format"), f"Spark has no format {source.format!r}{hint}")
        return None
    if not _check_files(document, pipeline):
        return pa.schema(declared) if pipeline.streaming and columns else None
    table = check_data(document, pipeline, rows)
    if table is None:
        return None
    for name in columns:
        if name not in table.column_names:
            near = did_you_mean(name, table.column_names)
            near = near or f"; it has {', '.join(map(repr, table.column_names))}"
            document.say(("columns", name), f"the source has no such column{near}")
    return table.schema


_KAFKA = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "int",
}


def _is_address(path: str) -> bool:
    return "://" in path and not path.startswith("file:")


def _check_files(document: Document, pipeline: Pipeline) -> bool:
    """Whether there are files that can be read."""
    from windrow.pipeline.files import found_files

    source, place = pipeline.source, ("source", "path")
    for path in source.paths:
        parent = FilePath(path).parent
        if not any(sign in path for sign in "*?[") and not os.path.exists(path):
            near = [p.name for p in parent.iterdir()] if parent.is_dir() else []
            hint = did_you_mean(FilePath(path).name, near)
            document.say(place, f"there is no {path}{hint or ' (paths are relative to this file)'}")
            return False
        if pipeline.streaming and os.path.isfile(path):
            document.say(
                place, "a stream reads a folder, whose new files are its new rows: name the folder"
            )
    files = found_files(source)
    if not files and not pipeline.streaming:
        document.say(place, "there are no files here")
    for file in files:
        if not os.access(file, os.R_OK):
            document.say(place, f"no permission to read {file}: look at its owner and mode (ls -l)")
            return False
    return bool(files)


def _check_columns(document: Document, pipeline: Pipeline, schema: Any) -> None:
    """Every column that is named must be there."""
    names, spec = schema.names, pipeline.features
    given = document.data["features"]
    uses: list[tuple[str, Path]] = []
    for word in ("key", "tie", "time", "flush"):
        if word not in given or (word == "tie" and given[word] == "any"):
            continue
        many = isinstance(given[word], list)
        listed = given[word] if many else [given[word]]
        uses += [
            (name, ("features", word, *((i,) if many else ()))) for i, name in enumerate(listed)
        ]
    for place, one in enumerate(given.get("aggregates", [])):
        path: Path = ("features", "aggregates", place)
        if isinstance(one, dict):
            uses += [(one["column"], (*path, "column"))] if "column" in one else []
            uses += [(c, (*path, "columns", i)) for i, c in enumerate(one.get("columns", []))]
    for place, one in enumerate(given.get("windows", [])):
        if isinstance(one, dict) and "bounds" in one:
            uses += [(c, ("features", "windows", place, "bounds")) for c in one["bounds"]]
    for name, path in uses:
        if isinstance(name, str) and name not in names and not document.has_mistake(path):
            document.say(path, _no_column(name, names))
    for output, _, _ in spec.outputs:
        if output in names and spec.every is None:
            document.say(
                ("features",),
                f"the source has a column {output!r} already, which an answer would hide: "
                "rename the answer with alias = …",
            )
    if pipeline.rules and not document.has_mistake(("rules",)):
        for place, rule in enumerate(pipeline.rules):
            watching = Pipeline(**{**vars(pipeline), "rules": [rule]}).watching()
            for name in watching.columns:
                if name not in names:
                    document.say(("rules", place, "when"), _no_column(name, names))


def _no_column(name: str, names: list[str]) -> str:
    near = did_you_mean(name, names) or f"; the source has {', '.join(map(repr, names))}"
    return f"there is no column {name!r}{near}"


def _check_types(document: Document, pipeline: Pipeline, schema: Any) -> None:
    """Each window and each aggregate is tried by itself on a table without rows."""
    spec = pipeline.features
    empty = schema.empty_table()
    words: dict[str, Any] = {"time": spec.time, "unit": spec.unit}
    if spec.time is not None and spec.time not in schema.names:
        return
    if document.has_mistake(("features", "windows"), ("features", "aggregates")):
        return
    windows, aggregates = list(spec.windows.items()), spec.aggregates
    for place, (label, window) in enumerate(windows):
        if all(column in schema.names for column in window_columns(window)):
            alone = Rolling(windows={label: window}, aggregates=[Count().alias("rows")], **words)
            if not _runs(document, ("features", "windows", place), alone, empty, schema):
                return  # the same mistake for all
    for place, aggregate in enumerate(aggregates):
        if all(column in schema.names for column in aggregate.columns):
            alone = Rolling(windows=[one_row(1)], aggregates=[aggregate])
            _runs(document, ("features", "aggregates", place), alone, empty, schema)


def _runs(document: Document, path: Path, spec: Rolling, empty: Any, schema: Any) -> bool:
    try:
        spec(empty)
    except WindrowError as error:
        message = str(error).partition(": ")[2] if path[1] == "aggregates" else str(error)
        document.say(_place(path, str(error), spec), _in_toml(message or str(error), spec, schema))
        return False
    return True


def _place(path: Path, message: str, spec: Rolling) -> Path:
    return ("features", "time") if message.startswith(("time column", "times are")) else path


def _in_toml(message: str, spec: Rolling, schema: Any) -> str:
    """The library's sentence with the file's way out."""
    import pyarrow as pa

    if spec.time in schema.names and "times are integers" in message:
        return (
            f"column {spec.time!r} holds whole numbers, and the window has a unit: say what they "
            f'count under [columns], {spec.time} = "timestamp[s]" (or ms, us), or give the window '
            "as a whole number, { time = 3600 }"
        )
    if spec.time in schema.names and pa.types.is_string(schema.field(spec.time).type):
        return (
            f"column {spec.time!r} is read as text. Under [columns], say {spec.time} = "
            '"timestamp"; it must then look like 2013-01-31 17:05:00'
        )
    for column in spec.aggregates[0].columns:
        if pa.types.is_string(schema.field(column).type) and "Cast it" in message:
            return message.replace(
                "Cast it to a number", f'Say {column} = "double" under [columns]'
            )
    return message


# --- mode, sink, surroundings --------------------------------------------------------------------


def _check_mode(document: Document, pipeline: Pipeline, schema: Any) -> None:
    """What the engine and the mode refuse, in the engine's own words."""
    source = pipeline.source
    if pipeline.engine == "columns":
        if pipeline.streaming:
            document.say(
                ("mode",), 'engine = "columns" runs batches: streams need engine = "spark"'
            )
        if source.format not in IN_PROCESS:
            document.say(
                ("source",),
                f'engine = "columns" reads {", ".join(IN_PROCESS)}; for {source.format} say '
                'engine = "spark"',
            )
        else:
            from windrow.pipeline.files import other_options

            for name in other_options(source):
                path: Path = ("source", "options", name)
                if not document.has_mistake(path):
                    document.say(path, 'only Spark knows this option: engine = "spark"')
        return
    if pipeline.streaming and source.format == "jdbc":
        document.say(("source", "format"), "Spark cannot read jdbc as a stream")
    if not pipeline.streaming and source.format in ("rate", "socket"):
        document.say(
            ("source", "format"), f'{source.format} is a stream: mode = "stream" at the top'
        )
    if schema is None or importlib.util.find_spec("pyspark") is None or document.mistakes:
        return
    from windrow.spark.runs import refusals

    for path, message in refusals(pipeline, schema):
        document.say(path, _of_stream(message, pipeline))


def _of_stream(message: str, pipeline: Pipeline) -> str:
    """The library's sentence about a stream with the file's way out."""
    time = pipeline.features.time
    if message.startswith("a stream needs lateness="):
        return (
            "a stream needs lateness, how much later than others a row may come: "
            'lateness = "10 minutes"'
        )
    if message.startswith("a stream needs time="):
        return "a stream needs a time: time = …, the column that its watermark is about"
    if message.startswith("time column") and "watermarks" in message:
        return (
            f"{message.partition('. ')[0]}. Under [columns], say {time} = "
            '"timestamp", or "timestamp[s]" (ms, us) where it is a number'
        )
    return message


def _check_sink(document: Document, pipeline: Pipeline, name: str, sink: Sink) -> None:
    place: Path = (name,)
    if pipeline.engine == "columns" and sink.format not in (*IN_PROCESS, "console"):
        document.say(
            (*place, "format"), f'engine = "columns" writes {", ".join(IN_PROCESS)} and console'
        )
    if pipeline.streaming:
        if sink.checkpoint is None and sink.format != "console":
            document.say(
                place, 'a stream needs a folder for its state: checkpoint = "…/checkpoint"'
            )
        if "mode" in document.data[name]:
            document.say((*place, "mode"), "streams always append: leave mode out")
    else:
        for word in ("checkpoint", "trigger"):
            if word in document.data[name]:
                document.say((*place, word), "for streams only: leave it out, or change mode")
    for word, path in (("path", sink.path), ("checkpoint", sink.checkpoint)):
        if path is None or _is_address(path):
            continue
        if path in pipeline.source.paths:
            document.say((*place, word), "this is the source: it would be overwritten")
            return
        reason = why_not_written(path)
        if reason:
            document.say((*place, word), reason)
    there = sink.path is not None and os.path.exists(sink.path)
    if there and not pipeline.streaming and sink.mode == "error":
        document.say(
            (*place, "path"),
            f'{sink.path} is there already: mode = "overwrite" replaces it, "append" adds to it',
        )


def why_not_written(path: str) -> str | None:
    """Why nothing can be written there; None where it can."""
    target = FilePath(path.removeprefix("file://").removeprefix("file:"))
    existing = target
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if existing != target and not existing.is_dir():
        return f"{existing} is a file, not a folder"
    if not os.access(existing, os.W_OK):
        return f"no permission to write {existing}: choose another folder, or change its mode"
    return None


def _check_surroundings(document: Document, pipeline: Pipeline, running: bool) -> None:
    """What must be installed, and within reach."""
    if pipeline.engine == "spark":
        from windrow.pipeline.surroundings import why_no_spark

        reason = why_no_spark(pipeline.spark.get("master", ""))
        if reason:
            document.say((), reason, warning=not running)
    ends = [("source", pipeline.source)]
    ends += [(n, s) for n, s in (("sink", pipeline.sink), ("alerts", pipeline.alerts)) if s]  # type: ignore[misc]
    for name, end in ends:
        if end.format == "kafka":
            _check_kafka(document, name, end.options, running)


def _check_kafka(document: Document, name: str, options: dict[str, Any], running: bool) -> None:
    key = "kafka.bootstrap.servers"
    place: Path = (name, "options")
    if key not in options:
        document.say(place, f'Kafka\'s address is missing: "{key}" = "host:9092"')
        return
    if name == "source" and not {"subscribe", "subscribePattern", "assign"} & set(options):
        document.say(place, 'which topic? subscribe = "payments"')
    if name != "source" and "topic" not in options:
        document.say(place, 'which topic? topic = "features"')
    if document.has_mistake((*place, key)):
        return
    servers = [server.strip() for server in str(options[key]).split(",")]
    reasons = []
    for server in servers:
        reason = _why_unreachable(server)
        if reason is None:
            return
        reasons.append(reason)
    document.say(
        (*place, key),
        f"Kafka does not answer: {'; '.join(reasons)}. Is it running, and is the address right?",
        warning=not running,
    )


def _why_unreachable(server: str) -> str | None:
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit():
        return f"{server!r} is not host:port"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _SECONDS):
            return None
    except OSError as error:
        return f"{server}: {error.strerror or error}"
