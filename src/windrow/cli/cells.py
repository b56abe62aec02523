"""Numbers, sizes and rows as people read them."""

from datetime import datetime
from typing import Any

from windrow.pipeline.values import listed

WIDEST = 30


def amount(number: float | None) -> str:
    """``12,345``; nothing for None."""
    if number is None:
        return ""
    return f"{number:,.0f}"


def size(count: float) -> str:
    """Bytes: ``1.5 MB``.

    >>> size(0), size(1_500_000)
    ('0 B', '1.5 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def span(seconds: float) -> str:
    """Elapsed time: ``0.4 s``, ``12 min``.

    >>> span(0.42), span(720), span(200_000)
    ('0.4 s', '12 min', '2.3 d')
    """
    for limit, unit, factor in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            value = seconds / factor
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds / 86_400:.1f} d"


def cell(value: Any) -> str:
    """A value in a table.

    >>> cell(0.1234567), cell(1234567.8), cell(1e20)
    ('0.123457', '1234568', '1e+20')
    """
    if value is None:
        return "·"
    if isinstance(value, float):
        return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
    text = " ".join(str(value).split("\n"))
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def cells_of(table: Any) -> tuple[list[str], list[list[str]], list[bool]]:
    """Names, rows of cells, and which columns are numbers."""
    columns = [listed(column) for column in table.columns]
    rows = [list(map(cell, row)) for row in zip(*columns, strict=True)]
    names = [" ".join(name.split("\n")) for name in table.column_names]
    words = ("int", "float", "double", "decimal")
    numeric = [str(field.type).startswith(words) for field in table.schema]
    return names, rows, numeric


def plain_table(table: Any, title: str = "") -> str:
    """Aligned columns, for pipes and files."""
    names, rows, numeric = cells_of(table)
    return aligned(names, rows, numeric, title)


def aligned(names: list[str], rows: list[list[str]], numeric: list[bool], title: str = "") -> str:
    """Rows of texts under their names, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = [title] if title else []
    for row in (names, *rows):
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def rich_table(table: Any, title: str, width: int) -> Any:
    """The same for a terminal: columns that do not fit follow below, few rows stand upright."""
    from rich.console import Group
    from rich.text import Text

    names, rows, numeric = cells_of(table)
    if len(rows) <= _FEW and _width(names, rows) > width:
        upright = [[name, *(row[place] for row in rows)] for place, name in enumerate(names)]
        names = ["", *(f"row {place}" for place in range(len(rows)))]
        rows, numeric = upright, [False, *[True] * len(rows)]
    blocks: list[Any] = []
    first = 0
    while first < len(names):
        kept = [0] if first else []
        while first < len(names) and (
            len(kept) <= bool(blocks) or _width_of([*kept, first], names, rows) <= width
        ):
            kept.append(first)
            first += 1
        blocks.append(_block(names, rows, numeric, kept))
    return Group(*([Text(title, "italic")] if title else []), *blocks)


_FEW = 5


def _width(names: list[str], rows: list[list[str]]) -> int:
    return _width_of(list(range(len(names))), names, rows)


def _width_of(places: list[int], names: list[str], rows: list[list[str]]) -> int:
    widest = (max(len(names[p]), *(len(row[p]) for row in rows), 0) for p in places)
    return sum(widest) + 2 * len(places)


def _block(names: list[str], rows: list[list[str]], numeric: list[bool], places: list[int]) -> Any:
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False)
    for place in places:
        justify: Any = "right" if numeric[place] else "left"
        shown.add_column(names[place], justify=justify, header_style="bold", no_wrap=True)
    for row in rows:
        shown.add_row(*(Text(row[place]) for place in places))
    return shown
