"""What streams must give out, in plain Python: all rows looked at again for every answer."""

from collections.abc import Iterable
from typing import Any

import windrow as wr
from tests.tables import session
from windrow.aggregates import EMPTY
from windrow.columns.stretch import Reach
from windrow.slides import Rows, Session
from windrow.windows import Recalc

Row = dict[str, Any]


def key_of(spec: wr.Rolling, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in spec.key)


def answer(spec: wr.Rolling, aggregate: wr.Aggregate, rows: Iterable[Row]) -> Any:
    """An aggregate over rows."""
    window, present = Recalc(aggregate), 0
    for row in rows:
        values = [row[column] for column in aggregate.columns] or [0]
        value = None if None in values else values[0] if len(values) == 1 else tuple(values)
        present += aggregate.lifter()(value) is not EMPTY
        window.insert(value)
    return window.query() if present >= spec.min_rows else None


def in_reach(rows: list[Row], at: Any, reach: Reach, time: str) -> list[Row]:
    return [row for row in rows if at + reach.start <= row[time] < at + reach.end]


def seen_at(spec: wr.Rolling, label: str, reach: Reach, rows: list[Row], at: Any) -> list[Row]:
    """The rows of a key, which are in order, that a window has at a time."""
    window, time = spec.windows[label], str(spec.time)
    if isinstance(window, Session):
        return session_at(window, rows, at, reach, time)
    if isinstance(window, Rows):
        came = [row for row in rows if row[time] <= at]
        rows = came[: len(came) - window.ending][-window.n :] if window.ending < len(came) else []
    return in_reach(rows, at, reach, time)


def session_at(window: Session, rows: list[Row], at: Any, reach: Reach, time: str) -> list[Row]:
    """The session of a time, of the rows of a key, which are in order."""
    came = [row for row in rows if row[time] < at + reach.end]
    times = [row[time] for row in came]
    return came[len(came) - session(times, at, -reach.start, window.includes_end) :]


def moment(
    spec: wr.Rolling, reaches: dict[str, Reach], rows: list[Row], at: Any
) -> tuple[bool, list[Any]]:
    """Whether any window has rows of a key at a time, and the answers there."""
    seen = {label: seen_at(spec, label, reach, rows, at) for label, reach in reaches.items()}
    answers = [answer(spec, aggregate, seen[label]) for _, aggregate, label in spec.outputs]
    return any(seen.values()), answers


class Changes:
    """What ``emit="changes"`` gives out: how the table of live keys differs, turn by turn."""

    def __init__(self, spec: wr.Rolling, reaches: dict[str, Reach]) -> None:
        self.spec, self.reaches = spec, reaches
        self.rows: list[Row] = []
        self.known: dict[tuple[Any, ...], tuple[bool, list[Any]]] = {}

    def turn(self, rows: list[Row], frontier: int | None) -> list[list[Any]]:
        """Rows that are not late, and the frontier after them: what comes out."""
        self.rows += rows
        if frontier is None:
            return []
        time, out = str(self.spec.time), []
        passed = sorted(
            (row for row in self.rows if row[time] < frontier),
            key=lambda row: (row[time], *(row[name] for name in self.spec.tie)),
        )
        for key in {key_of(self.spec, row) for row in passed}:
            own = [row for row in passed if key_of(self.spec, row) == key]
            now = moment(self.spec, self.reaches, own, frontier - 1)
            before = self.known.get(key)
            self.known[key] = now
            if now[0] if before is None else repr(now) != repr(before):
                out.append([*key, frontier - 1, *now[1]])
        return out


class Immediately:
    """What ``emit="immediately"`` gives out: each row's answers over the rows that have come."""

    def __init__(self, spec: wr.Rolling, reaches: dict[str, Reach]) -> None:
        self.spec, self.reaches = spec, reaches
        self.rows: list[Row] = []

    def turn(self, rows: list[Row]) -> list[list[Any]]:
        """Rows that are not late; they come out at once."""
        spec, time = self.spec, str(self.spec.time)
        self.rows += rows
        self.rows.sort(key=lambda row: (row[time], *(row[name] for name in spec.tie)))
        out = []
        for row in rows:
            own = [r for r in self.rows if key_of(spec, r) == key_of(spec, row)]
            answers = []
            for _, aggregate, label in spec.outputs:
                window, reach = spec.windows[label], self.reaches[label]
                seen = in_reach(own, row[time], reach, time)
                if isinstance(window, Session):
                    seen = session_at(window, own, row[time], reach, time)
                if isinstance(window, Rows):
                    place = own.index(row) - window.ending + 1
                    last = own[max(place - window.n, 0) : max(place, 0)]
                    seen = [r for r in last if r[time] >= row[time] + reach.start]
                answers.append(answer(spec, aggregate, seen))
            out.append([*row.values(), *answers])
        return out
