"""What a hub is asked: its queries, by number and by whose rows they are about.

The queries about the whole stream, about one key or about each key make one plan for each stream
(``shared.substream``). Plans are made when they are first needed, and anew, under a new version,
when a query comes or goes.
"""

from dataclasses import dataclass
from typing import Any

from windrow.aggregates import Aggregate, canonical
from windrow.errors import BadSpecification, BadValue
from windrow.shared.line import Line, Window
from windrow.shared.parts import Assemble, split
from windrow.shared.substream import PartKey, Plan, make_plan, part_key
from windrow.slides import Rows
from windrow.times import Duration


class Each:
    """The type of ``EACH``."""

    def __repr__(self) -> str:
        return "EACH"

    def __reduce__(self) -> str:
        return "EACH"


EACH = Each()
"""As a query's key: the query is about every key, each by itself."""


def as_key(key: Any) -> Any:
    """A key as it is kept: one NaN, no negative zero."""
    try:
        hash(key)
    except TypeError:
        raise BadValue(f"key {key!r} cannot be hashed: use a tuple, a string or a number") from None
    return canonical(key)


@dataclass(frozen=True, eq=False)
class Query:
    """A registered query: an aggregate over a window of the whole stream, a key, or each key."""

    number: int
    aggregate: Aggregate
    window: Window
    key: Any
    parts: tuple[Aggregate, ...]
    names: tuple[PartKey, ...]
    assemble: Assemble

    def __repr__(self) -> str:
        about = "" if self.key is None else f" of {self.key!r}"
        return f"<query {self.number}: {self.aggregate!r} over {self.window.label}{about}>"


def make_query(number: int, aggregate: Aggregate, window: Window, key: Any) -> Query:
    """A query, with the parts that its answers are made of."""
    parts, assemble = split(aggregate)
    return Query(number, aggregate, window, key, parts, tuple(map(part_key, parts)), assemble)


class Queries:
    """The queries of a hub, and what they need of each stream."""

    def __init__(self) -> None:
        self.by_number: dict[int, Query] = {}
        """In the order they were registered."""
        self.about: dict[Any, dict[int, Query]] = {}
        """The same by key."""
        self.version = 0
        """Another one whenever plans are: a stream that knows it need not ask for its plan."""
        self._plans: dict[Any, Plan] = {}

    def add(self, query: Query) -> None:
        """One more."""
        self.by_number[query.number] = query
        self.about.setdefault(query.key, {})[query.number] = query
        self._plan_anew()

    def remove(self, query: Query) -> None:
        """One less."""
        del self.by_number[query.number]
        del self.about[query.key][query.number]
        if not self.about[query.key]:
            del self.about[query.key]
        self._plan_anew()

    def require(self, query: Query) -> None:
        """Refuse what is not one of them."""
        if not isinstance(query, Query) or self.by_number.get(query.number) is not query:
            raise BadSpecification(f"{query!r} is not a query of this hub, or was dropped")

    @property
    def need_keys(self) -> bool:
        """Whether any is about a key, or about each."""
        return len(self.about) > (None in self.about)

    def plan(self, key: Any) -> Plan:
        """The plan of the whole stream (None), of a key that is asked for, or of any other key."""
        name = key if key is None or key in self.about else EACH
        if name not in self._plans:
            named = [name] if name is None or name is EACH else [EACH, name]
            queries = [query for one in named for query in self.about.get(one, {}).values()]
            self._plans[name] = make_plan(
                (part, query.window) for query in queries for part in query.parts
            )
        return self._plans[name]

    def longest_silence(self, clock: Line, idle: Duration | int | None) -> int | None:
        """After how many ticks without a row a key is of no use to any; None: always of use."""
        length = clock.length
        about = [query.window for query in self.by_number.values() if query.key is not None]
        spans = [length(w.length) + length(w.ending) for w in about if not isinstance(w, Rows)]
        if idle is not None:
            return max([length(idle), *spans])
        return None if len(spans) < len(about) or not spans else max(spans)

    def _plan_anew(self) -> None:
        self.version += 1
        self._plans.clear()

    def __len__(self) -> int:
        return len(self.by_number)
