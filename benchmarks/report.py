"""Lines of a benchmark: what was measured and what was needed; printed, and as a page."""

import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Line:
    """One figure; ``needed`` is empty where no bar is set."""

    what: str
    measured: str
    needed: str = ""
    good: bool = True

    @property
    def verdict(self) -> str:
        return "" if not self.needed else "met" if self.good else "MISSED"


class Report:
    """Collects lines by heading and prints them as they come."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.lines: list[Line | str] = []
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
        named = ", ".join(f"{name} {version(name)}" for name in packages)
        self.machine = (
            f"{platform.machine()}, {os.cpu_count()} cores, {memory} GB of memory, Python "
            f"{platform.python_version()}, {named}"
        )
        print(self.machine, flush=True)

    def heading(self, text: str) -> None:
        self.lines.append(text)
        print(f"\n{text}", flush=True)

    def line(self, what: str, measured: str, needed: str = "", good: bool = True) -> None:
        made = Line(what, measured, needed, good)
        self.lines.append(made)
        print(f"  {what:<76} {measured:>24} {needed:>10} {made.verdict:>7}", flush=True)

    @property
    def missed(self) -> list[str]:
        return [line.what for line in self.lines if isinstance(line, Line) and not line.good]

    def exit_code(self) -> int:
        """Says which bars were missed; 1 where one was."""
        for what in self.missed:
            print(f"missed: {what}", file=sys.stderr)
        return 1 if self.missed else 0

    def markdown(self, title: str, text: str) -> str:
        out = [f"# {title}", "", text, "", f"Measured on {self.machine}.", ""]
        for line in self.lines:
            if isinstance(line, str):
                out += ["", f"## {line}", "", "| what | measured | needed | |", "|---|---|---|---|"]
            else:
                out.append(f"| {line.what} | {line.measured} | {line.needed} | {line.verdict} |")
        return "\n".join(out).replace("\n\n\n", "\n\n") + "\n"
