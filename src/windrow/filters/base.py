"""What all filters share: how a lookup is asked and told, checks and bytes."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np

from windrow.aggregates.codec import Reader
from windrow.aggregates.schema import frame, unframe
from windrow.columns.filters import idle
from windrow.columns.filters.factorise import canonical
from windrow.columns.ranges import Array
from windrow.errors import BadBytes, BadSpecification, InvariantBroken
from windrow.filters.keyed import Keyed
from windrow.filters.saved import Saved
from windrow.times import Duration, clock_of

_UNREADABLE = (
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    InvariantBroken,
)


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


class Filter(Keyed):
    """Rows of many keys; finds the keys whose aggregate over the last T passes a threshold."""

    name: ClassVar[str]
    _how = "no rows yet"

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

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._options().items())
        return f"{type(self).__name__}(longest={self.shown_longest!r}{options})"

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
        except _UNREADABLE as error:
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
