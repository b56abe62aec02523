"""Rules over one bucket of a stream: which started or stopped for which keys, and when.

A key is looked at in every moment in which a row enters or leaves one of its windows, once the
frontier has passed that moment, and when rules change. The rules' features are answers at moments
(``emission``), conditions are evaluated for all moments at once (``conditions``). Beside the state
of every stream a bucket keeps three cells: the rules' text, the pairs of rule and key that fire,
and of each key the last values of the columns that conditions name.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from windrow.columns import carried
from windrow.columns.arranged import Arranged, Piece, codes_of
from windrow.columns.bucket import Bucket
from windrow.columns.carried import LAST_VALUES, PAIRS, RULE, TEXT
from windrow.columns.cells import Cell, Cells
from windrow.columns.column import array_of, plain_column, typed
from windrow.columns.conditions import Known, Moments, known
from windrow.columns.emission import EMISSIONS, Keys, every_key, first_of_each, moments, stirred
from windrow.columns.key_runs import by_code
from windrow.columns.ranges import Array
from windrow.columns.rule_set import Condition, RuleSet, Watch, digest_of, known_rules, rule_set
from windrow.columns.stream_plan import LONG_AGO, StreamPlan
from windrow.columns.views import New
from windrow.stores.chunks import Space


class RuleBucket(Bucket):
    """The state of some keys, for one turn; ``given`` is a new text with its version."""

    def __init__(
        self,
        watch: Watch,
        store: Any,
        given: tuple[str, str] | None = None,
        tells: bool = True,
        before: tuple[str, str] | None = None,
    ) -> None:
        """``before``: a text and its version from elsewhere, of which ``seed`` has the rest."""
        self._given, self._elsewhere, self.tells = given, before, tells
        self._space: Space = store.rules
        super().__init__(watch, store)
        self.adapted = False  # everything is told by rules, not by columns

    def planned(self, plan: StreamPlan) -> StreamPlan:
        """The features of the rules that are in force now."""
        assert isinstance(plan, Watch)
        head = self.head
        sizes = {int(number): size for number, size in head.rules_sizes.items()}
        self._cells = Cells(self._space, "rules", self.turn.traffic, sizes)
        if self._elsewhere is not None and not head.rules:
            self._put_in_force(self._elsewhere)
        self.before = self._in_force(plan)
        given = self._given
        if given is None and plan.text is not None:
            given = (plan.version, plan.text)
        self.now = self.before or rule_set(plan, "")
        self.reloaded = False
        if given is not None:
            self.now = rule_set(plan, given[1])
            self.reloaded = self._put_in_force(given)
        turn = self.turn
        turn.rules, turn.rejected_rules = len(self.now.conditions), len(self.now.rejected)
        return self.now.plan

    def _put_in_force(self, given: tuple[str, str]) -> bool:
        """Whether these are other rules than before."""
        version, text = given
        head, known_as = self.head, {"version": version, "digest": digest_of(text)}
        if {name: head.rules.get(name) for name in known_as} == known_as:
            return False
        head.rules |= known_as
        self._cells[TEXT] = Cell(pa.table({"text": [text]}), {})
        return True

    def carry(self, found: dict[str, pa.Table]) -> None:
        """Take over which rules fire for which keys, and the keys' last values."""
        fields = [self.plan.schema.field(name) for name in self.spec.key]
        schema = pa.schema([*fields, pa.field(RULE, pa.string())])
        firing = [
            table.select(list(self.spec.key)).append_column(RULE, pa.array([name] * len(table)))
            for name, table in carried.firing(found)
        ]
        if firing:
            self.put(PAIRS, pa.concat_tables(table.cast(schema) for table in firing))
        if carried.LAST in found and self.before is not None:
            names = list(dict.fromkeys([*self.spec.key, *self.before.columns]))
            self.put(LAST_VALUES, self.plan.aligned(found[carried.LAST], names))

    def _in_force(self, watch: Watch) -> RuleSet | None:
        """The rules of the last turn; their text is read where the worker does not know it."""
        digest = self.head.rules.get("digest")
        if digest is None:
            return None
        found = known_rules(watch, digest)
        return found or rule_set(watch, str(self._cells[TEXT].table["text"][0].as_py()))

    def cell(self, number: int, empty: pa.Schema) -> pa.Table:
        """One of the cells, with the columns that it has now."""
        if number not in self._cells:
            return empty.empty_table()
        table = self._cells[number].table
        columns = [
            plain_column(table[f.name])
            if f.name in table.column_names
            else pa.nulls(len(table), f.type)
            for f in empty
        ]
        return pa.table(columns, schema=empty)

    def put(self, number: int, table: pa.Table) -> None:
        """Write one of the cells."""
        self._cells[number] = Cell(table.combine_chunks(), {})

    def close(self) -> None:
        """Write everything that has changed."""
        self._cells.flush()
        self.head.rules_sizes = {str(number): size for number, size in self._cells.sizes.items()}
        super().close()


def rules(bucket: RuleBucket, came: pa.Table | None, frontier: int | None) -> pa.Table | None:
    """Which rules started and stopped before the frontier."""
    head = bucket.head
    before = head.frontier
    table = bucket.released(came, frontier)
    new = None if table is None else bucket.in_order(table)
    bucket.turn.answered_rows = 0 if new is None else len(new.time)
    told = [_rejected(bucket)] if bucket.reloaded and bucket.tells else []
    if head.frontier is not None and (head.latest is not None or new is not None):
        last = head.frontier - 1
        first = LONG_AGO if before is None else before - 1
        views = bucket.views()
        for view in views:
            view.look(max(first, LONG_AGO // 2), last)
        told += _evaluated(bucket, views, new, first, last)
        bucket.keep(new, views)
        bucket.forget_the_dead()
    told = [part for part in told if part.num_rows]
    return pa.concat_tables(told) if told else None


EMISSIONS["rules"] = rules


# --- which moments --------------------------------------------------------------------------------


def _asked(
    bucket: RuleBucket, views: list[Any], new: New | None, first: int, last: int
) -> tuple[New | None, Array]:
    """All moments between the first and the last; and which are there only for new rules."""
    names = bucket.spec.key
    keys: list[Keys] = []
    times: list[Array] = []
    for table, enters, leaves in stirred(bucket, views, new, first, last):
        own = [plain_column(table[name]) for name in names]
        for moment in (enters, leaves):
            inside = (moment > first) & (moment <= last)
            keys.append([column.filter(array_of(inside)) for column in own])
            times.append(moment[inside])
    again = 0
    if bucket.reloaded and first > LONG_AGO:
        live = every_key(bucket, views, None)
        again = len(live[0]) if live else 1
        keys.append(live)
        times.append(np.full(again, first))
    sizes = [len(some) for some in times]
    if not sum(sizes):
        return None, np.empty(0, np.bool_)
    time = np.concatenate(times)
    codes, count = codes_of(keys, sizes)
    order, offsets = by_code(codes, count, np.argsort(time, kind="stable"))
    runs, ordered = codes[order], time[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (runs[1:] != runs[:-1]) | (ordered[1:] != ordered[:-1])
    chosen = first_of_each(keys, order, offsets)
    asked = moments(bucket, chosen, runs[fresh], ordered[fresh], new)
    return asked, asked.time == first if again else np.zeros(len(asked.time), np.bool_)


# --- which rules ----------------------------------------------------------------------------------


@njit(cache=True)
def _fire(offsets, when, until, differs, live, skip, firing, place, started):  # type: ignore[no-untyped-def]
    """One rule over the moments of every key; ``firing``: before and, when done, after them."""
    count = 0
    for run in range(len(offsets) - 1):
        now = firing[run]
        for i in range(offsets[run], offsets[run + 1]):
            if skip[i]:
                continue
            if not live[i]:
                then = False
            elif now and differs:
                then = not until[i]
            else:
                then = when[i]
            if then != now:
                place[count] = i
                started[count] = then
                count += 1
                now = then
        firing[run] = now
    return count


def _evaluated(
    bucket: RuleBucket, views: list[Any], new: New | None, first: int, last: int
) -> list[pa.Table]:
    spec, now = bucket.spec, bucket.now
    fields = [pa.field(name, bucket.plan.schema.field(name).type) for name in spec.key]
    firing = bucket.cell(PAIRS, pa.schema([*fields, pa.field(RULE, pa.string())]))
    told = []
    if bucket.reloaded:
        firing, gone = _without_removed(firing, now)
        told += _stopped(bucket, gone, first)
        last_rows = bucket.cell(LAST_VALUES, _last_schema(bucket))
        bucket.put(LAST_VALUES, last_rows if now.columns else last_rows.slice(0, 0))
    asked, again = _asked(bucket, views, new, first, last)
    if asked is None:
        if bucket.reloaded:
            bucket.put(PAIRS, firing)
        return told
    answers = bucket.answers(asked, views)
    features = {n: known(answers[str(n)]) for n in range(len(answers) - 1)}
    columns = _columns(bucket, asked, new)
    assert asked.live is not None
    at = Moments(len(asked.time), features, columns)
    keys = [[plain_column(t[name]) for name in spec.key] for t in (asked.table, firing)]
    codes, _ = codes_of(keys, [len(asked.time), firing.num_rows])
    runs = len(asked.offsets) - 1
    key_of = codes[len(asked.time) :]
    by_rule: dict[str, list[int]] = {}
    for row, name in enumerate(firing[RULE].to_pylist()):
        if key_of[row] < runs:
            by_rule.setdefault(name, []).append(row)
    same_rule = set() if bucket.before is None else _unchanged(bucket.before, now)
    place, flags = np.empty(len(asked.time), np.int64), np.empty(len(asked.time), np.bool_)
    nothing = np.zeros(len(asked.time), np.bool_)
    fires: dict[str, Array] = {}
    changes: list[Change] = []
    for name, rule in now.conditions.items():
        when = at.holds(rule.when)
        rows = by_rule.get(name)
        if rows is None and not when.any():
            continue
        state = np.zeros(runs, np.bool_)
        if rows is not None:
            state[key_of[rows]] = True
        until = at.holds(rule.until) if rule.until is not None else when
        skip = again if name in same_rule else nothing
        where = (asked.offsets, when, until, rule.until is not None, asked.live, skip)
        count = _fire(*where, state, place, flags)
        if count:
            changes.append((rule, place[:count].copy(), flags[:count].copy()))
        if state.any():
            fires[name] = state
    _keep_firing(bucket, asked, firing, key_of >= runs, fires)
    if changes:
        told.append(_told(bucket, asked, changes, features, columns))
    return told


def _unchanged(before: RuleSet, now: RuleSet) -> set[str]:
    pairs = now.conditions.items()
    return {
        name
        for name, rule in pairs
        if name in before.conditions and before.conditions[name].text == rule.text
    }


def _without_removed(firing: pa.Table, now: RuleSet) -> tuple[pa.Table, pa.Table]:
    stays = np.array([name in now.conditions for name in firing[RULE].to_pylist()], np.bool_)
    return firing.filter(array_of(stays)), firing.filter(array_of(~stays))


def _keep_firing(
    bucket: RuleBucket, asked: New, firing: pa.Table, others: Array, fires: dict[str, Array]
) -> None:
    """All at once: there may be thousands of rules that fire."""
    runs = np.concatenate([np.empty(0, np.int64), *map(np.flatnonzero, fires.values())])
    names = [name for name, state in fires.items() for _ in range(int(state.sum()))]
    rows = asked.table.take(array_of(asked.offsets[:-1][runs]))
    data = {name: plain_column(rows[name]) for name in bucket.spec.key}
    added = pa.table(data | {RULE: pa.array(names, pa.string())}).cast(firing.schema)
    bucket.put(PAIRS, pa.concat_tables([firing.filter(array_of(others)), added]))


def _columns(bucket: RuleBucket, asked: New, new: New | None) -> dict[str, Known]:
    """The columns that conditions name, as each key's last row has them at each moment."""
    names, spec = bucket.now.columns, bucket.spec
    if not names:
        return {}
    schema = _last_schema(bucket)
    tables = [bucket.cell(LAST_VALUES, schema)]
    times = [np.full(tables[0].num_rows, LONG_AGO // 2)]
    if new is not None:
        tables.append(new.table.select(schema.names).cast(schema))
        times.append(new.time)

    def piece(table: pa.Table, time: Array) -> Piece:
        keys = [plain_column(table[name]) for name in spec.key]
        return Piece(keys, time, {name: [plain_column(table[name])] for name in names})

    pieces = [piece(t, time) for t, time in zip(tables, times, strict=True)]
    blank = asked.table.select(schema.names).cast(schema)
    arranged = Arranged(pieces, piece(blank, asked.time), asked.offsets, beside=True)
    lo, hi = arranged.reach(LONG_AGO, 1).bounds()
    last, missing = np.maximum(hi - 1, 0), lo >= hi
    found = {}
    for name in names:
        array = arranged.slot(name)[0].take(array_of(last, missing))
        found[name] = known(array)
    _keep_last(bucket, asked, tables, schema)
    return found


def _last_schema(bucket: RuleBucket) -> pa.Schema:
    names = dict.fromkeys([*bucket.spec.key, *bucket.now.columns])
    return pa.schema([bucket.plan.schema.field(name).with_nullable(True) for name in names])


def _keep_last(bucket: RuleBucket, asked: New, tables: list[pa.Table], schema: pa.Schema) -> None:
    """Of each key the last row; keys whose windows are empty by now are forgotten."""
    spec = bucket.spec
    whole = pa.concat_tables(tables)
    ends = asked.offsets[1:] - 1
    assert asked.live is not None
    dead = asked.table.take(array_of(ends[~asked.live[ends]]))
    if not spec.key:
        rows = whole.slice(max(0, whole.num_rows - 1)) if not dead.num_rows else whole.slice(0, 0)
        bucket.put(LAST_VALUES, rows)
        return
    keys = [[plain_column(t[name]) for name in spec.key] for t in (dead, whole)]
    codes, count = codes_of(keys, [dead.num_rows, whole.num_rows])
    own = codes[dead.num_rows :]
    last = np.full(count, -1, np.int64)
    last[own] = np.arange(len(own))  # the last one wins
    last[codes[: dead.num_rows]] = -1
    bucket.put(LAST_VALUES, whole.take(array_of(np.sort(last[last >= 0]))))


# --- what is told ---------------------------------------------------------------------------------

_VALUES = pa.map_(pa.string(), pa.float64())


def event_schema(watch: StreamPlan) -> pa.Schema:
    """The columns that come out."""
    fields = [watch.schema.field(name).with_nullable(True) for name in watch.spec.key]
    time = watch.schema.field(str(watch.spec.time)).with_nullable(True)
    return pa.schema(
        [
            pa.field("event", pa.string(), False),
            pa.field("rule", pa.string(), False),
            *fields,
            time,
            pa.field("values", _VALUES),
            pa.field("version", pa.string(), False),
            pa.field("message", pa.string()),
        ]
    )


def _events(bucket: RuleBucket, size: int, columns: dict[str, Any]) -> pa.Table:
    schema = event_schema(bucket.plan)
    given = {"version": pa.array([bucket.head.rules["version"]] * size)} | columns
    arrays = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


Change = tuple[Condition, Array, Array]
"""A rule, the moments in which it starts or stops, and which of both."""


def _told(
    bucket: RuleBucket,
    asked: New,
    changes: list[Change],
    features: dict[int, Known],
    columns: dict[str, Known],
) -> pa.Table:
    """The events of all rules as one table."""
    places = np.concatenate([place for _, place, _ in changes])
    rows = asked.table.take(array_of(places))
    data: dict[str, Any] = {name: plain_column(rows[name]) for name in bucket.spec.key}
    data[str(bucket.spec.time)] = plain_column(rows[str(bucket.spec.time)])
    flags = np.concatenate([started for _, _, started in changes]).tolist()
    data["event"] = pa.array(["started" if flag else "stopped" for flag in flags])
    data["rule"] = pa.array([rule.name for rule, place, _ in changes for _ in range(len(place))])
    values = [v for rule, place, _ in changes for v in _values(rule, place, features, columns)]
    data["values"] = pa.array(values, _VALUES)
    return _events(bucket, len(places), data)


def _values(
    rule: Condition, place: Array, features: dict[int, Known], columns: dict[str, Known]
) -> list[list[tuple[str, float]]]:
    """What the rule looked at, in each of some moments; what is no number is left out."""
    out: list[list[tuple[str, float]]] = [[] for _ in range(len(place))]
    for text, value in rule.operands(features, columns).items():
        if value.values.dtype == object:
            continue
        numbers = value.values[place].astype(np.float64).tolist()
        there = [True] * len(place) if value.valid is None else value.valid[place].tolist()
        for event, number, known_there in zip(out, numbers, there, strict=True):
            if known_there:
                event.append((text, number))
    return out


def _stopped(bucket: RuleBucket, gone: pa.Table, at: int) -> list[pa.Table]:
    """Rules that are no more stop for the keys that they fired for."""
    if not gone.num_rows:
        return []
    kind = bucket.plan.schema.field(str(bucket.spec.time)).type
    data: dict[str, Any] = {name: plain_column(gone[name]) for name in bucket.spec.key}
    data[str(bucket.spec.time)] = typed(np.full(gone.num_rows, at), None, kind)
    data["event"] = pa.array(["stopped"] * gone.num_rows)
    data["rule"] = plain_column(gone[RULE])
    data["message"] = pa.array(["the rule was removed"] * gone.num_rows)
    return [_events(bucket, gone.num_rows, data)]


def _rejected(bucket: RuleBucket) -> pa.Table:
    rejected: Sequence[Any] = bucket.now.rejected
    data = {
        "event": pa.array(["rejected"] * len(rejected), pa.string()),
        "rule": pa.array([rule.name for rule in rejected], pa.string()),
        "message": pa.array([f"line {rule.line}: {rule.error}" for rule in rejected], pa.string()),
    }
    return _events(bucket, len(rejected), data)
