"""How values are spread over categories: how often each occurs, the most frequent, the entropy.

The partial is a run of distinct values in order, NaN last, and how often each occurs: it grows with
the number of different values. These are holistic aggregates.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Unpack

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Field, Schema
from windrow.aggregates.sorted_runs import Run, before_nan
from windrow.aggregates.values import canonical, order_family
from windrow.errors import BadSpecification, BadValue

Counted = tuple[Run, tuple[int, ...]]


def counted(run: Iterable[Any]) -> Counted:
    """A sorted run, NaN last, as distinct values and how often each occurs."""
    values: list[Any] = []
    times: list[int] = []
    for value in run:
        if values and (value == values[-1] or (value != value and values[-1] != values[-1])):
            times[-1] += 1
        else:
            values.append(value)
            times.append(1)
    return tuple(values), tuple(times)


def _added(a: Counted, b: Counted) -> Counted:
    """Of equal values that of ``a``."""
    i, j = before_nan(a[0]), before_nan(b[0])
    total = dict(zip(a[0][:i], a[1], strict=False))
    for value, n in zip(b[0][:j], b[1], strict=False):
        total[value] = total.get(value, 0) + n
    pairs = total.items() if len(total) == i else sorted(total.items())
    values, times = zip(*pairs, strict=True) if pairs else ((), ())
    nan = a[0][i:] or b[0][j:]
    return (values + nan, (*times, sum(a[1][i:]) + sum(b[1][j:]))) if nan else (values, times)


class Categories(Aggregate):
    """What Mode, Entropy and Histogram share."""

    kind = "holistic"
    commutative = True
    reproducible = True
    inputs = ("orderable",)
    schema = Schema((Field("values", "value"), Field("times", "value")))

    @staticmethod
    def family(value: Any) -> Any:
        """What can be ordered together, and hashed."""
        try:
            hash(value)
        except TypeError:
            raise BadValue(f"{value!r} cannot be hashed: use a tuple, a text or a number") from None
        return order_family(value)

    @staticmethod
    def lift(value: Any) -> Counted:
        """One value, once."""
        return ((canonical(value),), (1,))

    @staticmethod
    def combine(a: Counted, b: Counted) -> Counted:
        """All values of both."""
        return _added(a, b)


class Mode(Categories):
    """The most frequent value; of several that are equally frequent, the smallest.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.Mode())
    >>> [window.insert(x) for x in ["b", "a", "b", "a", "c"]]
    ['b', 'a', 'b', 'a', 'a']

    All NaN are one value, the largest.
    """

    @staticmethod
    def lower(partial: Counted) -> Any:
        """The first of those that occur most often."""
        values, times = partial
        return values[times.index(max(times))]


class Histogram(Categories):
    """How often each value occurs, the most frequent first; with ``most``, at most so many.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.Histogram(most=2))
    >>> for shop in ["b", "a", "c", "b", "a"]: found = window.insert(shop)
    >>> found
    [{'value': 'a', 'count': 2}, {'value': 'b', 'count': 1}]

    Of values that occur equally often, the smallest first. All NaN are one value, the largest.
    """

    def __init__(self, *columns: str, most: int | None = None, **options: Unpack[Options]) -> None:
        good = isinstance(most, int) and not isinstance(most, bool) and most > 0
        if most is not None and not good:
            raise BadSpecification(f"Histogram: most is a number from 1 on, not {most!r}")
        super().__init__(*columns, **options)
        self.most = most

    def options(self) -> dict[str, Any]:
        """The number of values, where there is one."""
        hidden = {"most"} if self.most is None else set()
        return {k: v for k, v in super().options().items() if k not in hidden}

    def lower(self, partial: Counted) -> list[dict[str, Any]]:
        """They are in order of value, and stay so where they occur equally often."""
        found = sorted(zip(*partial, strict=True), key=lambda pair: -pair[1])
        return [{"value": value, "count": n} for value, n in found[: self.most]]


class Entropy(Categories):
    """Shannon's entropy of the window's values as categories; in bits, unless ``base`` differs.

    >>> import windrow as wr
    >>> window = wr.Sliding(wr.rows(4), wr.Entropy())
    >>> [window.insert(x) for x in ["a", "b", "a", "c"]]
    [0.0, 1.0, 0.9182958340544894, 1.5]

    Σ p·log(1/p) over the shares p of the different values: 0 where all are the same. ``base=2`` by
    default; ``base=math.e`` gives nats.
    """

    def __init__(self, *columns: str, base: float = 2, **options: Unpack[Options]) -> None:
        good = isinstance(base, (int, float)) and not isinstance(base, bool)
        if not good or not 1 < base < math.inf:
            raise BadSpecification(f"Entropy: base is a number above 1, not {base!r}")
        super().__init__(*columns, **options)
        self.base = base

    def options(self) -> dict[str, Any]:
        """The base where it is not 2."""
        hidden = {"base"} if self.base == 2 else set()
        return {k: v for k, v in super().options().items() if k not in hidden}

    def lower(self, partial: Counted) -> float:
        """Values that occur equally often are added at once, the rare ones first.

        The kernel of ``windrow.columns`` computes the same, operation by operation. log1p keeps
        what log(rows / n) would lose where nearly all rows are the same.
        """
        rows = sum(partial[1])
        total = 0.0
        for n, many in sorted(Counter(partial[1]).items()):
            total += many * (n / rows) * math.log1p((rows - n) / n)
        return total / math.log(self.base)
