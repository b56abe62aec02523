"""One shared window for each key: what there is for aggregates and windows without an index.

A lookup visits every key. It takes any aggregate, windows that ended some time ago, and gives the
same answers as a filter where there is one.

Time: an update of the shared window; a lookup one for each key.
Paper: Arasu, Widom, VLDB 2004, section 4: the simple strategy.
"""

import operator
from collections.abc import Callable, Iterable
from itertools import dropwhile, takewhile
from typing import Any

from windrow.aggregates import Aggregate, Quantile, as_aggregate
from windrow.aggregates.values import listed
from windrow.errors import BadSpecification, OutOfOrder
from windrow.filters.base import Found
from windrow.shared import BInt, Quantiles, RInt, Shared
from windrow.shared.query import as_key
from windrow.slides import Time, time
from windrow.times import Duration, duration


class PerKey:
    """Keys by any aggregate over the last T, or over T that ended some time ago.

    >>> import windrow as wr
    >>> speed = wr.filters.PerKey(wr.Mean(), longest=60)
    >>> speed.insert_many(["a", "b", "a"], [10.0, 50.0, 30.0], at=[1, 2, 50])
    >>> speed.lookup(55, 60, at_least=25), speed.lookup(55, 20, ending=30, at_least=5)
    (['b'], [])
    >>> print(speed.explain(55, 60, at_least=25))
    R-INT for each key: 2 candidates of 2 keys, 0 proven, 2 checked, 1 answered
    """

    def __init__(
        self, aggregate: Aggregate | type[Aggregate], longest: Any, unit: str | None = None
    ) -> None:
        self.aggregate = as_aggregate(aggregate)
        self.longest = duration(longest, "longest=")
        self._unit = unit
        self._keys: dict[Any, Shared] = {}  # by their newest row, the oldest first
        self._newest: Any = None
        self.structure: type[Shared] = BInt
        if isinstance(self.aggregate, Quantile):
            self.structure = Quantiles
        elif RInt.refuses(self.aggregate) is None:
            self.structure = RInt

    def insert(self, key: Any, value: Any, at: Any) -> None:
        """A row of a key."""
        key = as_key(key)
        shared = self._keys.get(key)
        if shared is None:
            shared = self._made()
        if self._newest is not None and at < self._newest:
            raise OutOfOrder(
                f"a row at {at!r} came after one at {self._newest!r}: rows come in order of time "
                "over all keys. Sort the rows first"
            )
        shared.insert(value, at=at)
        self._newest = at
        self._keys.pop(key, None)
        self._keys[key] = shared
        self.drop_idle(at)

    def drop_idle(self, now: Any) -> int:
        """Forget the keys without a row in the longest window; how many there were."""
        gone = list(takewhile(lambda key: self._is_idle(key, now), self._keys))
        for key in gone:
            del self._keys[key]
        return len(gone)

    def _is_idle(self, key: Any, now: Any) -> bool:
        line = self._keys[key].line
        moment = line.now(now)
        assert moment is not None
        return line.newest <= moment - line.length(self.longest)

    def _made(self) -> Shared:
        window = Time(self.longest)
        if self.structure is Quantiles:
            return Quantiles(window, aggregate=self.aggregate, unit=self._unit)
        return self.structure(self.aggregate, window, unit=self._unit)

    def insert_many(self, keys: Iterable[Any], values: Iterable[Any], at: Iterable[Any]) -> None:
        """Rows in order of time."""
        for key, value, moment in zip(listed(keys), listed(values), listed(at), strict=True):
            self.insert(key, value, moment)

    def value(self, key: Any, now: Any, T: Any, ending: Any = None) -> Any:
        """The aggregate of one key over (now − ending − T, now − ending]."""
        shared = self._keys.get(as_key(key))
        return (
            self.aggregate.empty if shared is None else shared.query(self._window(T, ending), now)
        )

    def _window(self, T: Any, ending: Any) -> Time:
        window = time(T, ending=ending)
        if _amount(window.length) + _amount(window.ending) > _amount(self.longest):
            raise BadSpecification(
                f"T={T!r} with ending={ending!r} reaches back further than longest="
                f"{self.longest!r}, which rows are kept for"
            )
        return window

    def lookup(
        self,
        now: Any,
        T: Any,
        at_least: Any = None,
        at_most: Any = None,
        between: Any = None,
        ending: Any = None,
    ) -> list[Any]:
        """The keys whose aggregate passes, those that were silent for longest first."""
        tests = _tests(at_least, at_most, between)
        window = self._window(T, ending)
        out = []
        for key in dropwhile(lambda key: self._is_idle(key, now), self._keys):
            shared = self._keys[key]
            value = shared.query(window, now)
            if value is not None and all(compare(value, bound) for compare, bound in tests):
                out.append(key)
        return out

    def lookup_many(
        self, now: Any, T: Any, thresholds: Iterable[Any], side: str = "at_least"
    ) -> list[list[Any]]:
        """For each of many thresholds the keys that pass it, ``at_least`` or ``at_most``."""
        return [self.lookup(now, T, **{side: threshold}) for threshold in thresholds]

    def candidates(self, now: Any, T: Any, **threshold: Any) -> list[Any]:
        """The keys that pass: every answer is exact here."""
        return self.lookup(now, T, **threshold)

    def explain(self, now: Any, T: Any, **threshold: Any) -> Found:
        """Do a lookup, and tell what was used and looked at."""
        answered = len(self.lookup(now, T, **threshold))
        count = len(self._keys)
        return Found(f"{self.structure.card.title} for each key", count, 0, count, answered, count)

    def keys(self) -> list[Any]:
        """The keys that are known."""
        return list(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Any) -> bool:
        return as_key(key) in self._keys

    def __repr__(self) -> str:
        return f"PerKey({self.aggregate!r}, longest={self.longest!r})"


Compare = Callable[[Any, Any], Any]


def _tests(at_least: Any, at_most: Any, between: Any) -> list[tuple[Compare, Any]]:
    if sum(bound is not None for bound in (at_least, at_most, between)) != 1:
        raise BadSpecification("say one of at_least=, at_most= and between=(low, high)")
    if between is not None:
        at_least, at_most = between
    given: list[tuple[Compare, Any]] = [(operator.ge, at_least), (operator.le, at_most)]
    return [(compare, bound) for compare, bound in given if bound is not None]


def _amount(length: Duration | int) -> int:
    return length.nanoseconds if isinstance(length, Duration) else length
