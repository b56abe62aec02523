"""The picture of docs/architecture.md: a row's way from source to answer, in each engine."""

from html import escape

STEP, GAP, LEFT, TOP, LANE = 152, 22, 24, 96, 150
HIGH = 78

LANES = [
    (
        "One value at a time",
        "wr.Sliding",
        ["a value,", "and its time"],
        [
            "Ticks|time as an integer;|late rows wait",
            "Lift|the value as a partial,|or EMPTY if missing",
            "Policy|who is too old|leaves the window",
            "Algorithm|Two-Stacks Lite, DABA|Lite, … : front ⊕ back",
            "Lower|rounds, once;|kept until a change",
        ],
        "Why: grouping by associativity alone, so a row's cost is the same for any window.",
    ),
    (
        "Columns",
        "wr.Rolling(table)",
        ["Arrow, pandas,", "Polars, NumPy"],
        [
            "Prepare|as Arrow columns,|nulls as masks",
            "Sort once|by key, time, tie;|a key is a run of rows",
            "Bounds|each window is a|range [lo, hi) of rows",
            "Kernel|compiled Two-Stacks|over moving ranges",
            "Answers|in the rows' own order|and the table's type",
        ],
        "Why: ranges only move forward, over keys too, so one plain loop serves every window.",
    ),
    (
        "Spark tables",
        "wr.Rolling(DataFrame)",
        ["DataFrame"],
        [
            "Path|keyed; or no key:|stretches of time",
            "Shuffle|once by key; a stretch|also gets what leaves",
            "Worker|Arrow batches; live|rows carried over",
            "Kernel|the same, on leaving ⊕|middle ⊕ coming rows",
            "Answers|as Arrow, lazily,|a DataFrame",
        ],
        "Why: a row crosses to Python once; a middle is folded once and sent as a partial's bytes.",
    ),
    (
        "Spark streams",
        "wr.Rolling(stream)",
        ["streaming", "DataFrame"],
        [
            "Watermark|a row waits until no|earlier one can come",
            "Pack|one envelope for each|bucket of keys",
            "State|log of rows; segments|folded by DABA Lite",
            "Kernel|the same, on leaving ⊕|middle ⊕ coming rows",
            "Unpack|each row once,|with its answers",
        ],
        "Why: a batch is a segment; how many state calls it makes does not grow with the window.",
    ),
]

STYLE = """
  .page { fill: #ffffff } .lane { fill: #f3f6f4 } .step { fill: #ffffff; stroke: #7d9183 }
  .kernel { fill: #dceee2; stroke: #2f7d4f } .end { fill: #e8edf7; stroke: #5a73a8 }
  text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1d2520 }
  .title { font-size: 20px; font-weight: 650 } .name { font-size: 15px; font-weight: 650 }
  .head { font-size: 13px; font-weight: 650 } .small { font-size: 12px }
  .code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12px }
  .why { font-size: 12.5px; fill: #3c4a41 }
  .arrow { stroke: #5d6f63; stroke-width: 1.5; fill: none }
  .tip { fill: #5d6f63 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #131416 } .lane { fill: #1d2220 } .step { fill: #262c29; stroke: #6d8074 }
    .kernel { fill: #1e3d2b; stroke: #5fb583 } .end { fill: #222a3c; stroke: #7f97cc }
    text { fill: #e6ebe8 } .why { fill: #b9c5be } .arrow { stroke: #93a49a } .tip { fill: #93a49a }
  }
"""


def _text(x: float, y: float, kind: str, words: str, middle: bool = False) -> str:
    place = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x}" y="{y}" class="{kind}"{place}>{escape(words)}</text>\n'


def _box(x: float, y: float, kind: str, lines: list[str]) -> str:
    out = f'<rect x="{x}" y="{y}" width="{STEP}" height="{HIGH}" rx="8" class="{kind}"/>\n'
    first = y + HIGH / 2 - 9 * (len(lines) - 1) + 4
    for i, line in enumerate(lines):
        style = "head" if i == 0 and len(lines) > 2 else "small"
        out += _text(x + STEP / 2, first + 18 * i, style, line, middle=True)
    return out


def _arrow(x: float, y: float) -> str:
    end = x + GAP - 3
    return (
        f'<path d="M{x + 3} {y} H{end - 5}" class="arrow"/>'
        f'<path d="M{end} {y} l-7 -4 v8 z" class="tip"/>\n'
    )


def picture() -> str:
    """The whole, as SVG that follows the reader's light or dark scheme."""
    columns = 1 + max(len(steps) for *_, steps, _ in LANES)
    width = 2 * LEFT + columns * STEP + (columns - 1) * GAP
    height = TOP + len(LANES) * (LANE + 14) - 12
    out = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="rows-title">\n'
        '<title id="rows-title">A row\'s way from source to answer, in each of four engines</title>'
        f"\n<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="12" class="page"/>\n'
    )
    out += _text(LEFT, 38, "title", "One specification, four engines, the same answer")
    said = (
        "Green: the same compiled kernels. Everything around them brings rows there in order, once."
    )
    out += _text(LEFT, 64, "why", said)
    for lane, (name, call, source, steps, why) in enumerate(LANES):
        y = TOP + lane * (LANE + 14) - 10
        out += f'<rect x="10" y="{y}" width="{width - 20}" height="{LANE}" rx="10" class="lane"/>\n'
        out += _text(LEFT, y + 24, "name", name) + _text(LEFT + 185, y + 24, "code", call)
        boxes = [("end", source)] + [("step", step.split("|")) for step in steps]
        for i, (kind, lines) in enumerate(boxes):
            x = LEFT + i * (STEP + GAP)
            style = "kernel" if lines[0] == "Kernel" else "end" if i == len(steps) else kind
            out += _box(x, y + 38, style, lines)
            out += _arrow(x + STEP, y + 38 + HIGH / 2) if i < len(steps) else ""
        out += _text(LEFT, y + 138, "why", why)
    return out + "</svg>\n"
