"""A pipeline file read: its text, its values with ``${NAME}`` filled in, and where each stands."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from windrow.errors import WindrowError
from windrow.pipeline.declaration import PIPELINE
from windrow.pipeline.kinds import checked
from windrow.pipeline.lines import Path, line_at, lines_of
from windrow.pipeline.problems import Problem

_VARIABLE = re.compile(r"\$(\$?)\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(
    r"passw(or)?d|passwd|secret|token|credential|(api|access|account|private)[._-]?key|jaas", re.I
)
_NOT_SECRET = re.compile(r"(location|path|file|type|class|url|enabled|provider)$", re.I)
_SHOWN = ("kafka.bootstrap.servers", "subscribe", "topic", "path", "url", "header", "sep")
"""Options that are no secrets, wherever their values come from."""
_IN_ADDRESS = re.compile(r"://[^/\s:@]+:([^/\s@]+)@")
_PLACE = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


class BadPipeline(WindrowError, ValueError):
    """A pipeline file with mistakes, all of which are told."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file, self.problems = file, problems
        super().__init__("\n".join(problem.shown(file) for problem in problems))


@dataclass
class Document:
    """A file that could be read as TOML."""

    file: str
    folder: FilePath
    data: dict[str, Any]
    lines: dict[Path, int]
    problems: list[Problem] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    """What variables held: never shown again."""

    def add(self, problem: Problem) -> None:
        """Note a problem, with its line, and without what variables held."""
        line = line_at(self.lines, problem.path)
        problem = replace(problem, line=line, message=self.redacted(problem.message))
        if problem not in self.problems:
            self.problems.append(problem)

    def say(self, path: Path, message: str, warning: bool = False) -> None:
        """Note that something is wrong at a place."""
        self.add(Problem(path, message, warning))

    @property
    def mistakes(self) -> list[Problem]:
        """The problems that keep it from running, in the order of the file."""
        return _sorted(problem for problem in self.problems if not problem.warning)

    @property
    def warnings(self) -> list[Problem]:
        """The problems that do not."""
        return _sorted(problem for problem in self.problems if problem.warning)

    def has_mistake(self, *paths: Path) -> bool:
        """Whether something is wrong at one of these places, or inside it."""
        return any(p.path[: len(path)] == path for p in self.mistakes for path in paths)

    def redacted(self, text: str) -> str:
        """A text without what variables held."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    def local(self, path: str) -> str:
        """A path relative to the file, as one that holds everywhere; addresses stay as they are."""
        if "://" in path or path.startswith(("dbfs:", "file:")):
            return path
        return str(self.folder / FilePath(path).expanduser())


def _sorted(problems: Iterator[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: problem.line or 0)


def read(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Document:
    """The file, with what is wrong with its keys and values noted; raises where it is no TOML."""
    file = os.fspath(path)
    text = _text(file)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadPipeline(file, [_explained(text, error)]) from None
    folder = FilePath(file).resolve().parent
    document = Document(file, folder, data, lines_of(text))
    _note_secrets(document)
    document.data = _filled(document, data, (), os.environ if environment is None else environment)
    for problem in checked(document.data, PIPELINE):
        document.add(problem)
    return document


def _text(file: str) -> str:
    try:
        return FilePath(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        near = sorted(p.name for p in (FilePath(file).parent).glob("*.toml"))[:3]
        there = f" There are {', '.join(near)} in that folder." if near else ""
        message = f"there is no such file.{there} `windrow init DATA` writes one from a data file"
    except IsADirectoryError:
        message = "this is a folder; give the pipeline file in it"
    except PermissionError:
        message = "no permission to read the file: look at its owner and mode"
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8 text (byte {error.start}): save it as UTF-8"
    raise BadPipeline(file, [Problem((), message)])


def _explained(text: str, error: tomllib.TOMLDecodeError) -> Problem:
    place = _PLACE.search(str(error))
    reason = _PLACE.sub("", str(error)).strip()
    if place is None or place[1] is None:
        return Problem((), f"not valid TOML: {reason} at the end; is a quote or bracket left open?")
    line, column = int(place[1]), int(place[2])
    content = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
    hint = _hint(content, column, reason)
    return Problem((), f"not valid TOML: {reason}, at {content.strip()!r}{hint}", line=line)


def _hint(content: str, column: int, reason: str) -> str:
    value = content[column - 1 :].strip()
    if reason.startswith("Invalid value") and re.match(r"[A-Za-z./~]", value):
        word = re.split(r"\W", value)[0]
        if word.lower() in ("true", "false"):
            return f". Write {word.lower()}, in small letters"
        if word in ("None", "null"):
            return ". TOML has no null: leave the key out"
        return ". Texts stand in quotes"
    if "overwrite" in reason or "twice" in reason:
        return ". The key is there twice: remove one"
    if reason.startswith("Cannot declare"):
        return ". The table is there twice: put its keys together"
    if reason.startswith("Expected '='"):
        return ". A line is: key = value"
    return ""


def _note_secrets(document: Document) -> None:
    for path, text in _texts(document.data, ()):
        name = next((str(part) for part in reversed(path) if isinstance(part, str)), "")
        if _VARIABLE.search(text):
            continue
        if "options" in path or "settings" in path:
            said = _SECRET.search(name) and not _NOT_SECRET.search(name)
        else:
            said = None
        if said or _IN_ADDRESS.search(text):
            word = re.sub(r"\W+", "_", name.rpartition(".")[2]).upper()
            document.say(
                path,
                "this looks like a secret, and files are copied and kept: write "
                f'"${{{word}}}" here, and set the environment variable {word}',
            )


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for name, held in value.items():
            yield from _texts(held, (*path, name))
    elif isinstance(value, list):
        for index, held in enumerate(value):
            yield from _texts(held, (*path, index))
    elif isinstance(value, str):
        yield path, value


def _filled(document: Document, value: Any, path: Path, environment: Mapping[str, str]) -> Any:
    """The value with variables filled in; ``$${`` stands for ``${`` itself."""
    if isinstance(value, dict):
        return {k: _filled(document, v, (*path, k), environment) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(document, v, (*path, i), environment) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def content(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        name = match[2]
        if not _NAME.fullmatch(name):
            document.say(path, f"${{{name}}} is not the name of an environment variable")
        elif name not in environment:
            document.say(path, f"the environment variable {name} is not set: export {name}=…")
        else:
            hidden = ("options" in path or "settings" in path) and path[-1] not in _SHOWN
            if len(environment[name]) > 2 and hidden:
                document.secrets.add(environment[name])
            return environment[name]
        return match[0]

    return _VARIABLE.sub(content, value)
