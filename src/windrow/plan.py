"""Which algorithm, and why: a ladder from the special to the general."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from windrow.aggregates import Aggregate
from windrow.errors import BadSpecification, Refused
from windrow.windows import (
    ALGORITHMS,
    Amta,
    DabaLite,
    Fiba,
    MonotoneDeque,
    RunningTotal,
    SubtractOnEvict,
    TwoStacksLite,
    Window,
)

Latency = Literal["worst_case"] | None


@dataclass(frozen=True)
class Choice:
    """An algorithm with the reason it was chosen."""

    algorithm: type[Window]
    reason: str

    def __str__(self) -> str:
        card = self.algorithm.card
        return (
            f"{card.title}: {self.reason}\n"
            f"  combines: insert {card.insert}; evict {card.evict}; query {card.query}\n"
            f"  partials kept for n rows: {card.partials}"
        )


@dataclass(frozen=True)
class Rung:
    """One step of the ladder: taken when the algorithm accepts the aggregate and ``when`` holds."""

    algorithm: type[Window]
    when: Callable[[Latency], bool]
    reason: str


LADDER = (
    Rung(SubtractOnEvict, lambda latency: True, "the aggregate has an exact inverse"),
    Rung(
        MonotoneDeque,
        lambda latency: latency is None,
        "the answer is always one of the rows, so only rows that can still win are kept",
    ),
    Rung(
        DabaLite,
        lambda latency: latency == "worst_case",
        "every operation must be bounded, and only associativity is promised",
    ),
    Rung(
        TwoStacksLite,
        lambda latency: True,
        "only associativity is promised; best throughput, with a rare spike of n combines",
    ),
)


def choose(
    aggregate: Aggregate,
    algorithm: Any = "auto",
    latency: Latency = None,
    policy: bool = False,
    stored: bool = False,
    late: bool = False,
    whole: str | None = None,
) -> Choice:
    """The algorithm to use: the forced one, or the first rung that can handle the aggregate.

    ``policy``: rows leave when a rule about aggregates says so. ``stored``: in a store. ``late``:
    rows enter at their place, whenever they come. ``whole``: why rows leave all at once, or never.
    """
    if latency not in (None, "worst_case"):
        raise BadSpecification(f'latency= is None or "worst_case", not {latency!r}')
    if late:
        if algorithm not in ("auto", "Fiba", Fiba):
            raise Refused(f"algorithm={algorithm!r} takes rows in order; Fiba takes late ones too")
        return Choice(Fiba, "rows enter at their place, whenever they come")
    if policy or stored:
        why = (
            "a policy looks for how many rows leave: a tree finds that in O(log n) combines"
            if policy
            else "in a store: only O(log n) of it must be at hand"
        )
        if stored and latency is not None:
            raise Refused(
                'latency="worst_case": what a store takes to read and write is not bounded'
            )
        if latency is not None:
            why += "; no operation takes more than 4·log2 n"
        if algorithm not in ("auto", "Amta", Amta):
            raise Refused(f"algorithm={algorithm!r} cannot do that; Amta can: {why}")
        return Choice(Amta, why)
    if whole is not None and algorithm == "auto":
        return Choice(RunningTotal, f"{whole}, so none is kept")
    if algorithm == "auto":
        for rung in LADDER:
            if rung.when(latency) and rung.algorithm.refuses(aggregate) is None:
                return Choice(rung.algorithm, rung.reason)
    if isinstance(algorithm, str) and algorithm in ALGORITHMS:
        algorithm = ALGORITHMS[algorithm]
    if isinstance(algorithm, type) and issubclass(algorithm, Window):
        return Choice(algorithm, "asked for by algorithm=")
    raise BadSpecification(
        f'algorithm= is "auto", or one of {", ".join(ALGORITHMS)}, not {algorithm!r}'
    )
