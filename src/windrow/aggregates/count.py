"""How many rows."""

import operator
from typing import Any, Unpack

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Schema


class Count(Aggregate):
    """Rows in the window; with a column, those where it is not missing.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Count())
    >>> window.insert("a"); window.insert("b")
    >>> window.query()
    2
    """

    commutative = True
    invertible = True
    reproducible = True
    identity = 0
    empty = 0
    schema = Schema.single("int64", "rows")

    def __init__(self, *columns: str, **options: Unpack[Options]) -> None:
        self.columns = columns
        super().__init__(*columns, **options)

    @property
    def input_kinds(self) -> tuple[str, ...]:
        """None without a column: then every row counts."""
        return ("any",) if self.columns else ()

    @staticmethod
    def lift(*_: Any) -> int:
        """Each row is one."""
        return 1

    combine = staticmethod(operator.add)
    inverse = staticmethod(operator.sub)
