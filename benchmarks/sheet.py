"""A report of many columns, measured part by part, each in a process of its own."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar

from benchmarks.report import RESULTS

PACKAGES = ("windrow", "pyspark", "pyarrow", "pandas", "numba", "numpy")


@dataclass(frozen=True)
class Row:
    """One row; ``needed`` is empty where no bar is set."""

    workload: str
    numbers: tuple[str, ...]
    needed: str = ""
    good: bool = True

    @property
    def cells(self) -> list[str]:
        verdict = "" if not self.needed else "met" if self.good else "MISSED"
        return [self.workload, *self.numbers, self.needed, verdict]


class Sheet:
    """Runs the measurements, and keeps what was found."""

    title: ClassVar[str]
    headings: ClassVar[tuple[str, ...]]
    """The workload first, what is needed last."""
    widths: ClassVar[tuple[int, ...]]
    """On a terminal; the last is the verdict's."""
    circumstances: ClassVar[str]
    notes: ClassVar[str] = ""
    """What a reader of the figures should know besides."""

    def __init__(self, folder: str, scale: float) -> None:
        self.folder, self.scale = folder, scale
        self.rows: list[Row] = []

    def add(self, workload: str, *numbers: str, needed: str = "", good: bool = True) -> None:
        """One row, printed as soon as it is known."""
        row = Row(workload, numbers, needed, good)
        self.rows.append(row)
        print(self.layout(row.cells), flush=True)

    def layout(self, cells: list[str]) -> str:
        first, *others = self.widths
        numbers = zip(cells[1:], others, strict=True)
        return f"{cells[0]:<{first}}{''.join(f'{cell:>{width}}' for cell, width in numbers)}"

    @property
    def missed(self) -> list[str]:
        return [row.workload for row in self.rows if not row.good]

    def machine(self) -> str:
        versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        return (
            f"{platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB of memory, "
            f"Python {platform.python_version()}, {versions}; {self.circumstances}"
        )

    def markdown(self) -> str:
        middle = ["---:"] * (len(self.headings) - 1)
        cells = [[*self.headings, ""], ["---", *middle, "---"], *(row.cells for row in self.rows)]
        table = "\n".join(f"| {' | '.join(each).strip()} |" for each in cells)
        missed = ", ".join(self.missed) or "none"
        page = f"# {self.title}\n\n{self.machine()}\n\n{table}\n\nMissed: {missed}.\n"
        return f"{page}\n{self.notes}" if self.notes else page


def elsewhere(module: str, given: Mapping[str, Any]) -> Any:
    """What a module prints on its last line, run as a process of its own."""
    command = [sys.executable, "-m", module, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{given} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(kind: type[Any], parts: Mapping[int, Callable[[Any], None]], name: str) -> None:
    """A command: all parts or some, on all rows or a share of them; a whole run is written down."""
    parser = argparse.ArgumentParser(description=kind.title)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--only", help="parts, by number: 1,6")
    given = parser.parse_args()
    wanted = [int(part) for part in given.only.split(",")] if given.only else list(parts)
    with tempfile.TemporaryDirectory(prefix="windrow-") as folder:
        sheet = kind(folder, given.scale)
        print(sheet.machine())
        print(sheet.layout([*sheet.headings, ""]))
        for part in wanted:
            parts[part](sheet)
    print(f"\nmissed: {', '.join(sheet.missed) or 'none'}")
    if given.scale == 1.0 and wanted == list(parts):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(sheet.markdown())
    if given.scale == 1.0 and sheet.missed:
        sys.exit("a bar was missed")
