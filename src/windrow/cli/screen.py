"""What a person sees: live in a terminal, plain lines elsewhere, JSON lines for machines."""

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, TextIO

from windrow.cli.cells import amount, plain_table, rich_table, size, span
from windrow.pipeline.values import as_json, listed

Event = dict[str, Any]


class Screen(Protocol):
    """Where the events of a run, and its messages, go."""

    def event(self, event: Event) -> None:
        """Something happened in a run."""

    def say(self, text: str) -> None:
        """A line for the person."""

    def table(self, table: Any, title: str) -> None:
        """Rows to look at."""

    def close(self) -> None:
        """Nothing more is shown live."""


def screen_for(json_log: bool, quiet: bool = False) -> Screen:
    """The screen that fits where the output goes."""
    if json_log:
        return JsonLines(sys.stdout)
    if sys.stderr.isatty() and not quiet:
        try:
            return Live()
        except ImportError:
            pass  # without rich, lines do
    return Lines(sys.stderr, quiet)


class JsonLines:
    """One JSON object a line, and nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.lock = threading.Lock()

    def event(self, event: Event) -> None:
        """See ``Screen``."""
        with self.lock:
            self.stream.write(as_json(event, str, ascii_only=True) + "\n")
            self.stream.flush()

    def say(self, text: str) -> None:
        """See ``Screen``."""
        self.event({"event": "message", "message": text})

    def table(self, table: Any, title: str) -> None:
        """See ``Screen``."""
        rows = zip(*map(listed, table.columns), strict=True)
        named = [dict(zip(table.column_names, row, strict=True)) for row in rows]
        self.event({"event": "rows", "title": title, "rows": named})

    def close(self) -> None:
        """See ``Screen``."""


STEPS = {
    "spark": "starting Spark",
    "read": "reading",
    "plan": "planning",
    "compute": "computing",
    "write": "writing",
    "run": "running",
    "report": "looking at the answers for the report",
}


def batch_line(event: Event) -> str:
    """What one batch of a stream did, in a line."""
    rate = f"{amount(event['rows_per_second'])} rows/s" if event["rows_per_second"] else "idle"
    lag = "" if event["lag_seconds"] is None else f", lag {span(event['lag_seconds'])}"
    lost = event["late_rows"] + event["rows_without_time"]
    return (
        f"batch {event['batch']}: {amount(event['rows'])} rows in {span(event['seconds'])} "
        f"({rate}), "
        f"{amount(event['answered_rows'])} answered, {amount(event['waiting_rows'])} waiting, "
        f"{amount(lost)} late{lag}, state {amount(event['kept_rows'])} rows "
        f"{size(event['state_bytes'])}"
    )


def rules_line(event: Event) -> str:
    """What one batch of a stream's rules did, in a line."""
    bad = event["rejected_rules"]
    return (
        f"rules, batch {event['batch']}: {amount(event['rows'])} rows in {span(event['seconds'])}, "
        f"{amount(event['rules'])} rules{f' and {amount(bad)} rejected' if bad else ''}, "
        f"{amount(event['events'])} events"
    )


class Lines:
    """Plain lines, one for each thing that happens."""

    def __init__(self, stream: TextIO, quiet: bool = False) -> None:
        self.stream, self.quiet = stream, quiet

    def event(self, event: Event) -> None:
        """See ``Screen``."""
        if self.quiet:
            return
        kind = event["event"]
        if kind == "started":
            self.say(f"{event['pipeline']}: {event['source']} → {event['sink'] or 'rules'}")
        elif kind == "step":
            self.say(f"{STEPS.get(event['step'], event['step'])} …")
        elif kind == "batch":
            self.say(batch_line(event))
        elif kind == "rules":
            self.say(rules_line(event))

    def say(self, text: str) -> None:
        """See ``Screen``."""
        self.stream.write(text + "\n")
        self.stream.flush()

    def table(self, table: Any, title: str) -> None:
        """See ``Screen``."""
        sys.stdout.write(plain_table(table, title) + "\n")
        sys.stdout.flush()

    def close(self) -> None:
        """See ``Screen``."""


class Live:
    """A terminal, with rich: a line that moves for batches, a table of batches for streams."""

    KEPT = 8

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self.errors, self.out = Console(stderr=True, highlight=False), Console(highlight=False)
        self.batches: list[Event] = []
        self.totals: Event = {"rows": 0, "answered_rows": 0, "late": 0}
        self.step = ""
        self.tasks: Event | None = None
        self.told: Event | None = None
        self.live = RichLive(
            console=self.errors, refresh_per_second=8, transient=True, get_renderable=self.render
        )
        self.started = False

    def event(self, event: Event) -> None:
        """See ``Screen``."""
        kind = event["event"]
        if kind == "started":
            self.say(f"{event['pipeline']}: {event['source']} → {event['sink'] or 'rules'}")
        elif kind == "step":
            self.step, self.tasks = str(STEPS.get(event["step"], event["step"])), None
        elif kind == "tasks":
            self.tasks = event
        elif kind == "batch":
            self.batches = [*self.batches, event][-self.KEPT :]
            for name in ("rows", "answered_rows"):
                self.totals[name] += event[name]
            self.totals["late"] += event["late_rows"] + event["rows_without_time"]
        elif kind == "rules":
            self.told = event
        if kind == "ended":
            self.close()
        elif not self.started:
            self.started = True
            self.live.start()

    def render(self) -> Any:
        """What is shown while it runs."""
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        text = f"{self.step} …"
        if self.tasks is not None:
            text = f"{self.step}: {self.tasks['done']} of {self.tasks['tasks']} tasks"
        if not self.batches and self.told is None:
            return Spinner("dots", Text(text))
        return Group(
            *([self.table_of_batches()] if self.batches else []),
            *([Text(rules_line(self.told))] if self.told is not None else []),
            Text("Ctrl-C stops it; it goes on where it was", "dim"),
        )

    def table_of_batches(self) -> Any:
        """The last batches, and the totals."""
        from rich.table import Table

        shown = Table(show_footer=True, box=None, pad_edge=False)
        total = self.totals
        columns: tuple[tuple[str, str, Callable[[Event], str]], ...] = (
            ("batch", "total", lambda e: str(e["batch"])),
            ("rows", amount(total["rows"]), lambda e: amount(e["rows"])),
            ("seconds", "", lambda e: f"{e['seconds']:.1f}"),
            ("rows/s", "", lambda e: amount(e["rows_per_second"])),
            ("answered", amount(total["answered_rows"]), lambda e: amount(e["answered_rows"])),
            ("waiting", "", lambda e: amount(e["waiting_rows"])),
            (
                "late",
                amount(total["late"]),
                lambda e: amount(e["late_rows"] + e["rows_without_time"]),
            ),
            ("lag", "", lambda e: "" if e["lag_seconds"] is None else span(e["lag_seconds"])),
            ("state rows", "", lambda e: amount(e["kept_rows"])),
            ("state", "", lambda e: size(e["state_bytes"])),
        )
        for name, footer, _ in columns:
            shown.add_column(
                name, footer, justify="right", header_style="bold", footer_style="bold"
            )
        for event in self.batches:
            shown.add_row(*(read(event) for _, _, read in columns))
        return shown

    def say(self, text: str) -> None:
        """See ``Screen``."""
        self.errors.print(text, soft_wrap=True, markup=False)

    def table(self, table: Any, title: str) -> None:
        """See ``Screen``."""
        self.close()
        self.out.print(rich_table(table, title, self.out.width))

    def close(self) -> None:
        """See ``Screen``."""
        if self.started:
            self.started = False
            self.live.stop()
            if self.batches:
                self.errors.print(self.table_of_batches())
                self.batches = []
