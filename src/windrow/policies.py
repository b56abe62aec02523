"""When the oldest rows leave a window: rules about aggregates of it, as in the AMTA paper.

A rule is asked in one of two ways, both monotone, so that a search needs few questions:

    leaves(total, oldest)    must these oldest rows leave, given the whole window?
    fits(total)              may a window with this total stay as it is?
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Number
from typing import Any, Literal

from windrow.aggregates import EMPTY, Aggregate, Last, Partial, Sum, as_aggregate
from windrow.errors import BadSpecification, BadValue

Form = Literal["function", "at_most", "useful"]


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
        return Policy("function", parts, label, function, None, debug, together, f"{who}: {about}")

    @staticmethod
    def at_most(aggregate: Any, limit: Any, debug: bool) -> "Policy":
        """The newest rows whose aggregate is at most a limit."""
        bounded = _aggregate(aggregate, "at_most()")
        if limit is None or limit != limit:
            raise BadSpecification(f"at_most(): the limit is a value or a column, not {limit!r}")
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
            value = about.lower(partials[0])
            if value is not None and isinstance(value, Number) and value < 0:
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
        return bool(self.function(self.answers(total), self.answers(oldest)))

    def fits(self, total: tuple[Partial, ...]) -> bool:
        """Whether a window with this total may stay as it is."""
        found = self.over[0].answer(total[0])
        limit = self.over[1].answer(total[1]) if len(self.over) > 1 else self.limit
        return found is None or limit is None or bool(found <= limit)


def _aggregate(candidate: Any, what: str) -> Aggregate:
    aggregate = as_aggregate(candidate)
    if aggregate.kind == "sequential":
        raise BadSpecification(f"{what}: {aggregate!r} is sequential and cannot be looked back in")
    return aggregate


def _signature(function: Any) -> str:
    """Which function it is, so that a store notices another one in its place."""
    code = getattr(function, "__code__", None)
    if code is None:
        return f"{function!r}"
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    inside = (code.co_code, code.co_names, _plain(code.co_consts), _plain(cells))
    digest = blake2b(repr(inside).encode(), digest_size=8).hexdigest()
    return f"{function.__module__}.{function.__qualname__} {digest}"


def _plain(values: Any) -> list[str]:
    return [repr(v) if not hasattr(v, "co_code") else repr(v.co_code) for v in values]
