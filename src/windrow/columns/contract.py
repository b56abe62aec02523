"""The state of a stream outlives the program: what may change between two runs, and what not."""

from typing import Any

from windrow.columns.cells import Shelf
from windrow.columns.counter_cells import forget
from windrow.columns.key_views import view_of
from windrow.columns.stream_plan import FOR_EVER, TOTALLED
from windrow.columns.views import State, TimeView
from windrow.errors import Refused
from windrow.slides import Rows


def adapt(state: State) -> None:
    """Make the state fit a changed specification, or say why it cannot.

    Windows and aggregates may go, and come where everything they look at is still in the log. New
    ones are folded from it, once.
    """
    before, now = {"emit": "rows"} | state.head.contract, state.plan.contract()
    _same(before, now)
    _counted(state, before.get("sequential", []), now.get("sequential", []))
    _kept(before, now)
    had, wanted = pairs_of(before), pairs_of(now)
    old = {n for n in had if before["windows"][n] == now["windows"].get(n)}
    totalled = {n for n in wanted if state.plan.spec.windows[n].kind in TOTALLED}
    _totalled(totalled & old, had, wanted)
    for label in wanted:
        if label not in old:
            _refuse_unless_seen(state, label, before)
    for label in before["windows"]:
        if label not in wanted:
            _drop(state, label)
    for label, texts in wanted.items():
        folded = label in old and had[label] == texts
        if not folded and state.plan.spec.windows[label].kind == "time":
            _fold_again(state, label)
    if not (now["timed"] or now.get("sessions")):
        _empty_log(state)
    state.head.contract = now


def _counted(state: State, before: list[str], now: list[str]) -> None:
    """Counters may go, but not come: what they would have counted is gone."""
    new = [text for text in now if text not in before]
    if new:
        raise Refused(
            f"{_shown(new)}: a sequential aggregate cannot be added or changed while a checkpoint "
            "is in use, since no rows are kept that it could be fed with. Begin a new checkpoint"
        )
    if before and not now:
        forget(state)
    elif before:
        places = state.head.counters.places
        state.head.counters.places = {text: places[text] for text in places if text in now}


def pairs_of(contract: dict[str, Any]) -> dict[str, list[str]]:
    """The windows that rows are kept for, with their aggregates: all, unless that is written."""
    every = dict.fromkeys(contract["windows"], contract["aggregates"])
    return {label: texts for label, texts in contract.get("pairs", every).items() if texts}


def _totalled(windows: set[str], had: dict[str, list[str]], wanted: dict[str, list[str]]) -> None:
    """Totals may go, but not come: what they would amount to is gone."""
    for label in sorted(windows):
        new = [text for text in wanted[label] if text not in had[label]]
        if new:
            raise Refused(
                f"{_shown(new)}: an aggregate cannot be added to window {label!r} while a "
                "checkpoint is in use, since only totals are kept of its rows. Begin a new "
                "checkpoint"
            )


def _empty_log(state: State) -> None:
    head = state.head
    for number in range(head.oldest, head.next):
        state.log.remove(number)
    head.oldest, head.log_rows = head.next, 0


def _same(before: dict[str, Any], now: dict[str, Any]) -> None:
    texts = {
        "emit": "when answers come out (emit=, every=)",
        "buckets": "the number of buckets",
        "key": "the key",
        "time": "the time column",
        "tie": "the tie columns",
        "rows": "the stream's columns and their types",
    }
    for name, text in texts.items():
        had, wanted = before[name], now[name]
        if name == "rows":
            had, wanted = _rows(before, now), _rows(now, before)
        if had != wanted:
            raise Refused(
                f"{text} cannot change while a checkpoint is in use: it was written with "
                f"{_shown(had)}, the query says {_shown(wanted)}. Change it back, or begin a new "
                "checkpoint"
            )


def _rows(contract: dict[str, Any], other: dict[str, Any]) -> dict[str, str]:
    """The columns that must be the same: all that come out with rows, and those that both have.

    Others come and go with the aggregates that look at them.
    """
    loose = set(contract.get("made", []))
    if contract["emit"] in ("ticks", "changes"):
        loose = set(contract["rows"])
    rows = contract["rows"].items()
    return {name: kind for name, kind in rows if name in other["rows"] or name not in loose}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {kind}" for name, kind in value.items())
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _kept(before: dict[str, Any], now: dict[str, Any]) -> None:
    new = [name for name in now["kept"] if name not in before["kept"]]
    if new:
        raise Refused(
            f"the state has no column {', '.join(map(repr, new))}: rows are kept with the columns "
            f"that aggregates look at ({', '.join(before['kept'])}). An aggregate of another one "
            "needs a new checkpoint"
        )


def _refuse_unless_seen(state: State, label: str, before: dict[str, Any]) -> None:
    if isinstance(state.plan.spec.windows[label], Rows):
        raise Refused(
            f"window {label!r}: a rows window cannot be added or changed while a checkpoint is in "
            "use. Begin a new checkpoint"
        )
    if state.plan.spec.windows[label].kind == "ever":
        raise Refused(
            f"window {label!r} is about all rows, of which the checkpoint has only some. Begin a "
            "new checkpoint, with a history"
        )
    if state.plan.spec.windows[label].kind == "session":
        raise Refused(
            f"window {label!r} is about whole sessions, whose beginnings the checkpoint may not "
            "have. Begin a new checkpoint, with a history"
        )
    longest = longest_of(before)
    start = state.plan.reaches[label].start
    if start < longest:
        raise Refused(
            f"window {label!r} looks back further than any time window of the checkpoint: rows "
            f"that old are gone (it would need {-start}, the state has {-longest} ticks). Begin a "
            "new checkpoint, or add a shorter window"
        )


def longest_of(contract: dict[str, Any]) -> int:
    """From when on, before the frontier, rows are kept."""
    starts = [contract["reaches"][name][0] for name in contract["timed"]]
    return min((start for start in starts if start > -FOR_EVER), default=0)


def _drop(state: State, label: str) -> None:
    sight = state.head.sights.pop(label, None)
    if sight is not None:
        shelf = Shelf(state.log, sight.shelf)
        for number in sight.cells():
            del shelf[number]


def _fold_again(state: State, label: str) -> None:
    """A time window's queue, from the log."""
    _drop(state, label)
    head = state.head
    view: TimeView = view_of(state, label, head.oldest)
    if head.frontier is not None:
        view.take_in(head.frontier - state.plan.overlap)
