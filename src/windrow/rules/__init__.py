"""Rules: which conditions over windowed aggregates hold for which keys."""

from windrow.rules.engine import Change, Rules

__all__ = ["Change", "Rules"]
