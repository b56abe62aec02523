"""A rule, and what is told of it."""

from dataclasses import dataclass
from typing import Any

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
    def guard(self) -> Threshold | None:
        """A threshold that must hold for it to start: of a feature rather than of a row."""
        implied = self.when.implied
        about = [t for t in implied if t.operand.feature is not None]
        return next(iter((*about, *implied)), None)
