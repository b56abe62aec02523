"""Several aggregates as one, so that one structure serves many dimensions."""

from collections.abc import Callable, Mapping
from typing import Any

from windrow.aggregates.base import Aggregate, Partial, as_aggregate
from windrow.aggregates.schema import EMPTY, Field, Schema
from windrow.aggregates.values import Family
from windrow.errors import BadSpecification, BadValue

Partials = tuple[Partial, ...]
_NARROW = (
    "any",
    "orderable",
    "number",
    "positive",
    "integer",
    "boolean",
    "text",
    "string",
    "bytes",
)


class Several(Aggregate):
    """The product of aggregates: each sees its own columns, all answers come at once.

    Where a part names columns, rows are mappings; where none does, every part sees the value.
    Each promise holds where all parts make it; ``invertible`` does not carry over, since a part may
    run out of rows that are not missing before the window does.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Several(wr.Sum("price"), wr.Max("size"), wr.Count()))
    >>> window.insert({"price": 2.5, "size": 10})
    >>> window.insert({"price": 1.5, "size": None})
    >>> window.query()
    {'price_sum': 4.0, 'size_max': 10, 'count': 2}
    """

    inputs = ("any",)
    combine: Any = None
    """Part by part; every instance has its own."""

    def __init__(self, *aggregates: Any) -> None:
        super().__init__()
        if not aggregates:
            raise BadSpecification("Several needs at least one aggregate")
        self.parts = parts = tuple(map(as_aggregate, aggregates))
        self.names = tuple(part.output_name for part in parts)
        named = any(part.columns for part in parts)
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise BadSpecification(
                f"two answers would be called {', '.join(twice)}: rename one with .alias(...)"
            )
        self.inputs = (
            max((k for p in parts for k in p.input_kinds), key=_NARROW.index, default="any"),
        )
        self.kind = "holistic" if any(p.kind == "holistic" for p in parts) else "bounded"
        self.commutative = all(p.commutative for p in parts)
        self.reproducible = all(p.reproducible for p in parts)
        self.schema = Schema(
            tuple(Field(f"p{i}", part.partial_schema) for i, part in enumerate(parts))
        )
        self.combine = _joiner([part.merger() for part in parts])
        for part in parts:
            if named and not part.columns and part.input_kinds and not isinstance(part, Several):
                raise BadSpecification(
                    f"{part!r} names no column, but others do: name the column that it is about"
                )

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "combine"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.combine = _joiner([part.merger() for part in self.parts])

    def options(self) -> dict[str, Any]:
        """The parts, in order."""
        return {f"p{i}": part.description() for i, part in enumerate(self.parts)}

    def __repr__(self) -> str:
        return f"Several({', '.join(map(repr, self.parts))})"

    def lifter(self, family: Family | None = None) -> Callable[[Any], Partial]:
        """Each part lifts its own columns; missing values are missing for that part only."""
        memory = Family() if family is None else family
        memory.parts = [Family() for _ in self.parts]
        lifters = [part.lifter(own) for part, own in zip(self.parts, memory.parts, strict=True)]

        named = any(part.columns for part in self.parts)

        def lift_row(row: Any) -> Partials:
            if named and not isinstance(row, Mapping):
                raise BadValue(f"{self!r} names columns: expected a mapping, got {row!r}")
            unknown = memory.undecided()
            try:
                return tuple([lift(row) for lift in lifters])
            except BaseException:  # whatever a user's lift raises: it goes on from here
                for own in unknown:  # a row that is refused decides nothing
                    own.forget()
                raise

        return lift_row

    def remember(self, family: Family, examples: tuple[Any, ...]) -> None:
        """Part by part."""
        for part, own, example in zip(self.parts, family.parts, examples, strict=True):
            part.remember(own, example)

    def lower(self, partial: Partials) -> dict[str, Any]:
        """Every part's answer under its output name."""
        return {
            name: part.answer(p)
            for name, part, p in zip(self.names, self.parts, partial, strict=True)
        }

    def answer(self, partial: Partial) -> Any:
        """An empty window has every part's answer for no rows."""
        if isinstance(partial, tuple):
            return self.lower(partial)
        return {name: p.answer(EMPTY) for name, p in zip(self.names, self.parts, strict=True)}


def _joiner(mergers: list[Callable[[Partial, Partial], Partial]]) -> Any:
    """⊕ part by part, without a loop where there are few."""
    if len(mergers) == 2:
        first, second = mergers

        def join_two(a: Partials, b: Partials) -> Partials:
            return (first(a[0], b[0]), second(a[1], b[1]))

        return join_two
    if len(mergers) == 3:
        first, second, third = mergers

        def join_three(a: Partials, b: Partials) -> Partials:
            return (first(a[0], b[0]), second(a[1], b[1]), third(a[2], b[2]))

        return join_three

    def join(a: Partials, b: Partials) -> Partials:
        return tuple([merge(x, y) for merge, x, y in zip(mergers, a, b, strict=True)])

    return join
