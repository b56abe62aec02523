"""What an aggregate is: ``lift`` a row to a partial, ``combine`` partials in order, ``lower`` one.

    answer = lower(lift(row 1) ⊕ lift(row 2) ⊕ …)          ⊕ is combine, and must be associative

Everything else here is a promise (``commutative``, ``invertible``, ``selective``,
``reproducible``) that lets a faster algorithm be used; ``windrow.testing.check_laws`` checks every
promise and shows a counter-example when one is broken.
"""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict

import numpy as np

from windrow.aggregates.other_names import meant
from windrow.aggregates.schema import EMPTY, Schema
from windrow.aggregates.values import Family, canonical, mapping_value
from windrow.aggregates.where import Where
from windrow.errors import BadSpecification, BadValue, Refused
from windrow.times import is_missing
from windrow.words import in_our_words

Partial = Any
Kind = Literal["bounded", "holistic", "sequential"]

_FUNCTIONS = {"lift": None, "combine": 2, "lower": 1, "inverse": 2, "family": 1}
"""What an aggregate is written as, and how many arguments each takes."""
_DEFAULTS = {"nan": "value", "overflow": "error"}
_PLAIN = (int, float, complex, str, bytes, tuple, np.generic, np.ndarray)


def _same(partial: Partial) -> Any:
    return partial


def _check_arity(cls: type, name: str, body: Any, wanted: int | None) -> None:
    if wanted is None:
        return
    try:
        inspect.signature(body).bind(*range(wanted))
    except TypeError:
        raise BadSpecification(
            f"{cls.__name__}.{name}{inspect.signature(body)} cannot be called with {wanted} "
            "argument(s); a method's first parameter must be called self"
        ) from None


class Options(TypedDict, total=False):
    """What every aggregate can be told, for those with options of their own."""

    nan: Literal["value", "missing"]
    overflow: Literal["error", "null"]


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
    They return new partials and leave their arguments as they are.
    ``lift`` takes one argument per input column. A function whose first parameter is called
    ``self`` is a method and sees the aggregate's options. ``lower`` may be left out (the partial is
    the answer), and ``lift`` too (the value is the partial).

    Rows with a missing input are skipped, and a window without any other row answers ``empty``
    without calling ``lower``: ``combine`` and ``lower`` never see "no rows".

    **Promises.** ``commutative``: a ⊕ b = b ⊕ a. ``invertible``: ``inverse(a ⊕ b, a)`` is exactly
    b. ``selective``: a ⊕ b is a or b, the object itself. ``reproducible``: the answer's bits do not
    depend on how the combines are grouped, on any engine.
    """

    name: str = ""
    """The stem of output columns; the class's name in snake case unless declared."""

    kind: Kind = "bounded"
    """``"bounded"``: partials do not grow with the window; ``"holistic"``: they do;
    ``"sequential"``: there is no combine."""

    commutative: bool = False
    """A promise: a ⊕ b = b ⊕ a. Spark then needs no ``tie=``."""

    invertible: bool = False
    """A promise: ``inverse(a ⊕ b, a)`` is exactly b."""

    selective: bool = False
    """A promise: a ⊕ b is a or b, the object itself."""

    reproducible: bool = False
    """A promise: the answer's bits do not depend on how combines are grouped, on any engine."""

    identity: Any = EMPTY
    """A partial with which ⊕ changes nothing. It shows the types of the partial's fields, which
    compiled kernels need to know."""

    empty: Any = None
    """The answer of a window without rows."""

    schema: Schema | None = None
    """The types of the partial's fields, where ``identity`` does not show them."""

    answer_type: Any = None
    """The Arrow type of answers, or its name (``"double"``), where they do not show it: Spark asks
    before there are any."""

    inputs: tuple[str, ...] | None = None
    """What each input is: any, orderable, number, positive, integer, boolean, text, string, or
    bytes."""

    family: Callable[[Any], Any] | None = None
    """What a value can be combined with, for aggregates that cannot take all values together."""

    approximate: bool = False
    """Whether answers are estimates."""

    agrees: Callable[[Any, Any], bool] | None = None
    """Of estimates that depend on grouping: whether two partials can be of the same rows."""

    columns: tuple[str, ...] = ()
    nan: Literal["value", "missing"] = "value"
    overflow: Literal["error", "null"] = "error"
    _alias: str | None = None
    _over: tuple[Any, ...] = ()
    _where: tuple[Where, ...] = ()

    if TYPE_CHECKING:  # users override these with functions of their own shape
        lift: Any
        combine: Any
        lower: Any
        inverse: Any

    @in_our_words
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
        check_odd(nan, overflow)
        self.columns = columns
        self.nan = nan
        self.overflow = overflow

    def __init_subclass__(cls, **extra: Any) -> None:
        super().__init_subclass__(**extra)
        for function, wanted in _FUNCTIONS.items():
            body = cls.__dict__.get(function)
            if inspect.isfunction(body):
                plain = next(iter(inspect.signature(body).parameters), "") != "self"
                if plain:
                    setattr(cls, function, staticmethod(body))
                _check_arity(cls, function, body, None if wanted is None else wanted + (not plain))
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
        try:
            parameters = inspect.signature(self.lift).parameters.values()
        except ValueError:  # a builtin such as math.log
            return ("any",)
        needed = [p for p in parameters if p.default is p.empty and p.kind != p.VAR_KEYWORD]
        return ("any",) * len(needed)

    @property
    def partial_schema(self) -> Schema:
        """The declared schema, or the one that ``identity`` shows; named tuples stay such."""
        schema = self.schema if self.schema is not None else Schema.like(self.identity)
        make = getattr(self.identity, "_make", None)
        if make is None or schema.bare or len(schema.fields) != len(self.identity):
            return schema
        return replace(schema, make=make)

    @property
    def approximation(self) -> str:
        """Of estimates: how far off they are at most, and how large partials get."""
        return ""

    def options(self) -> dict[str, Any]:
        """The options that change what partials or answers are, for descriptions and checks."""
        usual = {k for k, v in _DEFAULTS.items() if getattr(self, k) == v}
        hidden = {"columns", "identity", *_FUNCTIONS, *usual}
        own = self._attributes().items()
        return {k: v for k, v in own if not k.startswith("_") and k not in hidden}

    def _attributes(self) -> dict[str, Any]:
        """All that was set on it, also in slots of its class."""
        own: dict[str, Any] = {}
        for kind in type(self).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(self, name):
                    own[name] = getattr(self, name)
        return own | vars(self)

    def description(self) -> str:
        """The name with options and without columns: equal for aggregates that agree."""
        own = self._attributes().items()
        told = self.options() | {k: v for k, v in own if _is_hidden_option(k, v)}
        inside = ", ".join(f"{k}={_exactly(v)}" for k, v in told.items())
        return f"{type(self).__name__}({inside})"

    def alias(self, name: str) -> Self:
        """The same aggregate under another output name."""
        if not isinstance(name, str) or not name:
            raise BadSpecification(f"an alias is a non-empty string, not {name!r}")
        other = copy.copy(self)
        other._alias = name
        return other

    def over(self, *windows: Any) -> Self:
        """The same aggregate, over these windows only instead of all that ``Rolling`` is given.

        >>> import windrow as wr
        >>> features = wr.Rolling(
        ...     time="at", windows=["1h", "7d"],
        ...     aggregates=[wr.Mean("amount"), wr.Distinct("shop").over("7d", wr.rows(10))],
        ... )
        >>> [name for name, _, _ in features.outputs]
        ['amount_mean_1h', 'amount_mean_7d', 'shop_distinct_7d', 'shop_distinct_10rows']

        A text may be the name of one of ``Rolling``'s windows, or a length of time.
        """
        if not windows:
            raise BadSpecification(f'{self!r}: over what? .over("1h"), say')
        for window in windows:
            if isinstance(window, list | tuple | set | dict):
                raise BadSpecification(
                    f'{self!r}.over({window!r}): give the windows one by one, .over("1h", "7d")'
                )
        other = copy.copy(self)
        other._over = windows
        return other

    def where(self, column: str, *values: Any) -> Self:
        """The same aggregate of some rows only, as SQL's ``FILTER (WHERE …)``, in ``Rolling``.

        Those in which a boolean column is true, or a column has one of the values given; where it
        is missing, a row does not count. Said twice, both must hold.

        >>> import windrow as wr, pyarrow as pa
        >>> features = wr.Rolling(windows=[wr.rows(3)], aggregates=[
        ...     wr.Count().where("status", "failed", "refused"), wr.Sum("amount").where("first"),
        ... ])
        >>> table = pa.table({
        ...     "status": ["failed", "paid", "refused"], "amount": [1.0, 2.0, 4.0],
        ...     "first": [True, False, True],
        ... })
        >>> for row in features(table).select([3, 4]).to_pylist():
        ...     print(row)
        {'count_where_status_failed_refused_3rows': 1, 'amount_sum_where_first_3rows': 1.0}
        {'count_where_status_failed_refused_3rows': 1, 'amount_sum_where_first_3rows': 1.0}
        {'count_where_status_failed_refused_3rows': 2, 'amount_sum_where_first_3rows': 5.0}
        """
        other = copy.copy(self)
        other._where = (*self._where, Where(column, tuple(map(canonical, values))))
        return other

    @property
    def output_name(self) -> str:
        """The stem of the output column, for example ``amount_max``."""
        where = [word for one in self._where for word in ("where", one.name)]
        return self._alias or "_".join((*self.columns[:1], self.name, *where))

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it looks at: its inputs, and those that say which rows count."""
        return (*self.columns, *(one.column for one in self._where))

    def __repr__(self) -> str:
        parts = [repr(c) for c in self.columns]
        parts += [f"{k}={v!r}" for k, v in self.options().items()]
        return f"{type(self).__name__}({', '.join(parts)}){''.join(map(str, self._where))}"

    # --- how windows use it ---------------------------------------------------------------------

    def lifter(self, family: Family | None = None) -> Callable[[Any], Partial]:
        """A function from a value to its partial; missing values become EMPTY.

        Several inputs come as a tuple; where columns are named, a row may be a mapping. The
        function belongs to one window: where the aggregate has a ``family``, it refuses a value of
        another family than the first one's, before anything has changed.
        """
        lift = self.lift
        columns = self.columns
        width = len(self.input_kinds)
        skip_nan = self.nan == "missing"
        if width == 0:
            return lambda _: lift()

        def missing(value: Any) -> bool:
            if value is None or is_missing(value):
                return True
            return skip_nan and isinstance(value, (float, np.floating)) and bool(value != value)

        def unpacked(value: Any) -> Any:
            if columns and isinstance(value, Mapping):
                values = tuple([mapping_value(value, column) for column in columns])
                return values if width > 1 else values[0]
            if width > 1 and (not isinstance(value, tuple) or len(value) != width):
                raise BadValue(
                    f"{self!r} takes {width} inputs: insert a tuple of {width} values, "
                    f"not {value!r}"
                )
            return value

        def lift_any(value: Any) -> Partial:
            if value is None:
                return EMPTY
            if width > 1 or columns:
                value = unpacked(value)
            if any(map(missing, value)) if width > 1 else missing(value):
                return EMPTY
            try:
                return lift(*value) if width > 1 else lift(value)
            except Exception as error:
                error.add_note(f"while {self!r} lifted the value {value!r}")
                raise

        family_of = self.family
        if family_of is None:
            return lift_any
        memory = Family() if family is None else family

        def lift_one_family(value: Any) -> Partial:
            if type(value) is memory.fast:
                return lift(value)
            partial = lift_any(value)
            if partial is EMPTY:
                return partial
            value = unpacked(value)
            found = family_of(value)
            if memory.known is None:
                memory.known, memory.example = found, value
                if found == "number" and not skip_nan and width == 1:
                    memory.fast = type(value)
            elif found != memory.known:
                example = memory.example
                raise BadValue(
                    f"{value!r} ({type(value).__name__}) cannot be combined with {example!r} "
                    f"({type(example).__name__}), which this window took before: "
                    "convert one of them"
                )
            return partial

        return lift_one_family

    def remember(self, family: Family, examples: tuple[Any, ...]) -> None:
        """Know again, after a reload, what kind of values a window took."""
        if examples:
            self.lifter(family)(examples[0])

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

    @property
    def identification(self) -> str:
        """Who writes bytes: the description with the class's full name."""
        module = type(self).__module__.partition(".")[0]
        owner = module if module == "windrow" else type(self).__module__
        name = type(self).__qualname__.rpartition("<locals>.")[2]  # the same wherever it travels
        return f"{owner}.{name} {self.description()}"

    def to_bytes(self, partial: Partial) -> bytes:
        """One partial as bytes: versioned, checksummed, no pickle."""
        return self.partial_schema.encode([partial], self.identification)

    def from_bytes(self, data: bytes) -> Partial:
        """The partial that ``to_bytes`` wrote."""
        partials = self.partial_schema.decode(data, self.identification)
        if len(partials) != 1:
            raise BadValue(f"{self.description()}: {len(partials)} partials where one was expected")
        return partials[0]


def _is_hidden_option(name: str, value: Any) -> bool:
    """Whether an attribute is one that functions may go by, though its name says it is private."""
    own = not name.startswith("_") or name in ("_alias", "_over", "_where", "_texts")
    return not own and isinstance(value, _PLAIN)


def _exactly(option: Any) -> str:
    """An option in words that no other one has: NumPy shows arrays in part, and rounded."""
    if type(option) is tuple:
        return f"({', '.join(map(_exactly, option))}{',' * (len(option) == 1)})"
    if type(option) is list:
        return f"[{', '.join(map(_exactly, option))}]"
    if not isinstance(option, np.ndarray):
        return repr(option)
    content = repr(option.tolist()) if option.dtype.hasobject else option.tobytes().hex()
    digest = blake2b(content.encode(), digest_size=16).hexdigest()
    return f"array({str(option.dtype)!r}, {option.shape}, {digest!r})"


def _meant(word: str) -> str:
    """The aggregate that a text seems to name; else it names a column."""
    from windrow.aggregates import REGISTRY

    found = meant(word, REGISTRY)
    return f'windrow.{found}("column")' if found else f"windrow.Max({word!r})"


def check_odd(nan: str, overflow: str) -> None:
    """Raise unless it is said how odd values are taken."""
    if nan not in ("value", "missing"):
        raise BadSpecification(f'nan= is "value" or "missing", not {nan!r}')
    if overflow not in ("error", "null"):
        raise BadSpecification(f'overflow= is "error" or "null", not {overflow!r}')


def as_aggregate(candidate: Any, in_rolling: bool = False) -> Aggregate:
    """An aggregate, from an instance or from a class that needs no options."""
    if isinstance(candidate, type) and issubclass(candidate, Aggregate):
        try:
            candidate = candidate()
        except TypeError as error:
            raise BadSpecification(f"make {candidate.__name__} an instance: {error}") from error
    if not isinstance(candidate, Aggregate):
        hint = "; for several at once write Several(...)" if isinstance(candidate, list) else ""
        if isinstance(candidate, str):
            hint = f"; write {_meant(candidate)}"
        raise BadSpecification(
            f"expected an aggregate such as windrow.Max(), got {candidate!r} "
            f"({type(candidate).__name__}){hint}"
        )
    if candidate._over and not in_rolling:
        raise BadSpecification(
            f"{candidate!r}.over(...): over() chooses among Rolling's windows; here the window is "
            "given beside the aggregate"
        )
    if candidate._where and not in_rolling:
        raise BadSpecification(
            f"{candidate!r}: where() is for Rolling, whose tables have the column; elsewhere "
            'insert None for a row that does not count, and count values with Count("x")'
        )
    if candidate.kind == "sequential" and not in_rolling:
        raise Refused(
            f"{candidate!r} is sequential: its states cannot be merged, so no window can hold it. "
            "Rolling runs it, and windrow.approx takes one value at a time"
        )
    return candidate
