"""From a file's tables to what runs: windows, aggregates, the specification, source and sink."""

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from windrow import slides
from windrow.aggregates import Aggregate, Count
from windrow.errors import WindrowError
from windrow.pipeline.declaration import AGGREGATES
from windrow.pipeline.lines import Path
from windrow.pipeline.problems import did_you_mean
from windrow.pipeline.reading import Document
from windrow.pipeline.taking_rules import take_rules
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


# --- features ------------------------------------------------------------------------------------


def _features(document: Document) -> Rolling | None:
    given = document.data["features"]
    windows: dict[str, WindowSpec] = {}
    for place, one in enumerate(_list(given.get("windows"))):
        path: Path = ("features", "windows", place)
        window = _tried(document, path, partial(_window, document, one, path))
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
                document.say(_place_of(error, windows, aggregates, words), str(error))
                return None
            document.say(("features", word), str(error).replace("=", "", 1))
            words = {k: v for k, v in words.items() if k != word}


def _place_of(error: WindrowError, windows: Any, aggregates: Any, words: dict[str, Any]) -> Path:
    """The aggregate that is refused with one of the windows; else all of it."""
    for place, aggregate in enumerate(aggregates):
        try:
            Rolling(windows=windows, aggregates=[aggregate], **words)
        except WindrowError as own:
            if str(own) == str(error):
                return ("features", "aggregates", place)
    return ("features",)


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


def _window(document: Document, given: Any, path: Path) -> WindowSpec | None:
    if isinstance(given, str):
        return slides.time(given)
    rest = {k: v for k, v in given.items() if k not in ("name", "time", "rows", "bounds")}
    if "bounds" in given:
        return _bounds(given, rest)
    if "at_most" in given:
        return _at_most(document, given, path)
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


def _at_most(document: Document, given: dict[str, Any], path: Path) -> WindowSpec | None:
    for word in given:
        if word not in ("name", "at_most", "of", "and"):
            raise WindrowError(f"{word} is not for at_most, which has of and and")
    if "of" not in given:
        raise WindrowError(
            'of what? { at_most = 100, of = { aggregate = "Sum", column = "…" } }, say'
        )
    aggregate = _aggregate(document, given["of"], (*path, "of"))
    if aggregate is None:
        return None
    window: WindowSpec = slides.at_most(aggregate, given["at_most"])
    if "and" in given:
        more = given["and"]
        cut = _window(document, more, path)
        assert cut is not None
        window = window & cut  # type: ignore[operator]
    return window


def _aggregate(document: Document, given: dict[str, Any], path: Path) -> Aggregate | None:
    name = given["aggregate"]
    kind = AGGREGATES.get(name) or _own(document, name, path)
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
