"""A run looked at for a report: its answers, its words, and what it ran on."""

from pathlib import Path
from typing import Any

from windrow.errors import WindrowError


def section_of(made: Any, answers: Any, source: Any) -> Any:
    """A section of a report; where the answers cannot be looked at, it says why."""
    from windrow import report

    pipeline = made.pipeline
    words: dict[str, Any] = {
        "name": pipeline.report.get("title") or pipeline.name,
        "about": _about(made),
        "specification": _specification(pipeline),
        "plan": pipeline.redacted(made.plan),
        "batches": made.batches if pipeline.streaming else None,
        "rows": made.rows,
    }
    notes = []
    if answers is None:
        notes.append(
            f"The answers went to {pipeline.redacted(pipeline.sink.shown)}, which is not read "
            "again: with a sink of files they would be drawn here."
        )
    elif pipeline.sink is not None and pipeline.sink.mode in ("append", "ignore"):
        notes.append("What the sink held before this run is part of what is shown.")
    elif pipeline.streaming:
        notes.append(
            "What the sink held from earlier runs of this stream is part of what is shown."
        )
    keys = pipeline.report.get("keys")
    try:
        seen = report.section(pipeline.features, answers, source, keys=keys, notes=notes, **words)
    except WindrowError:
        raise
    except Exception as error:  # the run is done, and its report says what is missing
        reason = pipeline.redacted(f"{type(error).__name__}: {error}".splitlines()[0])
        notes.append(f"The answers could not be looked at: {reason}")
        seen = report.section(pipeline.features, notes=notes, **words)
    if made.rows is not None and pipeline.streaming:
        seen.rows = made.rows
    return seen


def _about(made: Any) -> dict[str, str]:
    pipeline = made.pipeline
    columns = ", ".join(f"{name} {kind}" for name, kind in pipeline.columns.items())
    found = {
        "Pipeline": pipeline.file,
        "Source": pipeline.redacted(pipeline.source.shown),
        "Types given": columns,
        "Sink": pipeline.redacted(pipeline.sink.shown) if pipeline.sink else "",
        "Mode": pipeline.mode,
        "Engine": "this process" if pipeline.engine == "columns" else "Spark",
        "Spark": pipeline.spark.get("master", "local[*]") if pipeline.engine == "spark" else "",
        "Rules": "; ".join(f"{rule['name']}: {rule['when']}" for rule in pipeline.rules),
        "Stopped": "by Ctrl-C, before its end" if made.interrupted else "",
    }
    return {name: text for name, text in found.items() if text}


def _specification(pipeline: Any) -> str:
    try:
        return str(pipeline.redacted(Path(pipeline.file).read_text(encoding="utf-8")))
    except OSError:
        from windrow.report.sections import described

        return described(pipeline.features)
