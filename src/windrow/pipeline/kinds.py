"""Kinds of values in a pipeline file: each checks a value, and writes itself as JSON schema."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from windrow.pipeline.lines import Path
from windrow.pipeline.problems import Problem, did_you_mean, nearest


class Kind(Protocol):
    """What a value may be."""

    @property
    def says(self) -> str:
        """The kind in words: "a text", "a table"."""

    def accepts(self, value: Any) -> bool:
        """Whether the value's type fits, before anything inside it is looked at."""

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """What is wrong with a value whose type fits."""

    def schema(self) -> dict[str, Any]:
        """The kind as JSON schema."""


def wrong_type(value: Any, kind: Kind, path: Path) -> Problem:
    """The value is of another kind altogether."""
    return Problem(path, f"{shown(value)} is {_said(value)}; it must be {kind.says}")


def shown(value: Any) -> str:
    """A value as it could stand in the file, shortened."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _said(value: Any) -> str:
    words = {
        bool: "true or false",
        str: "a text",
        int: "a whole number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }
    return words.get(type(value), f"a {type(value).__name__}")


@dataclass(frozen=True)
class Text:
    """A text, of any content or one of a few."""

    choices: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    pattern: str | None = None
    says: str = "a text in quotes"
    meant: Callable[[str, Iterable[str]], str | None] = nearest
    """The choice that somebody means by another word."""
    blank: bool = False
    """Whether nothing, and blanks, are a text too: a tab that separates, say."""

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, str)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        if not (self.blank or value.strip()):
            yield Problem(path, "the text is empty")
        elif self.choices and value not in self.choices:
            near = did_you_mean(value, self.choices, self.meant)
            near = near or f"; known are {', '.join(map(repr, self.choices))}"
            yield Problem(path, f"{value!r} is not known{near}")

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        out: dict[str, Any] = {"type": "string"}
        if self.choices:
            out["enum"] = list(self.choices)
        elif not self.blank:
            out["minLength"] = 1
        if self.examples:
            out["examples"] = list(self.examples)
        if self.pattern:
            out["pattern"] = self.pattern
        return out


@dataclass(frozen=True)
class Whole:
    """A whole number, perhaps with a least value."""

    least: int | None = None

    @property
    def says(self) -> str:
        """See ``Kind``."""
        return "a whole number" if self.least is None else f"a whole number from {self.least} on"

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, int) and not isinstance(value, bool)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        if self.least is not None and value < self.least:
            yield Problem(path, f"{value} is too small; it must be {self.says}")

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        return {"type": "integer", **({} if self.least is None else {"minimum": self.least})}


@dataclass(frozen=True)
class Number:
    """A number, whole or not."""

    says: str = "a number"

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, int | float) and not isinstance(value, bool)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        yield from ()

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        return {"type": "number"}


@dataclass(frozen=True)
class Truth:
    """True or false."""

    says: str = "true or false, without quotes"

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, bool)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        yield from ()

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class Listing:
    """A list of values of one kind."""

    of: Kind
    least: int = 0
    most: int | None = None

    @property
    def says(self) -> str:
        """See ``Kind``."""
        if self.least == self.most:
            return f"a list of {self.least}, each {self.of.says}"
        return f"a list, each {self.of.says}"

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, list)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            exact = self.least == self.most
            wanted = f"{self.least}" if exact else f"at least {self.least}"
            yield Problem(path, f"the list has {len(value)} elements; it needs {wanted}")
        for index, element in enumerate(value):
            yield from checked(element, self.of, (*path, index))

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        out: dict[str, Any] = {"type": "array", "items": self.of.schema()}
        if self.least:
            out["minItems"] = self.least
        if self.most is not None:
            out["maxItems"] = self.most
        return out


@dataclass(frozen=True)
class Key:
    """A key of a table: what it holds, and what it is for."""

    kind: Kind
    doc: str
    required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Table:
    """A table with known keys, or with any keys that all hold the same kind (``others``)."""

    keys: Mapping[str, Key] = field(default_factory=dict)
    others: Kind | None = None
    exactly_one: tuple[str, ...] = ()
    """Keys of which a table has one, and only one."""
    says: str = "a table"

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return isinstance(value, dict)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        for name, held in value.items():
            if name in self.keys:
                yield from checked(held, self.keys[name].kind, (*path, name))
            elif self.others is not None:
                yield from checked(held, self.others, (*path, name))
            else:
                near = did_you_mean(name, self.keys) or f"; known are {', '.join(self.keys)}"
                yield Problem((*path, name), f"there is no such key here{near}")
        missing = [name for name, key in self.keys.items() if key.required and name not in value]
        unknown = [name for name in value if name not in self.keys]
        for name in missing:
            if not did_you_mean(name, unknown):  # else the misspelt key was told already
                wanted = self.keys[name]
                yield Problem(path, f"{name} is missing: {wanted.doc}")
        given = [name for name in self.exactly_one if name in value]
        misspelt = any(did_you_mean(name, self.exactly_one) for name in unknown)
        if self.exactly_one and len(given) != 1 and not misspelt:
            said = "none of them" if not given else " and ".join(given)
            yield Problem(path, f"give one of {', '.join(self.exactly_one)}; there is {said}")

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        properties = {}
        for name, key in self.keys.items():
            written = {"description": key.doc, **key.kind.schema()}
            if key.default is not None:
                written["default"] = key.default
            properties[name] = written
        out: dict[str, Any] = {"type": "object", "properties": properties}
        out["additionalProperties"] = False if self.others is None else self.others.schema()
        required = [name for name, key in self.keys.items() if key.required]
        if required:
            out["required"] = required
        if self.exactly_one:
            out["oneOf"] = [{"required": [name]} for name in self.exactly_one]
        return out


@dataclass(frozen=True)
class Either:
    """One of several kinds, told apart by the type of the value."""

    kinds: tuple[Kind, ...]

    @property
    def says(self) -> str:
        """See ``Kind``."""
        return ", or ".join(kind.says for kind in self.kinds)

    def accepts(self, value: Any) -> bool:
        """See ``Kind``."""
        return any(kind.accepts(value) for kind in self.kinds)

    def problems(self, value: Any, path: Path) -> Iterator[Problem]:
        """See ``Kind``."""
        kind = next(kind for kind in self.kinds if kind.accepts(value))
        yield from kind.problems(value, path)

    def schema(self) -> dict[str, Any]:
        """See ``Kind``."""
        return {"anyOf": [kind.schema() for kind in self.kinds]}


def checked(value: Any, kind: Kind, path: Path = ()) -> Iterator[Problem]:
    """What is wrong with a value, its type included."""
    if kind.accepts(value):
        yield from kind.problems(value, path)
    else:
        yield wrong_type(value, kind, path)
