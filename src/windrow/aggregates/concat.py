"""Texts one after the other: the smallest aggregate in which order matters."""

from typing import Any, Unpack

from windrow.aggregates.base import Aggregate, Options
from windrow.aggregates.schema import Schema
from windrow.aggregates.values import canonical
from windrow.errors import BadSpecification, BadValue


class Concat(Aggregate):
    """The window's strings (or bytes) joined in order, with ``separator`` between them.

    The partial grows with the window: this is a holistic aggregate.

    >>> import windrow as wr
    >>> window = wr.windows.DabaLite(wr.Concat(separator="-"))
    >>> for word in ["a", "b", "c"]:
    ...     window.insert(word)
    >>> window.evict()
    >>> window.query()
    'b-c'
    """

    kind = "holistic"
    invertible = True
    reproducible = True
    inputs = ("text",)
    schema = Schema.single("value", "text")

    def __init__(
        self, *columns: str, separator: str | bytes = "", **options: Unpack[Options]
    ) -> None:
        if not isinstance(separator, (str, bytes)):
            raise BadSpecification(f"separator is a str or bytes, not {separator!r}")
        super().__init__(*columns, **options)
        self.separator = separator
        if separator:
            self.inputs = ("string",) if isinstance(separator, str) else ("bytes",)

    def options(self) -> dict[str, Any]:
        """The separator, where there is one."""
        return {k: v for k, v in super().options().items() if k == "separator" and v}

    @staticmethod
    def family(value: Any) -> Any:
        """Strings or bytes, not both."""
        return type(canonical(value))

    def lift(self, value: Any) -> Any:
        """A text is its own partial."""
        wanted = (type(self.separator),) if self.separator else (str, bytes)
        value = canonical(value)
        if type(value) in wanted:
            return value
        raise BadValue(
            f"Concat joins {' or '.join(t.__name__ for t in wanted)}, got {value!r} "
            f"({type(value).__name__}): convert it first"
        )

    def combine(self, a: Any, b: Any) -> Any:
        """One after the other."""
        return a + self.separator + b if self.separator else a + b

    def inverse(self, total: Any, oldest: Any) -> Any:
        """Cut the prefix off."""
        return total[len(oldest) + len(self.separator) :]
