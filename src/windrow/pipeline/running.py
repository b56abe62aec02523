"""A pipeline run: in this process or on Spark, told of as it goes, and kept for a report."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from windrow.errors import WindrowError
from windrow.pipeline.building import Pipeline, Sink, near
from windrow.pipeline.declaration import IN_PROCESS

Event = dict[str, Any]
SAMPLE_ROWS = 20


class RunFailed(WindrowError, RuntimeError):
    """A run that stopped by itself: the sentence says why."""


@dataclass
class Run:
    """What happened: enough to show on a screen, in a log, and in a report."""

    pipeline: Pipeline
    listen: Callable[[Event], None] | None = None
    detailed: bool = False
    events: list[Event] = field(default_factory=list)
    plan: str = ""
    rows: int | None = 0
    """How many came out; None where Spark's writer does not tell."""
    alerts: int | None = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each step took: read, compute, write."""
    sample: Any = None
    """The first rows with their answers, as Arrow: of batches in process, or where detailed."""
    told: Any = None
    """What rules told first, as Arrow."""
    section: Any = None
    """What a report shows, where detailed: a ``windrow.report.Section``."""
    interrupted: bool = False
    log: str | None = None
    """Where Spark's own log is."""
    _lock: Any = field(default_factory=threading.Lock)

    def tell(self, event: Event) -> None:
        """Note an event, and pass it on."""
        event = {"event": event["event"], "time": round(time.time(), 3), **event}
        with self._lock:
            if event["event"] != "tasks":  # many, and only for the eye
                self.events.append(event)
            if self.listen is not None:
                self.listen(event)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step that is timed."""
        started = time.perf_counter()
        self.tell({"event": "step", "step": name})
        yield
        self.seconds[name] = round(time.perf_counter() - started, 3)

    @property
    def batches(self) -> list[Event]:
        """What each batch of a stream did."""
        return [event for event in self.events if event["event"] == "batch"]

    def total(self, name: str) -> int:
        """A count over all batches of a stream."""
        return sum(event[name] for event in self.batches)


def run(
    pipeline: Pipeline,
    listen: Callable[[Event], None] | None = None,
    stopping: threading.Event | None = None,
    verbose: bool = False,
    detailed: bool = False,
) -> Run:
    """Run it to its end, or until ``stopping`` is set; raises ``RunFailed`` with one sentence.

    ``detailed``: keep what a report shows too, the plan and some rows, which takes small jobs more
    on Spark.
    """
    made = Run(pipeline, listen, detailed=detailed)
    made.tell(
        {
            "event": "started",
            "pipeline": pipeline.name,
            "mode": pipeline.mode,
            "engine": pipeline.engine,
            "source": pipeline.redacted(pipeline.source.shown),
            "sink": pipeline.redacted(pipeline.sink.shown) if pipeline.sink else None,
        }
    )
    if pipeline.engine == "columns":
        _in_process(made)
    else:
        with on_spark(made, verbose) as session:
            if pipeline.streaming:
                _stream(made, session, stopping or threading.Event())
            else:
                _batch(made, session)
    made.tell(
        {
            "event": "ended",
            "rows": made.rows,
            "alerts": made.alerts,
            "seconds": made.seconds,
            "interrupted": made.interrupted,
        }
    )
    return made


def explain(pipeline: Pipeline, verbose: bool = False) -> str:
    """What would be done, and why."""
    if pipeline.engine == "columns":
        from windrow.pipeline.files import rows_of

        text = pipeline.features.explain(
            rows_of(pipeline.source, pipeline.columns, time=pipeline.features.time)
        )
    else:
        made = Run(pipeline)
        with on_spark(made, verbose) as session:
            from windrow.spark import ends

            df = ends.read(session, pipeline)
            text = pipeline.features.explain(df, **pipeline.call)
    if pipeline.streaming and pipeline.watches:
        return f"{text}\n{_watched(pipeline)}"
    return f"{text}\n{pipeline.watching().explain()}" if pipeline.rules else text


def _watched(pipeline: Pipeline) -> str:
    origin = pipeline.rules_from
    where = "in the pipeline's file: they change with a restart"
    if origin is not None and origin.file is not None:
        where = f"in {near(origin.file)}, read again when it changes"
    elif origin is not None:
        where = f"in table {origin.table}, read again every {origin.reread}"
    count = f"{len(pipeline.rules)} rules" if pipeline.rules else "rules"
    return (
        f"{count} {where}; looked at whenever a row enters or leaves a window, once the watermark "
        f"has passed; all columns are kept for {pipeline.longest}"
    )


def sample(pipeline: Pipeline, rows: int) -> tuple[Any, Any]:
    """The first rows with their answers, and what rules tell of them; always in this process."""
    from windrow.pipeline.files import other_options, rows_of

    if pipeline.source.format not in IN_PROCESS or any("://" in p for p in pipeline.source.paths):
        raise RunFailed(
            f"--sample reads {', '.join(IN_PROCESS)} from local files, and the source is "
            f"{pipeline.redacted(pipeline.source.shown)}: name such a file in source.path for a try"
        )
    unknown = other_options(pipeline.source)
    if unknown:
        raise RunFailed(f"--sample reads without Spark, and only Spark knows {', '.join(unknown)}")
    table = rows_of(pipeline.source, pipeline.columns, rows, pipeline.features.time)
    told = None
    if pipeline.rules and len(pipeline.features.key) == 1:  # streams have several
        from windrow.pipeline.watching import changes

        told = changes(pipeline, table)
    return pipeline.features(table), told


def look(made: Run, answers: Any, source: Any = None) -> None:
    """Keep what a report shows of a run; where that fails, the run is done all the same."""
    from windrow.pipeline.looking import section_of

    with made.step("report"):
        made.section = section_of(made, answers, source)
        if made.sample is None and answers is not None:
            made.sample = answers.limit(SAMPLE_ROWS).toArrow()
    made.section.seconds = dict(made.seconds)


# --- in this process -----------------------------------------------------------------------------


def _in_process(made: Run) -> None:
    from windrow.pipeline.files import rows_of
    from windrow.pipeline.writing import write_table

    pipeline = made.pipeline
    with made.step("read"):
        table = rows_of(pipeline.source, pipeline.columns, time=pipeline.features.time)
    if made.detailed:
        made.plan = pipeline.features.explain(table)
    with made.step("compute"):
        answers = pipeline.features(table)
        if pipeline.rules:
            from windrow.pipeline.watching import changes

            made.told = changes(pipeline, table)
    made.rows, made.sample = answers.num_rows, answers.slice(0, SAMPLE_ROWS)
    with made.step("write"):
        if pipeline.sink is not None:
            write_table(answers, pipeline.sink)
        if made.told is not None and pipeline.alerts is not None:
            made.alerts = made.told.num_rows
            write_table(made.told, pipeline.alerts)
            made.told = made.told.slice(0, SAMPLE_ROWS)
    if made.detailed:
        look(made, answers, None if pipeline.features.answers_rows else table)


# --- on Spark ------------------------------------------------------------------------------------


@contextmanager
def on_spark(made: Run, verbose: bool) -> Iterator[Any]:
    """A session for the run; what goes wrong in Spark is said in a sentence."""
    from windrow.spark import runs
    from windrow.spark.said import said

    if not verbose:
        handle, made.log = tempfile.mkstemp(prefix="windrow-spark-", suffix=".log")
        os.close(handle)
    try:
        with made.step("spark"), runs.told_elsewhere(made.log):
            session, ours = runs.session_for(made.pipeline)
    except Exception as error:
        raise RunFailed(_with_log(f"Spark did not start: {said(error)}", made)) from error
    try:
        runs.by_value(made.pipeline.features)
        yield session
    except WindrowError:
        raise
    except Exception as error:
        text = made.pipeline.redacted(said(error))
        _keep(made, error)
        raise RunFailed(_with_log(text, made)) from error
    finally:
        if ours:
            session.stop()
    if made.log is not None:
        os.unlink(made.log)
        made.log = None


def _keep(made: Run, error: BaseException) -> None:
    if made.log is not None:
        with open(made.log, "a", encoding="utf-8") as file:
            file.write(made.pipeline.redacted(f"\n{type(error).__name__}: {error}\n"))


def _with_log(text: str, made: Run) -> str:
    return text if made.log is None else f"{text}\nSpark's own log: {made.log}"


def _batch(made: Run, session: Any) -> None:
    from windrow.spark import ends

    pipeline = made.pipeline
    with made.step("read"):
        df = ends.read(session, pipeline)
    with made.step("plan"):
        if made.detailed:
            made.plan = pipeline.features.explain(df, **pipeline.call)
        answers = pipeline.features(df, **pipeline.call)
    again = pipeline.sink is not None and ends.can_be_read(pipeline.sink)
    if made.detailed and not again:
        answers = answers.cache()  # they are looked at again, and cannot be read from the sink
    with made.step("run"):
        if pipeline.sink is not None:
            made.rows = _written(made, answers, pipeline.sink)
        if pipeline.rules and pipeline.alerts is not None:
            made.alerts = _written(made, _told(pipeline, df), pipeline.alerts, told=True)
    if made.detailed:
        seen = ends.read_back(session, pipeline.sink, answers.schema) if again else answers
        source = None if pipeline.features.answers_rows else df
        look(made, seen, source)


def _written(made: Run, df: Any, sink: Sink, told: bool = False) -> int | None:
    from windrow.spark import ends

    if sink.format == "console":
        table = df.limit(SAMPLE_ROWS).toArrow()
        if told:
            made.told = table
        else:
            made.sample = table
        return int(table.num_rows)
    return ends.write(df, made.pipeline, sink, made.tell)


def _told(pipeline: Pipeline, df: Any) -> Any:
    """Rules on Spark: each key's rows are watched by themselves."""
    import pyarrow as pa

    from windrow.pipeline.watching import change_schema, changes
    from windrow.spark import ends

    time_column = pipeline.features.time
    until = ends.last_time(df, time_column).as_py() if time_column is not None else None
    schema = change_schema(pipeline, df.limit(0).toArrow().schema)
    pipeline = Pipeline(**{**vars(pipeline), "redacted": str})

    def watch(table: pa.Table) -> pa.Table:
        return changes(pipeline, table, until)

    return ends.per_key(df, pipeline.features.key[0], watch, schema)


def _stream(made: Run, session: Any, stopping: threading.Event) -> None:
    from windrow.spark import ends
    from windrow.spark.follow import follow

    pipeline, sink, alerts = made.pipeline, made.pipeline.sink, made.pipeline.alerts
    with made.step("read"):
        df = ends.read(session, pipeline)
    with made.step("plan"):
        if made.detailed:
            made.plan = pipeline.features.explain(df, **pipeline.call)
        answers = None if sink is None else pipeline.features(df, **pipeline.call)
        told = None if alerts is None else ends.told(df, pipeline)
    with made.step("run"):
        queries = {}
        if answers is not None:
            queries["batch"] = ends.start(answers, pipeline, sink, pipeline.name)
        if told is not None:
            queries["rules"] = ends.start(told, pipeline, alerts, f"{pipeline.name} rules")
        made.tell({"event": "running", "mode": pipeline.mode})
        follow(queries, made.tell, stopping)
    made.interrupted = stopping.is_set()
    made.rows = None if sink is None else made.total("answered_rows")
    made.alerts = sum(event["events"] for event in made.events if event["event"] == "rules")
    if made.detailed:
        seen = None
        if answers is not None and ends.can_be_read(sink):
            seen = ends.read_back(session, sink, answers.schema)
        look(made, seen)
