"""Rules that come and go between events: at every moment that passed, what fires is the truth."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.effort import examples
from tests.test_rules import holds
from tests.test_shared import of_rows, recalc
from windrow.rules import Change

LONGEST = 20
KEPT: dict[str, tuple[Any, Any]] = {  # so that a window that is new finds its rows
    kind.name: (kind() if kind is wr.Count else kind("x"), wr.time(LONGEST))
    for kind in (wr.Count, wr.Max, wr.Min, wr.Sum)
}
CALLS: dict[str, tuple[Any, Any]] = {
    "count(10)": (wr.Count(), wr.time(10)),
    "max(x, 5)": (wr.Max("x"), wr.time(5)),
    "max(x, 15)": (wr.Max("x"), wr.time(15)),
    "sum(x, 10)": (wr.Sum("x"), wr.time(10)),
    "min(x, 5, ending=5)": (wr.Min("x"), wr.time(5, ending=5)),
}
CONDITIONS = [
    "count(10) >= 2",
    "count(10) >= 1",
    "max(x, 5) < 3",
    "max(x, 15) < 3",
    "max(x, 15) >= 3",
    "sum(x, 10) > 2",
    "sum(x, 10) > 2 and max(x, 5) >= 1",
    "min(x, 5, ending=5) > 1",
    "x > 2 or x < 1",
    "not max(x, 5) > 1",
]
Rows = list[tuple[int, dict[str, Any]]]
STEPS = st.one_of(
    st.tuples(
        st.just("insert"),
        st.sampled_from("ab"),
        st.sampled_from([0, 5, 10]),
        st.sampled_from([-1, 0, 4, 4]),
    ),
    st.tuples(st.just("add"), st.sampled_from(CONDITIONS)),
    st.tuples(st.just("remove"), st.integers(0, 9)),
    st.tuples(st.just("advance"), st.sampled_from([0, 5])),
)


def truth(text: str, mine: Rows, now: int) -> bool:
    rows, times = [row for _, row in mine], [at for at, _ in mine]
    values: dict[str, Any] = {"x": rows[-1]["x"]}
    for number, (call, (aggregate, window)) in enumerate(CALLS.items()):
        text = text.replace(call, f"f{number}")
        values[f"f{number}"] = recalc(aggregate, of_rows(rows, times, window, now))
    return holds(text, values)


@examples(200)
@given(st.lists(STEPS, max_size=30))
def test_at_every_moment_what_fires_is_the_truth(steps: list[tuple[Any, ...]]) -> None:
    rules = wr.Rules(key="k", time="at", features=KEPT)
    texts: dict[str, str] = {}
    rows: dict[str, Rows] = {}
    firing: set[tuple[str, str]] = set()
    now = added = 0

    def follow(changes: list[Change], moments: range, keys: Any) -> None:
        """Changes in order, and the truth at each moment for keys that are surely there."""
        waiting = list(changes)
        for moment in moments:
            while waiting and waiting[0].at <= moment:
                change = waiting.pop(0)
                pair = (change.rule, change.key)
                assert (pair in firing) != change.started
                (firing.add if change.started else firing.remove)(pair)
            for key in keys:
                if moment - rows[key][-1][0] < LONGEST:
                    expected = {
                        name for name, text in texts.items() if truth(text, rows[key], moment)
                    }
                    assert {name for name, one in firing if one == key} == expected, moment
        assert not waiting

    for step in [*steps, ("advance", LONGEST - 1)]:
        before = now
        if step[0] == "insert":
            _, key, gap, x = step
            now += gap
            row = {"k": key, "at": now, "x": x}
            changes = rules.insert(row)
            earlier = [change for change in changes if change.at < now]
            follow(earlier, range(before + 1, now), list(rows))
            rows.setdefault(key, []).append((now, row))
            follow(changes[len(earlier) :], range(now, now + 1), [key])
        elif step[0] == "advance" and rows:
            now += step[1]
            follow(rules.advance(now), range(min(before + 1, now), now + 1), list(rows))
        elif step[0] == "add":
            name = f"r{added}"
            added += 1
            changes = rules.add(name, step[1])
            texts[name] = step[1]
            follow(changes, range(now, now + 1), list(rows))
        elif step[0] == "remove" and texts.pop(f"r{step[1]}", None) is not None:
            rules.remove(f"r{step[1]}")
            firing = {pair for pair in firing if pair[0] != f"r{step[1]}"}
