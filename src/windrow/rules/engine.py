"""Which rules start and stop firing for which keys, as events come in and as time passes."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from windrow.aggregates import Aggregate, as_aggregate
from windrow.aggregates.values import rows_of
from windrow.errors import BadSpecification, BadValue
from windrow.rules.candidates import Candidates
from windrow.rules.expression import Reader, Threshold
from windrow.rules.instant import Features, Instant
from windrow.rules.key_state import NO_KEY, KeyState, told
from windrow.rules.moments import Moments
from windrow.rules.rule import Change, Rule, as_rule
from windrow.rules.table import Table
from windrow.rules.thresholds import Thresholds
from windrow.shared import EACH, Hub
from windrow.shared.line import Window, as_suffix_or_historical
from windrow.shared.query import as_key
from windrow.times import is_missing
from windrow.words import Lines


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
        self._features = Features(self._hub)
        self._numbers: dict[tuple[str, tuple[str, ...], Window], int] = {}
        self._named: dict[str, int] = {}
        self._reader = Reader(self._number_of, self._feature)
        self._table = Table()
        self._moments = Moments()
        self._states: dict[Any, KeyState] = {}  # in the order in which they came
        self._came = 0
        self._fewer = False  # whether rules were removed, or refused, since the last event
        self._candidates = Candidates(self._hub)
        self._left: list[Change] = []
        for name, (aggregate, window) in (features or {}).items():
            self.define(name, aggregate, window)
        for rule in rules:
            self.add(*as_rule(rule))

    # --- rules ----------------------------------------------------------------------------------

    def define(self, name: str, aggregate: Aggregate | type[Aggregate], window: Any) -> None:
        """A windowed aggregate that conditions can name."""
        if not isinstance(name, str) or not name.isidentifier():
            raise BadSpecification(f"a feature's name is a word, not {name!r}")
        if name in self._named:
            raise BadSpecification(f"there is a feature {name!r} already")
        found = as_suffix_or_historical(window)
        self._named[name] = self._feature(as_aggregate(aggregate), found)

    def _number_of(self, name: str) -> int | None:
        return self._named.get(name)

    def _feature(self, aggregate: Aggregate, window: Window) -> int:
        if window.needs_time and self._time is None:
            raise BadSpecification(
                f"window {window.label!r} is about time: say which column, Rules(time=...)"
            )
        name = (aggregate.identification, aggregate.columns, window)
        if name not in self._numbers:
            query = self._hub.register(aggregate, window, key=EACH)
            windows = len(self._features.windows)
            self._numbers[name] = self._features.add(query)
            if self._moments.restless and len(self._features.windows) > windows:
                self._schedule_all()  # rows that are there leave the new window at other moments
        return self._numbers[name]

    def add(self, name: str, when: str, until: str | None = None) -> list[Change]:
        """A new rule; what started with it, or stopped until now, is returned."""
        if not isinstance(name, str) or not name:
            raise BadSpecification(f"a rule's name is a text, not {name!r}")
        if name in self._table.by_name:
            raise BadSpecification(f"there is a rule {name!r} already: remove it first")
        try:
            return self._added(name, when, until)
        except BaseException:
            self._fewer = True
            raise

    def _added(self, name: str, when: str, until: str | None) -> list[Change]:
        read = self._reader.read
        rule = self._table.new(name, read(when), None if until is None else read(until))
        guard = rule.guard
        moments, queries = self._moments, self._features.queries
        if not moments.restless and not moments.keeps_calm(guard, queries, bool(self._states)):
            self._become_restless()
        now = self._hub.now_ticks
        with self._told_later() as changes:
            if now is not None:
                self._pass_time(now, changes)
        group = self._table.add(rule)
        started: list[Change] = []
        try:
            for key in self._keys_that_may_pass(guard):
                self._begin(rule, group, key, now, started)
        except BaseException:  # it cannot be evaluated for a key: it is not added
            self.remove(name)
            self._left = changes + self._left
            raise
        return changes + started

    def _begin(
        self,
        rule: Rule,
        group: Thresholds | None,
        key: Any,
        now: int | None,
        changes: list[Change],
    ) -> None:
        """A new rule, for a key that is there; nothing is done where its threshold is not passed,
        so that it does not matter which keys a filter left out."""
        state = self._states[key]
        instant = self._instant(key, state, now)
        value = None if group is None else group.operand.value(instant)
        if rule.guard is not None and not rule.guard.holds(value):
            return
        if group is not None and rule.simple:
            state.make_room(group.slot + 1)
            state.values[group.slot] = value
            changes.append(Change(rule.name, told(key), True, self._hub.shown(now)))
        else:
            self._settle(rule, key, state, instant, now, changes)
        self._schedule(key, state, instant)

    def _keys_that_may_pass(self, threshold: Threshold | None) -> list[Any]:
        """The keys for which a new rule may fire now, in the order in which they came: few of them,
        where a filter can tell."""
        if not self._states:
            return []
        if threshold is not None and threshold.operand.feature is not None:
            query = self._features.queries[threshold.operand.feature]
            found = self._candidates.keys(query, threshold.sign, threshold.number)
            if found is not None:
                there = (key for key in (*found, NO_KEY) if key in self._states)
                return sorted(there, key=lambda key: self._states[key].number)
        return list(self._states)

    def remove(self, name: str) -> None:
        """Forget a rule; it does not stop firing, it is gone."""
        rule, slot = self._table.remove(name)
        for state in self._states.values():
            if not rule.simple:
                state.firing.discard(rule.number)
            if slot is not None:
                del state.values[slot : slot + 1]  # if it has come so far
        self._fewer = True

    def _drop_unused(self) -> None:
        """With the next event, let go of windowed aggregates that no rule is about and that have no
        name: they would cost something with every event, and refuse those without their columns."""
        if not self._fewer:
            return
        self._fewer = False
        used = self._used()
        for name, number in list(self._numbers.items()):
            if number not in used:
                del self._numbers[name]
                self._features.drop(number)
        for key in self._hub.keys:  # of all keys at once, whichever comes next
            self._hub.substream(key)

    def _used(self) -> set[int]:
        """The windowed aggregates that have a name, or that a rule is about."""
        users = self._table.users
        return {number for number in self._features.queries if users[number]}.union(
            self._named.values()
        )

    @property
    def rules(self) -> dict[str, str]:
        """The rules' conditions by name."""
        return {name: rule.when.text for name, rule in self._table.by_name.items()}

    @property
    def columns(self) -> list[str]:
        """The columns that conditions and features look at."""
        about = [self._features.queries[number].aggregate.columns for number in self._used()]
        return sorted(self._table.columns | {name for columns in about for name in columns})

    @property
    def keys(self) -> list[Any]:
        """The keys that have rows in a window."""
        return [told(key) for key in self._states]

    def __len__(self) -> int:
        return len(self._table)

    # --- events ---------------------------------------------------------------------------------

    def insert(self, row: Mapping[str, Any]) -> list[Change]:
        """Take an event; which rules started or stopped for which keys, since the last one."""
        key, at = self._key_and_time(row)
        self._drop_unused()
        lifted = self._hub.lifted(row, key, at)
        with self._told_later() as changes:
            if at is not None:
                now = self._hub.ticks(at)
                assert now is not None
                self._pass_time(now - 1, changes)  # at this very moment more rows may come
            self._hub.take(key, at, lifted)
            changes.extend(self._taken_leave())
            moment = self._hub.now_ticks
            state = self._states.get(key)
            if state is None:
                state = self._states[key] = KeyState(row, self._came)
                self._came += 1
            state.row = dict(row)  # whoever gave it may use it again
            if self._moments.disturbed_by(row):
                self._become_restless()
            if key != NO_KEY:  # which filters are not told, and every new rule is asked about
                self._candidates.insert(key, row, moment)
            self._evaluate(key, state, moment, changes)
        return changes

    @contextmanager
    def _told_later(self) -> Iterator[list[Change]]:
        """What was found to change before an error is returned by the next call."""
        changes: list[Change] = []
        try:
            yield changes
        except BaseException:
            self._left = changes + self._left
            raise

    def _key_and_time(self, row: Any) -> tuple[Any, Any]:
        if not isinstance(row, Mapping):
            raise BadValue(f"an event is a mapping from columns to values, not {row!r}")
        for column in (self._key, self._time):
            if column is not None and column not in row:
                raise BadValue(f"the event has no {column!r}; it has {', '.join(map(repr, row))}")
        key = as_key(row[self._key])
        key = NO_KEY if is_missing(key) else key
        at = row[self._time] if self._time is not None else None
        return key, at

    def insert_many(self, events: Any) -> list[Change]:
        """Take events in order: mappings, a mapping of columns, or a table of pyarrow."""
        return [change for event in rows_of(events) for change in self.insert(event)]

    def advance(self, now: Any) -> list[Change]:
        """Time has passed without an event: what started or stopped until then."""
        ticks = self._hub.ticks(now)
        self._drop_unused()
        with self._told_later() as changes:
            if ticks is not None:
                self._pass_time(ticks, changes)
            self._hub.advance(now)
        return changes + self._taken_leave()

    def _instant(self, key: Any, state: KeyState, now: int | None) -> Instant:
        return Instant(self._features, self._hub.substream(key), now, state.row)

    def _evaluate(self, key: Any, state: KeyState, now: int | None, changes: list[Change]) -> None:
        instant = self._instant(key, state, now)
        try:
            self._compare(key, state, instant, now, changes)
            self._schedule(key, state, instant)
        except BaseException:  # a condition that cannot be evaluated: when it changes it may
            self._moments.schedule(key, state, instant.next_change())
            raise

    def _compare(
        self, key: Any, state: KeyState, instant: Instant, now: int | None, changes: list[Change]
    ) -> None:
        """What starts and what stops for a key now."""
        values, rules = state.values, self._table.by_number
        state.make_room(self._table.slots)
        for group in self._table.simple.values():
            new, old = group.operand.value(instant), values[group.slot]
            if new is old or new == old:
                continue
            started, stopped, passes = group.crossed(old, new)
            values[group.slot] = new if passes else None  # rules that come later find no old news
            if started or stopped:
                at = self._hub.shown(now)
                changes += [Change(rules[n].name, told(key), False, at) for n in stopped]
                changes += [Change(rules[n].name, told(key), True, at) for n in started]
        for rule in self._table.to_settle(state, instant):
            self._settle(rule, key, state, instant, now, changes)

    def _settle(
        self,
        rule: Rule,
        key: Any,
        state: KeyState,
        instant: Instant,
        now: int | None,
        changes: list[Change],
    ) -> None:
        """Whether a rule that is not simple starts or stops for a key."""
        if rule.number not in state.firing:
            if rule.when.evaluate(instant) is True:
                state.firing.add(rule.number)
                changes.append(Change(rule.name, told(key), True, self._hub.shown(now)))
            return
        if rule.until is not None:
            stops = rule.until.evaluate(instant) is True
        else:
            stops = rule.when.evaluate(instant) is not True
        if stops:
            state.firing.discard(rule.number)
            changes.append(Change(rule.name, told(key), False, self._hub.shown(now)))

    # --- time -----------------------------------------------------------------------------------

    def _pass_time(self, until: int, changes: list[Change]) -> None:
        """Evaluate keys at the moments when a row leaves or enters one of their windows."""
        while (due := self._moments.pop(until)) is not None:
            moment, number, key = due
            state = self._states.get(key)
            if state is not None and (state.due, state.number) == (moment, number):
                state.due = None
                self._evaluate(key, state, moment, changes)

    def _schedule(self, key: Any, state: KeyState, instant: Instant) -> None:
        """When the key's windows change next, if a rule could care."""
        due = instant.next_change() if self._cares(state, instant) else None
        self._moments.schedule(key, state, due)

    def _cares(self, state: KeyState, instant: Instant) -> bool:
        if self._moments.restless or state.firing:
            return True
        if any(value is not None for value in state.values):
            return True
        return self._table.passes_any_guard(instant)

    def _become_restless(self) -> None:
        """From now on every key is looked at whenever its windows change."""
        self._moments.become_restless()
        self._schedule_all()

    def _schedule_all(self) -> None:
        """Each key anew, but for those that are to be looked at now: what changed is to be told."""
        now = self._hub.now_ticks
        for key, state in self._states.items():
            if now is None or state.due is None or state.due > now:
                self._schedule(key, state, self._instant(key, state, now))

    def _forget_key(self, key: Any) -> None:
        """A key was silent for so long that the hub drops it: nothing fires for it any more."""
        state = self._states.pop(key, None)
        if state is not None:
            at = self._hub.shown(self._hub.now_ticks)
            rules = self._table.firing(state)
            self._left += [Change(rule.name, told(key), False, at) for rule in rules]

    def _taken_leave(self) -> list[Change]:
        """What stopped because its key was dropped."""
        left, self._left = self._left, []
        return left

    # --- bytes ----------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Rules, rows and what fires: versioned, checksummed, no pickle."""
        from windrow.rules.rules_bytes import write

        return write(self)

    @classmethod
    def from_bytes(cls, data: bytes, features: Mapping[str, tuple[Any, Any]] | None = None) -> Self:
        """What ``to_bytes`` wrote; ``features``: those of aggregates that are not windrow's."""
        from windrow.rules.rules_bytes import read

        rules = cls(key="")
        read(rules, data, features or {})
        return rules

    # --- for the curious ------------------------------------------------------------------------

    def firing(self) -> list[tuple[str, Any]]:
        """The pairs of rule and key that fire now."""
        return [
            (rule.name, told(key))
            for key, state in self._states.items()
            for rule in self._table.firing(state)
        ]

    def explain(self) -> str:
        """How rules are found, and what their features are kept in."""
        queries = self._features.queries
        lines = [
            f"{len(self._table)} rules, {len(self._states)} keys, {len(queries)} features",
            *(f"  {line}" for line in self._table.explain()),
            "  time alone: every key is looked at when a row leaves its windows"
            if self._moments.restless
            else "  time alone: only keys where a rule fires or its threshold is passed",
        ]
        for query in queries.values():
            why = self._candidates.why(query)
            lines.append(f"  {query.aggregate!r} over {query.window.label}: {why}")
        return Lines("\n".join([*lines, self._hub.explain()]))
