"""Functions of one's own that see options: compiled as if the options stood in their text."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment, misc, no-any-return"
# mypy: disable-error-code="attr-defined, index, override, operator"
# ruff: noqa: N805

import functools
import inspect
import math
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.buckets import Stream, plan_of
from tests.test_rolling import check
from windrow.columns import own
from windrow.columns.options import _rewritten
from windrow.columns.own import compile_aggregate, keep_texts
from windrow.errors import BadSpecification
from windrow.testing import check_laws

TABLE = pa.table(
    {"t": [1, 2, 5, 6, 9, 11], "x": [1.5, None, -2.0, 3.25, 7.75, 0.5], "i": [1, 2, None, 4, 5, 6]}
)
WINDOWS: list[Any] = [wr.rows(2), wr.time(4, closed="both"), wr.rows(2, ending=2)]
FLOATS = (np.dtype(np.float64),)
SHIFT = 1.0
self_offset = "no number"


class Decayed(wr.Aggregate):
    """A mean in which a row counts half after each half life."""

    identity = (-(2**62), 0.0, 0.0)
    commutative = True

    def __init__(self, *columns: str, half_life: float, **more: Any) -> None:
        super().__init__(*columns, **more)
        self.half_life = half_life

    def lift(at, x):
        return (at, x, 1.0)

    def combine(self, a, b):
        newest = max(a[0], b[0])
        old, new = self.weight(newest - a[0]), self.weight(newest - b[0])
        return (newest, a[1] * old + b[1] * new, a[2] * old + b[2] * new)

    def weight(self, age: int) -> float:
        return math.pow(0.5, age / self.half_life)

    def lower(p):
        return p[1] / p[2]


class Own(wr.Aggregate):
    """A sum of what an option makes of the values."""

    identity = 0
    reproducible = True
    offset: Any = 2.0

    def __init__(self, *columns: str, **options: Any) -> None:
        super().__init__(*columns)
        vars(self).update(options)

    def lift(self, x: "Unknown") -> "Unknown":  # type: ignore[name-defined]  # noqa: F821
        return x + self.offset

    def combine(a, b):
        return a + b


def compiled(aggregate: Any, kinds: Any = FLOATS) -> Any:
    made = compile_aggregate(aggregate, kinds, False)
    assert made.module is not None, made.reason
    return made.module


def reason(aggregate: Any) -> str:
    made = compile_aggregate(aggregate, FLOATS, False)
    assert made.module is None
    return made.reason


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.floats(-100, 100)), min_size=1, max_size=30),
    st.sampled_from([0.5, 7]),
)
def test_what_is_compiled_says_what_python_says(rows: Any, half_life: Any) -> None:
    rows = sorted(rows)
    table = pa.table({"t": [t for t, _ in rows], "x": [x for _, x in rows]})
    decayed = Decayed("t", "x", half_life=half_life)
    spec = wr.Rolling(time="t", windows=[wr.time(20), wr.rows(5)], aggregates=[decayed])
    for name, _, label in spec.outputs:
        one_by_one = wr.Sliding(spec.windows[label], Decayed(half_life=half_life))
        wanted = [one_by_one.insert((t, x), at=t) for t, x in rows]
        # rows of one time see each other in a table, and only those before in a window by itself
        last = [i for i in range(len(rows)) if i + 1 == len(rows) or rows[i + 1][0] > rows[i][0]]
        found = spec(table)[name].to_pylist()
        places = last if label == "20" else range(len(rows))
        assert [found[i] for i in places] == pytest.approx(
            [wanted[i] for i in places], rel=1e-9, abs=1e-9
        )


def test_the_laws_of_methods() -> None:
    check_laws(Decayed(half_life=4.0), values=[(1, 2.0), (4, 8.0), (9, -1.0)])


@pytest.mark.parametrize(
    "aggregate",
    [
        *(Own("x"), Own("i", offset=3), Own("x", offset=True), Own("i", offset=-0.25)),
    ],
)
def test_numbers(aggregate: Any) -> None:
    spec = wr.Rolling(time="t", windows=WINDOWS, aggregates=[aggregate])
    assert ", compiled" in spec.explain(TABLE)
    check(spec, TABLE)


def test_options_are_told_apart() -> None:
    """Also those that are equal, and those that change after they were used."""
    halves = [Decayed("t", "x", half_life=h).alias(f"h{h}") for h in (1.0, 100.0)]
    spec = wr.Rolling(windows={"w": wr.rows(3)}, aggregates=halves)
    first, second = (spec(TABLE)[name][5].as_py() for name in ("h1.0_w", "h100.0_w"))
    assert abs(first - second) > 0.5
    for offset in (np.float32(0.5), np.int64(3), 0.5):
        assert compiled(Own("x", offset=offset)).lift(1.0) == 1.0 + offset
    kinds = (np.dtype(np.int64),)
    for offset, wanted in ((1, int), (1.0, float), (True, int)):
        assert type(compiled(Own("i", offset=offset), kinds).lift(1)) is wanted
    one = Own("x", offset=1.0)
    assert compiled(one).lift(1.0) == 2.0
    one.offset = 5.0
    assert compiled(one).lift(1.0) == 6.0


class Weighted(Own):
    def lift(self, x):
        return float(x * self.weights[0])


class Begun(Own):
    def __init__(self, column: str, identity: Any) -> None:
        super().__init__(column)
        self.identity = identity

    def lift(x):
        return x


class Shape(IntEnum):
    PLAIN = 1
    DOUBLE = 2


def doubled(x):
    return x * 2.0


def halved(x):
    return x / 2


class Applied(Own):
    def lift(self, x):
        return self.function(x)


class Switched(Own):
    def lift(self, x):
        return x * 1.0 if self.shape == Shape.PLAIN else x * 2.0


def helped(x):
    return x + 1.0


class Helped(Own):
    def lift(x):
        return helped(x)


@pytest.mark.parametrize(
    "aggregates",
    [
        [Weighted("x", weights=(np.float64(w),)) for w in (2, 5)],
        [Weighted("x", weights=np.array([w])) for w in (2.0, 5.0)],
        [Applied("x", function=f) for f in (doubled, halved)],
        [Switched("x", shape=shape) for shape in Shape],
        [Begun("x", 0), Begun("x", 0.0), Begun("i", 0)],
    ],
    ids=["numbers of NumPy", "arrays", "functions", "numbers with names", "identities"],
)
def test_compiled_code_is_not_taken_for_another(aggregates: list[Any]) -> None:
    for aggregate in aggregates:
        spec = wr.Rolling(time="t", windows=WINDOWS, aggregates=[aggregate])
        assert ", compiled" in spec.explain(TABLE)
        check(spec, TABLE)


def test_functions_of_the_module_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they do in a notebook."""
    assert compiled(Helped("x")).lift(1.0) == 2.0
    monkeypatch.setitem(globals(), "helped", halved)
    assert compiled(Helped("x")).lift(1.0) == 0.5


class Private(Own):
    def __init__(self, *columns: str, half: float) -> None:
        super().__init__(*columns)
        self._half = half
        self._seen: dict[float, float] = {}

    def lift(self, x):
        return x * self._half


def times(factor: float) -> Any:
    class Times(wr.Aggregate):
        identity = 0.0

        def lift(x):
            return x * factor

        def combine(a, b):
            return a + b

    return Times


@pytest.mark.parametrize("make", [lambda k, *c: Private(*c, half=k), lambda k, *c: times(k)(*c)])
def test_what_looks_alike_shares_nothing(make: Any) -> None:
    """Options whose names say that they are private, and classes of one name."""
    hub = wr.Hub()
    queries = [hub.register(make(k), wr.rows(2)) for k in (2.0, 5.0)]
    hub.insert_many([1.0, 2.0])
    assert [hub.lookup(query) for query in queries] == [6.0, 15.0]
    aggregates = [make(k, "i").alias(f"a{k}") for k in (2.0, 5.0)]
    spec = wr.Rolling(time="t", windows={"w": wr.time(1)}, aggregates=aggregates)
    if type(aggregates[0]) is not type(aggregates[1]):
        with pytest.raises(BadSpecification, match="two classes have this name"):
            plan_of(spec, TABLE.schema)
        return
    stream = Stream(plan_of(spec, TABLE.schema))
    for place, time in enumerate(TABLE["t"].to_pylist()):
        stream.turn(TABLE.slice(place, 1), time)
    stream.end()
    assert stream.found().to_pylist() == spec(TABLE).to_pylist()


def test_options_in_slots_are_options() -> None:
    class Slotted(Own):
        __slots__ = ("half",)

        def __init__(self, half: float) -> None:
            super().__init__()
            self.half = half

        def lift(self, x):
            return x * self.half

    assert Slotted(0.5).description() != Slotted(2.0).description()
    hub = wr.Hub()
    queries = [hub.register(Slotted(half), wr.rows(3)) for half in (0.5, 2.0)]
    hub.insert(8.0)
    assert [hub.lookup(query) for query in queries] == [4.0, 16.0]


@pytest.mark.parametrize("change", [1e-12, 1.0])
def test_arrays_that_look_alike_share_nothing(change: float) -> None:
    """NumPy shows eight digits, and the ends of long ones."""
    weights = [np.ones(2000), np.ones(2000)]
    weights[1][1000 if change == 1.0 else 0] += change
    hub = wr.Hub()
    for way in (lambda w: w, lambda w: (1, [w])):
        one, other = (Own(weights=way(w)) for w in weights)
        assert one.identification != other.identification
    queries = [hub.register(Weighted(weights=w[[1000]] + w[0] - 1), wr.rows(2)) for w in weights]
    hub.insert_many([1.0, 2.0])
    assert hub.lookup(queries[0]) == 3.0 < hub.lookup(queries[1])


def test_arrays_tuples_closures_and_names_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    more = 1.0

    class Weighed(Own):
        def lift(self, x):
            self_ = x * self.weights[1] + self.pair[0]
            return self.moved(self_) + more + sum([self.offset for _ in range(2)])

        def moved(self, x, /):
            return x + SHIFT

    weights = np.array([1.0, 2.0])
    weighed = Weighed("x", weights=weights, pair=(0.5, 1), offset=0.25)
    assert compiled(Weighed("x", weights=(1.0, 2.0), pair=(0.5, 1), offset=0.25)).lift(1.0) == 5.0
    monkeypatch.setitem(globals(), "SHIFT", 2.0)
    assert compiled(Weighed("x", weights=(1.0, 2.0), pair=(0.5, 1), offset=0.25)).lift(1.0) == 6.0
    assert weighed.lift(1.0) == 6.0
    more = 2.0
    assert compiled(Weighed("x", weights=(1.0, 2.0), pair=(0.5, 1), offset=0.25)).lift(1.0) == 7.0


def test_names_that_are_taken() -> None:
    class Named(Own):
        def lift(self, x):
            self_offset, self__offset = 100.0, 1.0
            return x + self.offset * self_offset + self__offset

    assert compiled(Named("x", offset=3.0)).lift(1.0) == 302.0


def twice(function: Any) -> Any:
    @functools.wraps(function)
    def wrapped(self, x):
        return 2.0 * function(self, x)

    return wrapped


class Sets(Own):
    def lift(self, x):
        self.seen = x
        return x


class Gives(Own):
    def lift(self, x):
        return x + getattr(self, "offset", 0.0)


class Twice(Own):
    @twice
    def lift(self, x):
        return x + self.offset


class Wrapper(Own):
    lift = twice(lambda self, x: x + self.offset)


class Lambda(Own):
    lift = lambda self, x: x + self.offset  # noqa: E731


class Calls(Own):
    def lift(self, x):
        return self.down(x)

    def down(self, x):
        return self.down(x - 1.0) if x > 0.0 else x


class Hides(Own):
    def lift(self, x):
        offset = lambda self: self.offset  # noqa: E731
        return offset(self) + x


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        (Own("x", offset=[1.0]), "lift uses self: self.offset is a list, and only numbers can be"),
        (Own("x", offset=(1.0, "a")), "lift uses self: self.offset is a tuple, and only numbers"),
        (Own("x", offset=None), "lift uses self: self.offset is a NoneType, and only numbers can"),
        (Sets("x"), "lift uses self: it sets self.seen"),
        (Gives("x"), "lift uses self: it uses self itself, not only what it holds"),
        (Twice("x"), "lift uses self: only a def without decorators can do without self"),
        (Wrapper("x"), "lift uses self: "),
        (Lambda("x"), "lift uses self: only a def without decorators can do without self"),
        (Calls("x"), "lift uses self: it calls itself"),
        (Hides("x"), "lift uses self: self means several things in it"),
    ],
)
def test_what_stays_interpreted_and_right(aggregate: Any, says: str) -> None:
    assert reason(aggregate).startswith(says)
    if aggregate.offset == 2.0 and type(aggregate) is not Calls:
        check(wr.Rolling(windows=[wr.rows(2)], aggregates=[aggregate]), TABLE)


def test_an_option_that_is_missing() -> None:
    class Missing(Own):
        def lift(self, x):
            return x + self.nowhere

    assert reason(Missing("x")) == "lift uses self: there is no self.nowhere"


def test_functions_of_this_package_are_not_rewritten() -> None:
    """Also those that a class of one's own inherits."""

    class Own(wr.Variance):
        pass

    assert reason(Own("x")) == "its lift is one of windrow's that checks values as Python does"


def test_texts_travel_with_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """To where no file has them."""
    travelled = Own("x", offset=4.0)
    keep_texts(travelled)

    def unknown(_: Any) -> str:
        raise OSError

    monkeypatch.setattr(own, "_KNOWN", {})
    monkeypatch.setattr(inspect, "getsource", unknown)
    _rewritten.cache_clear()
    assert compiled(travelled).lift(1.0) == 5.0
    assert reason(Own("x", offset=4.0)) == "lift uses self: its text is not known"
    _rewritten.cache_clear()
