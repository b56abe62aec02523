"""The demo's timeline: what is being done, and how long it took; live in a terminal."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from windrow.errors import WindrowError

PIPED_WIDTH = 100


class Timeline:
    """Prints a line for every step that is done."""

    def __init__(self) -> None:
        try:
            from rich.console import Console
        except ImportError as error:
            raise WindrowError("the demo needs rich: pip install 'windrow[demo]'") from error
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # where there are only letters: ? for bars
        piped = None if sys.stdout.isatty() else shutil.get_terminal_size((PIPED_WIDTH, 25)).columns
        self.console = Console(highlight=False, width=piped)
        self.started = time.perf_counter()
        self.seconds: dict[str, float] = {}

    @property
    def width(self) -> int:
        """Of the screen, in characters."""
        return int(self.console.width)

    def say(self, shown: Any = "", style: str | None = None) -> None:
        """Print a text as it is, or something of rich's."""
        self.console.print(shown, style=style, markup=False)

    @contextmanager
    def step(self, name: str, doing: str) -> Iterator["Step"]:
        """Something that takes time; what it says at its end is its line."""
        step = Step(doing)
        begun = time.perf_counter()
        if self.console.is_terminal:
            with self.console.status(doing) as status:
                step.status = status
                yield step
        else:
            yield step
        took = self.seconds[name] = time.perf_counter() - begun
        self.say(self._line(name, took, step.done or doing))

    def _line(self, name: str, took: float, text: str) -> Any:
        from rich.table import Table
        from rich.text import Text

        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(justify="right", width=7)
        line.add_column(width=8)
        line.add_column()
        line.add_row(Text(f"{took:.1f} s", "cyan"), Text(name.partition(",")[0], "bold"), text)
        return line

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.started


class Step:
    """One step, while it is done."""

    def __init__(self, doing: str) -> None:
        self.doing, self.done = doing, ""
        self.status: Any = None

    def at(self, where: str) -> None:
        """How far it is; shown only in a terminal."""
        if self.status is not None:
            self.status.update(f"{self.doing}: {where}")
