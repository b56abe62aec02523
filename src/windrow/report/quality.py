"""The page's findings: what is odd about the data, and what was looked for in vain."""

from windrow.report.drawing import has_rows_over_time
from windrow.report.findings import Finding
from windrow.report.markup import Markup, joined, tag
from windrow.report.sections import Section
from windrow.report.words import amount, percent


def quality(n: int, section: Section) -> Markup:
    """Findings with count, share, example and meaning; then what was not found."""
    seen = section.findings
    found = (
        tag("ul", [_finding(finding) for finding in seen.found], class_="findings")
        if seen.found
        else tag("p", "Nothing odd was found.", class_="clean")
    )
    clean = seen.clean
    rest = tag(
        "p", tag("span", "Looked for, and not found: ", class_="clean"), ", ".join(clean), "."
    )
    unchecked = tag("p", "Not looked for: ", "; ".join(seen.unchecked), ".", class_="note")
    data = section.data
    chart = small_chart(n, 0, "Rows over time") if data and has_rows_over_time(data) else None
    return joined(chart, found, rest if clean else None, unchecked if seen.unchecked else None)


def small_chart(n: int, place: int, title: str, summary: str | None = None) -> Markup:
    """A place for one of the script's small charts."""
    return tag(
        "figure",
        tag("figcaption", tag("strong", title), f". {summary}" if summary else None),
        tag("div", class_="chart", data_small=f"{n}-{place}"),
        tag("output", "", aria_live="polite", class_="aloud"),
    )


def _finding(finding: Finding) -> Markup:
    count = "" if finding.count is None else amount(finding.count)
    share = finding.share
    part = None
    if share is not None and finding.of is not None:
        part = tag("small", f"{percent(share)} of {amount(finding.of)}")
    example = tag("p", f"Example: {finding.example}.", class_="note") if finding.example else None
    return tag(
        "li",
        tag("div", count, part, class_="count"),
        tag("div", tag("h4", finding.what), tag("p", finding.meaning), example),
        class_="serious" if finding.serious else None,
    )
