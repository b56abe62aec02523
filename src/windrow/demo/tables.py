"""What a person looks at: the year by airport and by carrier, and when it was worst."""

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.demo.comparing import Compared
from windrow.demo.pictures import (
    bar,
    day,
    line,
    minute,
    months,
    numbers,
    stretches,
    ticks,
)

AIRPORTS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "La Guardia"}
BUSY_HOUR = 15
"""Different planes, from which on an hour counts."""
FULL = 50.0
"""Minutes: the height of a carrier's line."""
_WIDE = 100
_APART = 4 * 24 * 3600 * 1_000_000


def weeks_for(width: int, others: int) -> int:
    """Of how many parts a line of the year may be, beside other columns of so many characters."""
    return max(12, min(52, width - others))


def _table(title: str, width: int, *columns: tuple[str, str]) -> Any:
    from rich.table import Table
    from rich.text import Text

    made = Table(
        title=Text(title, "bold"), title_justify="left", box=None, pad_edge=False, padding=(0, 1)
    )
    made.width = None if width >= 80 else width
    for name, justify in columns:
        sides: Any = justify
        made.add_column(Text(name, "dim"), justify=sides, no_wrap=True)
    return made


def _parts(answers: pa.Table, key: str) -> dict[str, pa.Table]:
    """The rows of each key."""
    keys = np.asarray(answers[key].to_pylist())
    return {name: answers.take(pa.array(np.flatnonzero(keys == name))) for name in np.unique(keys)}


def year_by_airport(answers: pa.Table, width: int) -> Any:
    """Two lines for each airport: how late, and how many were cancelled."""
    parts = _parts(answers, "origin")
    weeks = weeks_for(width, 54)
    made = _table(
        "The year at the three airports",
        width,
        ("", "left"),
        ("", "left"),
        (months(weeks), "left"),
        ("most", "right"),
        ("when", "left"),
    )
    rows = (("late_mean_24h", "mean delay, 24 h", " min"), ("cancelled_24h", "cancelled, 24 h", ""))
    tops = {name: float(np.nanmax(numbers(answers, name))) for name, _, _ in rows}
    for code, part in parts.items():
        times = ticks(part, "at")
        for place, (name, label, unit) in enumerate(rows):
            values = numbers(part, name)
            most = int(np.nanargmax(values))
            made.add_row(
                AIRPORTS.get(code, code) if place == 0 else "",
                label,
                line(stretches(times, values, weeks), tops[name]),
                f"{values[most]:,.0f}{unit}",
                day(times[most]),
            )
    return made


def worst_hours(answers: pa.Table, width: int) -> Any:
    """The hours with the largest mean delay, at each airport, some days apart."""
    made = _table(
        f"The worst hours: mean delay over the last hour, from {BUSY_HOUR} planes on",
        width,
        ("airport", "left"),
        ("", "left"),
        ("mean", "right"),
        ("p95", "right"),
        ("max", "right"),
        ("planes", "right"),
        ("cancelled 24 h", "right"),
        ("when (New York)", "left"),
    )
    busy = answers.filter(pa.array(numbers(answers, "planes_1h") >= BUSY_HOUR))
    if not busy.num_rows:
        return made
    top = float(np.nanmax(numbers(busy, "late_mean_1h")))
    for code, part in _parts(busy, "origin").items():
        for place, row in enumerate(_peaks(part, "late_mean_1h", 3)):
            found = part.slice(row, 1).to_pylist()[0]
            made.add_row(
                AIRPORTS.get(code, code) if place == 0 else "",
                bar(found["late_mean_1h"], top, 20),
                f"{found['late_mean_1h']:.1f} min",
                f"{found['late_p95_1h']:.0f}",
                f"{found['late_max_1h']:.0f}",
                f"{found['planes_1h']}",
                f"{found['cancelled_24h']}",
                minute(ticks(part, "at")[row]),
            )
    return made


def _peaks(part: pa.Table, name: str, most: int) -> list[int]:
    """Rows with the largest values, each some days from those before."""
    values, times = numbers(part, name), ticks(part, "at")
    found: list[int] = []
    for row in np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable").tolist():
        if all(abs(times[row] - times[other]) > _APART for other in found):
            found.append(row)
        if len(found) == most:
            break
    return found


def carriers(answers: pa.Table, names: dict[str, str], width: int) -> Any:
    """Each carrier's year, the worst first."""
    weeks = weeks_for(width, 63)
    made = _table(
        f"The carriers: mean delay over 7 days (█: from {FULL:.0f} min), and their worst weeks",
        width,
        ("carrier", "left"),
        ("flights", "right"),
        (months(weeks), "left"),
        ("mean", "right"),
        ("p95", "right"),
        ("worst spell", "right"),
        ("until", "left"),
    )
    shown = []
    for code, part in _parts(answers, "carrier").items():
        values = numbers(part, "late_mean_7d")
        enough = np.where(numbers(part, "planes_7d") >= 3, values, np.nan)
        worst = int(np.nanargmax(enough if np.isfinite(enough).any() else values))
        shown.append((float(values[worst]), code, part, worst))
    for mean, code, part, worst in sorted(shown, key=lambda one: -one[0]):
        found = part.slice(worst, 1).to_pylist()[0]
        times = ticks(part, "at")
        made.add_row(
            _short(names.get(code, code)),
            f"{part.num_rows:,}",
            line(stretches(times, numbers(part, "late_mean_7d"), weeks), FULL),
            f"{mean:.0f} min",
            f"{found['late_p95_7d']:.0f}",
            f"{found['spell_7d']:,.0f}",
            day(times[worst]).partition(" ")[2],
        )
    return made


def _short(name: str) -> str:
    """Without what all of them are called."""
    for word in (" Inc.", " Co.", " Corporation", " Airlines", " Air Lines", " Airways"):
        shorter = name.removesuffix(word)
        name = shorter if len(shorter) > 2 else name  # US Airways
    return name


def verdict(results: dict[tuple[str, str], Compared]) -> Any:
    """What was compared with what, and how many values differ."""
    from rich.text import Text

    made = _table(
        "The same bits?",
        _WIDE,
        ("", "left"),
        ("", "left"),
        ("values compared", "right"),
        ("differ", "right"),
    )
    total = Compared()
    for (pair, called), one in results.items():
        total.values += one.values
        total.different += one.different
        made.add_row(pair, f"by {called}", f"{one.values:,}", _differing(one))
    made.add_row(Text("all", "bold"), "", Text(f"{total.values:,}", "bold"), _differing(total))
    return made


def _differing(one: Compared) -> Any:
    from rich.text import Text

    return Text(f"{one.different:,}", "bold red" if one.different else "bold green")
