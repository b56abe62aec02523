"""Which values are frequent, and how often they occur, without counting all of them."""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, Unpack

from windrow.aggregates import codec
from windrow.aggregates.base import Options
from windrow.aggregates.sketches import Sketch, checked_share, datasketches
from windrow.aggregates.values import canonical, order_family
from windrow.errors import BadSpecification


def _written(value: Any) -> str:
    """A value as a text: the package hashes texts itself, other objects by Python's own hash."""
    return codec.encode(canonical(value)).decode("latin-1")


def _read(text: str) -> Any:
    return codec.decode(codec.Reader(text.encode("latin-1")))


class FrequentItems(Sketch):
    """The values that may make up ``share`` of the window or more, with bounds of their counts.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.FrequentItems(share=0.4))
    >>> for x in "abracadabra": window.insert(x)
    >>> window.query()
    [{'value': 'a', 'count': 5, 'least': 5, 'most': 5}]

    The most frequent first, then the smallest. No value with at least ``share`` of the rows is
    left out; ``least`` and ``most`` surely hold the true count, and are never more than ``error``
    (default 0.01) of the rows apart. Up to ``capacity`` different values everything is exact, and
    the same in any grouping; beyond, which rare values are dropped depends on how partials were
    grouped, so this aggregate is not ``reproducible``. Values of different types, as 1 and 1.0, are
    different here.
    """

    inputs = ("orderable",)
    family = staticmethod(order_family)

    def __init__(
        self, *columns: str, share: float = 0.05, error: float = 0.01, **options: Unpack[Options]
    ) -> None:
        self.share = checked_share("FrequentItems", "share", share, 0.0, 1.0)
        self.error = checked_share("FrequentItems", "error", error, 1e-6, 0.4)
        if self.share < self.error:
            raise BadSpecification(
                f"FrequentItems: share={share!r} is less than error={error!r}: "
                "no count could tell; give a smaller error"
            )
        super().__init__(*columns, **options)

    @property
    def lg_k(self) -> int:
        """The table has two to the power of this places."""
        return max(4, math.ceil(math.log2(3.5 / self.error)))

    @property
    def capacity(self) -> int:
        """How many different values are counted exactly."""
        return 3 << self.lg_k - 2

    @property
    def error_bound(self) -> float:
        """No count's bounds are further apart than this share of the rows."""
        return 3.5 / (1 << self.lg_k)

    @property
    def approximation(self) -> str:
        """How far off, and how large."""
        return (
            f"approximate: counts within {100 * self.error_bound:.2g} % of the rows, always; exact "
            f"up to {self.capacity:,} different values, and at most that many are kept"
        )

    def lift(self, value: Any) -> bytes:
        """One value, once."""
        sketch = datasketches().frequent_strings_sketch(self.lg_k)
        sketch.update(_written(value))
        data: bytes = sketch.serialize()
        return data

    def of_run(self, values: Iterable[Any]) -> bytes:
        """The sketch of many values at once."""
        sketch = datasketches().frequent_strings_sketch(self.lg_k)
        for text, count in Counter(map(_written, values)).items():
            sketch.update(text, count)
        data: bytes = sketch.serialize()
        return data

    @staticmethod
    def combine(a: bytes, b: bytes) -> bytes:
        """Add counts; where there are too many, all are lowered, and those at nothing go."""
        read = datasketches().frequent_strings_sketch.deserialize
        sketch = read(a)
        sketch.merge(read(b))
        data: bytes = sketch.serialize()
        return data

    def lower(self, data: bytes) -> list[dict[str, Any]]:
        """Those whose count may reach the share."""
        package = datasketches()
        sketch = package.frequent_strings_sketch.deserialize(data)
        found = [
            {"value": _read(text), "count": count, "least": least, "most": most}
            for text, count, least, most in sketch.get_frequent_items(package.NO_FALSE_NEGATIVES)
            if most >= self.share * sketch.total_weight
        ]
        return sorted(found, key=_place)

    def agrees(self, a: bytes, b: bytes) -> bool:
        """As many rows, and bounds that can hold one true count, for every value."""
        package = datasketches()
        x, y = map(package.frequent_strings_sketch.deserialize, (a, b))
        known = {
            text for s in (x, y) for text, *_ in s.get_frequent_items(package.NO_FALSE_NEGATIVES)
        }
        return x.total_weight == y.total_weight and all(
            x.get_lower_bound(text) <= y.get_upper_bound(text)
            and y.get_lower_bound(text) <= x.get_upper_bound(text)
            for text in known
        )


def _place(item: dict[str, Any]) -> tuple[int, bool, Any, str]:
    value = item["value"]
    return (-item["count"], value != value, value, type(value).__name__)  # True is not 1 here
