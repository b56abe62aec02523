"""The specification: which windows of which aggregates, for every row of a table."""

import copy
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

import numpy as np

from windrow.aggregates import Aggregate
from windrow.aggregates.base import check_odd
from windrow.aggregates.where import Masked
from windrow.asked import aggregates_of, check_policies, named_windows, paired
from windrow.errors import BadSpecification, Refused
from windrow.sequential import check, is_sequential, metadata
from windrow.slides import Bounds, Kept, Rows, Session, Spec, Time, WindowSpec
from windrow.times import Duration, Length, duration, unit_of
from windrow.words import Lines, in_our_words

Window = Spec | str | timedelta | np.timedelta64
"""What may stand for a window: ``wr.rows(100)``, ``wr.time("1h")``, ``"1h"``, a timedelta."""
One = Aggregate | type[Aggregate]


class Rolling:
    """Windows and aggregates, named once; call it with a table.

    >>> import windrow as wr, pyarrow as pa
    >>> features = wr.Rolling(
    ...     key="user", time="at", windows=[wr.time(10), wr.rows(2)],
    ...     aggregates=[wr.Sum("amount"), wr.Count()],
    ... )
    >>> table = pa.table({"user": ["a", "b", "a"], "at": [1, 2, 9], "amount": [2.0, 3.0, 4.0]})
    >>> features(table)["amount_sum_10"].to_pylist()
    [2.0, 3.0, 6.0]

    Tables are pyarrow Tables and RecordBatches, pandas and Polars DataFrames, and dicts of NumPy
    arrays; the answer is of the same type, in the same order, with one more column for each
    aggregate and window, called ``{column}_{aggregate}_{window}``.

    - ``windows``: a list, or a dict of names. ``aggregates``: a list. Every aggregate is computed
      over every window, but for those that say their own: ``wr.Max("amount").over("1h")``.
    - ``key``: columns whose values each have windows of their own.
    - ``time``: the column that orders rows and that time windows are about; without it, rows are in
      the order they come. ``unit``: what float times count.
    - ``tie``: columns that order rows of equal time; ``tie="any"`` accepts any order among them,
      which Spark must be told (a column of that name is ``tie=["any"]``).
    - ``every``: ticks instead of rows: one answer per key and multiple of ``every`` (from
      ``origin``, the epoch by default), while the longest window is not empty.
    - ``min_rows``: fewer rows with all inputs present give null.
    - ``nan``, ``overflow``: see the aggregates.
    - ``threads``: all cores by default.
    - ``algorithm``: ``"auto"``, or one of ``explain()``'s names.
    - ``engine``: on Spark, ``"native"`` (its own operator) or ``"kernel"``, instead of the better.
    - ``lateness``: on streams, how much later than others a row may come, an integer where times
      are integers; see ``docs/streaming.md``.
    - ``emit``: ``"rows"``, an answer for every row; on streams also ``"changes"``, the answers of
      keys that changed with a batch, and ``"immediately"``, which waits for no late rows; see
      ``docs/emission.md``.
    """

    @in_our_words
    def __init__(
        self,
        *,
        windows: Window | Iterable[Window] | Mapping[str, Window] = (),
        aggregates: One | Iterable[One],
        key: str | Sequence[str] | None = None,
        time: str | None = None,
        tie: str | Sequence[str] | None = None,
        every: Length | None = None,
        origin: Any = None,
        min_rows: int = 0,
        nan: Literal["value", "missing"] | None = None,
        overflow: Literal["error", "null"] | None = None,
        unit: str | None = None,
        threads: int | None = None,
        algorithm: str = "auto",
        engine: Literal["auto", "native", "kernel"] = "auto",
        lateness: Length | None = None,
        emit: Literal["rows", "changes", "immediately"] = "rows",
    ) -> None:
        self.key = _names(key, "key")
        self.any_tie = isinstance(tie, str) and tie == "any"
        self.tie = () if self.any_tie else _names(tie, "tie")
        if time is not None and not isinstance(time, str):
            raise BadSpecification(f"time= is the name of a column, not {time!r}")
        self.time = time
        check_odd("value" if nan is None else nan, "error" if overflow is None else overflow)
        self.aggregates = aggregates_of(aggregates, nan, overflow)
        self.windows, pairs = paired(self.aggregates, named_windows(windows))
        for name, window in self.windows.items():
            if self.time is None and window.needs_time:
                rows = "; without times, rows(10**12)" if window.kind == "ever" else ""
                raise BadSpecification(
                    f"window {name!r} is about time: say which column, time=...{rows}"
                )
            check_policies(name, window)
        self.min_rows = _count(min_rows, 0, "min_rows= is a number of rows")
        self.unit = None if unit is None else unit_of(unit)
        what = "threads= is a number from 1 on"
        self.threads = None if threads is None else _count(threads, 1, what)
        if algorithm not in COLUMN_ALGORITHMS:
            raise BadSpecification(
                f"algorithm= is one of {', '.join(COLUMN_ALGORITHMS)}, not {algorithm!r}"
            )
        self.algorithm = algorithm
        if engine not in ("auto", "native", "kernel"):
            raise BadSpecification(f"engine= is auto, native or kernel, not {engine!r}")
        self.engine = engine
        self.every = _every(every, self.windows)
        self.emit = _emit(emit, self.every, self.windows)
        self.overflow = overflow
        self.lateness = _lateness(lateness)
        if origin is not None and every is None:
            raise BadSpecification("origin= shifts the ticks of every=, which is not given")
        self.origin = origin
        self.outputs = [(f"{a.output_name}_{label}", a, label) for a, label in pairs]
        self._check_sequential()
        names = [name for name, _, _ in self.outputs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BadSpecification(
                f"two answers would be called {', '.join(twice)}: rename an aggregate with "
                ".alias(...), or give the windows as a dict of names"
            )

    def _check_sequential(self) -> None:
        """What has states that cannot be merged runs for rows in order, and nothing else."""
        for name, aggregate, label in self.outputs:
            if is_sequential(aggregate):
                check(aggregate, label, self.windows[label])
                if self.every is not None:
                    raise Refused(
                        f"{name}: {aggregate!r} answers rows, not ticks: leave every= out"
                    )
                if self.min_rows:
                    raise Refused(
                        f"{name}: min_rows= counts rows, which {aggregate!r} has not kept: leave "
                        "it out, or give that aggregate a Rolling of its own"
                    )

    def part(self, keep: Callable[[Aggregate, str], bool]) -> "Rolling":
        """The same specification with some of its answers: aggregates over windows, by name."""
        other = copy.copy(self)
        other.outputs = [output for output in self.outputs if keep(*output[1:])]
        used = {label for _, _, label in other.outputs}
        other.windows = {label: w for label, w in self.windows.items() if label in used}
        kept = {id(aggregate) for _, aggregate, _ in other.outputs}
        other.aggregates = [aggregate for aggregate in self.aggregates if id(aggregate) in kept]
        return other

    @property
    def masked(self) -> bool:
        """Whether any aggregate counts only some rows."""
        return any(aggregate._where for aggregate in self.aggregates)

    def plain(self) -> tuple["Rolling", list[Masked]]:
        """The same answers by aggregates of all rows, over columns that are yet to be made."""
        made: dict[int, Aggregate] = {}
        masked: dict[str, Masked] = {}
        for aggregate in self.aggregates:
            made[id(aggregate)] = plain = copy.copy(aggregate)
            if aggregate._where:
                column = Masked(next(iter(aggregate.columns), None), aggregate._where)
                if masked.setdefault(column.name, column) != column:
                    raise BadSpecification(f"{aggregate!r}: two columns are called {column.name!r}")
                plain.columns, plain._where = (column.name, *aggregate.columns[1:]), ()
                plain._alias = aggregate.output_name
        other = copy.copy(self)
        other.aggregates = list(made.values())
        other.outputs = [(name, made[id(a)], label) for name, a, label in self.outputs]
        return other, list(masked.values())

    @property
    def sequential(self) -> list[tuple[str, Aggregate, str]]:
        """The outputs whose states cannot be merged."""
        return [output for output in self.outputs if is_sequential(output[1])]

    def metadata(self, name: str) -> dict[str, Any] | None:
        """What the field of an output column says: the error bound, where an answer has one."""
        for found, aggregate, label in self.outputs:
            if found == name:
                return metadata(aggregate, label, self.windows[label])
        return None

    def __call__(self, table: Any, **options: Any) -> Any:
        """The table with its answers. Options are for Spark tables; see ``docs/spark.md``."""
        if is_spark(table):
            from windrow.spark import apply as apply_on_spark

            return apply_on_spark(self, table, **options)
        from windrow.columns.frames import apply

        self.refuse_emission("a table")
        if options:
            raise BadSpecification(f"{', '.join(options)}: options for Spark only")
        return apply(self, table)

    def as_of(
        self,
        events: Any,
        labels: Any,
        *,
        on: str | Mapping[str, str] | None = None,
        strict: bool = True,
        **options: Any,
    ) -> Any:
        """The labels, each with the answers over the events before its time: nothing of the future.

        >>> import windrow as wr, pyarrow as pa
        >>> events = pa.table({"user": [1, 1, 2], "at": [10, 20, 15], "amount": [5.0, 7.0, 1.0]})
        >>> labels = pa.table({"user": [1, 2], "asked": [20, 30], "fraud": [False, True]})
        >>> features = wr.Rolling(
        ...     key="user", time="at", windows=[wr.time(15)], aggregates=[wr.Sum("amount")]
        ... )
        >>> features.as_of(events, labels, on="asked")["amount_sum_15"].to_pylist()
        [5.0, None]

        ``on``: the labels' time column, or a dict from the events' key and time columns to the
        labels' names for them. ``strict=False`` takes events up to and at the label's time. A
        window means what it means for a row: ``time("1h")`` is (t − 1h, t], without t if strict.
        """
        self.refuse_emission("as_of()")
        if is_spark(events) or is_spark(labels):
            from windrow.spark import as_of

            if not (is_spark(events) and is_spark(labels)):
                raise BadSpecification("as_of(): events and labels must both be Spark tables")
            return as_of.apply(self, events, labels, on, strict, **options)
        from windrow.columns.frames import as_of_frames

        return as_of_frames(self, events, labels, on, strict)

    def stream(self, *, gone: str | None = None, store: Any = None, name: str | None = None) -> Any:
        """An object to be fed batches: ``push`` gives back what can be answered.

        With ``lateness=`` rows may come in any order within it, and answers are those of a Spark
        stream, by the same code: see ``windrow.columns.event_stream.EventStream``, also for the
        options. Without it batches come in order of time, and only windows of rows, of time and of
        sessions are taken: see ``windrow.columns.batches.Batches``.
        """
        if self.lateness is not None:
            from windrow.columns.event_stream import EventStream

            return EventStream(self, gone, store, name)
        from windrow.columns.batches import Batches

        self.refuse_emission("tables in batches without lateness=")
        if not (gone is None and store is None and name is None):
            raise BadSpecification("stream(): gone=, store= and name= are for one with lateness=")
        return Batches(self)

    def explain(self, table: Any, *, count_combines: bool = False, **options: Any) -> str:
        """What is done for each answer, and why; with a measured count of combines on request."""
        if is_spark(table):
            from windrow.spark import explain as explain_on_spark

            return Lines(explain_on_spark(self, table, **options))
        from windrow.columns.frames import explain

        self.refuse_emission("a table")
        return Lines(explain(self, table, count_combines))

    @property
    def answers_rows(self) -> bool:
        """Whether every row comes out with its answers, rather than keys with theirs."""
        return self.every is None and self.emit != "changes"

    def refuse_emission(self, where: str) -> None:
        """What depends on when rows come is for streams only."""
        if self.emit != "rows":
            raise Refused(
                f"emit={self.emit!r} depends on when rows come, and {where} has all of them: it is "
                "for Spark streams. every= has the answers at chosen times, on tables as on streams"
            )

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise unless every column the specification names is there, and no answer hides one."""
        needed = [
            *((k, "key") for k in self.key),
            *((t, "tie") for t in self.tie),
            *([(self.time, "time")] if self.time is not None else []),
            *((c, repr(a)) for a in self.aggregates for c in a.reads),
            *((c, _user(n, w)) for n, w in self.windows.items() for c in window_columns(w)),
        ]
        for column, user in needed:
            if column not in names:
                texts = [name for name in names if isinstance(name, str)]  # pandas has others
                small = {name.lower(): name for name in texts}
                close = difflib.get_close_matches(column.lower(), small, 1)
                hint = f"did you mean {small[close[0]]!r}? " if close else ""
                no_texts = ": names are texts, rename them" if names and not texts else ""
                raise BadSpecification(
                    f"{user}: there is no column {column!r}; {hint}"
                    f"the table has {', '.join(map(repr, names)) or 'no columns'}{no_texts}"
                )
            if names.count(column) > 1:
                raise BadSpecification(
                    f"{user}: the table has {names.count(column)} columns {column!r}: rename them"
                )
        for name, aggregate, _ in self.outputs:
            if name in names and self.answers_rows:
                raise BadSpecification(
                    f"the table has a column {name!r} already, which {aggregate!r} would hide: "
                    "rename it with .alias(...)"
                )

    def _shown(self, aggregate: Aggregate) -> str:
        """An aggregate as it was given: over which windows, and under which name."""
        over = [label for _, one, label in self.outputs if one is aggregate]
        text = repr(aggregate)
        if over != list(self.windows):
            text += f".over({', '.join(map(repr, over))})"
        return text + (f".alias({aggregate._alias!r})" if aggregate._alias else "")

    def __repr__(self) -> str:
        parts = [f"key={list(self.key)!r}"] if self.key else []
        parts += [f"time={self.time!r}"] if self.time else []
        parts += ["tie='any'"] if self.any_tie else []
        parts += [f"tie={list(self.tie)!r}"] if self.tie else []
        shown = ", ".join(map(self._shown, self.aggregates))
        parts += [f"windows={list(self.windows)!r}", f"aggregates=[{shown}]"]
        for word, usual in _USUALLY.items():
            said = getattr(self, word)
            if said != usual:
                parts.append(f"{word}={getattr(said, 'label', said)!r}")
        return f"Rolling({', '.join(parts)})"


_USUALLY = {
    **{"every": None, "origin": None, "lateness": None, "unit": None},
    **{"threads": None, "min_rows": 0, "algorithm": "auto", "engine": "auto", "emit": "rows"},
}


def is_spark(table: Any) -> bool:
    """Whether it is a Spark DataFrame, classic or through Connect, without importing Spark."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
        for kind in type(table).__mro__
    )


COLUMN_ALGORITHMS = ("auto", "two_stacks_lite", "daba_lite", "greedy", "b_int", "recalc")


EMISSIONS = ("rows", "changes", "immediately")


def _count(given: Any, least: int, what: str) -> int:
    try:
        count = operator.index(given)
    except TypeError:
        raise BadSpecification(f"{what}, not {given!r}") from None
    if isinstance(given, bool) or count < least:
        raise BadSpecification(f"{what}, not {given!r}")
    return count


def _names(given: Any, what: str) -> tuple[str, ...]:
    if given is None:
        return ()
    try:
        names = (given,) if isinstance(given, str) else tuple(given)
    except TypeError:  # a Column of Spark has __iter__, to say that it is none
        raise BadSpecification(f"{what}= takes names of columns, not {given!r}") from None
    for name in names:
        if not isinstance(name, str):
            raise BadSpecification(f"{what}= takes names of columns, not {name!r}")
    return names


def window_columns(window: WindowSpec) -> list[str]:
    """The columns that say which rows are in a window, besides key, time and tie."""
    if isinstance(window, Bounds):
        return [window.low, window.high]
    policies = window.policies if isinstance(window, Kept) else ()
    return [column for policy in policies for about in policy.over for column in about.columns]


def _user(name: str, window: WindowSpec) -> str:
    return "bounds" if isinstance(window, Bounds) else f"window {name!r}"


def _lateness(given: Any) -> Duration | int | None:
    if given is None:
        return None
    lateness = duration(given, "lateness=")
    if lateness == 0:
        lateness = duration("0s", "lateness=")
    if (lateness.nanoseconds if isinstance(lateness, Duration) else lateness) < 0:
        raise BadSpecification(f"lateness= must not be negative, not {given!r}")
    return lateness


def _every(given: Any, windows: Mapping[str, WindowSpec]) -> Duration | int | None:
    if given is None:
        return None
    every = duration(given, "every=")
    if (every.nanoseconds if isinstance(every, Duration) else every) <= 0:
        raise BadSpecification(f"every= must be positive, not {given!r}")
    for name, window in windows.items():
        if not isinstance(window, Time | Session) or window.after:
            raise BadSpecification(
                f"every= needs windows of time or sessions that do not look ahead; {name!r} is not "
                "one"
            )
    if windows and all(window.kind == "ever" for window in windows.values()):
        raise BadSpecification(
            "every=: a key would have ticks for ever. Add a window of time, which ticks then last "
            "as long as; as_of() has the answers at any times"
        )
    return every


def _emit(given: Any, every: Any, windows: Mapping[str, WindowSpec]) -> str:
    if given not in EMISSIONS:
        raise BadSpecification(f"emit= is one of {', '.join(EMISSIONS)}, not {given!r}")
    if given != "rows" and every is not None:
        raise BadSpecification(f"every= says when answers come out, and so does emit={given!r}")
    for name, window in windows.items():
        if given == "changes" and (not isinstance(window, Time | Session | Rows) or window.after):
            raise BadSpecification(
                'emit="changes" needs windows of time, sessions or rows that do not look ahead; '
                f"{name!r} is not one"
            )
    return str(given)
