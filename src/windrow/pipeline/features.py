"""What a file says of its features: windows, aggregates, and the specification they make."""

import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from windrow import slides
from windrow.aggregates import Aggregate
from windrow.errors import WindrowError
from windrow.pipeline.declaration import AGGREGATES
from windrow.pipeline.lines import Path
from windrow.pipeline.problems import did_you_mean
from windrow.pipeline.reading import Document
from windrow.rolling import Rolling
from windrow.slides import WindowSpec

_WORDS = (
    *("key", "time", "tie", "every", "origin", "min_rows", "nan", "overflow", "unit"),
    *("threads", "algorithm", "engine", "lateness"),
)
"""What ``Rolling`` is told besides windows and aggregates."""


def features_of(document: Document) -> Rolling | None:
    """The specification; None where too much of it is wrong. Mistakes are noted."""
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
        over = _over(document, one, (*path, "over"), windows)
        names = [f"{aggregate.output_name}_{label}" for label in over]
        other = next((taken[name] for name in names if name in taken), None)
        if other is not None:
            document.say(
                path,
                f"its answers would be called {aggregate.output_name}_…, as those of "
                f'aggregates[{other}]: give one of them another name, alias = "…"',
            )
            continue
        taken |= dict.fromkeys(names, place)
        aggregates.append(aggregate.over(*over) if "over" in one and over else aggregate)
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


def _over(
    document: Document, given: dict[str, Any], path: Path, windows: dict[str, WindowSpec]
) -> list[str]:
    """The names of the windows that an aggregate is computed over."""
    if "over" not in given or document.has_mistake(path):
        return list(windows)
    asked = given["over"] if isinstance(given["over"], list) else [given["over"]]
    for name in asked:
        if name not in windows and not document.has_mistake(("features", "windows")):
            near = did_you_mean(name, list(windows)) or f"; there are {', '.join(windows)}"
            document.say(path, f"no window is called {name!r}{near}")
    return [name for name in asked if name in windows]


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
            own_windows = {n: w for n, w in windows.items() if n in (aggregate._over or windows)}
            Rolling(windows=own_windows, aggregates=[aggregate], **words)
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
        said = str(error)
        for form in ("time", "rows", "session"):
            said = said.removeprefix(f"{form}(): ")
        document.say(path, said)
    return None


def _window(document: Document, given: Any, path: Path) -> WindowSpec | None:
    if isinstance(given, str):
        return slides.time(given)
    forms = ("time", "rows", "session", "bounds")
    rest = {k: v for k, v in given.items() if k not in ("name", *forms)}
    if "bounds" in given:
        return _bounds(given, rest)
    for form in ("at_most", "useful", "policy"):
        if form in given:
            return _kept(document, form, given, path)
    form = next(form for form in forms if form in given)
    for word in rest:
        if word not in _BESIDE[form]:
            raise WindrowError(
                f"{word} is not for windows of {form}; those have {', '.join(_BESIDE[form])}"
            )
    make: Any = {"time": slides.time, "rows": slides.rows, "session": slides.session}[form]
    window: WindowSpec = make(given[form], **rest)
    return window


_BESIDE = {
    "time": ("closed", "ending", "after"),
    "rows": ("ending", "after", "within"),
    "session": ("closed",),
}
"""What may stand beside a window's length."""


def _bounds(given: dict[str, Any], rest: dict[str, Any]) -> WindowSpec:
    if rest:
        raise WindrowError(f"{', '.join(rest)}: not for windows between bounds")
    return slides.bounds(*given["bounds"])


_OF = {
    "at_most": '{ at_most = 100, of = { aggregate = "Sum", column = "…" } }',
    "policy": '{ policy = "my_module:too_old", of = { aggregate = "Max", column = "…" } }',
}
"""Windows whose rows leave by a rule about an aggregate."""


def _kept(document: Document, form: str, given: dict[str, Any], path: Path) -> WindowSpec | None:
    """The rows that a policy keeps."""
    allowed = ("name", form, *(("of",) if form in _OF else ()), "and")
    for word in given:
        if word not in allowed:
            takes = " and ".join(allowed[2:])
            raise WindrowError(f"{word} is not for {form}, which has {takes}")
    if form in _OF and "of" not in given:
        raise WindrowError(f"of what? {_OF[form]}, say")
    word = "of" if form in _OF else form
    about = given[word] if isinstance(given[word], list) else [given[word]]
    if any("over" in one for one in about):
        raise WindrowError("over is for the aggregates of [features]; rows leave one window here")
    aggregates = [_aggregate(document, one, (*path, word)) for one in about]
    function = _imported(document, given[form], (*path, form)) if form == "policy" else None
    if None in aggregates or (form == "policy" and function is None):
        return None
    window: WindowSpec
    if form == "policy":
        over = aggregates if isinstance(given["of"], list) else aggregates[0]
        window = slides.policy(function, over=over, name=given.get("name"))
    elif len(aggregates) > 1:
        raise WindrowError("several aggregates are for a policy; at_most is about one")
    elif form == "at_most":
        window = slides.at_most(aggregates[0], given["at_most"])
    else:
        window = slides.useful(aggregates[0])
    if "and" in given:
        cut = _window(document, given["and"], path)
        assert cut is not None
        window = window & cut
    return window


def _aggregate(document: Document, given: dict[str, Any], path: Path) -> Aggregate | None:
    name = given["aggregate"]
    kind = AGGREGATES.get(name) or _own(document, name, (*path, "aggregate"))
    if kind is None:
        return None
    columns = [given["column"]] if "column" in given else given.get("columns", [])
    known = ("aggregate", "column", "columns", "alias", "over", "where")
    options = {k: v for k, v in given.items() if k not in known}
    try:
        aggregate = kind(*columns, **options)
    except TypeError as error:
        raise WindrowError(f"{name} does not take these options: {error}") from None
    except ImportError as error:  # a package that it needs: the sentence says which extra
        raise WindrowError(str(error)) from None
    if not aggregate.columns and aggregate.input_kinds:
        raise WindrowError(f'{name} needs a column: {{ aggregate = "{name}", column = "…" }}')
    aggregate = _of_some_rows(aggregate, given.get("where", {}))
    return aggregate.alias(given["alias"]) if "alias" in given else aggregate


def _of_some_rows(aggregate: Aggregate, where: str | dict[str, Any]) -> Aggregate:
    if isinstance(where, str):
        return aggregate.where(where)
    for column, values in where.items():
        aggregate = aggregate.where(column, *(values if isinstance(values, list) else [values]))
    return aggregate


def _own(document: Document, name: str, path: Path) -> type[Aggregate] | None:
    """A class of the user's."""
    kind = _imported(document, name, path)
    if kind is None:
        return None
    if not isinstance(kind, type) or not issubclass(kind, Aggregate):
        document.say(path, f"{name} is not a subclass of windrow.Aggregate")
        return None
    return kind


def _imported(document: Document, name: str, place: Path) -> Any:
    """What a module of the user's has; the module may lie beside the file. None where not."""
    module_name, _, own_name = name.partition(":")
    folder = str(document.folder)
    if folder not in sys.path:
        sys.path.insert(0, folder)
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
    found = getattr(module, own_name, None)
    if found is None:
        hint = did_you_mean(own_name, [n for n in vars(module) if not n.startswith("_")])
        document.say(place, f"module {module_name!r} has no {own_name!r}{hint}")
    return found
