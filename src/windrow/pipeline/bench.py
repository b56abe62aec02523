"""``windrow bench``: engines and peers on the user's own rows and specification."""

import copy
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import WindrowError
from windrow.pipeline.building import Pipeline, Source, near
from windrow.pipeline.declaration import IN_PROCESS
from windrow.pipeline.files import rows_of
from windrow.pipeline.peers import PEERS, ROW, Peer, part_for
from windrow.rolling import Rolling

Tell = Callable[[dict[str, Any]], None]
_CLOSE = 1e-9
_LONG = 20.0
"""What takes longer than so many seconds is not repeated."""


_FEW = 10_000
"""Fewer rows than these are told to be few."""


@dataclass(frozen=True)
class Measured:
    """One engine's time, and what its answers are compared with windrow's in process."""

    engine: str
    answers: int
    seconds: float
    ns_per_row: float
    windrow_ns_per_row: float
    """In process, for the same answers."""
    agrees: str

    @property
    def ratio(self) -> float:
        """How many times as long as windrow in process."""
        return self.ns_per_row / self.windrow_ns_per_row


@dataclass
class Result:
    """All engines, what they ran on, and what was left out and why."""

    rows: int
    what: str
    machine: str
    engines: list[Measured] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        engines = [{**asdict(one), "ratio": round(one.ratio, 2)} for one in self.engines]
        return {**asdict(self), "engines": engines}

    def __str__(self) -> str:
        names = ["engine", "answers", "seconds", "ns/row", "ratio", "answers agree"]
        rows = [
            [
                one.engine,
                str(one.answers),
                f"{one.seconds:.3g}",
                f"{one.ns_per_row:,.0f}",
                f"{one.ratio:.1f}",
                one.agrees,
            ]
            for one in self.engines
        ]
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = [f"{self.rows:,} rows: {self.what}", f"on {self.machine}", ""]
        for row in (names, *rows):
            cells = [
                text.rjust(width) if 0 < place < 5 else text.ljust(width)
                for place, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines += [
            "",
            "ratio: the time of windrow in process for the same answers is 1. Rows are in memory",
            "when the clock starts (Spark: cached); sorting is part of the time, reading is not.",
        ]
        if self.rows < _FEW:
            lines.append("So few rows measure little but what every call costs, whatever its size.")
        lines += [f"left out: {text}" for text in self.left_out]
        return "\n".join(lines)


def measured(
    pipeline: Pipeline,
    data: str | None = None,
    rows: int | None = None,
    repeat: int = 3,
    spark: bool = True,
    tell: Tell = lambda event: None,
) -> Result:
    """Every engine and every peer that can answer, timed and compared."""
    table = _table(pipeline, data, rows)
    spec = pipeline.features
    by = f"by {', '.join(spec.key)}" if spec.key else "without a key"
    what = f"{', '.join(map(repr, spec.aggregates))} over {', '.join(spec.windows)}, {by}"
    result = Result(table.num_rows, what, _machine())
    timer = _Timer(result, table, repeat, tell)
    timer.columns(spec)
    if spark:
        _on_spark(timer, pipeline)
    for peer in PEERS:
        timer.peer(peer, spec)
    return result


def _table(pipeline: Pipeline, data: str | None, rows: int | None) -> pa.Table:
    source = pipeline.source
    if data is not None:
        ending = data.removesuffix(".gz").rpartition(".")[2].lower()
        form = {"tsv": "csv", "jsonl": "json", "ndjson": "json"}.get(ending, ending)
        if not os.path.exists(data):
            raise WindrowError(f"there is no {data}, which --data names")
        source = Source(form, (data,), options=source.options if form == source.format else {})
    if source.format not in IN_PROCESS:
        raise WindrowError(
            f"bench reads {', '.join(IN_PROCESS)}, and the source is {source.shown}: give a file "
            "of the same columns with --data"
        )
    table = rows_of(source, pipeline.columns, rows)
    if not table.num_rows:
        raise WindrowError(f"{near(source.paths[0])} has no rows: there is nothing to measure")
    pipeline.features.check_columns(table.column_names)
    return table.combine_chunks().append_column(ROW, pa.array(np.arange(table.num_rows)))


def _machine() -> str:
    return f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"


class _Timer:
    """Runs engines one after the other and keeps what they took."""

    def __init__(self, result: Result, table: pa.Table, repeat: int, tell: Tell) -> None:
        self.result, self.table, self.repeat, self.tell = result, table, repeat, tell
        self.known: dict[tuple[str, ...], tuple[float, pa.Table]] = {}

    def best(self, work: Callable[[], Any]) -> tuple[float, Any]:
        """The shortest of several runs, and the last answer."""
        seconds = []
        for _ in range(self.repeat):
            started = time.perf_counter()
            answer = work()
            seconds.append(time.perf_counter() - started)
            if seconds[-1] > _LONG:
                break
        return min(seconds), answer

    def in_process(self, spec: Rolling) -> tuple[float, pa.Table]:
        """Windrow on columns: the yardstick, once compiled."""
        names = tuple(name for name, _, _ in spec.outputs)
        if names not in self.known:
            spec(self.table.slice(0, 1000))  # compiles
            self.known[names] = self.best(lambda: spec(self.table))
        return self.known[names]

    def add(self, name: str, spec: Rolling, seconds: float, agrees: str) -> None:
        """Note one engine."""
        rows = self.result.rows
        ours = self.in_process(spec)[0]
        took, least = (round(s / rows * 1e9, 1) for s in (seconds, ours))
        self.result.engines.append(
            Measured(name, len(spec.outputs), round(seconds, 4), took, least, agrees)
        )

    def _has_ties(self, spec: Rolling) -> bool:
        """Whether a key has rows of equal time."""
        names = [*spec.key, *([spec.time] if spec.time else [])]
        different = self.table.group_by(names).aggregate([]).num_rows
        return bool(different < self.table.num_rows)

    def columns(self, spec: Rolling) -> None:
        """Windrow in this process."""
        self.tell({"event": "step", "step": "windrow in process"})
        self.add("windrow columns", spec, self.in_process(spec)[0], "–")

    def peer(self, peer: Peer, spec: Rolling) -> None:
        """Another library, where it can answer something."""
        if not peer.installed:
            self.result.left_out.append(f"{peer.name}: not installed (pip install {peer.module})")
            return
        part = part_for(peer, spec)
        if part is None:
            self.result.left_out.append(f"{peer.name}: has none of these windows and aggregates")
            return
        missing = len(spec.outputs) - len(part.outputs)
        if missing:
            self.result.left_out.append(f"{peer.name}: has no word for {missing} of the answers")
        self.tell({"event": "step", "step": peer.name})
        expected = self.in_process(part)[1]
        try:
            ready = peer.prepare(part, self.table)
            seconds, answer = self.best(lambda: peer.answer(part, ready))
            found = {name: peer.columns(answer, name) for name, _, _ in part.outputs}
        except Exception as error:  # a peer's own refusal is a result, not a failure
            text = (str(error).splitlines() or [""])[0]
            self.result.left_out.append(f"{peer.name}: {type(error).__name__}: {text}")
            return
        agrees = agreement({n: expected[n] for n in found}, found)
        if agrees.startswith("differs") and peer.note and self._has_ties(spec):
            agrees += f" ({peer.note})"
        self.add(peer.name, part, seconds, agrees)


def agreement(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """Whether answers are the same: bit for bit, within 1e-9, or in how many rows not."""
    same, worst, total = True, 0, 0
    for name, ours in expected.items():
        a, b = _numbers(ours), _numbers(found[name])
        if a is None or b is None:
            if ours.to_pylist() != found[name].to_pylist():
                return f"differs in {name}"
            continue
        total = len(a)
        missing = np.isnan(a) & np.isnan(b)
        same = same and bool(np.all((a == b) | missing))
        usual = np.abs(a[np.isfinite(a)])  # one outlier is not what the others are measured by
        small = _CLOSE * float(np.median(usual)) if len(usual) else 0.0
        close = np.isclose(a, b, rtol=_CLOSE, atol=small)
        worst = max(worst, int(np.sum(~(close | missing))))
    if same:
        return "yes, bit for bit"
    if not worst:
        return "yes, within 1e-9"
    return f"differs in {worst / total:.1%} of the rows"


def _numbers(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    return pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")).to_numpy()


def _finished(spec: Rolling, df: Any) -> None:
    from windrow.spark.runs import finish

    finish(spec(df))


def _on_spark(timer: _Timer, pipeline: Pipeline) -> None:
    from windrow.pipeline.surroundings import why_no_spark

    reason = why_no_spark(pipeline.spark.get("master", ""))
    if reason:
        timer.result.left_out.append(f"Spark: {reason.partition(', or let')[0]}")
        return
    from windrow.pipeline.running import Run, on_spark

    batch = copy.copy(pipeline)
    batch.mode, batch.engine = "batch", "spark"
    batch.call = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        on_spark(Run(batch, timer.tell), False) as session,
    ):
        import pyarrow.parquet as pq

        from windrow.spark import runs

        pq.write_table(timer.table, f"{folder}/rows.parquet", row_group_size=100_000)
        df = session.read.parquet(f"{folder}/rows.parquet").cache()
        df.count()
        for engine in ("kernel", "native"):
            spec = copy.copy(pipeline.features)
            spec.engine = engine
            why = runs.why_not(spec, df, engine)
            if why is not None:
                timer.result.left_out.append(f"Spark {engine}: {why}")
                continue
            timer.tell({"event": "step", "step": f"Spark {engine}"})
            _finished(spec, df)  # starts workers, compiles
            seconds, _ = timer.best(partial(_finished, spec, df))
            answers = spec(df).toArrow()
            names = [name for name, _, _ in spec.outputs]
            agrees = "–"
            if spec.every is None:
                answers = answers.sort_by(ROW)
                expected = timer.in_process(pipeline.features)[1]
                agrees = agreement({n: expected[n] for n in names}, {n: answers[n] for n in names})
            timer.add(f"Spark {engine}", pipeline.features, seconds, agrees)
        df.unpersist()
