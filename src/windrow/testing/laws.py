"""Laws: what an aggregate promises, checked on values, with the counter-example where one breaks.

    check_laws(MyAggregate(), values=[1.0, 2.5, 4.0])

All promises are checked on partials of single rows and of short runs of rows: associativity, the
identity (also identity ⊕ identity), ``commutative``, ``invertible``, ``selective``,
``reproducible`` (answers of all groupings have the same bits) and the round trip through bytes.
Aggregates that do not promise ``reproducible`` may differ by a relative 1e-9, as float sums do, or
by what their ``agrees`` allows, as estimates do.
"""

import copy
import random
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from windrow.aggregates import EMPTY, REGISTRY, Aggregate, Partial, as_aggregate
from windrow.errors import BadSpecification, LawBroken
from windrow.testing.corpus import cases
from windrow.windows.compare import equal, same

_PLAIN: dict[str, tuple[Any, ...]] = {
    "number": (1, 2.5, 3.25, 0.75, 10, 7.125),
    "positive": (1.0, 2.5, 3.25, 0.75, 10.0),
    "integer": (6, 3, 5, -2),
    "boolean": (True, False, True),
    "orderable": (3, 1, 4, 1, 5, 2.5),
    "text": ("a", "bc", "", "d"),
    "string": ("a", "bc", "", "d"),
    "bytes": (b"a", b"bc", b"", b"d"),
    "any": (3, 1.5, 4, 2),
}


def check_laws(
    aggregate: Aggregate | type[Aggregate],
    values: Iterable[Any] | None = None,
    *,
    rounds: int = 300,
    seed: int = 0,
    bytes: bool = True,
) -> None:
    """Raise ``LawBroken``, with a counter-example, unless every promise holds on the values.

    Without ``values``, an aggregate of your own is tried on a few plain numbers, a built-in one on
    the whole corpus. Give values that your ``lift`` takes, tuples where it has several inputs.
    ``bytes=False`` leaves out the round trip, for partials that have no byte form.

    >>> import windrow as wr
    >>> class Difference(wr.Aggregate):
    ...     identity = 0
    ...     def combine(a, b): return a - b
    >>> check_laws(Difference(), [1, 2, 3])
    Traceback (most recent call last):
      ...
    windrow.errors.LawBroken: Difference is not associative: ...
    """
    checked = as_aggregate(aggregate)
    if values is not None:
        runs: list[Sequence[Any]] = [list(values)]
    elif type(checked) in REGISTRY.values():
        runs = [case.values for case in cases(checked)]
    else:
        columns = [_plain(kind, checked.identity) for kind in checked.input_kinds or ("any",)]
        runs = [list(zip(*columns, strict=False)) if len(columns) > 1 else columns[0]]
    checker = _Checker(checked, random.Random(seed), bytes)
    for run in runs:
        checker.check(run, max(1, rounds // len(runs)))
    if not checker.checked:
        raise BadSpecification(f"{checked!r}: no value was given that is not missing")


def _plain(kind: str, identity: Any) -> Sequence[Any]:
    """Plain values; floats where the identity is one, which makes floats of integers."""
    values = _PLAIN[kind]
    floats = float in map(type, identity if isinstance(identity, tuple) else (identity,))
    return [float(v) for v in values] if floats and kind in ("any", "number") else values


class _Checker:
    def __init__(self, aggregate: Aggregate, generator: random.Random, with_bytes: bool) -> None:
        self.with_bytes = with_bytes
        self.aggregate = aggregate
        self.merge = aggregate.merger()
        self.random = generator
        self.checked = 0

    def check(self, values: Sequence[Any], rounds: int) -> None:
        lift = self.aggregate.lifter()
        rows = [(value, lift(value)) for value in values]
        rows = [row for row in rows if row[1] is not EMPTY]
        if not rows:
            return
        self._identity_alone()
        for _ in range(rounds):
            picked = [self._pick(rows) for _ in range(3)]
            self._leaves_arguments(picked)
            self._associative(picked)
            self._identity(picked[0])
            self._commutative(picked)
            self._inverse(picked)
            self._selective(picked)
            if self.with_bytes:
                self._bytes(picked[0])
            self.checked += 1

    def _pick(self, rows: list[tuple[Any, Partial]]) -> tuple[list[Any], Partial]:
        chosen = [self.random.choice(rows) for _ in range(self.random.choice((1, 1, 2, 3)))]
        partial = reduce(self.merge, (partial for _, partial in chosen))
        return [value for value, _ in chosen], partial

    def _broken(self, law: str, *shown: tuple[str, Any]) -> LawBroken:
        lines = "\n".join(f"  {name} = {value!r}" for name, value in shown)
        return LawBroken(f"{type(self.aggregate).__name__} {law}:\n{lines}")

    def _same(self, a: Partial, b: Partial) -> bool:
        if not same(self.aggregate, a, b):
            return False
        if not self.aggregate.reproducible:
            return True
        return _answer(self.aggregate, a) == _answer(self.aggregate, b)

    def _leaves_arguments(self, picked: list[tuple[list[Any], Partial]]) -> None:
        (ra, a), (rb, b), _ = picked
        before = copy.deepcopy((a, b))
        self.merge(a, b)
        if not (equal(a, before[0]) and equal(b, before[1])):
            raise self._broken(
                "changes its arguments: combine must make a new partial and leave both as they are",
                ("a before", before[0]),
                ("b before", before[1]),
                ("a after", a),
                ("b after", b),
                ("rows", [*ra, *rb]),
            )

    def _associative(self, picked: list[tuple[list[Any], Partial]]) -> None:
        (ra, a), (rb, b), (rc, c) = picked
        left = self.merge(self.merge(a, b), c)
        right = self.merge(a, self.merge(b, c))
        if not self._same(left, right):
            raise self._broken(
                "is not associative: (a ⊕ b) ⊕ c and a ⊕ (b ⊕ c) differ for",
                ("a", a),
                ("b", b),
                ("c", c),
                ("(a ⊕ b) ⊕ c", left),
                ("a ⊕ (b ⊕ c)", right),
                ("rows", [*ra, *rb, *rc]),
            )

    def _identity_alone(self) -> None:
        e = self.aggregate.identity
        if e is not EMPTY and not self._plain_equal(e, lambda: self.aggregate.combine(e, e)):
            raise self._broken(
                "has a wrong identity: identity ⊕ identity is not the identity",
                ("identity", e),
                ("identity ⊕ identity", self.aggregate.combine(e, e)),
            )

    def _plain_equal(self, expected: Partial, compute: Callable[[], Partial]) -> bool:
        return same(self.aggregate, compute(), expected)

    def _identity(self, picked: tuple[list[Any], Partial]) -> None:
        e = self.aggregate.identity
        rows, a = picked
        if e is EMPTY:
            return
        for name, result in (
            ("identity ⊕ a", self.aggregate.combine(e, a)),
            ("a ⊕ identity", self.aggregate.combine(a, e)),
        ):
            if not same(self.aggregate, result, a):
                raise self._broken(
                    f"has a wrong identity: {name} is not a",
                    ("identity", e),
                    ("a", a),
                    (name, result),
                    ("rows", rows),
                )

    def _commutative(self, picked: list[tuple[list[Any], Partial]]) -> None:
        (ra, a), (rb, b), _ = picked
        if not self.aggregate.commutative:
            return
        left, right = self.merge(a, b), self.merge(b, a)
        # Values that compare equal, such as 1 and True, may be exchanged.
        if not (self._same(left, right) or left == right):
            raise self._broken(
                "promises commutative, but a ⊕ b and b ⊕ a differ",
                ("a", a),
                ("b", b),
                ("a ⊕ b", left),
                ("b ⊕ a", right),
                ("rows", [*ra, *rb]),
            )

    def _inverse(self, picked: list[tuple[list[Any], Partial]]) -> None:
        (ra, a), (rb, b), _ = picked
        if not self.aggregate.invertible:
            return
        rest = self.aggregate.inverse(self.merge(a, b), a)
        if not equal(rest, b):
            raise self._broken(
                "promises invertible, but inverse(a ⊕ b, a) is not exactly b",
                ("a", a),
                ("b", b),
                ("inverse(a ⊕ b, a)", rest),
                ("rows", [*ra, *rb]),
            )

    def _selective(self, picked: list[tuple[list[Any], Partial]]) -> None:
        (ra, a), (rb, b), _ = picked
        if not self.aggregate.selective:
            return
        result = self.merge(a, b)
        if result is not a and result is not b:
            raise self._broken(
                "promises selective, but a ⊕ b is neither a nor b (the objects themselves)",
                ("a", a),
                ("b", b),
                ("a ⊕ b", result),
                ("rows", [*ra, *rb]),
            )

    def _bytes(self, picked: tuple[list[Any], Partial]) -> None:
        rows, a = picked
        back = self.aggregate.from_bytes(self.aggregate.to_bytes(a))
        if not equal(back, a):
            raise self._broken(
                "does not survive its bytes: declare `schema` with the types of its partials",
                ("a", a),
                ("from_bytes(to_bytes(a))", back),
                ("schema", str(self.aggregate.partial_schema)),
                ("rows", rows),
            )


def _answer(aggregate: Aggregate, partial: Partial) -> str:
    """An answer to compare by, where an error is an answer too."""
    try:
        return repr(aggregate.answer(partial))
    except (ArithmeticError, ValueError) as error:
        return repr(error)
