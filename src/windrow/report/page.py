"""The page: one HTML file with its style, its script and its data, and nothing from elsewhere."""

import base64
import hashlib
from datetime import UTC, datetime
from importlib import resources

from windrow.looks.facts import Limits
from windrow.report.drawing import drawing
from windrow.report.lines import features, figures
from windrow.report.markup import Markup, embedded, joined, tag
from windrow.report.quality import quality
from windrow.report.sections import Section
from windrow.report.texts import about, plan, spreads, stream, taken
from windrow.version import __version__

MOST_BYTES = 1_900_000
_LEAST_COLUMNS = 10


def page(sections: list[Section], title: str) -> str:
    """The whole file, of bounded size: lines have fewer points where there are many sections."""
    before, after = _page(sections, title)
    room = MOST_BYTES - len(before.encode()) - len(after.encode())
    columns: int | None = None
    while True:
        data = embedded({"runs": [drawing(section, columns) for section in sections]})
        if len(data) <= room or columns == _LEAST_COLUMNS:
            return f"{before}{data}{after}"
        share = min(0.7, 0.9 * room / len(data))
        columns = max(_LEAST_COLUMNS, int((columns or Limits().columns) * share))


def _page(sections: list[Section], title: str) -> tuple[str, str]:
    """What stands before the data, and after."""
    style, script = _file("page.css"), _file("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    several = len(sections) > 1
    head = joined(
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"windrow {__version__}"),
        tag("title", title),
        Markup(f"<style>{style}</style>"),
    )
    body = joined(
        tag("a", "Skip to the report", href="#report", class_="skip"),
        tag("header", tag("h1", title), _lead(sections), _contents(sections, several)),
        tag("main", [_run(n, s, several) for n, s in enumerate(sections)], id="report"),
        tag("footer", tag("p", f"Made by windrow {__version__}. This file needs no network.")),
        Markup('<script type="application/json" id="data">'),
    )
    before = f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}'
    return before, f"</script>\n<script>{script}</script></body></html>\n"


def _file(name: str) -> str:
    return (resources.files("windrow.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _lead(sections: list[Section]) -> Markup:
    moment = max((section.made for section in sections), default=0)
    said = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return tag("p", f"Sliding-window features, {said}", class_="lead")


PARTS = (
    ("features", "Features over time"),
    ("spread", "Distribution"),
    ("quality", "Data quality"),
    ("stream", "Batches of the stream"),
    ("time", "Time and throughput"),
    ("plan", "Plan and reasons"),
    ("about", "What ran"),
)


def _parts(section: Section) -> list[str]:
    left = {"stream"} if section.batches is None else set()
    left |= {"spread"} if section.answers is None or not section.answers.spreads else set()
    return [name for name, _ in PARTS if name not in left]


def _contents(sections: list[Section], several: bool) -> Markup:
    titles = dict(PARTS)
    lists = [
        tag(
            "ul",
            tag("li", tag("strong", section.name)) if several else None,
            [tag("li", tag("a", titles[part], href=f"#{part}-{n}")) for part in _parts(section)],
        )
        for n, section in enumerate(sections)
    ]
    return tag("nav", lists, aria_label="Contents")


def _run(n: int, section: Section, several: bool) -> Markup:
    makers = {
        "features": features,
        "spread": spreads,
        "quality": quality,
        "stream": stream,
        "time": taken,
        "plan": plan,
        "about": about,
    }
    titles = dict(PARTS)
    heading = section.name if several else "At a glance"
    parts = [
        tag(
            "section",
            tag("h3", titles[part], id=f"{part}-{n}-title"),
            makers[part](n, section),
            class_="part",
            id=f"{part}-{n}",
            aria_labelledby=f"{part}-{n}-title",
        )
        for part in _parts(section)
    ]
    return tag(
        "section",
        tag("h2", heading, id=f"run-{n}"),
        figures(n, section),
        parts,
        class_="run",
        aria_labelledby=f"run-{n}",
    )
