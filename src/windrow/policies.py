"""When the oldest rows leave a window: rules about aggregates of it, as in the AMTA paper.

A rule is asked in one of two ways, both monotone, so that a search needs few questions:

    leaves(total, oldest)    must these oldest rows leave, given the whole window?
    fits(total)              may a window with this total stay as it is?
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import blake2b
from numbers import Number
from types import CodeType, FunctionType
from typing import Any, Literal

import numpy as np

from windrow.aggregates import (
    EMPTY,
    Aggregate,
    All,
    ArgMax,
    ArgMin,
    BitAnd,
    BitOr,
    BitXor,
    Concat,
    Correlation,
    Covariance,
    First,
    GeometricMean,
    Kurtosis,
    Last,
    MaxCount,
    Mean,
    Median,
    Min,
    MinCount,
    Partial,
    Product,
    Quantile,
    Rank,
    RelativeVariation,
    Several,
    Skewness,
    Slope,
    StdDev,
    Sum,
    Variance,
    WeightedMean,
    as_aggregate,
    exact,
)
from windrow.errors import BadSpecification, BadValue, WindrowError

Form = Literal["function", "at_most", "useful"]
_LIMITS = (Number, str, date, timedelta, np.datetime64, np.timedelta64)
_NOT_GROWING = (
    *(Min, Mean, Variance, StdDev, GeometricMean, First, Last, ArgMax, MaxCount, Concat),
    *(Quantile, Median, Rank),
    *(ArgMin, MinCount, RelativeVariation, Product, All, BitAnd, BitOr, BitXor),
    *(Covariance, Correlation, Slope, WeightedMean, Skewness, Kurtosis),
)


@dataclass(frozen=True)
class Policy:
    """One rule about one or more aggregates; see ``windrow.policy``, ``at_most`` and ``useful``."""

    form: Form
    over: tuple[Aggregate, ...]
    label: str
    function: Callable[[Any, Any], Any] | None = None
    limit: Any = None
    debug: bool = False
    together: bool = False
    """Whether the function takes tuples, one answer for each of ``over``."""
    identification: str = ""

    @staticmethod
    def of_function(function: Any, over: Any, name: str | None, debug: bool) -> "Policy":
        """A function of two answers."""
        if not callable(function):
            raise BadSpecification(f"policy() takes a function of two answers, not {function!r}")
        if name is not None and (not isinstance(name, str) or not name):
            raise BadSpecification(f"policy(): name= is a non-empty string, not {name!r}")
        together = isinstance(over, list | tuple)
        parts = tuple(_aggregate(part, "policy(over=)") for part in (over if together else [over]))
        if not parts:
            raise BadSpecification("policy(): over= is empty: give at least one aggregate")
        called = getattr(function, "__name__", "policy")
        label = name or ("policy" if called == "<lambda>" else called)
        who = name or _signature(function)
        about = ", ".join(f"{p!r} ({p.identification})" for p in parts)
        known = f"{who}: {about}" if who else ""
        return Policy("function", parts, label, function, None, debug, together, known)

    @staticmethod
    def at_most(aggregate: Any, limit: Any, debug: bool) -> "Policy":
        """The newest rows whose aggregate is at most a limit."""
        bounded = _aggregate(aggregate, "at_most()")
        if type(bounded) in _NOT_GROWING or isinstance(bounded, Several):
            raise BadSpecification(
                f"at_most(): {bounded!r} does not grow with the window, so that no number of rows "
                "is the longest: take Sum, Count or Max, or write a policy()"
            )
        if not isinstance(limit, _LIMITS) or isinstance(limit, bool) or limit != limit:
            raise BadSpecification(
                f"at_most(): the limit is a value, or the name of a column that has it, not "
                f"{limit!r}"
            )
        parts = (bounded, Last(limit)) if isinstance(limit, str) else (bounded,)
        label = f"{bounded.output_name}_at_most_{limit}"
        who = f"at_most {bounded!r} ({bounded.identification}) {limit!r}"
        return Policy("at_most", parts, label, None, limit, debug, identification=who)

    @staticmethod
    def useful(aggregate: Any) -> "Policy":
        """The rows that can still matter."""
        about = _aggregate(aggregate, "useful()")
        if not hasattr(about, "useless"):
            raise BadSpecification(
                f"useful(): {about!r} does not say which rows cannot matter any more; Max, Min and "
                "LongestRun do, and yours can: useless(total, oldest), of two partials"
            )
        who = f"useful {about!r} ({about.identification})"
        return Policy("useful", (about,), f"useful_{about.output_name}", identification=who)

    # --- what windows ask ------------------------------------------------------------------------

    def check(self, partials: tuple[Partial, ...]) -> None:
        """Raise for a row that would make the rule not monotone."""
        about = self.over[0]
        if self.form == "at_most" and type(about) is Sum and partials[0] is not EMPTY:
            value = exact.to_number(partials[0])
            if value < 0:
                raise BadValue(
                    f"at_most({about!r}, {self.limit!r}) adds numbers that are not negative, so "
                    f"that fewer rows never sum to more; {value!r} is"
                )

    def answers(self, partials: tuple[Partial, ...]) -> Any:
        """What the function is told."""
        found = tuple([part.answer(p) for part, p in zip(self.over, partials, strict=True)])
        return found if self.together else found[0]

    def leaves(self, total: tuple[Partial, ...], oldest: tuple[Partial, ...]) -> bool:
        """Whether the oldest rows must leave."""
        if self.form == "useful":
            if oldest[0] is EMPTY:
                return total[0] is not EMPTY
            about: Any = self.over[0]
            return bool(about.useless(total[0], oldest[0]))
        assert self.function is not None
        told = self.answers(total), self.answers(oldest)
        try:
            return bool(self.function(*told))
        except Exception as error:
            error.add_note(f"in policy {self.label!r}, told {told[0]!r} and {told[1]!r}")
            raise

    def fits(self, total: tuple[Partial, ...]) -> bool:
        """Whether a window with this total may stay as it is."""
        if total[0] is EMPTY:
            return True
        about = self.over[0]
        # A sum that its type cannot hold is above the limit, not an error.
        found = exact.to_number(total[0]) if type(about) is Sum else about.answer(total[0])
        limit = self.over[1].answer(total[1]) if len(self.over) > 1 else self.limit
        if found is None or limit is None:
            return True
        try:
            return bool(found <= limit)
        except TypeError as error:
            raise BadValue(
                f"{self.label}: the answer {found!r} cannot be compared with the limit {limit!r}"
            ) from error

    def require_identification(self) -> None:
        """Raise where it cannot be known whether a function is the same next time."""
        if not self.identification:
            raise BadSpecification(
                f"policy {self.label!r}: its function refers to what a store cannot know again. "
                "Give it a name, policy(..., name=...), and keep the name while it means the same"
            )


def _aggregate(candidate: Any, what: str) -> Aggregate:
    try:
        return as_aggregate(candidate)
    except WindrowError as error:
        raise type(error)(f"{what}: {error}") from error


def _signature(function: Any) -> str | None:
    """Which function it is, so that a store notices another one; None where that is not known."""
    if not isinstance(function, FunctionType):
        return None
    try:
        digest = blake2b(_text(function).encode(), digest_size=8).hexdigest()
    except _Unknown:
        return None
    return f"{function.__module__}.{function.__qualname__} {digest}"


class _Unknown(Exception):
    """A value that looks different in every process."""


def _text(value: Any) -> str:
    """A text that is the same in every process for the same value."""
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        inside = (value.__code__, cells, value.__defaults__, value.__kwdefaults__)
        return "function" + _text(inside)
    if isinstance(value, CodeType):
        return f"code {value.co_code!r}{value.co_names!r}" + _text(value.co_consts)
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, dict):
        return _text(list(value.items()))
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    text = repr(value)
    if " at 0x" in text:
        raise _Unknown
    return text
