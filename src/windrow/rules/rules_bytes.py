"""Rules as bytes: their hub's, their texts, and what is known of each key.

What a condition was read as is not written: it is read again, with the same features and columns.
"""

from collections.abc import Mapping
from decimal import Decimal
from heapq import heapify
from typing import TYPE_CHECKING, Any

from windrow.aggregates import REGISTRY, as_aggregate, canonical, codec
from windrow.aggregates.codec import Reader as Bytes
from windrow.aggregates.codec import block, count_bytes
from windrow.aggregates.schema import Schema, frame, unframe
from windrow.errors import BadBytes, BadSpecification, BadValue, WindrowError
from windrow.rules.expression import Reader
from windrow.rules.key_state import KeyState
from windrow.rules.rule import Change, Rule
from windrow.shared import hub_bytes
from windrow.shared.line import as_suffix_or_historical
from windrow.shared.query import Query, as_key
from windrow.times import is_missing

if TYPE_CHECKING:
    from windrow.rules.engine import Rules

_OWNER = Schema.single("value").fingerprint("Rules")

Given = Mapping[str, tuple[Any, Any]]


def write(rules: "Rules") -> bytes:
    """Everything needed to go on."""
    table, moments, queries = rules._table, rules._moments, rules._features.queries
    known = set(REGISTRY.values())
    own = [name for name, i in rules._named.items() if type(queries[i].aggregate) not in known]
    places = {number: place for place, number in enumerate(queries)}
    named = tuple((name, places[number]) for name, number in rules._named.items())
    left = [(change.rule, change.key, change.started, change.at) for change in rules._left]
    head = (
        (rules._key, rules._time, named, tuple(own)),
        (moments.restless, tuple(sorted(moments.never_negative))),
        tuple(_rule(rules, rule) for rule in table.by_name.values()),
        (table.slots, table.numbers),
        tuple(left),
    )
    out = [codec.encode(head), block(rules._hub.to_bytes()), count_bytes(len(rules._states))]
    for key, state in rules._states.items():
        values = tuple(map(_plain, state.values))
        known_of_key = (key, values, tuple(sorted(state.firing)), state.due)
        out += [codec.encode(known_of_key), _row(key, state.row)]
    return frame(b"r", _OWNER, b"".join(out))


def read(rules: "Rules", data: bytes, features: Given) -> None:
    """Fill rules that know nothing yet."""
    reader = unframe(b"r", _OWNER, data, "Rules")
    try:
        _read(rules, reader, features)
    except (BadBytes, BadSpecification):
        raise
    except (ValueError, LookupError, TypeError, ArithmeticError, WindrowError) as error:
        raise BadBytes(f"Rules: the bytes do not describe them: {error}") from error
    if reader.remaining():
        raise BadBytes(f"Rules: {reader.remaining()} bytes too many")


def _read(rules: "Rules", reader: Bytes, given: Given) -> None:
    (rules._key, rules._time, named, own), calm, texts, counts, left = codec.decode(reader)
    unknown = [name for name in own if name not in given]
    if unknown:
        raise BadSpecification(
            f"the aggregate of feature {unknown[0]!r} is not windrow's: "
            f"Rules.from_bytes(data, features={{{unknown[0]!r}: (aggregate, window)}})"
        )
    kinds = [type(as_aggregate(aggregate)) for aggregate, _ in given.values()]
    hub_bytes.read(rules._hub, reader.take(reader.count()), kinds)
    for query in rules._hub.queries:
        name = (query.aggregate.identification, query.aggregate.columns, query.window)
        rules._numbers[name] = rules._features.add(query)
    rules._named.update(named)
    _compare(given, {name: rules._features.queries[i] for name, i in named})
    rules._table.restore([_made(rules, *text) for text in texts], *counts)
    if len(rules._features.queries) != len(rules._hub.queries):
        raise BadBytes("Rules: a condition has a feature that the bytes have not")
    for _ in range(reader.count()):
        key, values, firing, due = codec.decode(reader)
        state = KeyState(dict(codec.decode(reader)), len(rules._states))
        state.values, state.firing, state.due = list(values), set(firing), due
        rules._states[as_key(key)] = state  # a NaN is the one that the hub has
    rules._came, rules._fewer = len(rules._states), True
    rules._left = [Change(rule, as_key(key), started, at) for rule, key, started, at in left]
    moments, states = rules._moments, rules._states.items()
    moments.restless, moments.never_negative = calm[0], set(calm[1])
    moments.due = [(s.due, s.number, key) for key, s in states if s.due is not None]
    heapify(moments.due)


def _compare(given: Given, known: dict[str, Query]) -> None:
    """Refuse features that are not those of the bytes."""
    for name, (aggregate, window) in given.items():
        made, query = as_aggregate(aggregate), known.get(name)
        if query is None:
            raise BadSpecification(f"the bytes have no feature {name!r}: define() it afterwards")
        asked = (made.identification, made.columns, as_suffix_or_historical(window))
        if asked != (query.aggregate.identification, query.aggregate.columns, query.window):
            raise BadSpecification(
                f"feature {name!r} is {query.aggregate!r} over {query.window.label} in the bytes, "
                f"not {made!r} over {asked[2].label}"
            )


def _rule(rules: "Rules", rule: Rule) -> tuple[Any, ...]:
    """A rule's number, name and texts, the slot of the thresholds it is among, and which of the
    features' names it means as columns: those that were defined after it."""
    expressions = [rule.when] if rule.until is None else [rule.when, rule.until]
    columns = {name for one in expressions for name in one.columns if name in rules._named}
    group = rules._table.group_of(rule)
    slot = None if group is None else group.slot
    texts = tuple(one.text for one in expressions)
    return rule.number, rule.name, texts, slot, tuple(sorted(columns))


def _made(
    rules: "Rules",
    number: int,
    name: str,
    texts: tuple[str, ...],
    slot: int | None,
    columns: tuple[str, ...],
) -> tuple[Rule, int | None]:
    named = {name: i for name, i in rules._named.items() if name not in columns}
    when, *until = map(Reader(named.get, rules._feature).read, texts)
    return Rule(name, number, when, until[0] if until else None), slot


def _row(key: Any, row: Mapping[str, Any]) -> bytes:
    """A key's last row, as conditions see it: values by the names of columns."""
    seen = tuple((name, _plain(value)) for name, value in row.items() if isinstance(name, str))
    try:
        return codec.encode(seen)
    except BadValue:
        for name, value in seen:
            try:
                codec.encode(value)
            except BadValue as error:
                at = f"column {name!r} in the last row of key {key!r}"
                raise BadValue(f"{at}: {error}") from error
        raise


def _plain(value: Any) -> Any:
    """A value as conditions see it; decimals that are refused there are refused there."""
    if is_missing(value):
        return None
    return value if isinstance(value, Decimal) else canonical(value)
