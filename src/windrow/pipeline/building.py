"""From a file's tables to what runs: windows, aggregates, the specification, source and sink."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from windrow import slides
from windrow.aggregates import Aggregate, Count
from windrow.pipeline.features import features_of
from windrow.pipeline.lines import Path
from windrow.pipeline.reading import Document
from windrow.pipeline.taking_rules import take_rules
from windrow.rolling import Rolling
from windrow.rules import Rules
from windrow.slides import WindowSpec


def near(path: str) -> str:
    """A path as one would write it here, where that is shorter."""
    if not path or "://" in path:
        return path
    short = os.path.relpath(path)
    return short if len(short) < len(path) else path


def bare(path: str) -> str:
    """A path of this machine without the ``file:`` that Spark knows before it."""
    return path.removeprefix("file://").removeprefix("file:")


@dataclass(frozen=True)
class Source:
    """Where rows come from; ``paths`` hold wherever the process runs."""

    format: str
    paths: tuple[str, ...] = ()
    table: str | None = None
    value: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The source in a few words."""
        return self.table or f"{self.format} {', '.join(map(near, self.paths))}".strip()


@dataclass(frozen=True)
class Sink:
    """Where rows go."""

    format: str
    path: str | None = None
    table: str | None = None
    mode: str = "error"
    value: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    checkpoint: str | None = None
    trigger: str | None = None

    @property
    def shown(self) -> str:
        """The sink in a few words."""
        return self.table or f"{self.format} {near(self.path or '')}".strip()


@dataclass(frozen=True)
class RulesFrom:
    """Where rules are read from again while a stream runs."""

    file: str | None = None
    table: str | None = None
    reread: str = "1s"


@dataclass
class Pipeline:
    """All that a file says, ready to run."""

    file: str
    name: str
    mode: str
    engine: str
    source: Source
    columns: dict[str, str]
    features: Rolling
    sink: Sink | None = None
    rules: list[dict[str, Any]] = field(default_factory=list)
    rules_from: RulesFrom | None = None
    """None where they stand in the pipeline's own file."""
    rule_places: list[tuple[Path, str]] = field(default_factory=list)
    """Of each rule: where it stands in the file; and in another file, to be said before reasons."""
    longest: Any = None
    """How far back rules may look on streams."""
    alerts: Sink | None = None
    spark: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)
    """Options of ``features(table, …)`` on Spark."""
    report: dict[str, Any] = field(default_factory=dict)
    """The report's path, title and keys."""
    redacted: Callable[[str], str] = str

    @property
    def streaming(self) -> bool:
        """Whether rows go on coming."""
        return self.mode.startswith("stream")

    @property
    def watches(self) -> bool:
        """Whether there are rules."""
        return bool(self.rules) or self.rules_from is not None

    def watching(self) -> Rules:
        """The rules, ready for events; answers that conditions name are theirs to compute."""
        said = " ".join(f"{rule['when']} {rule.get('until') or ''}" for rule in self.rules)
        named = {name: pair for name, pair in self.answers.items() if name in said}
        return Rules(self.rules, key=self.features.key[0], time=self.features.time, features=named)

    @property
    def answers(self) -> dict[str, tuple[Aggregate, WindowSpec]]:
        """What the answers are, by name."""
        return {
            name: (aggregate, self.features.windows[label])
            for name, aggregate, label in self.features.outputs
        }


def built(document: Document) -> Pipeline | None:
    """What the file says; None where too much of it is wrong. Mistakes are noted."""
    data = document.data
    features = features_of(document) if isinstance(data.get("features"), dict) else None
    source = _source(document) if isinstance(data.get("source"), dict) else None
    sinks = {
        name: _sink(document, name)
        for name in ("sink", "alerts")
        if isinstance(data.get(name), dict)
    }
    if source is None:
        return None
    if features is None:  # there are mistakes, so it will not run; the rest can still be looked at
        given = data["features"] if isinstance(data.get("features"), dict) else {}
        said = {w: given[w] for w in ("key", "time") if w in given}
        said = {w: k for w, k in said.items() if not document.has_mistake(("features", w))}
        features = Rolling(windows=[slides.rows(1)], aggregates=[Count()], **said)
    pipeline = Pipeline(
        file=document.file,
        name=_text(data, "name") or document.file.rpartition("/")[2].removesuffix(".toml"),
        mode=_text(data, "mode") or "batch",
        engine=_text(data, "engine") or "spark",
        source=source,
        columns={
            name: kind
            for name, kind in _table(data, "columns").items()
            if not document.has_mistake(("columns", name))
        },
        features=features,
        sink=sinks.get("sink"),
        alerts=sinks.get("alerts"),
        longest=_table(data, "alerts").get("longest"),
        spark=_table(data, "spark"),
        report=_report(document),
        redacted=document.redacted,
    )
    options = _table(data, "features") | pipeline.spark
    known = ("buckets", "late", "flush") if pipeline.streaming else _TABLE_OPTIONS
    pipeline.call = {name: options[name] for name in known if name in options}
    take_rules(document, pipeline)
    return pipeline


def _report(document: Document) -> dict[str, Any]:
    given = _table(document.data, "report")
    known = {w: v for w, v in given.items() if not document.has_mistake(("report", w))}
    return known | ({"path": document.local(known["path"])} if "path" in known else {})


_TABLE_OPTIONS = ("partitions", "hot_rows", "stretch_rows")


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _text(data: dict[str, Any], name: str) -> str | None:
    found = data.get(name)
    return found if isinstance(found, str) else None


# --- source and sink -----------------------------------------------------------------------------


def _source(document: Document) -> Source | None:
    given = document.data["source"]
    place: Path = ("source",)
    if document.has_mistake((*place, "path"), (*place, "format")):
        return None
    paths = given.get("path", [])
    paths = [paths] if isinstance(paths, str) else paths
    if "table" in given:
        if paths or "format" in given:
            document.say(place, "give table, or format and path, not both")
        return Source("table", table=given["table"])
    format_ = given.get("format") or _guessed(paths)
    if format_ is None:
        document.say(place, 'format is missing: "csv", "json", "parquet" or another of Spark\'s')
        return None
    if not paths and format_ in (*IN_FILES,):
        document.say(place, f"path is missing: {format_} is read from files")
        return None
    if given.get("value") and format_ != "kafka":
        document.say((*place, "value"), "value is for Kafka, whose messages are bytes")
    return Source(
        format_,
        tuple(document.local(path) for path in paths),
        value=given.get("value"),
        options=given.get("options", {}),
    )


IN_FILES = ("csv", "json", "parquet", "orc", "text", "avro", "delta")


def _guessed(paths: list[str]) -> str | None:
    ending = paths[0].rpartition(".")[2].lower() if paths else ""
    return {"csv": "csv", "json": "json", "jsonl": "json", "parquet": "parquet"}.get(ending)


def _sink(document: Document, name: str) -> Sink | None:
    given = document.data[name]
    place: Path = (name,)
    if document.has_mistake((*place, "path"), (*place, "format"), (*place, "checkpoint")):
        return None
    if "format" not in given:
        return None
    path, table = given.get("path"), given.get("table")
    if given["format"] in IN_FILES and not path and not table:
        document.say(place, f"path is missing: {given['format']} is written to files")
    checkpoint = given.get("checkpoint")
    return Sink(
        given["format"],
        document.local(path) if path else None,
        table,
        given.get("mode") or "error",
        given.get("value"),
        given.get("options", {}),
        document.local(checkpoint) if checkpoint else None,
        given.get("trigger"),
    )
