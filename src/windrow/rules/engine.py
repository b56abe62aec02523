"""Which rules start and stop firing for which keys, as events come in and as time passes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from windrow.aggregates import Aggregate, Count, Max, Min, as_aggregate
from windrow.errors import BadSpecification, BadValue
from windrow.rules.candidates import Candidates
from windrow.rules.expression import Expression, Operand, Reader, Threshold
from windrow.rules.thresholds import Thresholds
from windrow.shared import EACH, Hub, Query
from windrow.shared.hub import as_key
from windrow.shared.line import Line, Window, as_suffix_or_historical
from windrow.shared.substream import Substream
from windrow.slides import Rows, Time


@dataclass(frozen=True)
class Change:
    """A rule that started or stopped firing for a key, and when."""

    rule: str
    key: Any
    started: bool
    at: Any

    def __str__(self) -> str:
        return f"{self.at}: {self.rule} {'started' if self.started else 'stopped'} for {self.key!r}"


@dataclass(frozen=True)
class Rule:
    """A condition to start by and, where it is not the same, one to stop by."""

    name: str
    number: int
    when: Expression
    until: Expression | None

    @property
    def simple(self) -> bool:
        """Whether it fires exactly while an operand passes a number."""
        return self.when.is_threshold and self.until is None

    @property
    def guard(self) -> Threshold | None:
        """A threshold that must hold for it to start: of a feature rather than of a row."""
        implied = self.when.implied
        about = [t for t in implied if t.operand.feature is not None]
        return next(iter((*about, *implied)), None)


class Instant:
    """The values of one key at one moment, each looked up once."""

    __slots__ = ("_known", "_now", "_queries", "_row", "_stream")

    def __init__(
        self, queries: list[Query], stream: Substream | None, now: int | None, row: Any
    ) -> None:
        self._queries, self._stream, self._now, self._row = queries, stream, now, row
        self._known: dict[int, Any] = {}

    def feature(self, number: int) -> Any:
        """A windowed aggregate's value now."""
        if number in self._known:
            return self._known[number]
        query, stream = self._queries[number], self._stream
        if stream is None:
            value = query.aggregate.empty
        else:
            partials = [stream.total(name, query.window, self._now) for name in query.names]
            value = query.aggregate.answer(query.assemble(partials))
        self._known[number] = value
        return value

    def column(self, name: str) -> Any:
        """A value of the key's last row; missing where it has no such column."""
        return self._row.get(name)


class Rules:
    """A table of rules over every key of a stream.

    >>> import windrow as wr
    >>> rules = wr.Rules(key="host", time="at")
    >>> _ = rules.add("busy", 'count(10) >= 3')
    >>> _ = rules.add("slow", "mean(ms, 10) > 2 * mean(ms, 100, ending=10)", until="ms < 50")
    >>> for at in (1, 2, 3):
    ...     for change in rules.insert({"host": "a", "at": at, "ms": 20.0}):
    ...         print(change)
    3: busy started for 'a'
    >>> [str(change) for change in rules.advance(11)]
    ["11: busy stopped for 'a'"]

    ``when``: the condition to fire (see ``windrow.rules.expression``); ``until``: the condition to
    stop, where it shall differ (hysteresis). ``features``: windowed aggregates by name, as
    ``{"high": (wr.Max("price"), "30m")}``, also of your own aggregates. Rules are added and removed
    at any time. They are evaluated with every row, for its key, and whenever a row leaves or enters
    a window of time, for that key: what is returned says exactly when.
    """

    def __init__(
        self,
        rules: Iterable[Any] = (),
        *,
        key: str,
        time: str | None = None,
        features: Mapping[str, tuple[Any, Any]] | None = None,
        idle: Any = None,
        unit: str | None = None,
    ) -> None:
        self._key, self._time = key, time
        self._hub = Hub(idle=idle, unit=unit)
        self._hub.on_drop = self._forget_key
        self._queries: list[Query] = []
        self._numbers: dict[tuple[str, tuple[str, ...], Window], int] = {}
        self._named: dict[str, int] = {}
        self._reader = Reader(self._named.get, self._feature)
        self._rules: dict[str, Rule] = {}
        self._by_number: dict[int, Rule] = {}
        self._next = 0
        self._simple: dict[tuple[Operand, str], Thresholds] = {}
        self._guarded: dict[tuple[Operand, str], Thresholds] = {}
        self._unguarded: dict[int, Rule] = {}
        self._values: dict[Any, dict[tuple[Operand, str], Any]] = {}
        self._firing: dict[Any, set[int]] = {}  # by key: rules that are not simple
        self._rows: dict[Any, Mapping[str, Any]] = {}
        self._due: list[tuple[int, int, Any]] = []
        self._dues: dict[Any, int] = {}
        self._ties = 0
        self._restless = False
        self._candidates = Candidates()
        for name, (aggregate, window) in (features or {}).items():
            self.define(name, aggregate, window)
        for rule in rules:
            self.add(*_as_rule(rule))

    # --- rules ----------------------------------------------------------------------------------

    def define(self, name: str, aggregate: Aggregate | type[Aggregate], window: Any) -> None:
        """A windowed aggregate that conditions can name."""
        if not isinstance(name, str) or not name.isidentifier():
            raise BadSpecification(f"a feature's name is a word, not {name!r}")
        if name in self._named:
            raise BadSpecification(f"there is a feature {name!r} already")
        found = as_suffix_or_historical(window)
        self._named[name] = self._feature(as_aggregate(aggregate), found)

    def _feature(self, aggregate: Aggregate, window: Window) -> int:
        if window.needs_time and self._time is None:
            raise BadSpecification(
                f"window {window.label!r} is about time: say which column, Rules(time=...)"
            )
        name = (aggregate.identification, aggregate.columns, window)
        if name not in self._numbers:
            self._numbers[name] = len(self._queries)
            self._queries.append(self._hub.register(aggregate, window, key=EACH))
        return self._numbers[name]

    def add(self, name: str, when: str, until: str | None = None) -> list[Change]:
        """A new rule; the keys that it fires for now are returned."""
        if not isinstance(name, str) or not name:
            raise BadSpecification(f"a rule's name is a text, not {name!r}")
        if name in self._rules:
            raise BadSpecification(f"there is a rule {name!r} already: remove it first")
        read = self._reader.read
        rule = Rule(name, self._next, read(when), None if until is None else read(until))
        self._next += 1
        self._rules[name] = self._by_number[rule.number] = rule
        self._restless = self._restless or not self._calm(rule)
        if rule.simple:
            return self._add_simple(rule)
        guard = rule.guard
        if guard is None:
            self._unguarded[rule.number] = rule
        else:
            self._group(self._guarded, guard).add(guard.number, rule.number)
        changes: list[Change] = []
        for key in self._waiting_keys(guard):
            self._evaluate_one(rule, key, changes)
            self._schedule(key)
        return changes

    def _add_simple(self, rule: Rule) -> list[Change]:
        threshold = rule.when.implied[0]
        group = self._group(self._simple, threshold)
        name = (threshold.operand, threshold.sign)
        group.add(threshold.number, rule.number)
        changes = []
        now = self._now
        at = self._hub.shown(now)
        for key in self._waiting_keys(threshold):
            value = threshold.operand.value(self._instant(key, now))
            self._values.setdefault(key, {})[name] = value
            if rule.number in group.passed(value):
                changes.append(Change(rule.name, key, True, at))
            self._schedule(key)
        return changes

    def _waiting_keys(self, threshold: Threshold | None) -> list[Any]:
        """The keys for which a new rule may fire now: few of them, where a filter can tell."""
        if not self._rows:
            return []
        if threshold is not None and threshold.operand.feature is not None:
            query = self._queries[threshold.operand.feature]
            line = self._hub.clock
            found = self._candidates.keys(query, threshold.sign, threshold.number, self._now, line)
            if found is not None:
                return [key for key in found if key in self._rows]
        return list(self._rows)

    @staticmethod
    def _group(groups: dict[Any, Thresholds], threshold: Threshold) -> Thresholds:
        name = (threshold.operand, threshold.sign)
        if name not in groups:
            groups[name] = Thresholds(*name)
        return groups[name]

    def _calm(self, rule: Rule) -> bool:
        """Whether it can only stop, not start, when a row leaves a window."""
        if not rule.simple:
            return False
        threshold = rule.when.implied[0]
        if threshold.operand.feature is None:
            return True
        query = self._queries[threshold.operand.feature]
        suffix = not query.window.ending and (
            isinstance(query.window, Rows) or query.window.includes_end
        )
        falls = {Count: ">", Max: ">", Min: "<"}.get(type(query.aggregate))
        return suffix and falls == threshold.sign[0]

    def remove(self, name: str) -> None:
        """Forget a rule; it does not stop firing, it is gone."""
        rule = self._rules.pop(name, None)
        if rule is None:
            raise BadSpecification(f"there is no rule {name!r}")
        del self._by_number[rule.number]
        guard = rule.when.implied[0] if rule.simple else rule.guard
        if guard is None:
            del self._unguarded[rule.number]
        else:
            groups = self._simple if rule.simple else self._guarded
            group = groups[(guard.operand, guard.sign)]
            group.remove(guard.number, rule.number)
            if not len(group):
                del groups[(guard.operand, guard.sign)]
        for firing in self._firing.values():
            firing.discard(rule.number)

    @property
    def rules(self) -> dict[str, str]:
        """The rules' conditions by name."""
        return {name: rule.when.text for name, rule in self._rules.items()}

    @property
    def keys(self) -> list[Any]:
        """The keys that have rows in a window."""
        return list(self._rows)

    def __len__(self) -> int:
        return len(self._rules)

    # --- events ---------------------------------------------------------------------------------

    def insert(self, row: Mapping[str, Any]) -> list[Change]:
        """Take an event; which rules started or stopped for which keys, since the last one."""
        if not isinstance(row, Mapping):
            raise BadValue(f"an event is a mapping from columns to values, not {row!r}")
        for column in (self._key, *([self._time] if self._time else [])):
            if column not in row:
                raise BadValue(f"the event has no {column!r}; it has {', '.join(map(repr, row))}")
        key = row[self._key]
        if key is None:
            raise BadValue(f"the event has no key: {self._key!r} is missing in {dict(row)!r}")
        at = row[self._time] if self._time else None
        key = as_key(key)
        self._hub.check(row, key, at)
        changes = [] if at is None else self._pass_time(self._hub.ticks(at), before=True)
        self._hub.insert(row, key=key, at=at)
        self._rows[key] = row
        now = self._now
        self._candidates.insert(self._queries, key, row, now, self._hub.clock)
        self._evaluate(key, now, changes)
        return changes

    def insert_many(self, events: Any) -> list[Change]:
        """Take events in order: mappings, a mapping of columns, or a table of pyarrow."""
        if isinstance(events, Mapping):
            names = list(events)
            events = (
                dict(zip(names, row, strict=True)) for row in zip(*events.values(), strict=True)
            )
        elif hasattr(events, "to_pylist"):
            events = events.to_pylist()
        return [change for event in events for change in self.insert(event)]

    def advance(self, now: Any) -> list[Change]:
        """Time has passed without an event: what started or stopped until then."""
        return self._pass_time(self._hub.advance(now), before=False)

    def _pass_time(self, now: int | None, before: bool) -> list[Change]:
        """Evaluate keys at the moments when a row leaves or enters one of their windows."""
        changes: list[Change] = []
        while now is not None and self._due and self._due[0][0] <= now - before:
            moment, _, key = heappop(self._due)
            if self._dues.get(key) == moment:
                del self._dues[key]
                self._evaluate(key, moment, changes)
        return changes

    @property
    def _now(self) -> int | None:
        return self._hub.now_ticks

    def _instant(self, key: Any, now: int | None) -> Instant:
        return Instant(self._queries, self._hub.substream(key), now, self._rows[key])

    def _evaluate(self, key: Any, now: int | None, changes: list[Change]) -> None:
        instant = self._instant(key, now)
        at = self._hub.shown(now)
        values = self._values.setdefault(key, {})
        for name, group in self._simple.items():
            new = group.operand.value(instant)
            old = values.get(name)
            if new is old or new == old:
                continue
            started, stopped = group.crossed(old, new)
            values[name] = new
            rules = self._by_number
            changes += [Change(rules[n].name, key, False, at) for n in stopped]
            changes += [Change(rules[n].name, key, True, at) for n in started]
        firing = self._firing.get(key)
        waiting = dict(self._unguarded)
        for group in self._guarded.values():
            for number in group.passed(group.operand.value(instant)):
                waiting[number] = self._by_number[number]
        for number in firing or ():
            waiting[number] = self._by_number[number]
        for rule in waiting.values():
            self._settle(rule, key, instant, at, changes)
        self._schedule(key, now)

    def _evaluate_one(self, rule: Rule, key: Any, changes: list[Change]) -> None:
        now = self._now
        self._settle(rule, key, self._instant(key, now), self._hub.shown(now), changes)

    def _settle(
        self, rule: Rule, key: Any, instant: Instant, at: Any, changes: list[Change]
    ) -> None:
        """Whether a rule that is not simple starts or stops for a key."""
        firing = self._firing.get(key, ())
        if rule.number not in firing:
            if rule.when.evaluate(instant) is True:
                self._firing.setdefault(key, set()).add(rule.number)
                changes.append(Change(rule.name, key, True, at))
            return
        if rule.until is not None:
            stops = rule.until.evaluate(instant) is True
        else:
            stops = rule.when.evaluate(instant) is not True
        if stops:
            self._firing[key].discard(rule.number)
            changes.append(Change(rule.name, key, False, at))

    # --- time -----------------------------------------------------------------------------------

    def _schedule(self, key: Any, now: int | None = None) -> None:
        """When the key's windows change next, if a rule could care."""
        moment = self._now if now is None else now
        stream = self._hub.substream(key)
        if moment is None or stream is None or not self._cares(key):
            self._dues.pop(key, None)
            return
        due = _next_change(stream.line, stream.plan.windows, moment)
        if due is None:
            self._dues.pop(key, None)
        elif self._dues.get(key) != due:
            self._dues[key] = due
            self._ties += 1
            heappush(self._due, (due, self._ties, key))

    def _cares(self, key: Any) -> bool:
        if self._restless or self._firing.get(key):
            return True
        values = self._values.get(key, {})
        return any(group.passes_any(values.get(name)) for name, group in self._simple.items())

    def _forget_key(self, key: Any) -> None:
        for held in (self._values, self._firing, self._rows, self._dues):
            held.pop(key, None)

    # --- for the curious ------------------------------------------------------------------------

    def firing(self) -> list[tuple[str, Any]]:
        """The pairs of rule and key that fire now."""
        out = []
        for key in self._rows:
            values = self._values.get(key, {})
            numbers = [
                n for name, group in self._simple.items() for n in group.passed(values.get(name))
            ]
            numbers += self._firing.get(key, ())
            out += [(self._by_number[number].name, key) for number in sorted(numbers)]
        return out

    def explain(self) -> str:
        """How rules are found, and what their features are kept in."""
        lines = [
            f"{len(self._rules)} rules, {len(self._rows)} keys, {len(self._queries)} features",
            f"  {sum(map(len, self._simple.values()))} rules are one threshold each, in "
            f"{len(self._simple)} orders: only those that a value crosses are looked at",
            f"  {sum(map(len, self._guarded.values()))} rules wait for a threshold, in "
            f"{len(self._guarded)} orders: looked at while it is passed",
            f"  {len(self._unguarded)} rules are looked at with every event",
        ]
        for query in self._queries:
            lines.append(
                f"  {query.aggregate!r} over {query.window.label}: {self._candidates.why(query)}"
            )
        return "\n".join([*lines, self._hub.explain()])


def _next_change(line: Line, windows: Iterable[Window], now: int) -> int | None:
    """The next moment after ``now`` when a row leaves or enters a window."""
    due: int | None = None
    for window in windows:
        left, right, _ = line.span_of_those_left(window, now)
        moments = []
        if isinstance(window, Time):
            ending = line.length(window.ending)
            if left < right:
                age = line.length(window.length) + ending + window.includes_start
                moments.append(line.time(left) + age)
            if right < line.end:
                moments.append(line.time(right) + ending + (not window.includes_end))
        elif window.within is not None and left < right:
            moments.append(line.time(left) + line.length(window.within))
        for moment in moments:
            due = moment if due is None else min(due, moment)
    return due


def _as_rule(given: Any) -> tuple[str, str, str | None]:
    if isinstance(given, Mapping):
        unknown = set(given) - {"name", "when", "until"}
        if unknown or not {"name", "when"} <= set(given):
            raise BadSpecification(f"a rule has name, when and perhaps until; not {dict(given)!r}")
        return given["name"], given["when"], given.get("until")
    if isinstance(given, tuple) and len(given) in (2, 3):
        return given[0], given[1], given[2] if len(given) == 3 else None
    raise BadSpecification(f"a rule is (name, when) or (name, when, until), not {given!r}")
