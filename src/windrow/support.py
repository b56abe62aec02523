"""What runs where: one table for every kind of aggregate, kind of window and engine.

Engines ask this table before they start; ``docs/support.md`` is printed from it. A pair that is
not listed as running is refused, with the reason given here.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

from windrow.errors import Refused

AggregateKind = Literal["bounded", "holistic", "sequential"]
WindowKind = Literal["rows", "time", "ever", "session", "bounds", "policy"]
Engine = Literal["values", "columns", "Spark tables", "streams"]
ENGINES: tuple[Engine, ...] = get_args(Engine)


@dataclass(frozen=True)
class Support:
    """Whether a pair runs on an engine, and how or why not."""

    engine: Engine
    aggregate: AggregateKind
    window: WindowKind
    runs: bool
    reason: str


def support(engine: Engine, aggregate: AggregateKind, window: WindowKind) -> Support:
    """One cell of the table.

    >>> support("values", "sequential", "time").runs
    False
    """
    runs, reason = _decide(engine, aggregate, window)
    return Support(engine, aggregate, window, runs, reason)


def _decide(engine: Engine, aggregate: AggregateKind, window: WindowKind) -> tuple[bool, str]:
    if engine == "columns":
        return _on_columns(aggregate, window)
    if engine == "Spark tables":
        return _on_spark_tables(aggregate, window)
    if engine == "streams":
        return _on_spark_streams(aggregate, window)
    if aggregate == "sequential":
        return False, (
            "a state that cannot be merged is no partial of a window: `windrow.approx` has "
            "`Count`, `Sum`, `OverTime` and `Bank`, which take one value at a time"
        )
    if window == "bounds":
        return False, "bounds are columns of a table; one value at a time has none"
    if window == "policy":
        return True, "`Sliding` with AMTA: how many rows leave is found in O(log n) combines"
    if window == "ever":
        grows = aggregate == "holistic"
        kept = "which grows with every row" if grows else "and no rows"
        return True, f"`Sliding` with one running total, {kept}"
    if window == "session":
        grows = aggregate == "holistic"
        kept = "which grows with the session" if grows else "and no rows"
        return True, f"`Sliding` with one running total, begun anew after a pause, {kept}"
    how = "`Sliding` with any algorithm of `windrow.windows` that accepts the aggregate"
    if aggregate == "holistic":
        how += "; time and space per operation grow with the window, as the partial does"
    return True, how


def _on_columns(aggregate: AggregateKind, window: WindowKind) -> tuple[bool, str]:
    if aggregate == "sequential":
        return _sequential(window)
    if window == "policy":
        return True, "`Rolling`: first which rows stay, row by row, then as for other windows"
    if aggregate == "holistic":
        return True, (
            "`Rolling`: quantiles, ranks, distinct values, modes and entropies compiled, over "
            "blocks of sorted rows; lists copied; others interpreted: time grows with the window, "
            "as the partial does"
        )
    if window == "bounds":
        return True, "`Rolling`: Two-Stacks where bounds never move back, else base intervals"
    return True, "`Rolling`: compiled Two-Stacks over ranges of sorted rows"


def _sequential(window: WindowKind) -> tuple[bool, str]:
    if window == "policy":
        return False, "a policy asks for the oldest rows, and a counter has forgotten their values"
    if window == "bounds":
        return (
            False,
            "bounds may lie anywhere, and a counter knows one window: the one that ends now",
        )
    if window == "session":
        return False, (
            "a counter's error is a share of a window of a fixed length, and a session has none: "
            "exact totals of a session, `Count` and `Sum`, take no more memory"
        )
    if window == "ever":
        return False, (
            "a counter's error is a share of its window, and this one only grows: exact totals of "
            "all rows, `Count` and `Sum`, take no more memory"
        )
    return True, (
        "`Rolling`: one compiled counter for each key, fed in order; windows that end with the row "
        "(no `ending`, `after`, `within`, `closed`), no `every`, no `min_rows`"
    )


def _on_spark_tables(aggregate: AggregateKind, window: WindowKind) -> tuple[bool, str]:
    runs, reason = _on_columns(aggregate, window)
    if not runs:
        return runs, reason
    if aggregate == "sequential":
        return True, "by key, in order, a counter for each key; without a key in one task"
    if window in ("bounds", "policy"):
        return True, "by key, all rows of a key in memory; without a key in one task"
    if window == "ever":
        return True, (
            "by key, all rows of a key in memory; without a key, or for hot keys, in stretches, "
            "what came before them folded"
        )
    if window == "session":
        return True, (
            "by key with only the rows of a session in memory; without a key in one task, since "
            "how far back a session goes is not known before"
        )
    how = "by key with only live rows in memory; without a key, or for hot keys, in stretches"
    if window == "rows":
        how += " (with `within=`, in one task)"
    if aggregate == "holistic":
        how += "; middles grow with the window, and so does time for what is interpreted"
    return True, how


def _on_spark_streams(aggregate: AggregateKind, window: WindowKind) -> tuple[bool, str]:
    runs, reason = _on_columns(aggregate, window)
    if not runs:
        return runs, reason
    if aggregate == "sequential":
        kept = "dropped after a window without rows" if window == "time" else "kept for good"
        return True, f"a counter for each key, in chunks of keys; no rows are kept; keys are {kept}"
    if window == "policy":
        return False, "a policy may keep rows for ever, and decides row by row which ones stay"
    if window == "bounds":
        return False, "bounds may lie anywhere, and a stream keeps only what its windows reach"
    if window == "rows":
        return True, "with a horizon, `rows(n, within=...)`: the last rows of every key are kept"
    if window == "ever":
        if aggregate == "holistic":
            return False, (
                "all rows would be kept for ever: take a window of time, or an aggregate of "
                "bounded size, such as `ApproxDistinct` and `ApproxQuantile`"
            )
        return True, "one total for every key, in chunks of keys, for good; no rows are kept"
    if window == "session":
        if aggregate == "holistic":
            return False, (
                "a session may go on for ever, and all its rows would be kept: take a window of "
                "time, or an aggregate of bounded size, such as `ApproxDistinct` and "
                "`ApproxQuantile`"
            )
        return True, "one total for every key, in chunks of keys, dropped after the gap"
    if aggregate == "holistic":
        return True, "by replaying the window's rows in every batch: cost grows with the window"
    return True, "folded by DABA Lite over segments: a batch's cost does not grow with the window"


Emission = Literal["rows", "every", "changes", "immediately", "rules"]
EMISSIONS: tuple[Emission, ...] = get_args(Emission)


def emission(emit: Emission, aggregate: AggregateKind, window: WindowKind) -> tuple[bool, str]:
    """Whether a pair that runs on streams runs with a way of giving answers out; how, or why not.

    >>> emission("changes", "bounded", "rows")[0]
    True
    """
    runs, reason = _on_spark_streams(aggregate, window)
    if emit == "rows" or not runs:
        return runs, reason
    if aggregate == "sequential":
        return False, (
            "a counter answers rows, one after the other, as the watermark passes them: not ticks, "
            "changes, rules, or rows at once"
        )
    if emit == "immediately":
        return True, "over the rows that have come; those within the lateness are read again"
    if window in ("ever", "session") and emit == "rules":
        return False, (
            "a rule may come at any time, and finds what it looks at among the rows of `longest=`"
        )
    if window == "ever":
        how = "at moments, from the same totals as for rows"
        return True, how + ("; beside a window of time" if emit == "every" else "")
    if window == "session":
        return True, "at moments, from the same totals as for rows, until the gap has passed"
    if window == "time":
        return True, "at moments, from the same rows and folded segments as for rows"
    if emit == "changes":
        return True, "the last rows up to the moment, none older than `within=`"
    if emit == "rules":
        return False, (
            "a rule may come at any time, and finds what it looks at among the rows of `longest=`; "
            "the last n rows may be older. `wr.Rules` watches them in process"
        )
    return False, (
        'ticks are those of tables, where `every=` is for windows of time; `emit="changes"` has '
        "rows windows with each batch, `as_of()` has them at any times of a table"
    )


def require_emission(emit: Emission, aggregate: AggregateKind, window: WindowKind) -> None:
    """Raise ``Refused``, with the reason, unless answers of the pair can come out that way."""
    runs, reason = emission(emit, aggregate, window)
    if not runs:
        what = "every=" if emit == "every" else emit if emit == "rules" else f'emit="{emit}"'
        raise Refused(f"{aggregate} aggregates over {window} windows with {what}: {reason}")


def refuse_on_streams(spec: Any) -> None:
    """Raise ``Refused`` for what a specification asks of a stream, and streams do not have."""
    for _, aggregate, label in spec.outputs:
        require("streams", aggregate.kind, spec.windows[label].kind)
    for label, window in spec.windows.items():
        if window.after:
            raise Refused(f"window {label!r} looks ahead, at rows that have not come yet")
        kept = any(a.kind != "sequential" for _, a, over in spec.outputs if over == label)
        if window.kind == "rows" and window.within is None and kept:
            raise Refused(
                f"window {label!r} could reach back for ever: say how far on a stream, "
                f'rows({window.n}, within="30d"), or within="ever"'
            )
    way: Any = spec.emit if spec.every is None else "every"
    for _, aggregate, label in spec.outputs:
        require_emission(way, aggregate.kind, spec.windows[label].kind)


def require(engine: Engine, aggregate: AggregateKind, window: WindowKind) -> None:
    """Raise ``Refused``, with the reason, unless the pair runs on the engine."""
    cell = support(engine, aggregate, window)
    if not cell.runs:
        raise Refused(f"{aggregate} aggregates over {window} windows on {engine}: {cell.reason}")


def table() -> list[Support]:
    """The whole table."""
    kinds = product(ENGINES, get_args(AggregateKind), get_args(WindowKind))
    return [support(engine, aggregate, window) for engine, aggregate, window in kinds]
