"""What all filters share: keys and their slots, times, and how a lookup is asked and told."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np

from windrow.aggregates.codec import Reader
from windrow.aggregates.schema import frame, unframe
from windrow.columns.filters import idle
from windrow.columns.filters.factorise import canonical, key_codes, ticks_of
from windrow.columns.filters.pool import grown
from windrow.columns.ranges import Array
from windrow.errors import (
    BadBytes,
    BadSpecification,
    BadValue,
    InvariantBroken,
    OutOfOrder,
    Refused,
    WindrowError,
)
from windrow.filters.saved import Saved
from windrow.times import Clock, Duration, clock_of, duration

_FIRST_SLOTS = 64
_INT64 = 1 << 63


@dataclass(frozen=True)
class Found:
    """What a lookup did."""

    how: str
    candidates: int
    proven: int
    checked: int
    answered: int
    keys: int

    def __str__(self) -> str:
        return (
            f"{self.how}: {self.candidates} candidates of {self.keys} keys, {self.proven} proven, "
            f"{self.checked} checked, {self.answered} answered"
        )


@dataclass(frozen=True)
class Range:
    """What is asked for: values from least to most, both included; None where there is no bound."""

    least: int | float | None
    most: int | float | None


class Filter(ABC):
    """Rows of many keys; finds the keys whose aggregate over the last T passes a threshold."""

    name: ClassVar[str]

    def __init__(self, longest: Any, unit: str | None = None) -> None:
        self.longest = duration(longest, "longest=")
        length = self.longest.nanoseconds if isinstance(self.longest, Duration) else self.longest
        if not 0 < length < 1 << 62:
            raise BadSpecification(f"longest= must be above 0, not {longest!r}")
        self._unit = unit
        self._clock: Clock | None = None
        self._span = 0  # the longest window in ticks
        self._now: int | None = None
        self._lengths: dict[Any, int] = {}
        self._slot_of: dict[Hashable, int] = {}
        self._names: list[Any] = []
        self._free_slots: list[int] = []
        self._keys: Array = np.full((_FIRST_SLOTS, idle.FIELDS), -1, np.int64)
        self._keys[:, idle.COUNT] = 0
        self._state: Array = np.zeros(idle.STATE, np.int64)
        self._state[idle.OLDEST] = self._state[idle.YOUNGEST] = -1
        self._dropped: Array = np.empty(_FIRST_SLOTS, np.int64)
        self._out: Array = np.empty(2 * _FIRST_SLOTS + 2, np.int64)
        self._told: Array = np.zeros(3, np.int64)
        self._one_slot: Array = np.empty(1, np.int64)
        self._one_time: Array = np.empty(1, np.int64)
        self._one_value: Array = np.empty(1)

    # --- what each filter does ------------------------------------------------------------------

    @abstractmethod
    def _insert(self, slots: Array, times: Array, values: Array, first: int, last: int) -> int:
        """Take rows; return the first that was not taken for want of room."""

    @abstractmethod
    def _grow(self, need: int) -> None:
        """Make room of the kind that was wanting."""

    @abstractmethod
    def _widen(self, slots: int) -> None:
        """Room for so many keys."""

    @abstractmethod
    def _drop(self, keep_from: int) -> bool:
        """Forget keys without a row from a time on; False if not all could be told."""

    @abstractmethod
    def _read(self, asked: Range, since: int, kept: int, approximate: bool) -> tuple[int, str]:
        """Write the slots that are asked for to ``_out``; how many, and what was used."""

    @abstractmethod
    def _value(self, slot: int, since: int) -> Any:
        """The exact aggregate of one key since a time."""

    @abstractmethod
    def _arrays(self) -> list[Array]:
        """Everything that takes memory."""

    @abstractmethod
    def _save(self, saved: Saved, slots: Array) -> None:
        """Write what the keys in these slots have."""

    @abstractmethod
    def _load(self, saved: Saved, slots: int) -> None:
        """Read it again, for slots 0, 1, …"""

    @abstractmethod
    def _check(self) -> None:
        """Raise where the structure is not as it must be."""

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """What the filter was made with, besides the longest window."""

    def stored_timestamps(self) -> int:
        """How many times are kept, without the indexes."""
        return int(self._keys[: len(self._names), idle.LENGTH].clip(0).sum())

    # --- time -----------------------------------------------------------------------------------

    def _tick(self, clock: Clock, at: Any) -> int:
        try:
            if clock.kind.startswith("datetime64") and hasattr(at, "isoformat"):
                at = np.datetime64(at)
            ticks = clock.to_ticks(at)
        except WindrowError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BadValue(
                f"{at!r} ({type(at).__name__}) is not a time like the ones before, which were "
                f"{clock.kind}"
            ) from error
        if ticks == -_INT64:
            raise BadValue(
                f"time {at!r} is the least 64-bit integer, which stands for no time here"
            )
        return ticks

    def _start(self, clock: Clock) -> None:
        if self._clock is None:
            self._span = clock.length(self.longest, "longest=")
            self._clock = clock

    def _shown(self, ticks: int) -> Any:
        return ticks if self._clock is None else self._clock.from_ticks(ticks)

    def _check_order(self, first: int) -> None:
        if self._now is not None and first < self._now:
            raise OutOfOrder(
                f"a row at {self._shown(first)} came after one at {self._shown(self._now)}: "
                "filters take rows in order of time over all keys. Sort the rows first"
            )

    def _window(self, now: Any, T: Any) -> tuple[int, int]:
        """The first time in the window, and the first that keeps a key from being idle."""
        clock = self._clock
        assert clock is not None
        assert self._now is not None
        ticks = self._tick(clock, now)
        if ticks < self._now:
            raise Refused(
                f"a window that ends at {now!r}, before the newest row ({self._shown(self._now)}), "
                "is a historical one: filters answer for windows that end now. Use wr.Hub, which "
                "keeps one shared window for each key"
            )
        length = self._lengths.get(T) if isinstance(T, Hashable) else None
        if length is None:
            length = clock.length(duration(T, "T"), "T")
            if length <= 0:
                raise BadSpecification(f"T must be above 0, not {T!r}")
            if length > self._span:
                raise BadSpecification(
                    f"T={T!r} is longer than longest={self.shown_longest!r}, the longest window "
                    "this filter keeps rows for: make it with a larger longest="
                )
            if isinstance(T, Hashable) and len(self._lengths) < 1000:
                self._lengths[T] = length
        return max(ticks - length + 1, 1 - _INT64), max(ticks - self._span + 1, 1 - _INT64)

    @property
    def shown_longest(self) -> Any:
        """The longest window as it was given."""
        return self.longest.label if isinstance(self.longest, Duration) else self.longest

    # --- keys -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._state[idle.KNOWN])

    def __contains__(self, key: Any) -> bool:
        slot = self._slot_of.get(canonical(key))
        return slot is not None and bool(self._keys[slot, idle.COUNT])

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options().items())
        return f"{type(self).__name__}(longest={self.shown_longest!r}{options})"

    def keys(self) -> list[Any]:
        """The keys that are not idle, as far as rows have told, in the order of their slots."""
        return [self._names[slot] for slot in self._known_slots().tolist()]

    def _known_slots(self) -> Array:
        return np.flatnonzero(self._keys[: len(self._names), idle.COUNT] > 0)

    def _slot(self, key: Any) -> int:
        try:
            slot = self._slot_of.get(key)
        except TypeError as error:
            raise BadValue(f"a key must be hashable, and {key!r} is not") from error
        if slot is not None:
            return slot
        if self._free_slots:
            slot = self._free_slots.pop()
            self._names[slot] = key
        else:
            slot = len(self._names)
            if slot == len(self._keys):
                self._more_slots()
            self._names.append(key)
        self._slot_of[key] = slot
        return slot

    def _more_slots(self) -> None:
        before = len(self._keys)
        self._widen(2 * before)
        keys = np.full((2 * before, idle.FIELDS), -1, np.int64)
        keys[:, idle.COUNT] = 0
        keys[:before] = self._keys
        self._keys = keys
        self._out = np.empty(4 * before + 2, np.int64)

    def _forget_dropped(self) -> None:
        """Keys that went idle and did not come again give their slots back."""
        count = int(self._state[idle.DROPPED])
        if not count:
            return
        for slot in np.unique(self._dropped[:count]).tolist():
            if not self._keys[slot, idle.COUNT]:
                del self._slot_of[self._names[slot]]
                self._names[slot] = None
                self._free_slots.append(slot)
        self._state[idle.DROPPED] = 0

    # --- rows -----------------------------------------------------------------------------------

    def _insert_one(self, key: Any, value: float | int, at: Any) -> None:
        clock = clock_of(at, self._unit) if self._clock is None else self._clock
        ticks = self._tick(clock, at)
        self._check_order(ticks)
        self._start(clock)
        self._one_slot[0] = self._slot(canonical(key))
        self._one_time[0] = ticks
        self._one_value[0] = value
        self._run(self._one_slot, self._one_time, self._one_value)

    def _insert_batch(
        self, keys: Any, values: Array | None, present: Array | None, at: Any
    ) -> None:
        codes, distinct = key_codes(keys)
        times, clock = ticks_of(at, self._clock, self._unit, self._tick)
        lengths = {len(codes), len(times)} | ({len(values)} if values is not None else set())
        if len(lengths) > 1:
            raise BadSpecification(f"columns of different lengths: {sorted(lengths)}")
        if clock is None or not len(times):
            return
        if times.min() == -_INT64:
            raise BadValue("a time is the least 64-bit integer, which stands for no time here")
        later = np.flatnonzero(times[1:] < times[:-1])
        if len(later):
            row = int(later[0]) + 1
            shown = clock.from_ticks
            raise OutOfOrder(
                f"row {row}, at {shown(int(times[row]))}, came after one at "
                f"{shown(int(times[row - 1]))}: sort the rows by time first"
            )
        self._check_order(int(times[0]))
        self._start(clock)
        now = int(times[-1])
        if present is not None and values is not None:
            codes, times, values = codes[present], times[present], values[present]
        if len(codes):
            used = np.unique(codes).tolist() if present is not None else range(len(distinct))
            slot_of = np.full(len(distinct), -1, np.int64)
            for code in used:
                slot_of[code] = self._slot(distinct[code])
            self._run(slot_of[codes], times, self._one_value if values is None else values)
        self._now = now

    def _run(self, slots: Array, times: Array, values: Array) -> None:
        done, last = 0, len(slots)
        while (done := self._insert(slots, times, values, done, last)) < last:
            need = int(self._state[idle.NEED])
            if need == idle.NEEDS_DROPPED:
                self._dropped = grown(self._dropped)
            else:
                self._grow(need)
        self._forget_dropped()
        self._now = int(times[-1])

    def drop_idle(self, now: Any) -> int:
        """Let time pass without a row: keys without one in the longest window are forgotten."""
        if self._clock is None or self._now is None:
            return 0
        ticks = self._tick(self._clock, now)
        self._check_order(ticks)
        before = len(self)
        while not self._drop(max(ticks - self._span + 1, 1 - _INT64)):
            self._dropped = grown(self._dropped)
        self._forget_dropped()
        self._now = ticks
        return before - len(self)

    # --- lookups --------------------------------------------------------------------------------

    def _asked(self, at_least: Any, at_most: Any, between: Any) -> Range:
        given = [value is not None for value in (at_least, at_most, between)]
        if sum(given) != 1:
            raise BadSpecification("say one of at_least=, at_most= and between=(low, high)")
        if between is not None:
            try:
                at_least, at_most = between
            except (TypeError, ValueError) as error:
                raise BadSpecification(f"between= takes (low, high), not {between!r}") from error
        for bound in (at_least, at_most):
            number = isinstance(bound, (int, float, np.integer, np.floating))
            if bound is not None and (not number or bound != bound):
                raise BadSpecification(f"a threshold must be a number, not {bound!r}")
        return Range(
            at_least.item() if isinstance(at_least, np.generic) else at_least,
            at_most.item() if isinstance(at_most, np.generic) else at_most,
        )

    def lookup_slots(self, now: Any, T: Any, asked: Range, approximate: bool = False) -> Array:
        """The slots of the keys that pass, in no order: what ``lookup`` names."""
        if self._clock is None:
            return self._out[:0].copy()
        since, kept = self._window(now, T)
        self._told[:] = 0
        count, self._how = self._read(asked, since, kept, approximate)
        return self._out[:count].copy()

    def lookup(
        self,
        now: Any,
        T: Any,
        at_least: Any = None,
        at_most: Any = None,
        between: Any = None,
        approximate: bool = False,
    ) -> list[Any]:
        """The keys whose aggregate over (now − T, now] passes, in the order of their slots."""
        asked = self._asked(at_least, at_most, between)
        slots = self.lookup_slots(now, T, asked, approximate)
        slots.sort()
        names = self._names
        return [names[slot] for slot in slots.tolist()]

    def candidates(self, now: Any, T: Any, **threshold: Any) -> list[Any]:
        """All keys that pass, and some that do so only when thresholds are relaxed by ε."""
        return self.lookup(now, T, approximate=True, **threshold)

    def lookup_many(
        self, now: Any, T: Any, thresholds: Iterable[Any], side: str = "at_least"
    ) -> list[list[Any]]:
        """For each of many thresholds the keys that pass it, ``at_least`` or ``at_most``."""
        if side not in ("at_least", "at_most"):
            raise BadSpecification(f'side= is "at_least" or "at_most", not {side!r}')
        wanted = list(thresholds)
        found = {v: self.lookup(now, T, **{side: v}) for v in dict.fromkeys(wanted)}
        return [found[threshold] for threshold in wanted]

    def explain(self, now: Any, T: Any, approximate: bool = False, **threshold: Any) -> Found:
        """Do a lookup, and tell what was used and looked at."""
        asked = self._asked(
            threshold.get("at_least"), threshold.get("at_most"), threshold.get("between")
        )
        self._how = "no rows yet"
        answered = len(self.lookup_slots(now, T, asked, approximate))
        candidates, proven, checked = self._told.tolist()
        return Found(self._how, candidates, proven, checked, answered, len(self))

    def value(self, key: Any, now: Any, T: Any) -> Any:
        """The exact aggregate of one key over the window (now − T, now]."""
        slot = self._slot_of.get(canonical(key))
        if self._clock is None or slot is None or not self._keys[slot, idle.COUNT]:
            return self._nothing()
        return self._value(slot, self._window(now, T)[0])

    def _nothing(self) -> Any:
        """The aggregate of no rows."""
        return 0

    def bytes(self) -> int:
        """The memory that the arrays take, and about what the keys' names and slots do."""
        named = 120 * len(self._slot_of) + 8 * len(self._names)
        return named + sum(array.nbytes for array in [self._keys, self._out, *self._arrays()])

    # --- checks and bytes -----------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Raise if the structure is not as it must be."""
        known = self._known_slots()
        if len(known) != len(self) or set(known.tolist()) != set(self._slot_of.values()):
            raise InvariantBroken(f"{len(self)} keys, {len(known)} slots with rows")
        order, slot = [], int(self._state[idle.OLDEST])
        while slot >= 0:
            order.append(slot)
            slot = int(self._keys[slot, idle.YOUNGER])
        newest = self._keys[order, idle.NEWEST]
        if sorted(order) != known.tolist() or (newest[1:] < newest[:-1]).any():
            raise InvariantBroken("keys are not in the order of their newest rows")
        if any(
            self._names[slot] is not key and self._names[slot] != key
            for key, slot in self._slot_of.items()
        ):
            raise InvariantBroken("a key is not in its slot")
        self._check()

    @classmethod
    def _fingerprint(cls) -> Any:
        return blake2b(f"filter {cls.__name__} 1".encode(), digest_size=8).digest()

    def to_bytes(self) -> Any:
        """The whole filter as bytes, without pickle."""
        slots = self._known_slots()
        saved = Saved()
        longest = self.longest
        saved.value(longest.nanoseconds if isinstance(longest, Duration) else None)
        saved.value(longest.label if isinstance(longest, Duration) else longest)
        saved.value(self._unit)
        saved.value(tuple(self._options().values()))
        started = self._clock is not None and self._now is not None
        saved.value(self._shown(self._now) if started and self._now is not None else None)
        saved.value(len(slots))
        for slot in slots.tolist():
            saved.value(self._names[slot])
        self._save(saved, slots)
        return frame(b"c", self._fingerprint(), saved.written())

    @classmethod
    def from_bytes(cls, data: Any) -> Self:
        """The filter that ``to_bytes`` wrote."""
        reader: Reader = unframe(b"c", cls._fingerprint(), data, cls.__name__)
        saved = Saved(reader)
        try:
            nanoseconds, label = saved.read(), saved.read()
            longest = label if nanoseconds is None else Duration(nanoseconds, label)
            unit = saved.read()
            made = cls._made(longest, unit, saved.read())
            now = saved.read()
            count = saved.read()
            if now is not None:
                made._start(clock_of(now, unit))
                assert made._clock is not None
                made._now = made._clock.to_ticks(now)
            names = [saved.read() for _ in range(count)]
            slots = [made._slot(canonical(name)) for name in names]
            if slots != list(range(count)) or (count and now is None):
                raise BadBytes(f"{cls.__name__}: a key is there twice, or rows without a time")
            made._load(saved, count)
            made._forget_dropped()
            made.check_invariants()
        except (TypeError, ValueError, OverflowError, AttributeError, InvariantBroken) as error:
            if isinstance(error, BadBytes):
                raise
            raise BadBytes(f"{cls.__name__}: the bytes make no filter: {error}") from error
        if reader.remaining():
            raise BadBytes(f"{cls.__name__}: {reader.remaining()} bytes too many")
        return made

    @classmethod
    @abstractmethod
    def _made(cls, longest: Any, unit: str | None, options: Sequence[Any]) -> Self:
        """A new filter with these options."""


def threshold_float(value: int | float) -> float:
    """A threshold as the float that it is; refused if no float is."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if number != value:
        raise BadSpecification(f"the threshold {value!r} has no exact float: use one that has")
    return number
