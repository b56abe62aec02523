"""The page's other parts: distributions, batches, time, plan, and what ran."""

from typing import Any

from windrow.looks.spread import SHARES, Histogram, Spread, histograms
from windrow.report.drawing import BATCHES, small_charts
from windrow.report.markup import Markup, joined, tag
from windrow.report.quality import small_chart
from windrow.report.sections import Section
from windrow.report.words import amount, brief, percent, seconds_shown

_LONGEST_TEXT = 60_000
_WIDE, _HIGH = 176, 36


# --- distributions -------------------------------------------------------------------------------


def spreads(_: int, section: Section) -> Markup:
    """For each aggregate a table of its windows, each with a histogram over the same range."""
    answers = section.answers
    assert answers is not None
    by_stem: dict[str, list[tuple[str, Spread]]] = {}
    for name, aggregate, label in section.spec.outputs:
        if name in answers.spreads:
            by_stem.setdefault(aggregate.output_name, []).append((label, answers.spreads[name]))
    sampled = next((s for s in answers.spreads.values() if s.sampled), None)
    about = "Over all rows of all keys."
    if sampled is not None:
        about += (
            f" Histograms and quantiles are those of a sample of {amount(len(sampled.sample))} "
            "rows; smallest and largest are of all."
        )
    about += (
        " The line in a histogram is the median; what lies beyond its range is in the bars at its "
        "ends."
    )
    return joined(
        tag("p", about, class_="note"), [_table(stem, rows) for stem, rows in by_stem.items()]
    )


_NAMES = {0.0: "smallest", 0.5: "median", 1.0: "largest"}


def _table(stem: str, rows: list[tuple[str, Spread]]) -> Markup:
    drawn = histograms([spread for _, spread in rows])
    names = [_NAMES.get(share, f"{share:.0%}") for share in SHARES]
    caption = "No numbers"
    ranges = {(one.low, one.high) for one in drawn if one is not None}
    if len(ranges) == 1:
        low, high = (brief(end) for end in ranges.pop())
        caption = f"Histograms from {low} to {high}"
    elif ranges:
        caption = "Each histogram has a range of its own, for windows are very unlike"
    odd = ("NaN, ∞",) if any(spread.odd for _, spread in rows) else ()
    words = (*names, "mean", "null", *odd)
    head = [
        tag("th", "window", scope="col"),
        tag("th", "histogram", scope="col"),
        *(tag("th", name, scope="col", class_="n") for name in words),
    ]
    body = []
    for place, (label, spread) in enumerate(rows):
        cells = [brief(q) for q in spread.quantiles] or ["none"] * len(SHARES)
        cells += [brief(spread.mean)]
        cells += [_share(spread.missing, spread.rows)]
        cells += [_share(spread.odd, spread.rows)] if odd else []
        body.append(
            tag(
                "tr",
                tag("th", label, scope="row"),
                tag("td", _histogram(drawn[place], spread), class_="whole"),
                *(
                    tag("td", cell, class_="n", data_name=word)
                    for word, cell in zip(words, cells, strict=True)
                ),
            )
        )
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head)),
        tag("tbody", body),
        class_="cards",
    )
    return tag("div", tag("h4", stem), tag("div", table, class_="wide"), class_="spread")


def _share(count: int, of: int) -> str:
    return percent(count / of) if of else "0 %"


def _histogram(one: Histogram | None, spread: Spread) -> Markup:
    if one is None:
        return tag("span", "no numbers", class_="note")
    heights, low, high = one.heights, one.low, one.high
    most = max(heights) or 1
    wide = _WIDE / len(heights)
    path = "".join(
        f"M{i * wide:.1f} {_HIGH}v-{max(1.0, count / most * _HIGH):.1f}h{wide - 0.6:.1f}V{_HIGH}z"
        for i, count in enumerate(heights)
        if count
    )
    drawn = [tag("path", d=path)]
    middle = spread.quantiles[SHARES.index(0.5)]
    at = min(1.0, max(0.0, (middle - low) / (high - low))) * _WIDE
    drawn.append(tag("line", class_="mid", x1=f"{at:.1f}", x2=f"{at:.1f}", y1="0", y2=str(_HIGH)))
    said = (
        f"half of the values are up to {brief(middle)}, nine tenths between "
        f"{brief(spread.quantiles[1])} and {brief(spread.quantiles[-2])}"
    )
    return tag(
        "svg",
        drawn,
        class_="hist",
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
        role="img",
        aria_label=said,
    )


# --- batches of a stream -------------------------------------------------------------------------


def stream(n: int, section: Section) -> Markup:
    """What each batch did."""
    batches = section.batches or []
    if not batches:
        return tag("p", "The stream ended before a batch had rows.")
    titles = [chart["title"] for chart in small_charts(section)]
    names = {title: (name, kind) for name, title, kind in BATCHES}
    charts = [
        small_chart(n, place, title, _summary(batches, *names[title]))
        for place, title in enumerate(titles)
        if title in names
    ]
    total = sum(batch["rows"] for batch in batches)
    took = sum(batch["seconds"] for batch in batches)
    rate = f", {amount(total / took)} rows/s while batches ran" if took else ""
    said = (
        f"{amount(len(batches))} batches, {amount(total)} rows in {seconds_shown(took)}{rate}. "
        "Each chart goes from the first batch to the last."
    )
    return joined(tag("p", said), tag("div", charts, class_="multiples"))


def _summary(batches: list[Any], name: str, kind: str) -> str:
    values = [batch[name] for batch in batches if batch.get(name) is not None]
    shown = {"span": seconds_shown, "number": amount, "bytes": _bytes}[kind]
    middle = sorted(values)[len(values) // 2]
    return f"Median {shown(middle)}, largest {shown(max(values))}, last {shown(values[-1])}"


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


# --- time, plan, what ran ------------------------------------------------------------------------

STEPS = {
    "spark": "Spark started",
    "read": "source read, or looked at",
    "plan": "planned",
    "compute": "computed",
    "write": "written",
    "run": "ran, from source to sink",
    "report": "looked at for this report",
}


def taken(_: int, section: Section) -> Markup:
    """How long each step took, with a bar."""
    if not section.seconds:
        return tag("p", "Nothing was timed.")
    longest = max(section.seconds.values()) or 1.0
    total = sum(section.seconds.values())
    rows = [
        tag(
            "tr",
            tag("th", STEPS.get(step, step), scope="row"),
            tag("td", seconds_shown(took), class_="n", data_name="took"),
            tag("td", percent(took / total) if total else "", class_="n", data_name="share"),
            tag("td", _bar(took / longest), class_="whole"),
        )
        for step, took in section.seconds.items()
    ]
    head = [
        tag("th", word, scope="col", class_=kind)
        for word, kind in (("step", None), ("took", "n"), ("share", "n"), ("", None))
    ]
    said = f"{seconds_shown(total)} in all"
    main = section.seconds.get("run", section.seconds.get("compute"))
    if section.rows and main:
        said += f"; {amount(section.rows / main)} rows/s while it computed"
        each = section.rows * len(section.spec.outputs) / main
        said += f", {amount(each)} answers/s"
    return joined(
        tag("p", f"{said}."),
        tag("table", tag("thead", tag("tr", head)), tag("tbody", rows), class_="cards steps"),
    )


def _bar(share: float) -> Markup:
    rect = tag("rect", x="0", y="0", width=f"{max(0.5, share * 100):.1f}", height="10")
    return tag(
        "svg",
        rect,
        class_="hist thin",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def plan(_: int, section: Section) -> Markup:
    """What was done and why, and the specification as it was written."""
    explained = tag("pre", _cut(section.plan)) if section.plan else tag("p", "No plan was kept.")
    return joined(
        explained,
        tag("h4", "The specification, as it was written"),
        tag("pre", _cut(section.specification)),
    )


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}\n… ({amount(len(text) - _LONGEST_TEXT)} more characters)"


def about(_: int, section: Section) -> Markup:
    """Source, sink, versions, machine."""
    versions = ", ".join(f"{name} {version}" for name, version in section.versions.items())
    pairs = {**section.about, "Versions": versions, "Machine": section.machine}
    notes = [tag("p", note, class_="note") for note in section.notes]
    shown = [[tag("dt", name), tag("dd", value)] for name, value in pairs.items() if value]
    return joined(tag("dl", shown, class_="pairs"), notes)
