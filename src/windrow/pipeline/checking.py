"""Everything that can be known to be wrong with a pipeline before it runs, all at once."""

import importlib.util
import os
from typing import Any

from windrow.errors import WindrowError
from windrow.pipeline.building import Pipeline, Source, built
from windrow.pipeline.columns import check_columns, check_types, schema_of
from windrow.pipeline.declaration import IN_PROCESS
from windrow.pipeline.ends import (
    check_apart,
    check_options,
    check_sink,
    check_surroundings,
    is_address,
)
from windrow.pipeline.reading import BadPipeline, Document, read


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
    schema = schema_of(document, pipeline, rows)
    if schema is not None:
        check_columns(document, pipeline, schema)
        check_types(document, pipeline, schema)
    _check_mode(document, pipeline, schema)
    if pipeline.sink is not None:
        check_sink(document, pipeline, "sink", pipeline.sink)
    elif not pipeline.watches and "sink" not in document.data:
        document.say((), "[sink] is missing: say where rows go, with format and path")
    if pipeline.alerts is not None:
        check_sink(document, pipeline, "alerts", pipeline.alerts)
    _check_report(document, pipeline)
    check_apart(document, pipeline)
    _check_answers(document, pipeline, schema)
    check_surroundings(document, pipeline, running)
    return document, pipeline


def _check_report(document: Document, pipeline: Pipeline) -> None:
    """Whether the report can be written, which is known before the run."""
    if "path" in pipeline.report:
        from windrow.report import check_path

        try:
            check_path(pipeline.report["path"])
        except WindrowError as error:
            document.say(("report", "path"), str(error).replace(" with --report", ""))


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
            _check_options(document, source)
            for address in filter(is_address, source.paths):
                document.say(
                    ("source", "path"),
                    f'engine = "columns" reads files of this machine; for {address} say '
                    'engine = "spark"',
                )
        return
    encoding = source.options.get("encoding", "utf-8")
    free = pipeline.spark.get("settings", {}).get(_ANY_CHARSET) in (True, "true")
    if source.format in ("csv", "json") and encoding.lower() not in _CHARSETS and not free:
        document.say(
            ("source", "options", "encoding"),
            f"Spark knows {', '.join(_CHARSETS)}, and {encoding} with settings = "
            f'{{ "{_ANY_CHARSET}" = true }} under [spark]',
        )
    _check_nanoseconds(document, pipeline)
    if pipeline.streaming and source.format == "jdbc":
        document.say(("source", "format"), "Spark cannot read jdbc as a stream")
    if not pipeline.streaming and source.format in ("rate", "socket"):
        document.say(
            ("source", "format"), f'{source.format} is a stream: mode = "stream" at the top'
        )
    if schema is None or importlib.util.find_spec("pyspark") is None or document.mistakes:
        return
    from windrow.spark.runs import refusals, rule_refusals

    for path, message in refusals(pipeline, schema):
        document.say(path, _of_stream(message, pipeline))
    if pipeline.streaming and pipeline.watches and not document.mistakes:
        for path, message in rule_refusals(pipeline, schema):
            document.say(path, message)


def _check_nanoseconds(document: Document, pipeline: Pipeline) -> None:
    """Pandas writes them by default, and Spark does not read them."""
    from windrow.pipeline.files import found_files, in_nanoseconds

    source, settings = pipeline.source, pipeline.spark.get("settings", {})
    if source.format != "parquet" or any(is_address(path) for path in source.paths):
        return
    if settings.get("spark.sql.legacy.parquet.nanosAsLong") in (True, "true"):
        return
    column = in_nanoseconds(found_files(source)[:1])
    if column is not None:
        document.say(
            ("source", "path"),
            f"column {column!r} is in nanoseconds, which Spark does not read: write it in "
            'microseconds (pandas: to_parquet(…, coerce_timestamps="us")), or let the pipeline run '
            'in this process: engine = "columns"',
        )


_CHARSETS = ("utf-8", "iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32")
_ANY_CHARSET = "spark.sql.legacy.javaCharsets"


def _check_options(document: Document, source: Source) -> None:
    from windrow.pipeline.files import known_options, other_options

    check_options(
        document, ("source", "options"), other_options(source), known_options(source.format)
    )


def _check_answers(document: Document, pipeline: Pipeline, schema: Any) -> None:
    """In process: the whole specification on a table without rows, and its answers written."""
    from windrow.pipeline.writing import why_not_written_so

    if pipeline.engine != "columns" or schema is None or document.mistakes:
        return
    try:
        answers = pipeline.features(schema.empty_table())
    except WindrowError as error:
        document.say(("features",), str(error))
        return
    if pipeline.sink is not None and pipeline.sink.format in IN_PROCESS:
        reason = why_not_written_so(answers, pipeline.sink)
        if reason:
            document.say(("sink",), reason)


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
