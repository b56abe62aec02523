"""Pipeline files for tests: a small table of payments, and a file about it that can be changed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from windrow.cli import main

ROWS = 400
PIPELINE: dict[str, Any] = {
    "engine": "columns",
    "source": {"format": "csv", "path": "payments.csv"},
    "columns": {"amount": "double"},
    "features": {
        "key": "user",
        "time": "at",
        "tie": "payment",
        "windows": ["1h", "1d"],
        "aggregates": [{"aggregate": "Mean", "column": "amount"}, {"aggregate": "Count"}],
    },
    "sink": {"format": "parquet", "path": "out.parquet"},
}


def payments(rows: int = ROWS, seed: int = 3) -> list[dict[str, Any]]:
    """Payments of a few users over some days, in order of time, with ties."""
    generator = np.random.default_rng(seed)
    seconds = np.sort(generator.integers(0, 4 * 86_400, rows)) // 60 * 60
    times = np.datetime64("2024-03-01T00:00:00") + seconds.astype("timedelta64[s]")
    return [
        {
            "payment": place,
            "user": f"user{generator.integers(0, 5)}",
            "at": str(when).replace("T", " "),
            "amount": round(float(generator.lognormal(3, 1)), 2),
            "note": "abc"[int(generator.integers(0, 3))],
        }
        for place, when in enumerate(times)
    ]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Rows as they are; None is an empty cell."""
    lines = [",".join(rows[0])]
    lines += [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{k}" = {toml(v)}' for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'" if '"' in value else f'"{value}"'
    return str(value)


def document(changes: dict[str, Any]) -> str:
    """The usual file, with dotted keys changed, or left out where they are None."""
    data: dict[str, Any] = {k: dict(v) if isinstance(v, dict) else v for k, v in PIPELINE.items()}
    for dotted, value in changes.items():
        *parents, last = dotted.split(".")
        place = data
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    top = [f"{k} = {toml(v)}" for k, v in data.items() if not isinstance(v, dict)]
    tables = [
        f"[{name}]\n" + "\n".join(f'"{k}" = {toml(v)}' for k, v in table.items())
        for name, table in data.items()
        if isinstance(table, dict)
    ]
    return "\n".join([*top, *tables]) + "\n"


def prepared(folder: Path, **changes: Any) -> Path:
    """A folder with the data and the file, changed."""
    if not (folder / "payments.csv").exists():
        write_csv(folder / "payments.csv", payments())
    path = folder / "p.toml"
    path.write_text(document(changes.pop("changes", {}) | changes))
    return path


def windrow(capsys: Any, *words: str | Path) -> tuple[int, str, str]:
    """The command in this process: exit code, output, errors."""
    capsys.readouterr()
    try:
        code = main([str(word) for word in words])
    except SystemExit as error:  # argparse
        code = int(error.code or 0)
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def command(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    run = [sys.executable, "-m", "windrow", *map(str, words)]
    return subprocess.run(run, capture_output=True, text=True, timeout=120, check=False, **options)
