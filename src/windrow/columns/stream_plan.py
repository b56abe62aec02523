"""What a stream computes, what came of a turn, and the head of the state as it is written down."""

import ast
import copy
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from windrow.aggregates import Aggregate
from windrow.aggregates.schema import frame, unframe
from windrow.columns.cells import Traffic
from windrow.columns.prepare import time_column
from windrow.columns.ranges import Array
from windrow.columns.segment_queue import Borders
from windrow.columns.stretch import Reach, time_reach
from windrow.errors import BadSpecification, Refused
from windrow.rolling import Rolling
from windrow.slides import Rows, Session, Time
from windrow.stores.chunks import chunk_number
from windrow.times import Clock

STATE_VERSION = 3
_READ = (2, 3)
"""Version 2 had nothing but answers for rows."""
SEGMENT_ROWS = 1 << 17
LONG_AGO = -(1 << 62)
FOR_EVER = 1 << 62
"""How far windows look back that no row leaves."""
_LONGEST = 1 << 60
TOTALLED = ("ever", "session")
"""Windows of which a total is kept for every key, and no rows."""
_KIND = b"H"
_OWNER = b"windrow\0"


def refuse_other_versions(version: int) -> None:
    """Older versions are read, as far as that can be; the newest is written."""
    if version not in _READ:
        raise Refused(
            f"the checkpoint's state is of version {version}, this windrow reads "
            f"{' and '.join(map(str, _READ))} and writes {STATE_VERSION}: go on with the windrow "
            "that wrote it, or begin a new checkpoint"
        )


def ticks(table: pa.Table, spec: Rolling) -> Array:
    """A table's times."""
    return time_column(table, str(spec.time), spec.unit)[0]


def overflow_is_null(spec: Rolling) -> None:
    """Unless it is said: an error would come back at every restart."""
    copies = {id(aggregate): copy.copy(aggregate) for aggregate in spec.aggregates}
    for aggregate in copies.values():
        aggregate.overflow = "null" if spec.overflow is None else aggregate.overflow
    spec.aggregates = [copies[id(aggregate)] for aggregate in spec.aggregates]
    spec.outputs = [(name, copies[id(a)], label) for name, a, label in spec.outputs]


def reaches_of(spec: Rolling, clock: Clock) -> dict[str, Reach]:
    """Where each window looks; for a rows window, its horizon; for a session, its gap."""
    out = {}
    for label, given in spec.windows.items():
        what = f"window {label!r}"
        if isinstance(given, Rows) and given.within is None:
            continue  # of sequential aggregates, which look at no row again
        window = Time(given.within) if isinstance(given, Rows) and given.within else given
        assert isinstance(window, Time | Session)
        near = window.near
        length = clock.length(near.length, what)
        ending = clock.length(near.ending, what) if near.ending else 0
        out[label] = reach = time_reach(near, label, length, ending)
        if window.kind == "ever":
            out[label] = replace(reach, start=-FOR_EVER)
        elif -reach.start > _LONGEST:
            raise BadSpecification(f"{what} is too long")
    return out


@dataclass(frozen=True)
class StreamPlan:
    """What a stream computes: the specification, the columns that come, and how they are kept."""

    spec: Rolling
    schema: pa.Schema
    reaches: dict[str, Reach]
    """Where each time window looks; for a rows window, its horizon."""
    buckets: int = 1
    segment_rows: int = SEGMENT_ROWS
    step: int = 0
    """How far ticks are apart, where answers come out at ticks."""
    origin: int = 0
    """Where one of them is."""
    made: tuple[str, ...] = ()
    """Columns that are not the stream's, but made for aggregates of some rows."""

    def __post_init__(self) -> None:
        named: dict[str, Aggregate] = {}
        for aggregate in self.folded:
            other = named.setdefault(_text(aggregate), aggregate)
            if type(other) is not type(aggregate):
                raise BadSpecification(
                    f"{aggregate!r}: two classes have this name, and the state of a stream knows "
                    "classes by their names: rename one"
                )

    @property
    def emission(self) -> str:
        """When answers come out: a name in ``windrow.columns.emission``."""
        return self.spec.emit if self.spec.every is None else "ticks"

    @property
    def overlap(self) -> int:
        """How far before the frontier later moments may lie."""
        return 1 if self.emission == "changes" else 0

    @property
    def passing(self) -> list[Reach]:
        """Where windows look that rows leave again."""
        windows = self.spec.windows
        return [reach for label, reach in self.reaches.items() if windows[label].kind != "ever"]

    def aligned(self, table: pa.Table, names: list[str] | None = None) -> pa.Table:
        """Rows with the columns in order; whether a column may have nulls makes no difference."""
        names = self.schema.names if names is None else names
        loose = [self.schema.field(name).with_nullable(True) for name in names]
        return table.select(names).cast(pa.schema(loose))

    @property
    def held(self) -> list[str]:
        """The columns of rows that wait: all where they come out, else those that matter."""
        if self.emission == "rows":
            return list(self.schema.names)
        return list(dict.fromkeys([*self.kept, *self.spec.tie]))

    @property
    def kept(self) -> list[str]:
        """The columns that are kept of rows that were answered."""
        names = [*self.spec.key, str(self.spec.time)]
        names += [column for aggregate in self.folded for column in aggregate.columns]
        return list(dict.fromkeys(names)) if self.folded else []

    @property
    def folded(self) -> list[Aggregate]:
        """The aggregates that rows are kept for: all but the sequential ones."""
        return [aggregate for aggregate in self.spec.aggregates if aggregate.kind != "sequential"]

    @property
    def sequential(self) -> list[str]:
        """What each sequential output is, as the head records it."""
        return [f"{_text(a)} over {self.spec.windows[w]!r}" for _, a, w in self.spec.sequential]

    @property
    def pairs(self) -> dict[str, list[str]]:
        """Of each window: which aggregates are over it, of those that rows are kept for."""
        pairs: dict[str, list[str]] = {label: [] for label in self.spec.windows}
        for _, aggregate, label in self.spec.outputs:
            if aggregate.kind != "sequential":
                pairs[label].append(_text(aggregate))
        return pairs

    def contract(self) -> dict[str, Any]:
        """What the state depends on, as the head records it."""
        spec = self.spec
        counted: dict[str, Any] = {"sequential": self.sequential} if spec.sequential else {}
        if self.made:
            counted["made"] = list(self.made)
        if self.pairs != {label: [_text(a) for a in self.folded] for label in spec.windows}:
            counted["pairs"] = self.pairs
        timed = [n for n, w in spec.windows.items() if isinstance(w, Time) and self.pairs[n]]
        sessions = [n for n, w in spec.windows.items() if isinstance(w, Session)]
        if sessions:
            counted["sessions"] = sessions
        return counted | {
            "version": STATE_VERSION,
            "emit": self.emission,
            "buckets": self.buckets,
            "key": list(spec.key),
            "time": str(spec.time),
            "tie": list(spec.tie),
            "rows": {name: str(self.schema.field(name).type) for name in self.schema.names},
            "kept": self.kept,
            "aggregates": [_text(aggregate) for aggregate in self.folded],
            "windows": {label: repr(window) for label, window in spec.windows.items()},
            "reaches": {label: [r.start, r.end] for label, r in self.reaches.items()},
            "timed": timed,
        }


def _text(aggregate: Aggregate) -> str:
    return f"{aggregate.identification}({','.join(aggregate.columns)})"


def aggregate_parts(text: str) -> tuple[str, str, str]:
    """Owner, options and columns of an aggregate, as ``_text`` wrote them."""
    owner, _, rest = text.partition(" ")
    place = rest.find(")(")
    while place >= 0:
        description = rest[: place + 1]
        try:
            ast.parse(description, mode="eval")
        except SyntaxError:  # it goes on: an option is a text with this in it
            place = rest.find(")(", place + 1)
            continue
        return owner, description, rest[place + 2 :].removesuffix(")")
    description, _, columns = rest.removesuffix(")").rpartition("(")  # options that are no Python
    return owner, description, columns


def columns_of(text: str, known: list[str]) -> list[str] | None:
    """Which columns they are, whose names may have commas of their own; None: unknown ones."""
    if not text:
        return []
    for name in known:
        if text == name:
            return [name]
        if text.startswith(f"{name},"):
            rest = columns_of(text[len(name) + 1 :], known)
            if rest:
                return [name, *rest]
    return None


@dataclass
class Chunks:
    """Where something of every key is: chunks of keys on a shelf of their own."""

    shelf: int | None = None
    count: int = 0
    keys: int = 0
    swept: int = 0
    places: dict[str, int] = field(default_factory=dict)
    """Of each output: the number of its columns."""


@dataclass
class Sight:
    """Where a window stands: segments before ``tail`` are gone, those of its queue are folded."""

    shelf: int
    tail: int = 0
    front_low: int = LONG_AGO
    """Rows of the queue's first segment, and of later ones, are at or after this time."""
    back_low: int = LONG_AGO
    """Rows of the segments after the queue are at or after this time."""
    folds: bool = False
    """Whether the queue holds anything: a window that replays its rows only counts segments."""
    filled: bool = False
    """Whether a rows window has its cell."""
    borders: Borders = field(default_factory=Borders)
    totals: Chunks = field(default_factory=Chunks)
    """Where the totals of a window are that no row leaves; its keys are rows of them."""

    @property
    def recent(self) -> int:
        """The number, among all cells, of a rows window's cell."""
        return chunk_number(self.shelf << 1, 0)

    def chunk(self, number: int) -> int:
        """The number, among all cells, of one of its chunks of totals."""
        return chunk_number(self.shelf << 1, number)

    def chunks(self) -> list[int]:
        """The numbers, among all cells, of its totals."""
        return [self.chunk(number) for number in range(self.totals.count)]

    def cells(self) -> list[int]:
        """The numbers of its cells."""
        at = self.borders
        if self.totals.count:
            return list(range(self.totals.count))
        sums = [~number for number in (at.front_sum, at.back_sum) if number >= 0]
        return [*range(at.f, at.e), *sums] if self.folds else [0] * self.filled


@dataclass
class Head:
    """What a bucket remembers between turns, besides its cells."""

    contract: dict[str, Any]
    frontier: int | None = None
    oldest: int = 0
    next: int = 0
    latest: int | None = None
    """Rows that were answered are before this time."""
    waiting: list[list[int]] = field(default_factory=list)
    """Of each waiting cell: number, earliest and latest time, rows."""
    next_waiting: int = 0
    sights: dict[str, Sight] = field(default_factory=dict)
    shelves: int = 1
    log_bytes: int = 0
    waiting_bytes: int = 0
    log_rows: int = 0
    timer: int | None = None
    """When the bucket asked to be called, in the store's own unit of time."""
    active: int | None = None
    """When rows last came, by the clock; kept where the clock matters."""
    rules: dict[str, str] = field(default_factory=dict)
    """Which rules are in force: their version, and the digest of their text."""
    rules_sizes: dict[str, int] = field(default_factory=dict)
    """How many bytes the cells of rules take."""
    sizes: dict[int, int] = field(default_factory=dict)
    """Of a few cells: how many bytes they take."""
    counters: Chunks = field(default_factory=Chunks)
    arrivals: int = 0
    """How many rows came, where that is counted."""

    @property
    def size(self) -> int:
        """How many bytes all cells take."""
        return self.log_bytes + self.waiting_bytes + sum(self.rules_sizes.values())

    @property
    def earliest_waiting(self) -> int | None:
        """The time of the first row that waits."""
        return min((earliest for _, earliest, _, _ in self.waiting), default=None)

    @property
    def waiting_rows(self) -> int:
        """How many rows wait."""
        return sum(rows for *_, rows in self.waiting)

    def to_bytes(self) -> bytes:
        """As JSON, framed."""
        return frame(_KIND, _OWNER, json.dumps(asdict(self)).encode())

    @staticmethod
    def from_bytes(data: bytes) -> "Head":
        """What ``to_bytes`` wrote."""
        reader = unframe(_KIND, _OWNER, data, "the state of a stream")
        found = json.loads(reader.take(reader.remaining()))
        refuse_other_versions(found["contract"]["version"])
        for label, sight in found["sights"].items():
            parts = {
                "borders": Borders(**sight["borders"]),
                "totals": Chunks(**sight.get("totals", {})),
            }
            found["sights"][label] = Sight(**{**sight, **parts})
        found["counters"] = Chunks(**found.get("counters", {}))
        found["sizes"] = {int(number): size for number, size in found["sizes"].items()}
        return Head(**found)


@dataclass
class Turn:
    """What came of one turn."""

    answered: pa.Table | None = None
    """What comes out: rows, or keys and moments, with their answers."""
    live: Any = None
    """Of each key that comes out because it changed: whether any window has rows of it."""
    late: pa.Table | None = None
    """Rows before the frontier, and rows without a time."""
    rows: int = 0
    answered_rows: int = 0
    """How many rows were answered, or are in the windows of those that are."""
    without_time: int = 0
    overflows: int = 0
    rules: int = 0
    rejected_rules: int = 0
    latest: int | None = None
    """The latest time that came."""
    traffic: Traffic = field(default_factory=Traffic)

    @property
    def late_rows(self) -> int:
        """How many rows came too late."""
        return 0 if self.late is None else self.late.num_rows - self.without_time

    @property
    def emitted_rows(self) -> int:
        """How many rows come out with answers."""
        return 0 if self.answered is None else self.answered.num_rows
