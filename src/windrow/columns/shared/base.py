"""What the compiled shared windows have in common: rows, their times, and what may be asked for.

Rows are numbered from 0, from the first ever inserted. Rings of the last rows hold the rows
themselves (8 bytes for each input), their times where they have any, and, once a row is missing or
odd, running counts of those: counts can be subtracted, whatever the aggregate. The partials are the
structure's own. A structure starts again from the rows it holds when it grows, when it is read from
bytes, or when other numbers need wider words.
"""

from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from windrow.aggregates import Aggregate, Mean, Sum, as_aggregate
from windrow.aggregates.codec import decode
from windrow.aggregates.schema import frame, unframe
from windrow.columns.ranges import Array
from windrow.columns.shared.answering import answered
from windrow.columns.shared.asked import ranges_given, times_given, window_rows
from windrow.columns.shared.forms import FORMS, Form, compiled_names
from windrow.columns.shared.rings import (
    all_present,
    first_outside,
    mark,
    not_later,
    power_of_two,
    read_ring,
    since,
    write_ring,
)
from windrow.columns.shared.saved import read, written
from windrow.columns.shared.values import KINDS, Batch, as_kind, column_of, joined_kind
from windrow.errors import BadBytes, BadSpecification, InvariantBroken, Refused

_SMALLEST = 1 << 10
_NOTHING = np.empty(0)
_NO_MASK = np.empty(0, np.bool_)


class Shared:
    """The last ``longest`` rows of a stream, any range of which can be looked up."""

    forms: ClassVar[dict[type[Aggregate], type[Form]]] = FORMS
    historical: bool = True
    """Whether ranges may end before the last row."""
    why_not: ClassVar[str] = "use the object form in windrow.shared, which takes any aggregate"

    def __init__(
        self,
        aggregate: Aggregate | type[Aggregate],
        longest: int | None = None,
        *,
        dtype: str | None = None,
    ) -> None:
        self.aggregate = as_aggregate(aggregate)
        if type(self.aggregate) not in self.forms:
            raise Refused(
                f"compiled {type(self).__name__} has no {self.aggregate!r}, only "
                f"{compiled_names(self.forms)}: {self.why_not}"
            )
        if longest is not None and longest < 1:
            raise BadSpecification(f"longest is a number of rows from 1 on, not {longest!r}")
        if dtype is not None and dtype not in KINDS:
            raise BadSpecification(f"dtype is one of {', '.join(KINDS)}, not {dtype!r}")
        self._who = f"compiled {type(self).__name__} of {self.aggregate!r}"
        self.longest = longest
        self.dtype = dtype
        inputs = len(self.aggregate.input_kinds)
        self.kinds: list[str | None] = [dtype] * inputs
        self._form = self.forms[type(self.aggregate)](self)
        self._check_kinds(self.kinds)
        self._capacity = power_of_two(longest or _SMALLEST)
        self._spare = 0
        self._end = 0
        self._first = 0
        self.times: Array | None = None
        self._marks: Array | None = None
        self._restart(0, self._no_rows(), None)

    # --- rows come ------------------------------------------------------------------------------

    def insert(self, value: Any, at: int | None = None) -> None:
        """Add a row; several inputs come as a tuple."""
        several = len(self.kinds) > 1 and value is not None
        self.insert_many(
            tuple([one] for one in value) if several else [value], None if at is None else [at]
        )

    def insert_many(self, values: Any, at: Any = None) -> None:
        """Add rows in order: a NumPy array, an Arrow array or a list; several inputs as a tuple.

        ``at``: their times, integers that never fall.
        """
        batch, kinds = self._batch(values)
        times = self._admitted(batch, kinds, at)
        if batch.size:
            self._reserve(self._end + batch.size)
            self._take(batch, times)

    def _admitted(self, batch: Batch, kinds: list[str | None], at: Any) -> Array | None:
        """The times of new rows, all checked; the structure is of these kinds from here on."""
        last = None if self.times is None or not self._end else self._time_of(self._end - 1)
        known = None if not self._end else self.times is not None
        times = times_given(at, batch.size, last, known, self._end)
        if not batch.size:
            return times
        self._check_kinds(kinds)
        turned = [new for old, new in zip(self.kinds, kinds, strict=True) if old != new]
        if "float64" in turned:  # until now there was nothing but missing rows
            held, before = self._held()
            self.kinds = kinds
            self._restart(self.active.start, held, before)
        self.kinds = kinds
        return times

    def _batch(self, values: Any) -> tuple[Batch, list[str | None]]:
        who = self._who
        inputs = len(self.kinds)
        if not inputs:
            size = len(values) if hasattr(values, "__len__") else len(list(values))
            return Batch(size, [], None), []
        if inputs > 1 and not isinstance(values, tuple):
            rows = list(values)
            values = tuple([None if row is None else row[i] for row in rows] for i in range(inputs))
        columns = [column_of(v, who) for v in (values if inputs > 1 else (values,))]
        if len(columns) != inputs or len({len(c.values) for c in columns}) > 1:
            raise BadSpecification(f"{who}: {inputs} columns of one length are needed")
        kinds = [joined_kind(k, c.kind, who) for k, c in zip(self.kinds, columns, strict=True)]
        arrays = [as_kind(c, k, who) for c, k in zip(columns, kinds, strict=True)]
        masks = [c.valid for c in columns if c.valid is not None]
        if self.aggregate.nan == "missing":
            odd = [np.isnan(a) for a in arrays if a.dtype == np.float64]
            masks += [~o for o in odd if o.any()]
        valid = np.logical_and.reduce(masks) if masks else None
        return Batch(len(arrays[0]), arrays, valid), kinds

    def _check_kinds(self, kinds: list[str | None]) -> None:
        """Refuse values of a kind that is not compiled."""
        if type(self.aggregate) in (Sum, Mean) and "float64" in kinds:
            raise Refused(
                f"compiled {type(self).__name__} adds integers only: of floats, {self.aggregate!r} "
                "is answered by RInt with one subtraction, or by the object form in windrow.shared"
            )

    def _reserve(self, end: int) -> None:
        if self.longest is None and end > self._capacity:
            held, times = self._held()
            self._capacity = power_of_two(end)
            self._restart(0, held, times)

    def _take(self, batch: Batch, times: Array | None) -> None:
        """Rows that are checked, into everything."""
        row = self._end
        odd = self._odd(batch)
        self._append(batch, row)
        if self._marks is None and (batch.valid is not None or odd is not None):
            self._marks = all_present(self._prefixes, self.active)
        if self._marks is not None:
            valid = _NO_MASK if batch.valid is None else batch.valid
            mark(self._marks, row, batch.size, valid, _NOTHING if odd is None else odd)
        for ring, values in zip(self.rings, batch.columns, strict=True):
            write_ring(ring, row, values.view(np.int64))
        if times is not None:
            if self.times is None:
                self.times = np.zeros(self._capacity, np.int64)
            write_ring(self.times, row, times)
        self._end += batch.size

    def _odd(self, batch: Batch) -> Array | None:
        """The values that are added, if some of them cannot be: NaN or infinities."""
        return None

    def _append(self, batch: Batch, row: int) -> None:
        """Rows into the structure."""
        raise NotImplementedError

    def _allocate(self) -> None:
        """The structure of no rows."""
        raise NotImplementedError

    @property
    def _prefixes(self) -> int:
        """The capacity of a ring that has a place before each row and after the last."""
        return power_of_two(self._kept + 1)

    @property
    def _kept(self) -> int:
        """How many rows are held: those that may be asked for, and those of a mixed batch."""
        return self._capacity if self.longest is None else self.longest + self._spare

    def _restart(self, first: int, batch: Batch, times: Array | None) -> None:
        """Hold these rows, numbered from ``first`` on, and no others."""
        self._first = self._end = first
        self.rings = [np.zeros(self._capacity, np.int64) for _ in self.kinds]
        self.times = None
        self._marks = None
        self._allocate()
        if batch.size:
            self._take(batch, times)

    def _no_rows(self) -> Batch:
        return Batch(0, [np.empty(0, np.int64) for _ in self.kinds], None)

    def _held(self) -> tuple[Batch, Array | None]:
        """The rows that are active, and their times."""
        rows = self.active
        columns = []
        for ring, kind in zip(self.rings, self.kinds, strict=True):
            bits = read_ring(ring, rows.start, rows.stop)
            columns.append(bits.view(np.float64) if kind == "float64" else bits)
        numbers = np.arange(rows.start, rows.stop)
        valid = None if self._marks is None else since(self._marks, numbers, numbers, 0) == 1
        times = None if self.times is None else read_ring(self.times, rows.start, rows.stop)
        return Batch(len(rows), columns, valid), times

    # --- and are asked for ----------------------------------------------------------------------

    @property
    def active(self) -> range:
        """The rows that may be asked for."""
        return range(max(self._first, self._end - (self.longest or self._end)), self._end)

    def __len__(self) -> int:
        return len(self.active)

    def __bool__(self) -> bool:
        return True  # a structure is a thing, also when it is empty

    def lookup(self, left: int, right: int) -> Any:
        """The aggregate of rows ``left`` to ``right``, both included."""
        return self.lookup_many([left], [right])[0].as_py()

    def lookup_many(self, lefts: Any, rights: Any) -> pa.Array:
        """The aggregates of many ranges of rows, both ends included."""
        left, right = self._ranges(lefts, rights)
        return self._found(left, right)

    def _found(self, left: Array, right: Array, **how: Any) -> pa.Array:
        """The answers of ranges that are checked."""
        return self._form.answers(self._raw(left, right), left, right)

    def answer(self, values: Any, lefts: Any, rights: Any, *, at: Any = None) -> pa.Array:
        """Add rows, and answer each range as if it was asked as soon as its last row was there.

        So rows and lookups that come mixed are one call: a range may end at any row that was there
        or is new, and reach back ``longest`` rows from there. The rows come, whatever the answers.
        """
        return answered(self, values, lefts, rights, at)

    def _ranges(self, lefts: Any, rights: Any) -> tuple[Array, Array]:
        left, right = ranges_given(lefts, rights)
        rows = self.active
        bad = first_outside(left, right, rows.start, rows.stop)
        if bad >= 0:
            raise BadSpecification(
                f"rows {left[bad]} to {right[bad]} are not within the rows that can be asked for, "
                f"{rows.start} to {rows.stop - 1}"
                + ("" if self.longest is None else f" (longest={self.longest})")
            )
        return left, right

    def _raw(self, lefts: Array, rights: Array) -> Array:
        """The partials of ranges that are within the active rows."""
        raise NotImplementedError

    def present(self, lefts: Array, rights: Array) -> Array:
        """How many rows of each range are not missing."""
        if self._marks is None:
            return rights - lefts + 1
        return since(self._marks, lefts, rights, 0)

    def missing(self, lefts: Array, rights: Array) -> Array | None:
        """Which ranges have no rows but missing ones; None where none has."""
        if self._marks is None:
            return None
        gone = self.present(lefts, rights) == 0
        return gone if gone.any() else None

    def _time_of(self, row: int) -> int:
        assert self.times is not None
        return int(self.times[row & (len(self.times) - 1)])

    def positions(self, start: int, end: int) -> tuple[int, int]:
        """The active rows with times in (start, end], as the first and the one behind the last."""
        if self.times is None:
            if not self._end:
                return 0, 0
            raise BadSpecification("these rows have no times: insert them with at=")
        first = not_later(self.times, self.active, start)
        return first, max(first, not_later(self.times, self.active, end))

    def query(self, window: Any, now: int | None = None) -> Any:
        """The aggregate of a window that ends now: at the last row, or at a time.

        What such a window would hold beyond the active rows is not in it.
        """
        left, end = window_rows(self, window, now)
        return self.aggregate.empty if left >= end else self.lookup(left, end - 1)

    # --- and are looked after -------------------------------------------------------------------

    def stored_partials(self) -> int:
        """How many partials of active rows are stored."""
        raise NotImplementedError

    def _partials(self) -> list[Array]:
        """Every stored partial of active rows."""
        raise NotImplementedError

    def check_invariants(self) -> None:
        """Every stored partial is what the rows it stands for would give again."""
        held, times = self._held()
        again = type(self).__new__(type(self))
        again.__dict__.update(self.__dict__)
        again._form = type(self._form)(again)
        again._restart(self.active.start, held, times)
        for found, expected in zip(self._partials(), again._partials(), strict=True):
            if not np.array_equal(found, expected):
                raise InvariantBroken(f"{type(self).__name__} of {self.aggregate!r}: a partial")
        if times is not None and np.any(np.diff(times) < 0):
            raise InvariantBroken("times fall")

    @classmethod
    def _fingerprint(cls, aggregate: Aggregate | None) -> bytes:
        who = "" if aggregate is None else aggregate.identification
        return blake2b(f"columns {cls.__name__} {who}".encode(), digest_size=8).digest()

    def _options(self) -> tuple[Any, ...]:
        """What the constructor was given, beside the aggregate, as ``_like`` takes it."""
        return (self.longest, self.dtype)

    @classmethod
    def _like(cls, aggregate: Any, options: tuple[Any, ...]) -> Self:
        longest, dtype = options
        return cls(aggregate, longest, dtype=dtype)

    def to_bytes(self) -> bytes:
        """The rows held and the options, with a checksum, no pickle; partials are made again."""
        return frame(b"c", self._fingerprint(self.aggregate), written(self))

    @classmethod
    def from_bytes(cls, data: bytes, aggregate: Any = None) -> Self:
        """What ``to_bytes`` wrote, of the same aggregate."""
        known = None if aggregate is None else as_aggregate(aggregate)
        what = f"compiled {cls.__name__}" + ("" if known is None else f" of {known!r}")
        reader = unframe(b"c", cls._fingerprint(known), data, what)
        try:
            options, *head = decode(reader)
            shared = cls._like(known, options)
            read(shared, reader, *head)
        except (ValueError, TypeError) as error:
            raise BadBytes(f"{what}: the bytes do not hold what they should: {error}") from error
        return shared
