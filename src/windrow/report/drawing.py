"""What the page's script draws: lines by key and answer, and small charts, as plain JSON."""

from typing import Any

import numpy as np

from windrow.looks.facts import DataFacts, Key
from windrow.looks.points import Columns, Line, corners, numbers
from windrow.report.sections import Section

_BARS = 150
_COLUMNS_OF_BATCHES = 200
BATCHES = (
    ("seconds", "Batch duration", "span"),
    ("rows", "Rows a batch", "number"),
    ("rows_per_second", "Rows a second", "number"),
    ("lag_seconds", "Lag of the frontier", "span"),
    ("late_rows", "Late rows", "number"),
    ("waiting_rows", "Rows that wait", "number"),
    ("kept_rows", "Rows in the state", "number"),
    ("state_bytes", "Size of the state", "bytes"),
)


def drawing(section: Section, columns: int | None = None) -> dict[str, Any]:
    """One run's data; ``columns`` thins lines out where the page would be too large."""
    made: dict[str, Any] = {"small": small_charts(section)}
    answers = section.answers
    if answers is None or not answers.lines or answers.axis is None:
        return made
    spec, axis = section.spec, answers.axis
    drawn = {name for _, name in answers.lines}
    by_place = {(a.output_name, label): name for name, a, label in spec.outputs if name in drawn}
    stems = list(dict.fromkeys(stem for stem, _ in by_place))
    lines = {
        place: line
        if columns is None
        else line.thinner(_columns(answers.chosen[place[0]], columns))
        for place, line in answers.lines.items()
    }
    step = _step(lines.values())
    widest = max((_cut(line) for line in lines.values()), default=0)
    return made | {
        "axis": {"kind": axis.kind, "zone": axis.zone},
        "step": step,
        "columns": columns or widest,
        "windows": [{"label": n, "length": axis.length(w)} for n, w in spec.windows.items()],
        "stems": [
            {"label": stem, "names": [by_place.get((stem, label)) for label in spec.windows]}
            for stem in stems
        ],
        "keys": [
            {
                "label": key.label,
                "rows": key.rows,
                "lines": {n: _packed(line, step) for (p, n), line in lines.items() if p == place},
            }
            for place, key in enumerate(answers.chosen)
        ],
    }


def _columns(key: Key, count: int) -> Columns:
    return Columns(key.first, key.last, count)


def _cut(line: Line) -> int:
    return line.columns or 0


def _step(lines: Any) -> int:
    """What all times are multiples apart of: it makes small numbers of differences."""
    step = 0
    for line in lines:
        if line.times.dtype.kind == "f":
            return 1
        if len(line.times) > 1:
            step = int(np.gcd.reduce(np.diff(line.times), initial=step))
    return step or 1


def _packed(line: Line, step: int) -> dict[str, Any]:
    """Times as differences from one to the next, in steps."""
    times = line.times
    start = times[0].item() if len(times) else 0
    steps = np.diff(times, prepend=times[:1])
    if times.dtype.kind != "f":
        steps = steps // step
    return {"s": start, "t": steps.tolist(), "v": numbers(line.values), "w": int(line.whole)}


# --- small charts --------------------------------------------------------------------------------


def small_charts(section: Section) -> list[dict[str, Any]]:
    """Rows over time, and what each batch of a stream did."""
    made = []
    if section.data is not None and has_rows_over_time(section.data):
        made.append(_rows_over_time(section.data))
    batches = section.batches or []
    for name, title, kind in BATCHES if batches else ():
        values = np.array([_number(batch.get(name)) for batch in batches])
        if np.isfinite(values).any():
            made.append(_batches(batches, values, title, kind))
    return made


def has_rows_over_time(data: DataFacts) -> bool:
    """Whether times cover a stretch."""
    return bool(data.stretches) and data.first != data.last and data.axis is not None


def _rows_over_time(data: DataFacts) -> dict[str, Any]:
    assert data.axis is not None
    step = (data.last - data.first) / len(data.stretches)
    middles = [data.first + (place + 0.5) * step for place in range(len(data.stretches))]
    starts = [data.axis.shown(_like(data.first, middle - step / 2)) for middle in middles]
    return {
        "title": "Rows over time",
        "axis": {"kind": data.axis.kind, "zone": data.axis.zone},
        "bars": True,
        "step": step,
        "kind": "number",
        "t": middles,
        "v": data.stretches,
        "labels": starts,
        "told": [f"rows in {data.axis.span(step)} from ", ""],
    }


def _like(example: Any, value: float) -> Any:
    return int(value) if isinstance(example, int) else value


def _batches(batches: list[Any], values: Any, title: str, kind: str) -> dict[str, Any]:
    places = np.array([batch["batch"] for batch in batches])
    kept = np.arange(len(places))
    if len(places) > 4 * _COLUMNS_OF_BATCHES:
        kept = corners(places, values, Columns(places[0], places[-1], _COLUMNS_OF_BATCHES))
    return {
        "title": title,
        "axis": {"kind": "number", "zone": None},
        "bars": len(kept) <= _BARS,
        "step": 1,
        "kind": kind,
        "t": places[kept].tolist(),
        "v": numbers(values[kept]),
        "labels": None,
        "told": ["batch ", ""],
    }


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
