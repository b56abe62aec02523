"""Hypothesis: values for any aggregate, and a state machine that compares a window with Recalc."""

from decimal import Decimal
from typing import Any

from windrow.aggregates import Aggregate, as_aggregate
from windrow.testing.corpus import choosy_input
from windrow.testing.oracle import Twin
from windrow.windows import Window

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "windrow.testing.strategies needs hypothesis: pip install hypothesis"
    ) from error

FLOATS = st.one_of(
    st.floats(),
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, -0.0, 1e15, -1e18, 1.7e308, -1.7e308, 5e-324, 1e20, -1e20]),
)
INTEGERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9), st.booleans())
DECIMALS = st.decimals(
    min_value=Decimal(-(10**9)), max_value=Decimal(10**9), allow_nan=False, places=4
)


def _runs(kind: str) -> "list[st.SearchStrategy[Any]]":
    """Strategies for one window's values: values of one run can be combined with each other."""
    numbers = [FLOATS, INTEGERS, st.one_of(FLOATS, INTEGERS), DECIMALS]
    if kind == "number":
        return numbers
    if kind == "positive":
        return [st.floats(0, 1e300), st.integers(1, 10**6)]
    if kind == "integer":
        return [st.integers(-(2**63), 2**63 - 1), st.integers(0, 7)]
    if kind == "boolean":
        return [st.booleans()]
    if kind in ("string", "bytes", "text"):
        texts = {"string": st.text(max_size=3), "bytes": st.binary(max_size=3)}
        return [texts[kind]] if kind in texts else list(texts.values())
    return [*numbers, st.text(max_size=2), st.dates(), st.tuples(st.integers(0, 3))]


def values(aggregate: Aggregate) -> "st.SearchStrategy[st.SearchStrategy[Any]]":
    """A strategy of strategies: draw one per window, then values from it; some are missing."""
    kinds = aggregate.input_kinds or ("any",)
    if len(kinds) == 1:
        choices = [st.one_of(st.none(), s) if i else s for i, s in enumerate(_runs(kinds[0]))]
        return st.sampled_from(choices)
    if set(kinds) == {"number"}:
        runs = [(FLOATS, FLOATS), (INTEGERS, INTEGERS), (DECIMALS, FLOATS), (FLOATS, INTEGERS)]
        return st.sampled_from([st.tuples(*run) for run in runs])
    place = choosy_input(kinds)
    anything = st.one_of(st.none(), st.integers(0, 9), st.text(max_size=2))
    before, after = [anything] * place, [anything] * (len(kinds) - 1 - place)
    return st.sampled_from([st.tuples(*before, s, *after) for s in _runs(kinds[place])])


def window_machine(
    algorithm: type[Window],
    aggregate: Aggregate | type[Aggregate],
    source: "st.SearchStrategy[Any] | None" = None,
) -> type[RuleBasedStateMachine]:
    """A state machine that runs random programs on a window and on Recalc, and compares them.

    ``source`` draws the values that your aggregate takes; built-in ones know theirs. Give the
    machine to ``hypothesis.stateful.run_state_machine_as_test``, or take its ``TestCase``.
    """
    checked = as_aggregate(aggregate)
    sources = values(checked) if source is None else st.just(source)

    class Machine(RuleBasedStateMachine):
        @initialize(source=sources)
        def start(self, source: Any) -> None:
            self.twin = Twin(algorithm, checked)
            self.source = source

        @rule(data=st.data(), n=st.integers(1, 6))
        def insert(self, data: Any, n: int) -> None:
            for _ in range(n):
                self.twin.insert(data.draw(self.source))
                self.twin.compare(query=False)

        @rule(data=st.data(), n=st.integers(1, 4), query=st.booleans())
        def slide(self, data: Any, n: int, query: bool) -> None:
            for _ in range(n):
                if len(self.twin.oracle):
                    self.twin.evict()
                self.twin.insert(data.draw(self.source))
                self.twin.compare(query)

        @rule(n=st.integers(1, 5))
        def evict(self, n: int) -> None:
            for _ in range(min(n, len(self.twin.oracle))):
                self.twin.evict()
                self.twin.compare(query=False)

        @rule(n=st.integers(0, 20))
        def bulk_evict(self, n: int) -> None:
            self.twin.bulk_evict(min(n, len(self.twin.oracle)))

        @rule()
        def reload(self) -> None:
            self.twin.reload()

        @rule()
        def query(self) -> None:
            self.twin.compare()

        @invariant()
        def holds(self) -> None:
            if hasattr(self, "twin"):
                self.twin.compare(query=False)

        def teardown(self) -> None:
            if hasattr(self, "twin"):
                self.twin.compare()

    Machine.__name__ = f"{algorithm.__name__}_{type(checked).__name__}"
    return Machine
