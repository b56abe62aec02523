"""The page's figures at a glance, and its features over time."""

from typing import Any

from windrow.looks.facts import AnswerFacts
from windrow.report.markup import Markup, joined, tag
from windrow.report.sections import Section
from windrow.report.words import amount, seconds_shown


def figures(n: int, section: Section) -> Markup:
    """A run in six numbers."""
    pairs = [*_rows(section), *_shape(section)]
    took = sum(section.seconds.values())
    if took:
        rate = f"{amount(section.rows / took)} rows/s, start included" if section.rows else None
        pairs.append(("Time taken", seconds_shown(took), rate))
    found = section.findings.found
    serious = sum(finding.serious for finding in found)
    count = f"{amount(len(found))} finding{'' if len(found) == 1 else 's'}"
    note = f"{serious} may change answers" if serious else "nothing odd" if not found else None
    pairs.append(("Data quality", tag("a", count, href=f"#quality-{n}"), note))
    return tag(
        "dl",
        [
            tag("div", tag("dt", name), tag("dd", value, tag("small", note) if note else None))
            for name, value, note in pairs
        ],
        class_="figures",
    )


def _rows(section: Section) -> list[tuple[str, Any, str | None]]:
    data, rows = section.data, section.rows
    if section.batches is not None:
        came = sum(batch["rows"] for batch in section.batches)
        out = amount(rows or 0)
        return [("Rows in", amount(came), None), ("Rows answered", out, None)]
    if rows is None:
        return [("Rows out", "written", "the writer does not count")]
    if data is not None and data.rows != rows:
        return [("Rows in", amount(data.rows), None), ("Rows out", amount(rows), None)]
    return [("Rows", amount(rows), None)]


def _shape(section: Section) -> list[tuple[str, Any, str | None]]:
    spec, answers, data = section.spec, section.answers, section.data
    windows = len(spec.windows)
    each = len(spec.outputs) == len(spec.aggregates) * windows
    shape = f"{amount(len(spec.aggregates))} {'×' if each else 'over'} {windows} window"
    shape += "" if windows == 1 else "s"
    per = "row" if spec.every is None else "tick"
    made: list[tuple[str, Any, str | None]] = [
        (f"Answers a {per}", amount(len(spec.outputs)), shape)
    ]
    if answers is not None and spec.key:
        made.append(("Keys", how_many_keys(answers), ", ".join(spec.key)))
    if data is not None and data.axis is not None:
        covered = data.axis.span(data.last - data.first)
        made.append(("Time covered", covered, f"from {data.axis.shown(data.first)}"))
    return made


def how_many_keys(answers: AnswerFacts) -> str:
    """Counted, or about so many."""
    return f"{'' if answers.keys_exact else 'about '}{amount(answers.keys)}"


def features(n: int, section: Section) -> Markup:
    """The chart with its pickers; the script of the page fills it in."""
    answers = section.answers
    if answers is None or not answers.lines:
        return tag("p", _why_nothing(section))
    inside = joined(
        _controls(section, answers),
        tag(
            "figure",
            tag(
                "figcaption",
                tag("strong", "", data_title=""),
                Markup(". "),
                tag("span", "", data_faithful=""),
            ),
            tag("div", class_="chart"),
            tag("output", "", aria_live="polite"),
            tag("p", _hint(answers), class_="hint"),
        ),
        tag(
            "table",
            _head("window", "lowest", "highest", "last"),
            tag("tbody", data_ends=""),
            class_="cards",
        ),
        tag(
            "details",
            tag("summary", "The points as a table"),
            tag(
                "div",
                tag("table", tag("caption"), _head("time", "window", "value"), tag("tbody")),
                class_="wide",
            ),
            data_points="",
        ),
        [tag("p", note, class_="note") for note in answers.left_out],
        tag("noscript", tag("p", "Lines are drawn by this page's script, which is switched off.")),
    )
    return tag("div", inside, data_features=str(n))


def _why_nothing(section: Section) -> str:
    answers = section.answers
    if answers is None:
        return next(iter(section.notes), "The answers were not looked at.")
    if not answers.rows:
        return "There are no rows, so there is nothing to draw."
    if answers.left_out:
        return f"Nothing to draw: {answers.left_out[0]}."
    return "There is nothing to draw: no answer is a number."


def _head(*words: str) -> Markup:
    right = ("lowest", "highest", "last", "value")
    cells = [tag("th", word, scope="col", class_="n" if word in right else None) for word in words]
    return tag("thead", tag("tr", cells))


def _controls(section: Section, answers: AnswerFacts) -> Markup:
    drawn = {name for _, name in answers.lines}
    stems = dict.fromkeys(a.output_name for name, a, _ in section.spec.outputs if name in drawn)
    keys = [tag("option", f"{key.label} ({amount(key.rows)} rows)") for key in answers.chosen]
    by = ", ".join(section.spec.key) or "rows"
    chips = [
        tag(
            "label",
            Markup(f'<input type="checkbox" checked data-window="{place}">'),
            tag("span", class_=f"swatch k{place % 6}", aria_hidden="true"),
            label,
        )
        for place, label in enumerate(section.spec.windows)
    ]
    return tag(
        "div",
        tag("label", by, tag("select", keys, data_pick="key")),
        tag(
            "label",
            "aggregate",
            tag("select", [tag("option", stem) for stem in stems], data_pick="stem"),
        ),
        tag("fieldset", tag("legend", "windows"), tag("div", chips, class_="chips")),
        class_="controls",
    )


def _hint(answers: AnswerFacts) -> str:
    parts = [
        "Point at the chart, or focus it and use the arrow keys: left and right along a line, up "
        "and down between windows."
    ]
    if answers.keys > len(answers.chosen):
        count = amount(len(answers.chosen))
        parts.append(f"{count} of {how_many_keys(answers)} keys are here, chosen or the busiest.")
    axis = answers.axis
    if axis is not None and axis.kind == "time":
        parts.append(f"Times are in {axis.zone}." if axis.zone else "Times have no zone.")
    elif axis is not None and axis.kind == "row":
        parts.append("There is no time: rows stand in the order in which they came.")
    return " ".join(parts)
