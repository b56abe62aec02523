"""Rules made ready for a stream: what they look at, as a specification, and their conditions."""

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from windrow.aggregates import Aggregate, Count
from windrow.columns.conditions import Known, Moments, known
from windrow.columns.stream_plan import StreamPlan
from windrow.columns.stretch import Reach, time_reach
from windrow.errors import BadSpecification, Refused, WindrowError
from windrow.rolling import Rolling
from windrow.rules.expression import Expression, Reader
from windrow.rules.texts import Written, read_rules
from windrow.slides import Time
from windrow.support import require
from windrow.times import Clock

LONGEST = "longest"


@dataclass(frozen=True)
class Watch(StreamPlan):
    """A stream that rules are about: all its columns are kept, for rules that are yet to come."""

    clock: Clock | None = None
    text: str | None = None
    """Rules that were given when the query was built; None: they come by themselves."""
    version: str = ""
    named: tuple[tuple[str, Aggregate, Any], ...] = ()
    """Aggregates over windows that conditions may call by a name."""

    @property
    def emission(self) -> str:
        """Rules start and stop."""
        return "rules"

    @property
    def overlap(self) -> int:
        """New rules are looked at just before the frontier."""
        return 1

    @property
    def kept(self) -> list[str]:
        """All columns."""
        first = [*self.spec.key, str(self.spec.time)]
        return list(dict.fromkeys([*first, *self.schema.names]))

    def contract(self) -> dict[str, Any]:
        """Not every window has every aggregate here."""
        return super().contract() | {"pairs": self.pairs}


@dataclass(frozen=True)
class Condition:
    """A rule that is in force."""

    name: str
    when: Expression
    until: Expression | None

    @property
    def text(self) -> str:
        """What makes it another rule when it changes."""
        return repr((self.when.text, self.until and self.until.text))

    @property
    def both(self) -> list[Expression]:
        """Its conditions."""
        return [self.when] if self.until is None else [self.when, self.until]

    def operands(
        self, features: Mapping[int, Known], columns: Mapping[str, Known]
    ) -> dict[str, Known]:
        """What it looks at, as it is written there."""
        out: dict[str, Known] = {}
        for part in self.both:
            text = part.text.strip().encode()
            for (_, start, _, end), number in part.places.items():
                out[text[start:end].decode()] = features[number]
            out |= {name: columns[name] for name in sorted(part.columns)}
        return out

    @property
    def columns(self) -> set[str]:
        """The columns of the last row that it looks at."""
        return {column for part in self.both for column in part.columns}


class RuleSet:
    """Rules of one text over one stream, and which of them were rejected."""

    def __init__(self, watch: Watch, text: str) -> None:
        self.watch, self.text = watch, text
        self.digest = digest_of(text)
        self.rejected: list[Written] = []
        self.conditions: dict[str, Condition] = {}
        self._features: list[tuple[Aggregate, Time]] = []
        self.names: list[str] = []
        """Of each feature: how it was written first."""
        for rule in read_rules(text):
            known_features = len(self._features)
            try:
                if rule.error is not None:
                    raise BadSpecification(rule.error)
                condition = self._read(rule)
                self._try(condition)
                self.conditions[rule.name] = condition
            except WindrowError as error:
                del self._features[known_features:]
                self.rejected.append(replace(rule, error=str(error)))
        self.columns = sorted({c for rule in self.conditions.values() for c in rule.columns})
        self.plan = self._planned()

    def _read(self, rule: Written) -> Condition:
        reader = Reader(self._named, self._feature)
        when = reader.read(rule.when)
        until = None if rule.until is None else reader.read(rule.until)
        condition = Condition(rule.name, when, until)
        spec = self.watch.spec
        numbers = {number for part in condition.both for number in part.features}
        ordered = all(self._features[number][0].commutative for number in numbers)
        if not (spec.tie or spec.any_tie) and (condition.columns or not ordered):
            raise Refused(
                "it depends on the order of rows of equal time: say tie=... with columns that "
                'order them, or tie="any"'
            )
        for column in condition.columns:
            if column not in self.watch.schema.names:
                names = ", ".join(self.watch.schema.names)
                raise BadSpecification(f"there is no column {column!r}; the stream has {names}")
        return condition

    def _named(self, name: str) -> int | None:
        found = [
            (aggregate, window) for known, aggregate, window in self.watch.named if known == name
        ]
        return self._feature(*found[0]) if found else None

    def _feature(self, aggregate: Aggregate, window: Any) -> int:
        for number, (other, seen) in enumerate(self._features):
            if (other.identification, other.columns, repr(seen)) == (
                aggregate.identification,
                aggregate.columns,
                repr(window),
            ):
                return number
        require("streams", aggregate.kind, window.kind)
        if aggregate.kind == "sequential":
            raise Refused(f"{aggregate!r} answers rows in order, and rules look at moments")
        if not isinstance(window, Time):
            raise Refused("rules on streams look at windows of time")
        for column in aggregate.columns:
            if column not in self.watch.schema.names:
                raise BadSpecification(f"{aggregate!r}: the stream has no column {column!r}")
        if self._reach(window).start < self.watch.reaches[LONGEST].start:
            raise Refused(f"{window.label} is longer than longest=, for which rows are kept")
        aggregate = copy.copy(aggregate)
        aggregate.overflow = "null"
        self._features.append((aggregate, window))
        return len(self._features) - 1

    def _reach(self, window: Time) -> Reach:
        assert self.watch.clock is not None
        clock = self.watch.clock
        length = clock.length(window.length, "a window")
        ending = clock.length(window.ending, "a window") if window.ending else 0
        return time_reach(window, repr(window), length, ending)

    def _try(self, condition: Condition) -> None:
        """Evaluate it where everything is missing but has its type: what cannot be is refused."""
        from windrow.columns.engine import run

        features: dict[int, Known] = {}
        for number in sorted({n for part in condition.both for n in part.features}):
            aggregate, window = self._features[number]
            spec = Rolling(time=self.watch.spec.time, windows={"w": window}, aggregates=[aggregate])
            answers = run(spec, self.watch.schema.empty_table())
            features[number] = known(_typed(next(iter(answers.values()))))
        schema = self.watch.schema
        columns = {c: known(pa.nulls(0, schema.field(c).type)) for c in condition.columns}
        for part in condition.both:
            try:
                Moments(0, features, columns).holds(part)
            except TypeError as error:
                raise BadSpecification(f"in {part.text!r}: {error}") from error

    def _planned(self) -> Watch:
        """The stream with these rules' features as answers ``0``, ``1``, ..."""
        watch = self.watch
        spec = copy.copy(watch.spec)
        aggregates: dict[str, Aggregate] = {}
        windows, reaches = dict(watch.spec.windows), dict(watch.reaches)
        outputs = list(watch.spec.outputs)
        for number, (given, window) in enumerate(self._features):
            aggregate = aggregates.setdefault(f"{given.identification}{given.columns}", given)
            windows[repr(window)], reaches[repr(window)] = window, self._reach(window)
            outputs.append((str(number), aggregate, repr(window)))
        first = {repr(a): a for a in watch.spec.aggregates}
        spec.aggregates = [*first.values(), *(aggregates[name] for name in sorted(aggregates))]
        # in an order that does not depend on that of the rules: the less is folded again
        outputs[1:] = sorted(outputs[1:], key=_place_of)
        spec.windows, spec.outputs = windows, outputs
        return replace(watch, spec=spec, reaches=reaches)


def _place_of(output: tuple[str, Aggregate, str]) -> tuple[str, str, tuple[str, ...]]:
    _, aggregate, label = output
    return label, aggregate.identification, aggregate.columns


def _typed(array: pa.Array) -> pa.Array:
    return array.cast(pa.float64()) if pa.types.is_null(array.type) else array


def watched(
    schema: pa.Schema,
    key: Any,
    time: str,
    tie: Any,
    longest: Any,
    clock: Clock,
    buckets: int = 1,
    **given: Any,
) -> Watch:
    """A stream that rules can be about; rows are kept for ``longest``."""
    spec = Rolling(key=key, time=time, tie=tie, windows={LONGEST: longest}, aggregates=[Count()])
    window = spec.windows[LONGEST]
    if not isinstance(window, Time) or window != Time(window.length) or window.kind == "ever":
        raise BadSpecification(f'longest= is a length of time such as "1h", not {longest!r}')
    reach = time_reach(window, LONGEST, clock.length(window.length, "longest="), 0)
    return Watch(spec, schema, {LONGEST: reach}, buckets, clock=clock, **given)


_KEPT: dict[tuple[str, str], RuleSet] = {}
_MOST_KEPT = 8


def digest_of(text: str) -> str:
    """What a text of rules is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


def rule_set(watch: Watch, text: str) -> RuleSet:
    """Rules made ready; a worker keeps the last few, since reading thousands takes a while."""
    name = (_name(watch), digest_of(text))
    if name not in _KEPT:
        if len(_KEPT) >= _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[name] = RuleSet(watch, text)
    return _KEPT[name]


def known_rules(watch: Watch, digest: str) -> RuleSet | None:
    """Rules whose text need not be read again."""
    return _KEPT.get((_name(watch), digest))


def _name(watch: Watch) -> str:
    return repr((watch.contract(), watch.segment_rows, watch.named))
