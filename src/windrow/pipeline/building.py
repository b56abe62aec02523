"""From a file's tables to what runs: windows, aggregates, the specification, source and sink."""

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from windrow import slides
from windrow.aggregates import REGISTRY, Aggregate, Count
from windrow.errors import WindrowError
from windrow.pipeline.lines import Path
from windrow.pipeline.problems import did_you_mean
from windrow.pipeline.reading import Document
from windrow.rolling import Rolling
from windrow.rules import Rules
from windrow.slides import Bounds, WindowSpec

_WORDS = (
    *("key", "time", "tie", "every", "origin", "min_rows", "nan", "overflow", "unit"),
    *("threads", "algorithm", "engine", "lateness"),
)
"""What ``Rolling`` is told besides windows and aggregates."""


def near(path: str) -> str:
    """A path as one would write it here, where that is shorter."""
    if not path or "://" in path:
        return path
    short = os.path.relpath(path)
    return short if len(short) < len(path) else path


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

    def watching(self) -> Rules:
        """The rules, ready for events; answers that conditions name are theirs to compute."""
        said = " ".join(f"{rule['when']} {rule.get('until') or ''}" for rule in self.rules)
        named = {
            name: (aggregate, self.features.windows[label])
            for name, aggregate, label in self.features.outputs
            if name in said
        }
        return Rules(self.rules, key=self.features.key[0], time=self.features.time, features=named)


def built(document: Document) -> Pipeline | None:
    """What the file says; None where too much of it is wrong. Mistakes are noted."""
    data = document.data
    features = _features(document) if isinstance(data.get("features"), dict) else None
    source = _source(document) if isinstance(data.get("source"), dict) else None
    sinks = {
        name: _sink(document, name)
        for name in ("sink", "alerts")
        if isinstance(data.get(name), dict)
    }
    if source is None:
        return None
    if features is None:  # there are mistakes, so it will not run; the rest can still be looked at
        features = Rolling(windows=[slides.rows(1)], aggregates=[Count()])
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
        rules=[] if document.has_mistake(("rules",)) else data.get("rules", []),
        alerts=sinks.get("alerts"),
        spark=_table(data, "spark"),
        report=_report(document),
        redacted=document.redacted,
    )
    options = _table(data, "features") | pipeline.spark
    known = ("buckets", "late", "flush") if pipeline.streaming else _TABLE_OPTIONS
    pipeline.call = {name: options[name] for name in known if name in options}
    _check_rules(document, pipeline)
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


# --- features ------------------------------------------------------------------------------------


def _features(document: Document) -> Rolling | None:
    given = document.data["features"]
    windows: dict[str, WindowSpec] = {}
    for place, one in enumerate(_list(given.get("windows"))):
        path: Path = ("features", "windows", place)
        window = _tried(document, path, partial(_window, one))
        if window is None:
            continue
        label = one.get("name") if isinstance(one, dict) else None
        label = label or window.label
        if label in windows:
            document.say(path, f"a second window is called {label!r}: give one a name, name = …")
        windows[label] = window
    aggregates: list[Aggregate] = []
    taken: dict[str, int] = {}
    for place, one in enumerate(_list(given.get("aggregates"))):
        path = ("features", "aggregates", place)
        aggregate = _tried(document, path, partial(_aggregate, document, one, path))
        if aggregate is None:
            continue
        stem = aggregate.output_name
        if stem in taken:
            document.say(
                path,
                f"its answers would be called {stem}_…, as those of aggregates[{taken[stem]}]: "
                'give one of them another name, alias = "…"',
            )
            continue
        taken[stem] = place
        aggregates.append(aggregate)
    timed = [label for label, window in windows.items() if window.needs_time]
    if timed and "time" not in given:
        about = f"window {timed[0]!r} is about time"
        document.say(("features",), f"{about}: say which column, features.time = …")
    if not windows or not aggregates:
        return None
    words = {
        w: given[w] for w in _WORDS if w in given and not document.has_mistake(("features", w))
    }
    if "time" not in given:
        windows = {label: w for label, w in windows.items() if not w.needs_time}
    return _rolling(document, windows, aggregates, words) if windows else None


def _rolling(
    document: Document, windows: Any, aggregates: Any, words: dict[str, Any]
) -> Rolling | None:
    """The specification; a word that it refuses is noted at its place, and left out."""
    while True:
        try:
            return Rolling(windows=windows, aggregates=aggregates, **words)
        except WindrowError as error:
            word = str(error).partition("=")[0]
            if word not in words:
                document.say(("features",), str(error))
                return None
            document.say(("features", word), str(error).replace("=", "", 1))
            words = {k: v for k, v in words.items() if k != word}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _tried(document: Document, path: Path, make: Callable[[], Any]) -> Any:
    """What is made; where it is refused, the reason is noted at the place."""
    if document.has_mistake(path):
        return None
    try:
        return make()
    except WindrowError as error:
        document.say(path, str(error).removeprefix("time(): ").removeprefix("rows(): "))
    return None


def _window(given: Any) -> WindowSpec:
    if isinstance(given, str):
        return slides.time(given)
    rest = {k: v for k, v in given.items() if k not in ("name", "time", "rows", "bounds")}
    if "bounds" in given:
        return _bounds(given, rest)
    allowed = ("ending", "after", "within") if "rows" in given else ("closed", "ending", "after")
    for word in rest:
        if word not in allowed:
            kind = "rows" if "rows" in given else "time"
            raise WindrowError(
                f"{word} is not for windows of {kind}; those have {', '.join(allowed)}"
            )
    if "rows" in given:
        return slides.rows(given["rows"], **rest)
    return slides.time(given["time"], **rest)


def _bounds(given: dict[str, Any], rest: dict[str, Any]) -> Bounds:
    if rest:
        raise WindrowError(f"{', '.join(rest)}: not for windows between bounds")
    return slides.bounds(*given["bounds"])


def _aggregate(document: Document, given: dict[str, Any], path: Path) -> Aggregate | None:
    name = given["aggregate"]
    kind = REGISTRY.get(name) or _own(document, name, path)
    if kind is None:
        return None
    columns = [given["column"]] if "column" in given else given.get("columns", [])
    known = ("aggregate", "column", "columns", "alias")
    options = {k: v for k, v in given.items() if k not in known}
    try:
        aggregate = kind(*columns, **options)
    except TypeError as error:
        raise WindrowError(f"{name} does not take these options: {error}") from None
    except ImportError as error:  # a package that it needs: the sentence says which extra
        raise WindrowError(str(error)) from None
    if not aggregate.columns and aggregate.input_kinds:
        raise WindrowError(f'{name} needs a column: {{ aggregate = "{name}", column = "…" }}')
    return aggregate.alias(given["alias"]) if "alias" in given else aggregate


def _own(document: Document, name: str, path: Path) -> type[Aggregate] | None:
    """A class of the user's; its module may lie beside the file."""
    module_name, _, class_name = name.partition(":")
    folder = str(document.folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    place = (*path, "aggregate")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        if missing.partition(".")[0] == module_name.partition(".")[0]:
            message = f"there is no module {module_name!r} beside this file, nor installed"
        else:
            message = f"module {module_name!r} needs {missing!r}, which is not installed"
        document.say(place, message)
        return None
    except Exception as error:  # whatever the user's module does when it is imported
        document.say(
            place, f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}"
        )
        return None
    kind = getattr(module, class_name, None)
    if kind is None:
        hint = did_you_mean(class_name, [n for n in vars(module) if not n.startswith("_")])
        document.say(place, f"module {module_name!r} has no {class_name!r}{hint}")
        return None
    if not isinstance(kind, type) or not issubclass(kind, Aggregate):
        document.say(place, f"{name} is not a subclass of windrow.Aggregate")
        return None
    return kind


# --- source, sink, rules -------------------------------------------------------------------------


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


def _check_rules(document: Document, pipeline: Pipeline) -> None:
    """Rules are read, one at a time, so that each mistake has its place."""
    if "rules" not in document.data:
        if "alerts" in document.data:
            document.say(("alerts",), "there are no rules that could tell something: [[rules]]")
        return
    if pipeline.streaming:
        document.say(("rules",), 'rules are for mode = "batch"')
        return
    if len(pipeline.features.key) != 1:
        document.say(("rules",), "rules need a key of one column: features.key = …")
        return
    if "alerts" not in document.data:
        document.say(
            ("rules",), "say where goes what the rules tell: [alerts] with format and path"
        )
    rules, names = pipeline.rules, set()
    for place, rule in enumerate(rules):
        path: Path = ("rules", place)
        if rule["name"] in names:
            document.say(path, f"a second rule is called {rule['name']!r}")
        names.add(rule["name"])
        pipeline.rules = [rule]
        _tried(document, path, pipeline.watching)
    pipeline.rules = rules
