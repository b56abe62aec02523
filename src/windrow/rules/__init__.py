"""Rules: which conditions over windowed aggregates hold for which keys."""

from windrow.rules.engine import Rules
from windrow.rules.rule import Change

__all__ = ["Change", "Rules"]
