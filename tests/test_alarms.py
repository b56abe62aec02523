"""Rules over a bucket of a stream: the events of plain Python, over any turns and reloads."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.buckets import END, MemorySpace, MemoryStore
from tests.effort import examples
from tests.emission_oracle import answer, in_reach
from windrow.columns import carried
from windrow.columns.alarms import RuleBucket
from windrow.columns.cells import decoded
from windrow.columns.rule_set import LONGEST, RuleSet, Watch, watched
from windrow.columns.stream_plan import Head
from windrow.rules.texts import written
from windrow.times import Clock

CLOCK = Clock("integers", None, int, int)
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("t", pa.int64()),
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
    ]
)
TEXTS = [
    ("busy", "count(10) >= 3"),
    ("high", "max(x, 15) > 5"),
    ("low", "min(x, 7) < -2"),
    ("joined", "sum(x, 12) > 3 and count(5) >= 2"),
    ("either", "count(3) >= 2 or x < -4"),
    ("not", "not (mean(x, 9) > 0)"),
    ("past", "max(x, 8, ending=6) > last(x, 8)"),
    ("sticky", "count(6) >= 2", "count(20) < 2"),
    ("row", "x > 4 and s == 'a'"),
    ("ratio", "sum(x, 20) / count(x, 4) > 2"),
    ("closed", 'count(5, closed="both") == 2'),
    ("odd", "2 <= count(20) < 4", "x > 1"),
    ("quiet", "count(4) < 1"),
]


class RuleStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.rules: Any = MemorySpace()


def watch_of(key: Any = "k", longest: int = 30) -> Watch:
    return watched(SCHEMA, key, "t", "id", wr.time(longest), CLOCK, segment_rows=5)


class Bucket:
    """Turns, each from the bytes of the one before."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.store = watch, RuleStore()
        self.told: list[tuple[Any, ...]] = []

    def turn(
        self, rows: list[dict[str, Any]], frontier: int | None, given: tuple[str, str] | None = None
    ) -> list[dict[str, Any]]:
        bucket = RuleBucket(self.watch, self.store, given)
        turn = bucket.advance([pa.Table.from_pylist(rows, schema=SCHEMA)] if rows else [], frontier)
        bucket.close()
        assert bucket.head.log_bytes == self.store.log.size
        assert sum(bucket.head.rules_sizes.values()) == self.store.rules.size
        return [] if turn.answered is None else list(turn.answered.to_pylist())

    def moved(self) -> "Bucket":
        """Another one that begins with the state of this one, once anything was looked at."""
        head = Head.from_bytes(self.store.head) if self.store.head is not None else None
        if head is None or head.frontier is None:
            return self
        tables = [
            carried.taken_out(name, number, data, head, SCHEMA)
            for name in ("rules", "waiting", "log")
            for number, data in getattr(self.store, name).held.items()
        ]
        before = None
        if head.rules:
            text = decoded(self.store.rules.held[carried.TEXT], "rules").table["text"][0].as_py()
            before = (head.rules["version"], text)
        other = Bucket(self.watch)
        bucket = RuleBucket(self.watch, other.store, None, True, before)
        bucket.seed(tables, head.frontier, told=True)
        bucket.close()
        return other


class Now:
    """A key at a moment, for conditions that are evaluated one by one."""

    def __init__(
        self, rules: RuleSet, rows: list[dict[str, Any]], at: int, since: dict[str, int]
    ) -> None:
        self.rules, self.at, self.since = rules, at, since
        self.rows = [row for row in rows if row["t"] <= at]

    def feature(self, number: int) -> Any:
        aggregate, window = self.rules._features[number]
        return answer(
            self.rules.watch.spec,
            aggregate,
            in_reach(self.rows, self.at, self.rules._reach(window), "t"),
        )

    def column(self, name: str) -> Any:
        row = self.rows[-1]
        return row[name] if row["t"] >= self.since[name] else None


class Oracle:
    """All moments of all keys, one after the other."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.rules = RuleSet(watch, "")
        self.version = ""
        self.firing: set[tuple[str, Any]] = set()
        self.rows: list[dict[str, Any]] = []
        self.frontier: int | None = None
        self.since: dict[str, int] = {}

    def turn(
        self, rows: list[dict[str, Any]], frontier: int | None, given: tuple[str, str] | None
    ) -> list[tuple[Any, ...]]:
        self.rows = sorted([*self.rows, *rows], key=lambda row: (row["t"], row["id"]))
        before, self.frontier = self.frontier, frontier if frontier is not None else self.frontier
        old, out = self.rules, []
        changed: list[str] = []
        if given is not None:
            self.rules, self.version = RuleSet(self.watch, given[1]), given[0]
            now = self.rules.conditions
            for pair in sorted(self.firing, key=repr):
                if pair[0] not in now and before is not None:
                    out.append((before - 1, *pair, "stopped"))
            self.firing = {pair for pair in self.firing if pair[0] in now}
            texts = {name: rule.text for name, rule in old.conditions.items()}
            changed = [name for name, rule in now.items() if texts.get(name) != rule.text]
            start = -(10**9) if before is None else before
            self.since = {name: self.since.get(name, start) for name in self.rules.columns}
        if self.frontier is None:
            return out
        first = -(10**9) if before is None else before - 1
        for key in {self.key(row) for row in self.rows}:
            own = [row for row in self.rows if self.key(row) == key and row["t"] < self.frontier]
            moments = {
                row["t"] - edge + 1
                for row in own
                for reach in self.rules.plan.reaches.values()
                for edge in (reach.start, reach.end)
            }
            if before is not None and any(row["t"] < before for row in own):
                out += self.at(own, key, first, changed)
            for at in sorted(m for m in moments if first < m < self.frontier):
                out += self.at(own, key, at, list(self.rules.conditions))
        return out

    def key(self, row: dict[str, Any]) -> Any:
        return row["k"] if self.watch.spec.key else None

    def at(self, own: list[dict[str, Any]], key: Any, at: int, names: list[str]) -> list[Any]:
        out = []
        now = Now(self.rules, own, at, self.since)
        live = bool(in_reach(now.rows, at, self.watch.reaches[LONGEST], "t"))
        for name in names:
            rule = self.rules.conditions[name]
            fires = (name, key) in self.firing
            if not live:
                then = False
            elif fires and rule.until is not None:
                then = rule.until.evaluate(now) is not True
            else:
                then = rule.when.evaluate(now) is True
            if then != fires:
                out.append((at, name, key, "started" if then else "stopped"))
                (self.firing.add if then else self.firing.discard)((name, key))
        return out


def events(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(e["t"], e["rule"], e.get("k"), e["event"]) for e in found if e["event"] != "rejected"]


TURNS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(
                st.sampled_from("abc"),
                st.integers(0, 12),
                st.one_of(st.none(), st.integers(-6, 8).map(float)),
                st.sampled_from([None, "a", "b"]),
            ),
            max_size=8,
        ),
        st.integers(0, 15),
        st.one_of(st.none(), st.lists(st.sampled_from(TEXTS), unique=True)),
    ),
    max_size=8,
)


@given(
    TURNS,
    st.sampled_from(["k", None]),
    st.lists(st.sampled_from(TEXTS), unique=True),
    st.integers(0, 2),
    st.integers(0, 8),
)
@examples(60)
def test_events_are_those_of_plain_python(
    turns: Any, key: Any, start: Any, quiet: int, moves: int
) -> None:
    """``reload`` at any turn; rules that stay, go, come, and change; a state that moves once."""
    watch = watch_of(key)
    stream, oracle = Bucket(watch), Oracle(watch)
    frontier, number = 0, 0
    given: Any = start
    for version, (rows, step, following) in enumerate([*turns, ([], 0, None), ([], END, None)]):
        came = []
        for k, ahead, x, s in rows:
            came.append({"k": k, "t": frontier + ahead, "id": number, "x": x, "s": s})
            number += 1
        frontier += step
        text = None if given is None else (str(version), written(given))
        stream = stream.moved() if version == moves else stream
        known = None if version < quiet else frontier  # at first nobody knows
        found = stream.turn(came, known, text)
        wanted = oracle.turn(came, known, text)
        assert sorted(events(found), key=repr) == sorted(wanted, key=repr)
        assert all(event["version"] == oracle.version for event in found)
        given = following
    assert stream.store.log.held == {}
    assert oracle.firing == set()


def trades(size: int, seed: int) -> list[dict[str, Any]]:
    """Rows of which no two of a key have the same time."""
    generator = np.random.default_rng(seed)
    times = np.cumsum(generator.integers(1, 4, size))
    return [
        {
            "k": "abc"[n % 3],
            "t": int(t),
            "id": n,
            "x": float(generator.integers(-6, 8)),
            "s": "ab"[n % 2],
        }
        for n, t in enumerate(times.tolist())
    ]


@pytest.mark.parametrize("seed", range(3))
def test_events_are_those_of_rules_in_process(seed: int) -> None:
    """Where every key goes on; others those forget some time after the longest window."""
    rows = trades(150, seed)
    asked = [rule for rule in TEXTS if rule[0] != "odd"]
    rules = wr.Rules(asked, key="k", time="t")
    wanted = [change for row in rows for change in rules.insert(row)]
    wanted += rules.advance(rows[-1]["t"])
    watch = watch_of(longest=20)
    stream = Bucket(watch)
    found = stream.turn([], 0, ("1", written(asked)))
    for place in range(0, 150, 20):
        some = rows[place : place + 20]
        found += stream.turn(some, some[-1]["t"] - 5)
    found += stream.turn([], rows[-1]["t"] + 1)
    told = [(c.at, c.rule, c.key, "started" if c.started else "stopped") for c in wanted]
    assert sorted(events(found), key=repr) == sorted(told, key=repr)
    assert len(told) > 100


BROKEN = """
# rules of a file that somebody was not done with
[[rule]]
name = "good"
when = 'count(10) >= 2'

[[rule]]
name = "no end
when = 'count(10) >= 2'

[[rule]]
name = "good"
when = 'count(10) >= 3'

[[rule]]
name = "unknown"
when = 'max(y, 10) >= 2'

[[rule]]
name = "text"
when = 's > 3'

[[rule]]
name = "rows"
when = 'count(rows=3) > 2'

[[rule]]
name = "also good"
when = 'max(x, 10) > 3'
"""


def test_broken_rules_are_rejected_by_line_and_leave_the_others_running() -> None:
    stream = Bucket(watch_of())
    told = stream.turn([], None, ("v1", BROKEN))
    assert [(event["event"], event["rule"]) for event in told] == [
        ("rejected", ""),
        ("rejected", "good"),
        ("rejected", "unknown"),
        ("rejected", "text"),
        ("rejected", "rows"),
    ]
    starts = [event["message"].partition(":")[0] for event in told]
    assert starts == ["line 8", "line 11", "line 15", "line 19", "line 23"]
    assert "there is a rule 'good' in line 3 already" in told[1]["message"]
    assert "no column 'y'" in told[2]["message"]
    assert "a text is compared with a number" in told[3]["message"]
    assert "windows of time" in told[4]["message"]
    rows = [{"k": "a", "t": t, "id": t, "x": 5.0, "s": None} for t in (1, 2)]
    assert stream.turn(rows, None) == []
    found = stream.turn([], 3)
    assert sorted((e["rule"], e["t"], e["event"]) for e in found) == [
        ("also good", 1, "started"),
        ("good", 2, "started"),
    ]
    assert found[0]["values"] == [("count(10)", 2.0)]
    assert {event["version"] for event in found} == {"v1"}


def test_a_reload_takes_effect_at_once() -> None:
    """For rows that came long before, and for rules that are gone."""
    stream = Bucket(watch_of())
    rows = [{"k": "a", "t": t, "id": t, "x": 5.0, "s": None} for t in (1, 2, 3)]
    stream.turn(rows, 4, ("1", written([("old", "count(20) >= 1")])))
    found = stream.turn([], 4, ("2", written([("new", "sum(x, 25) > 14")])))
    assert [(e["rule"], e["event"], e["t"], e["version"]) for e in found] == [
        ("old", "stopped", 3, "2"),
        ("new", "started", 3, "2"),
    ]
    assert found[0]["message"] == "the rule was removed"
    assert stream.turn([], 4, ("2", written([("new", "sum(x, 25) > 14")]))) == []


def test_a_thousand_rules_are_read_once() -> None:
    stream = Bucket(watch_of())
    text = ("1", written([(f"rule {n}", f"count(20) > {n}") for n in range(1000)]))
    stream.turn([], 0, text)
    stream.store.rules.gets = 0
    rows = [{"k": "a", "t": t, "id": t, "x": 5.0, "s": None} for t in range(1, 4)]
    assert len(stream.turn(rows, 4)) == 3
    assert stream.store.rules.gets == 0
