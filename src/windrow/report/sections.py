"""A section of a report: one run, what it ran on, what went in and what came out."""

import os
import platform
import sys
import time
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from windrow.looks.facts import AnswerFacts, DataFacts, Limits
from windrow.report.findings import Findings, findings
from windrow.rolling import Rolling, is_spark
from windrow.version import __version__

USUAL = Limits()
_PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "pandas")


@dataclass
class Section:
    """Everything that is shown of one run; ``section()`` makes it."""

    name: str
    spec: Rolling
    about: dict[str, str] = field(default_factory=dict)
    """Source, sink, mode and the like, in words."""
    specification: str = ""
    """As the user wrote it."""
    plan: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    data: DataFacts | None = None
    answers: AnswerFacts | None = None
    batches: list[dict[str, Any]] | None = None
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    made: float = 0.0
    rows: int | None = None
    """How many came out, where nothing was looked at."""

    @property
    def findings(self) -> Findings:
        """What is odd about the data."""
        return findings(self.spec, self.data, self.batches)


def section(
    features: Rolling,
    answers: Any = None,
    source: Any = None,
    *,
    name: str = "Run",
    about: dict[str, str] | None = None,
    specification: str | None = None,
    plan: str = "",
    seconds: dict[str, float] | None = None,
    progress: Any = None,
    batches: list[dict[str, Any]] | None = None,
    keys: Any = None,
    notes: list[str] | None = None,
    rows: int | None = None,
    limits: Limits = USUAL,
) -> Section:
    """What a report shows of one run, taken from the table of its answers.

    ``features``: the specification. ``answers``: what came out, as a table of any kind; a Spark
    table should be one that is written or cached, for a few jobs go over it. ``source``: what went
    in, needed only where the answers do not hold its rows (ticks). ``plan``: of ``explain()``.
    ``seconds``: how long each step took. ``progress``: of a stream, ``query.recentProgress``.
    ``keys``: which ones to draw, instead of those with the most rows.
    """
    made = Section(
        name,
        features,
        dict(about or {}),
        described(features) if specification is None else specification,
        plan,
        dict(seconds or {}),
        notes=list(notes or ()),
        versions=versions(),
        machine=machine(),
        made=time.time(),
        rows=rows,
    )
    if progress is not None:
        from windrow.spark.follow import batch_event

        seen = [step for step in progress if "windrow" in (step["observedMetrics"] or {})]
        batches = [batch_event(step) for step in seen]
    made.batches = batches
    wanted = [key if isinstance(key, list | tuple) else (key,) for key in keys or ()]
    if answers is not None:
        made.answers, made.data = _looked_at(features, answers, limits, wanted)
        made.rows = made.answers.rows
    if source is not None:
        made.data = _data(features, source, limits)
    return made


def _looked_at(
    features: Rolling, answers: Any, limits: Limits, wanted: Any
) -> tuple[AnswerFacts, DataFacts | None]:
    if is_spark(answers):
        from windrow.spark import looks

        return looks.looked_at(features, answers, limits, wanted)
    from windrow.columns.frames import whole_as_arrow
    from windrow.looks.tables import both_facts

    return both_facts(features, whole_as_arrow(answers), limits, wanted, True)


def _data(features: Rolling, source: Any, limits: Limits) -> DataFacts:
    if is_spark(source):
        from windrow.spark import looks

        return looks.data_facts(features, source, limits)
    from windrow.columns.frames import whole_as_arrow
    from windrow.looks.tables import data_facts

    return data_facts(features, whole_as_arrow(source), True)


def described(spec: Rolling) -> str:
    """A specification that was written in Python, said again."""
    lines = [f"key = {', '.join(spec.key)}"] if spec.key else ["no key: all rows are one"]
    lines += [f"time = {spec.time}"] if spec.time else []
    lines += [f"tie = {', '.join(spec.tie)}"] if spec.tie else []
    lines += [f"windows = {', '.join(spec.windows)}", "aggregates ="]
    lines += [f"    {aggregate!r} → {aggregate.output_name}_…" for aggregate in spec.aggregates]
    return "\n".join(lines)


def versions() -> dict[str, str]:
    """Of windrow, Python, and what computes."""
    found = {"windrow": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """What it ran on, in a few words."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = f", {size / 2**30:.0f} GB memory"
    return f"{cores} cores {platform.machine()}{memory}, {platform.system()} ({sys.platform})"
