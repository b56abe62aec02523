"""What an aggregate is: ``lift`` a row to a partial, ``combine`` partials in order, ``lower`` one.

    answer = lower(lift(row 1) ⊕ lift(row 2) ⊕ …)          ⊕ is combine, and must be associative

Everything else here is a promise (``commutative``, ``invertible``, ``selective``,
``reproducible``) that lets a faster algorithm be used; ``windrow.testing.check_laws`` checks every
promise and shows a counter-example when one is broken.
"""

import copy
import inspect
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from windrow.aggregates.schema import EMPTY, Schema
from windrow.errors import BadSpecification, BadValue, Refused

Partial = Any
Kind = Literal["bounded", "holistic", "sequential"]

_FUNCTIONS = ("lift", "combine", "lower", "inverse")
_NAN = math.nan


def canonical(value: Any) -> Any:
    """A value as it is kept: plain Python numbers, one NaN, no negative zero."""
    if type(value) is not float:
        if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
            value = value.item()
        if not isinstance(value, float):
            return value
    return value + 0.0 if value == value else _NAN


def _same(partial: Partial) -> Any:
    return partial


class Aggregate:
    """Subclass this to write your own aggregate; the functions are plain, without ``self``.

    >>> import math, windrow as wr
    >>> class GeoMean(wr.Aggregate):
    ...     identity = (0.0, 0)
    ...     commutative = True
    ...     def lift(x): return (math.log(x), 1)
    ...     def combine(a, b): return (a[0] + b[0], a[1] + b[1])
    ...     def lower(p): return math.exp(p[0] / p[1])
    >>> window = wr.windows.DabaLite(GeoMean())
    >>> window.insert(2.0); window.insert(8.0)
    >>> round(window.query(), 12)
    4.0

    (A strict type checker wants ``@staticmethod`` in front of annotated ones; windrow does not.)
    ``lift`` takes one argument per input column. A function whose first parameter is called
    ``self`` is a method and sees the aggregate's options. ``lower`` may be left out (the partial is
    the answer), and ``lift`` too (the value is the partial).

    Rows with a missing input are skipped, and a window without any other row answers ``empty``
    without calling ``lower``: ``combine`` and ``lower`` never see "no rows".

    **Promises.** ``commutative``: a ⊕ b = b ⊕ a. ``invertible``: ``inverse(a ⊕ b, a)`` is exactly
    b. ``selective``: a ⊕ b is a or b. ``reproducible``: the answer's bits do not depend on how
    the combines are grouped, on any engine.
    """

    name: str = ""
    """The stem of output columns; the class's name in snake case unless declared."""
    kind: Kind = "bounded"
    commutative: bool = False
    invertible: bool = False
    selective: bool = False
    reproducible: bool = False
    identity: Any = EMPTY
    empty: Any = None
    schema: Schema | None = None
    inputs: tuple[str, ...] | None = None
    """What each input is: any, orderable, number, positive, text, string or bytes."""

    family: Callable[[Any], Any] | None = None
    """What a value can be combined with, for aggregates that cannot take all values together."""

    if TYPE_CHECKING:  # users override these with functions of their own shape
        lift: Any
        combine: Any
        lower: Any
        inverse: Any

    def __init__(
        self,
        *columns: str,
        nan: Literal["value", "missing"] = "value",
        overflow: Literal["error", "null"] = "error",
    ) -> None:
        if self.kind != "sequential" and not hasattr(self, "combine"):
            raise BadSpecification(f"{type(self).__name__} has no combine(a, b)")
        if self.invertible and not hasattr(self, "inverse"):
            raise BadSpecification(
                f"{type(self).__name__} says invertible = True but has no inverse(total, oldest)"
            )
        for column in columns:
            if not isinstance(column, str):
                raise BadSpecification(
                    f"{type(self).__name__} takes column names, got {column!r}; "
                    "values are given to insert()"
                )
        if columns and len(columns) != len(self.input_kinds):
            raise BadSpecification(
                f"{type(self).__name__} takes {len(self.input_kinds)} column(s), "
                f"got {len(columns)}: {', '.join(columns)}"
            )
        if nan not in ("value", "missing"):
            raise BadSpecification(f'nan= is "value" or "missing", not {nan!r}')
        if overflow not in ("error", "null"):
            raise BadSpecification(f'overflow= is "error" or "null", not {overflow!r}')
        self.columns = columns
        self.nan = nan
        self.overflow = overflow
        self._alias: str | None = None

    def __init_subclass__(cls, **extra: Any) -> None:
        super().__init_subclass__(**extra)
        for function in _FUNCTIONS:
            body = cls.__dict__.get(function)
            if inspect.isfunction(body) and next(iter(inspect.signature(body).parameters), "") != (
                "self"
            ):
                setattr(cls, function, staticmethod(body))
        if not hasattr(cls, "lower"):
            cls.lower = staticmethod(_same)
        if not hasattr(cls, "lift"):
            cls.lift = staticmethod(canonical)
        if "name" not in cls.__dict__:
            cls.name = "".join(
                f"_{c.lower()}" if c.isupper() and i else c.lower()
                for i, c in enumerate(cls.__name__)
            )
        if cls.kind not in ("bounded", "holistic", "sequential"):
            raise BadSpecification(
                f'{cls.__name__}.kind is "bounded", "holistic" or "sequential", not {cls.kind!r}'
            )

    # --- what it is -----------------------------------------------------------------------------

    @property
    def input_kinds(self) -> tuple[str, ...]:
        """What each input is, one word per argument of ``lift``."""
        if self.inputs is not None:
            return self.inputs
        return ("any",) * len(inspect.signature(self.lift).parameters)

    @property
    def partial_schema(self) -> Schema:
        """The declared schema, or the one that ``identity`` shows."""
        return self.schema if self.schema is not None else Schema.like(self.identity)

    def options(self) -> dict[str, Any]:
        """The options that change what partials or answers are, for descriptions and checks."""
        defaults = {"nan": "value", "overflow": "error"}
        return {k: v for k in defaults if (v := getattr(self, k)) != defaults[k]}

    def description(self) -> str:
        """The name with options and without columns: equal for aggregates that agree."""
        inside = ", ".join(f"{k}={v!r}" for k, v in self.options().items())
        return f"{type(self).__name__}({inside})"

    def alias(self, name: str) -> Self:
        """The same aggregate under another output name."""
        if not isinstance(name, str) or not name:
            raise BadSpecification(f"an alias is a non-empty string, not {name!r}")
        other = copy.copy(self)
        other._alias = name
        return other

    @property
    def output_name(self) -> str:
        """The stem of the output column, for example ``amount_max``."""
        return self._alias or "_".join((*self.columns[:1], self.name))

    def __repr__(self) -> str:
        parts = [repr(c) for c in self.columns]
        parts += [f"{k}={v!r}" for k, v in self.options().items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    # --- how windows use it ---------------------------------------------------------------------

    def lifter(self) -> Callable[[Any], Partial]:
        """A function from a value (a tuple, where there are several inputs) to its partial.

        It skips missing values and belongs to one window: where the aggregate has a ``family``, it
        refuses a value of another family than the first one's, before anything has changed.
        """
        lift = self.lift
        width = len(self.input_kinds)
        skip_nan = self.nan == "missing"
        if width == 0:
            return lambda _: lift()

        def missing(value: Any) -> bool:
            return value is None or (skip_nan and isinstance(value, float) and value != value)

        def lift_any(value: Any) -> Partial:
            if value is None:
                return EMPTY
            if width > 1 and (not isinstance(value, tuple) or len(value) != width):
                raise BadValue(
                    f"{self!r} takes {width} inputs: insert a tuple of {width} values, "
                    f"not {value!r}"
                )
            if any(map(missing, value)) if width > 1 else missing(value):
                return EMPTY
            try:
                return lift(*value) if width > 1 else lift(value)
            except Exception as error:
                error.add_note(f"while {self!r} lifted the value {value!r}")
                raise

        family = self.family
        if family is None:
            return lift_any
        known: Any = None
        example: Any = None
        fast: type | None = None  # numbers of this type need no further look

        def lift_one_family(value: Any) -> Partial:
            nonlocal known, example, fast
            if type(value) is fast:
                return lift(value)
            partial = lift_any(value)
            if partial is EMPTY:
                return partial
            found = family(value)
            if known is None:
                known, example = found, value
                fast = type(value) if found == "number" and not skip_nan and width == 1 else None
            elif found != known:
                raise BadValue(
                    f"{value!r} ({type(value).__name__}) cannot be combined with {example!r} "
                    f"({type(example).__name__}), which this window took before: "
                    "convert one of them"
                )
            return partial

        return lift_one_family

    def merger(self) -> Callable[[Partial, Partial], Partial]:
        """``combine`` extended to EMPTY, which it returns the other side of without a call."""
        combine = self.combine

        def merge(a: Partial, b: Partial) -> Partial:
            if a is EMPTY:
                return b
            if b is EMPTY:
                return a
            return combine(a, b)

        return merge

    def answer(self, partial: Partial) -> Any:
        """``lower``, with ``empty`` for a window without rows."""
        return self.empty if partial is EMPTY else self.lower(partial)

    def fingerprint(self) -> bytes:
        """Eight bytes that tell whether partials written by another are this one's."""
        return self.partial_schema.fingerprint(self.description())

    def to_bytes(self, partial: Partial) -> bytes:
        """One partial as bytes: versioned, checksummed, no pickle."""
        return self.partial_schema.encode([partial], self.description())

    def from_bytes(self, data: bytes) -> Partial:
        """The partial that ``to_bytes`` wrote."""
        partials = self.partial_schema.decode(data, self.description())
        if len(partials) != 1:
            raise BadValue(f"{self.description()}: {len(partials)} partials where one was expected")
        return partials[0]


def as_aggregate(candidate: Any) -> Aggregate:
    """An aggregate, from an instance or from a class that needs no options."""
    if isinstance(candidate, type) and issubclass(candidate, Aggregate):
        candidate = candidate()
    if not isinstance(candidate, Aggregate):
        raise BadSpecification(
            f"expected an aggregate such as windrow.Max(), got {candidate!r} "
            f"({type(candidate).__name__})"
        )
    if candidate.kind == "sequential":
        raise Refused(
            f"{candidate!r} is sequential: its states cannot be merged, so no window can hold it"
        )
    return candidate


def order_family(value: Any) -> Any:
    """What a value can be ordered with: all numbers together, everything else with its own type."""
    value = canonical(value)
    if isinstance(value, (bool, int, float, Decimal)):
        return "number"
    awareness = getattr(value, "utcoffset", None)
    return (type(value), awareness is not None and awareness() is not None)


def mapping_value(row: Any, column: str) -> Any:
    """A row's value in a column, or an error that lists the columns there are."""
    if not isinstance(row, Mapping):
        raise BadValue(f"expected a mapping with a value for {column!r}, got {row!r}")
    if column not in row:
        raise BadValue(f"the row has no {column!r}; it has {', '.join(map(repr, row))}")
    return row[column]
