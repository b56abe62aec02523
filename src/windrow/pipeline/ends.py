"""A pipeline's two ends before it runs: files there and readable, folders writable, Kafka awake."""

import os
import socket
from pathlib import Path as FilePath
from typing import Any

from windrow.pipeline.building import Pipeline, Sink, bare, near
from windrow.pipeline.declaration import IN_PROCESS
from windrow.pipeline.lines import Path
from windrow.pipeline.problems import did_you_mean
from windrow.pipeline.reading import Document

_SECONDS = 2.0


def is_address(path: str) -> bool:
    """Whether a path is of another file system than this machine's."""
    return "://" in path and not path.startswith("file:")


def check_files(document: Document, pipeline: Pipeline) -> bool:
    """Whether there are files that can be read."""
    from windrow.pipeline.files import found_files

    source, place = pipeline.source, ("source", "path")
    for path in source.paths:
        parent = FilePath(path).parent
        if not any(sign in path for sign in "*?[") and not os.path.exists(path):
            beside = [p.name for p in parent.iterdir()] if parent.is_dir() else []
            hint = did_you_mean(FilePath(path).name, beside)
            document.say(place, f"there is no {path}{hint or ' (paths are relative to this file)'}")
            return False
        if pipeline.streaming and os.path.isfile(path):
            document.say(
                place, "a stream reads a folder, whose new files are its new rows: name the folder"
            )
    files = found_files(source)
    if not files and not pipeline.streaming:
        document.say(place, f"no files are here: {', '.join(source.paths)}")
    for file in files:
        if not os.access(file, os.R_OK):
            document.say(place, f"no permission to read {file}: look at its owner and mode (ls -l)")
            return False
    return bool(files)


def check_sink(document: Document, pipeline: Pipeline, name: str, sink: Sink) -> None:
    """Whether a sink can be written, and fits the mode."""
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
        if path is None or is_address(path):
            continue
        reason = _why_not_there(pipeline, sink, path) or why_not_written(path)
        if reason:
            document.say((*place, word), reason)
            return
    if pipeline.engine == "columns" and sink.format in IN_PROCESS:
        _check_form(document, place, sink)
    there = sink.path is not None and os.path.exists(sink.path)
    if there and not pipeline.streaming and sink.mode == "error":
        document.say(
            (*place, "path"),
            f'{sink.path} is there already: mode = "overwrite" replaces it, "append" adds to it',
        )


def check_apart(document: Document, pipeline: Pipeline) -> None:
    """Whether everything that is written has a place of its own."""
    ends = [(n, s) for n, s in (("sink", pipeline.sink), ("alerts", pipeline.alerts)) if s]
    written = [((n, w), getattr(s, w)) for n, s in ends for w in ("table", "path", "checkpoint")]
    written.append((("report", "path"), pipeline.report.get("path")))
    taken: dict[str, Path] = {}
    for place, given in written:
        if given is None or document.has_mistake(place):
            continue
        name = given if place[1] == "table" or is_address(given) else os.path.realpath(bare(given))
        first = taken.setdefault(name, place)
        if first != place:
            document.say(place, f"this is {'.'.join(map(str, first))} as well: name another")
        inside = next((other for other in taken if other.startswith(os.path.join(name, ""))), None)
        if inside and place == ("alerts", "path") and not pipeline.streaming:
            document.say(place, f"{near(inside)} is in this folder: name another")


def _check_form(document: Document, place: Path, sink: Sink) -> None:
    """Whether a file in process fits its format and options."""
    from windrow.pipeline.writing import known_options, why_not_of_format

    if is_address(sink.path or ""):
        document.say(
            (*place, "path"),
            f'engine = "columns" writes files of this machine; for {sink.path} say '
            'engine = "spark"',
        )
    reason = why_not_of_format(sink)
    if reason:
        document.say((*place, "path"), reason)
    check_options(document, (*place, "options"), sink.options, known_options(sink.format))


def check_options(document: Document, place: Path, given: Any, known: tuple[str, ...]) -> None:
    """Whether this process knows the options of a format, which else only Spark does."""
    for name in given:
        if name not in known and not document.has_mistake((*place, name)):
            others = f" (known: {', '.join(known)})" if known else ""
            hint = did_you_mean(name, known) or others
            document.say(
                (*place, name),
                f'not known in process{hint}; for an option of Spark\'s, engine = "spark"',
            )


def _why_not_there(pipeline: Pipeline, sink: Sink, path: str) -> str | None:
    """Why nothing may be written there: it is the source, or what is replaced holds it."""
    from windrow.pipeline.files import found_files

    target = os.path.realpath(bare(path))
    own = [p for p in (*pipeline.source.paths, *found_files(pipeline.source)) if not is_address(p)]
    sources = [os.path.realpath(bare(p)) for p in own]
    if target in sources:
        return "this is the source: it would be overwritten"
    if sink.mode == "overwrite" and not pipeline.streaming:
        for held in (*sources, os.path.realpath(pipeline.file)):
            if held == target or held.startswith(os.path.join(target, "")):
                return (
                    f"{near(held)} is in this folder, and would be removed with what is there: "
                    "name a folder of its own"
                )
    for folder in sources if pipeline.engine == "columns" else []:
        if os.path.isdir(folder) and target.startswith(os.path.join(folder, "")):
            return "this is in the source's folder: the next run would read it as rows"
    return None


def why_not_written(path: str) -> str | None:
    """Why nothing can be written there; None where it can."""
    target = FilePath(bare(path))
    existing = target
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if existing != target and not existing.is_dir():
        return f"{existing} is a file, not a folder"
    if not os.access(existing, os.W_OK):
        return f"no permission to write {existing}: choose another folder, or change its mode"
    return None


def check_surroundings(document: Document, pipeline: Pipeline, running: bool) -> None:
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
