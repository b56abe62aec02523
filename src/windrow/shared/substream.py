"""One stream of a hub, the whole or a key's: its rows' times, and a structure for each part."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow.aggregates import Aggregate, Family, Partial, Quantile
from windrow.shared.b_int import BInt
from windrow.shared.base import Shared
from windrow.shared.l_int import LInt, width_classes
from windrow.shared.line import Extent, Line, Reach, Window
from windrow.shared.quantiles import Quantiles
from windrow.shared.r_int import RInt
from windrow.slides import Rows

PartKey = int
_PARTS: dict[tuple[type[Aggregate], str, tuple[str, ...]], PartKey] = {}


def part_key(part: Aggregate) -> PartKey:
    """Equal for parts that have the same partials of the same rows; a number is quick to find."""
    return _PARTS.setdefault((type(part), part.identification, part.columns), len(_PARTS))


@dataclass
class Choice:
    """The structure for a part, with the windows that it serves and why it was chosen."""

    part: Aggregate
    windows: tuple[Window, ...]
    structure: type[Shared]
    reason: str

    def build(self, line: Line) -> Shared:
        """An empty structure over a line of rows."""
        if self.structure is LInt:
            return LInt(self.part, self.windows, line=line)
        if self.structure is Quantiles:
            return Quantiles(aggregate=self.part, line=line)
        return self.structure(self.part, line=line)


def choose(part: Aggregate, windows: Iterable[Window]) -> Choice:
    """R-INT where totals can be subtracted, L-INT for widths within 2×, else B-INT."""
    asked = tuple(dict.fromkeys(windows))
    if isinstance(part, Quantile):
        return Choice(part, asked, Quantiles, "quantiles are selected from sorted runs")
    if RInt.refuses(part) is None:
        return Choice(part, asked, RInt, "totals can be subtracted exactly")
    if any(isinstance(window, Rows) and window.within is not None for window in asked):
        return Choice(part, asked, BInt, "a window of rows within= some time has no fixed width")
    classes = len(width_classes(asked))
    if classes == 1:
        return Choice(part, asked, LInt, "all widths are within a factor of two: 1 ⊕ a lookup")
    return Choice(part, asked, BInt, f"widths in {classes} classes of a factor of two")


@dataclass
class Plan:
    """What a stream keeps: a choice for each part, and how far back any window reaches."""

    choices: dict[PartKey, Choice] = field(default_factory=dict)
    windows: tuple[Window, ...] = ()
    reach: Reach = field(default_factory=lambda: Reach(0))


def make_plan(wanted: Iterable[tuple[Aggregate, Window]]) -> Plan:
    """The plan for parts and the windows over them."""
    parts: dict[PartKey, tuple[Aggregate, list[Window]]] = {}
    windows: dict[Window, None] = {}
    for part, window in wanted:
        parts.setdefault(part_key(part), (part, []))[1].append(window)
        windows[window] = None
    choices = {key: choose(part, asked) for key, (part, asked) in parts.items()}
    return Plan(choices, tuple(windows), Reach.of(list(windows)) if windows else Reach(0))


class Held:
    """A structure in use: from which row on it knows the stream, and who chose it."""

    __slots__ = ("choice", "start", "structure")

    def __init__(self, choice: Choice, line: Line, start: int) -> None:
        self.choice = choice
        self.structure = choice.build(line)
        self.start = start

    def changed(self, choice: Choice, line: Line) -> "Held":
        """The same rows in the structure of another choice."""
        old = self.choice
        same_windows = choice.structure is not LInt or old.windows == choice.windows
        if old.structure is choice.structure and same_windows:
            self.choice = choice
            return self
        made = Held(choice, line, self.start)
        made._fill(self.structure, line)
        made.structure.take_family(self.structure)
        return made

    def _fill(self, known: Shared, line: Line) -> None:
        """Anew, with the line's rows as another structure, or this one, knows them."""
        first = max(line.first, self.start)
        rows = [known.row(number) for number in range(first, line.end)]
        self.structure.begin(first)
        for number, partial in enumerate(rows, first):
            self.structure.push(partial, line.time(number) if line.clock is not None else None)

    def take_back(self, line: Line) -> None:
        """Forget a row that the line has not."""
        try:
            self._fill(self.structure, line)
        except (
            Exception
        ):  # a combine that raises again: without its rows it is right, and incomplete
            self.start = line.end
            self.structure.begin(line.end)


class Substream:
    """Rows of one stream, served to every query that is about it."""

    __slots__ = ("_ticks", "_undecided", "held", "line", "plan", "version")

    def __init__(self, unit: str | None) -> None:
        self.line = Line(unit)
        self.held: dict[PartKey, Held] = {}
        self.plan = Plan()
        self.version = -1
        self._undecided: list[Family] = []

    def follow(self, plan: Plan, version: int) -> None:
        """Keep what a plan says from now on; parts that are new begin with the next row."""
        line, held = self.line, {}
        for key, choice in plan.choices.items():
            known = self.held.get(key)
            if known is not None:
                held[key] = known.changed(choice, line)
                continue
            held[key] = Held(choice, line, line.end)
            held[key].structure.begin(line.end)
        self.held, self.plan, self.version = held, plan, version
        about = [one for one in held.values() if one.choice.part.family is not None]
        self._undecided = [f for one in about for f in one.structure.family.undecided()]
        self._ticks: int | None = None

    def lift(self, value: Any) -> list[Partial]:
        """A value's partial for every part; nothing is inserted."""
        return [held.structure.lift(value) for held in self.held.values()]

    def undecided(self) -> list[Family]:
        """What a row that is refused must not have decided."""
        if self._undecided:
            self._undecided = [family for family in self._undecided if family.known is None]
        return self._undecided

    def measure(self, clock: Line) -> None:
        """How far back rows are kept, in ticks; windows that do not fit the times are refused."""
        if self._ticks is None:
            self._ticks = self.plan.reach.ticks(clock)

    def push(self, partials: list[Partial], ticks: int | None) -> None:
        """A row for every part, or for none where a combine raises; ``append`` follows."""
        done = []
        try:
            for held, partial in zip(self.held.values(), partials, strict=True):
                held.structure.push(partial, ticks)
                done.append(held)
        except BaseException:
            for held in done:
                held.take_back(self.line)
            raise

    def take_back(self) -> None:
        """Forget a row that was pushed and not appended."""
        for held in self.held.values():
            held.take_back(self.line)

    def append(self, ticks: int | None) -> None:
        """The row that was pushed is there."""
        line = self.line
        line.append(ticks)
        before = line.first
        self.measure(line)
        limit = line.trim(self.plan.reach.rows, self._ticks)
        if limit > before:
            for held in self.held.values():
                held.structure.forget(limit)

    def totals(self, keys: Sequence[PartKey], left: int, right: int) -> list[Partial]:
        """Partials of the rows from ``left`` to before ``right`` that all these parts know."""
        parts = [self.held[key] for key in keys]
        left = max(left, *[held.start for held in parts])
        return [held.structure.run(left, right) for held in parts]

    def answer(self, key: PartKey, aggregate: Aggregate, left: int, right: int) -> Any:
        """The answer of an aggregate that is one part, for the rows that the part knows."""
        held = self.held[key]
        return held.structure.answer_of(aggregate, max(left, held.start), right)

    def complete(self, key: PartKey, extent: Extent, now: int | None) -> bool:
        """Whether a part knows all rows that the window can hold now."""
        left, right = self.line.span(extent, now)
        start = self.held[key].start
        return not self.line.misses(extent, now) and (left >= start or left >= right)

    def stored_partials(self) -> int:
        """Partials kept for this stream."""
        return sum(held.structure.stored_partials() for held in self.held.values())
