"""A rule, and what is told of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow.errors import BadSpecification
from windrow.rules.expression import Expression, Threshold


@dataclass(frozen=True)
class Change:
    """A rule that started or stopped firing for a key, and when."""

    rule: str
    key: Any
    started: bool
    at: Any

    def __str__(self) -> str:
        return f"{self.at}: {self.rule} {'started' if self.started else 'stopped'} for {self.key!r}"


@dataclass(frozen=True)
class Rule:
    """A condition to start by and, where it is not the same, one to stop by."""

    name: str
    number: int
    when: Expression
    until: Expression | None

    @property
    def simple(self) -> bool:
        """Whether it fires exactly while an operand passes a number."""
        return self.when.is_threshold and self.until is None

    @property
    def features(self) -> frozenset[int]:
        """The numbers of the windowed aggregates that it is about."""
        until = frozenset() if self.until is None else self.until.features
        return self.when.features | until

    @property
    def guard(self) -> Threshold | None:
        """A threshold that must hold for it to start: of a feature rather than of a row."""
        implied = self.when.implied
        about = [t for t in implied if t.operand.feature is not None]
        return next(iter((*about, *implied)), None)


def as_rule(given: Any) -> tuple[str, str, str | None]:
    """A rule as a person gives it: name, when and perhaps until."""
    if isinstance(given, Mapping):
        unknown = set(given) - {"name", "when", "until"}
        if unknown or not {"name", "when"} <= set(given):
            raise BadSpecification(f"a rule has name, when and perhaps until; not {dict(given)!r}")
        return given["name"], given["when"], given.get("until")
    if isinstance(given, tuple) and len(given) in (2, 3):
        return given[0], given[1], given[2] if len(given) == 3 else None
    raise BadSpecification(f"a rule is (name, when) or (name, when, until), not {given!r}")
