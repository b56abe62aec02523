"""What the API reference is made of: a page for each package, every public name on one of them."""

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

import windrow as wr


@dataclass(frozen=True)
class Page:
    """A page of the reference: a module, and which of its names it tells."""

    name: str
    title: str
    module: str
    names: tuple[str, ...]
    own_members: bool = True


def _is_aggregate(name: str) -> bool:
    thing = getattr(wr, name)
    return inspect.isclass(thing) and issubclass(thing, wr.Aggregate) and name != "Aggregate"


def _all(module: str, *without: str) -> tuple[str, ...]:
    names = importlib.import_module(module).__all__
    return tuple(name for name in names if name not in without)


_ERRORS = tuple(
    name
    for name, thing in vars(wr.errors).items()
    if inspect.isclass(thing) and issubclass(thing, wr.errors.WindrowError)
)

PAGES = (
    Page("rolling", "Tables and streams: Rolling", "windrow", ("Rolling",)),
    Page("sliding", "Values that come one by one: Sliding", "windrow", ("Sliding",)),
    Page(
        "slides",
        "Windows and policies",
        "windrow",
        ("rows", "time", "session", "bounds", "at_most", "policy", "useful", "Window"),
    ),
    Page("aggregate", "Aggregate: write your own", "windrow", ("Aggregate", "Several")),
    Page(
        "aggregates",
        "Built-in aggregates",
        "windrow",
        tuple(sorted(name for name in wr.__all__ if _is_aggregate(name) and name != "Several")),
        own_members=False,
    ),
    Page(
        "partials",
        "Partials, their schema and bytes",
        "windrow.aggregates",
        _all("windrow.aggregates", *wr.__all__),
    ),
    Page("windows", "Algorithms by name", "windrow.windows", _all("windrow.windows")),
    Page("greedy", "The fewest combines", "windrow.greedy", ("sliding_window", "Greedy")),
    Page("shared", "Many queries: Hub", "windrow.shared", _all("windrow.shared")),
    Page("rules", "Rules", "windrow.rules", _all("windrow.rules")),
    Page("filters", "Filters", "windrow.filters", _all("windrow.filters")),
    Page("approx", "Counters with a proven error", "windrow.approx", _all("windrow.approx")),
    Page("stores", "Stores", "windrow.stores", _all("windrow.stores")),
    Page("columns", "Compiled kernels", "windrow.columns", ("warm_up",)),
    Page("batches", "Tables in batches", "windrow.columns.batches", ("Batches",)),
    Page(
        "event_stream",
        "Streams in this process",
        "windrow.columns.event_stream",
        ("EventStream",),
    ),
    Page(
        "spark",
        "Spark",
        "windrow.spark",
        (
            *("table_settings", "stream_settings", "rules", "History", "history", "state"),
            *("lookup", "metrics", "parse", "RedisSink", "ship", "apply", "explain"),
        ),
    ),
    Page(
        "serving",
        "Serving",
        "windrow.serving",
        ("Features", "Current", "Upserts", "stamp_of", "key_name"),
    ),
    Page("pipeline", "Pipelines", "windrow.pipeline", _all("windrow.pipeline")),
    Page("report", "Reports", "windrow.report", _all("windrow.report")),
    Page("testing", "Testing", "windrow.testing", _all("windrow.testing")),
    Page("errors", "Errors", "windrow.errors", _ERRORS),
)


def summary(thing: Any) -> str:
    """The first line of a docstring; of a constant, nothing."""
    plain = isinstance(thing, type) or inspect.isroutine(thing)
    return (inspect.getdoc(thing) or "").partition("\n")[0] if plain else ""


def page(one: Page) -> str:
    """The page as reStructuredText for autodoc."""
    module = importlib.import_module(one.module)
    out = f"{one.title}\n{'=' * len(one.title)}\n\n"
    if one.module != "windrow":
        out += f".. automodule:: {one.module}\n   :no-members:\n\n"
    for name in one.names:
        thing = getattr(module, name)
        kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
        out += f".. auto{kind}:: {one.module}.{name}\n"
        if kind == "class" and one.own_members:
            out += "   :members:\n   :special-members: __call__\n"
        if kind == "data":
            out += "   :no-value:\n"
        out += "\n"
    return out


def index() -> str:
    """The page docs/api.md, for those who read files: every name, and what it is in one line."""
    out = (
        "# API\n\nEvery public name, and what it is in one line. In the site (`make docs`) each "
        "has its\ndocstring, signature and source; in Python, `help(windrow.Rolling)`.\n"
    )
    for one in PAGES:
        module = importlib.import_module(one.module)
        out += f"\n## {one.title}\n\n`{one.module}`\n\n| name | |\n| --- | --- |\n"
        for name in one.names:
            said = summary(getattr(module, name)).replace("``", "`").replace("|", "\\|")
            out += f"| `{name}` | {said} |\n"
    return out
