"""What each command does."""

import argparse
import json
import logging
import os
import shlex
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from windrow.cli.cells import size, span
from windrow.cli.screen import JsonLines, Screen, screen_for
from windrow.errors import WindrowError
from windrow.pipeline.building import Pipeline, bare
from windrow.pipeline.checking import checked_file
from windrow.pipeline.problems import Problem
from windrow.pipeline.reading import BadPipeline, Document

Given = argparse.Namespace


# --- messages ------------------------------------------------------------------------------------


def told(problems: list[Problem], file: str, given: Given) -> None:
    """Mistakes and warnings, one a line, with where they are."""
    if getattr(given, "json_log", False):
        lines = JsonLines(sys.stdout)
        for p in problems:
            kind = "warning" if p.warning else "mistake"
            lines.event(
                {"event": kind, "file": file, "line": p.line, "key": p.place, "message": p.message}
            )
        return
    for problem in problems:
        print(problem.shown(file), file=sys.stderr)
    mistakes = sum(not problem.warning for problem in problems)
    if mistakes:
        print(f"{_many(mistakes, 'mistake')}, nothing was run", file=sys.stderr)


def failed(message: str, given: Given) -> None:
    """One sentence about what went wrong."""
    if getattr(given, "json_log", False):
        JsonLines(sys.stdout).event({"event": "failed", "message": message})
    else:
        print(f"windrow: {message}", file=sys.stderr)


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


# --- run, check, explain -------------------------------------------------------------------------


def run(given: Given) -> int:
    """``windrow run`` with its ways not to run, ``check`` and ``explain``."""
    document, pipeline = checked_file(given.file, running=not (given.check or given.sample))
    if document.mistakes or pipeline is None:
        raise BadPipeline(document.file, [*document.mistakes, *document.warnings])
    told(document.warnings, document.file, given)
    if given.report is not None:
        reason = _why_no_report(given, pipeline)
        if reason is not None:
            failed(reason, given)
            return 2
        pipeline.report["path"] = given.report
    screen = screen_for(given.json_log, given.quiet)
    if given.check:
        screen.say(_found_well(document, pipeline))
        return 0
    if given.sample is not None:
        return _sample(pipeline, given.sample, screen)
    if given.explain:
        from windrow.pipeline.running import explain

        text = explain(pipeline, given.verbose)
        if given.json_log:
            screen.event({"event": "plan", "plan": text})
        else:
            print(text)
        return 0
    return _run(pipeline, screen, given)


def _why_no_report(given: Given, pipeline: Pipeline) -> str | None:
    from windrow.report import check_path

    if given.check or given.explain or given.sample is not None:
        return "--report is for runs: leave --check, --explain or --sample out"
    sinks = [end.path for end in (pipeline.sink, pipeline.alerts) if end is not None and end.path]
    if os.path.realpath(given.report) in [os.path.realpath(bare(path)) for path in sinks]:
        return f"{given.report} is where answers go: name another path with --report"
    try:
        check_path(given.report)
    except WindrowError as error:
        return f"{error}; nothing was run"
    return None


def _found_well(document: Document, pipeline: Pipeline) -> str:
    spec = pipeline.features
    warned = len(document.warnings)
    text = (
        f"{document.file}: no mistakes found"
        + (f", {_many(warned, 'warning')}" if warned else "")
        + f". {_many(len(spec.outputs), 'answer')} a {'row' if spec.every is None else 'tick'}: "
    )
    names = [name for name, _, _ in spec.outputs]
    return text + ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def _sample(pipeline: Pipeline, rows: int, screen: Screen) -> int:
    from windrow.pipeline.running import sample

    table, changes = sample(pipeline, rows)
    screen.table(table, f"the first {_many(table.num_rows, 'row')}, computed from these alone")
    if changes is not None:
        screen.table(changes, f"rules: {_many(changes.num_rows, 'change')}")
    return 0


def _run(pipeline: Pipeline, screen: Screen, given: Given) -> int:
    from windrow.pipeline import running

    stopping = threading.Event()

    def listen(event: dict[str, Any]) -> None:
        if event["event"] == "step" and event["step"] == "read":
            # Spark's own talks to Spark
            _handle(signal.default_int_handler, signal.SIGINT, signal.SIGTERM)
        if event["event"] == "running":
            _handle(_stopper(stopping), signal.SIGINT, signal.SIGTERM)
        screen.event(event)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if not given.verbose:
        logging.disable(logging.CRITICAL)  # of the bridge to Java, when it is interrupted
    try:
        made = running.run(
            pipeline, listen, stopping, given.verbose, detailed="path" in pipeline.report
        )
    finally:
        logging.disable(logging.NOTSET)
        for number, handler in before.items():
            _handle(handler, number)
        screen.close()
    _sum_up(made, screen, given.quiet)
    if "path" in pipeline.report:
        _report(made, screen, given.quiet)
    return 130 if made.interrupted else 0


def _stopper(stopping: threading.Event) -> Any:
    """The first Ctrl-C stops a stream cleanly, the second at once."""

    def stop(*_: Any) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    return stop


def _handle(handler: Any, *numbers: int) -> None:
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            signal.signal(number, handler)


def _sum_up(made: Any, screen: Screen, quiet: bool) -> None:
    if isinstance(screen, JsonLines):
        return
    pipeline = made.pipeline
    if made.sample is not None and pipeline.sink and pipeline.sink.format == "console":
        screen.table(made.sample, "")
    if made.told is not None and pipeline.alerts and pipeline.alerts.format == "console":
        screen.table(made.told, "rules")
    seconds = sum(made.seconds.values())
    where = f" → {pipeline.redacted(pipeline.sink.shown)}" if pipeline.sink else ""
    steps = ", ".join(f"{name} {span(took)}" for name, took in made.seconds.items())
    if not quiet:
        rows = "done" if made.rows is None else _many(made.rows, "row")
        screen.say(f"{rows} in {span(seconds)}{where} ({steps})")
    if pipeline.alerts and not quiet:
        told = "changes" if made.alerts is None else _many(made.alerts, "change")
        screen.say(f"{told} of rules → {pipeline.alerts.shown}")
    if not pipeline.streaming:
        return
    late, timeless = made.total("late_rows"), made.total("rows_without_time")
    if late:
        screen.say(
            f"{_many(late, 'late row')} left out: they came later than others by more than "
            'features.lateness. Raise it, or keep them with late = "is_late"'
        )
    if timeless:
        screen.say(f"{_many(timeless, 'row')} without a time left out")
    waiting = made.batches[-1]["waiting_rows"] if made.batches else 0
    if waiting:
        screen.say(f"{_many(waiting, 'row')} wait until rows come that are later by the lateness")
    if made.interrupted:
        screen.say("stopped; the same command goes on where it was (its checkpoint)")


def _report(made: Any, screen: Screen, quiet: bool) -> None:
    from windrow.pipeline.building import near
    from windrow.report import write

    path = made.pipeline.report["path"]
    size_ = write(path, made)
    if isinstance(screen, JsonLines):
        screen.event({"event": "report", "path": path, "bytes": size_})
    elif not quiet:
        screen.say(f"report → {near(path)} ({size(size_)}), open it in a browser")


# --- the others ----------------------------------------------------------------------------------


def init(given: Given) -> int:
    """``windrow init``: a starter file from a data file."""
    from windrow.pipeline.starter import starter

    target = Path(given.output)
    if target.exists() and not given.force:
        raise WindrowError(f"{target} is there already: --force overwrites it, -o names another")
    text, found, notes = starter(given.data, target)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise WindrowError(f"{target} cannot be written: {error.strerror}") from error
    print(f"{target} written: {found}.")
    for note in notes:
        print(f"Look at: {note}")
    file = shlex.quote(str(target))
    print(f"Try it:  windrow run {file} --sample 10\nRun it:  windrow run {file}")
    return 0


def bench(given: Given) -> int:
    """``windrow bench``: engines and peers on the user's data."""
    from windrow.pipeline.bench import measured

    document, pipeline = checked_file(given.file, running=False)
    sink_only = [p for p in document.mistakes if p.path[:1] not in (("sink",), ("alerts",))]
    if sink_only or pipeline is None:
        raise BadPipeline(document.file, document.mistakes)
    screen = screen_for(given.json_log, given.quiet)
    try:
        result = measured(
            pipeline, given.data, given.rows, given.repeat, not given.no_spark, screen.event
        )
    finally:
        screen.close()
    if given.json_log:
        screen.event({"event": "bench", **result.as_dict()})
    else:
        print(result)
    return 0


def schema(_: Given) -> int:
    """``windrow schema``: for editors."""
    from windrow.pipeline.declaration import json_schema

    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def demo(given: Given) -> int:
    """``windrow demo``: what ``make demo`` runs."""
    from windrow.pipeline.surroundings import why_no_spark

    reason = why_no_spark(way_out="", extra="demo")
    if reason:
        raise WindrowError(f"the demo runs on Spark. {reason}")
    from windrow.demo.running import demo as run_demo

    return 0 if run_demo(given.report) else 1
