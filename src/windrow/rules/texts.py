"""Rules as files have them: TOML, or one JSON object a line. What is broken is told by its line.

    [[rule]]
    name = "busy"
    when = 'count("1m") >= 3'
    until = 'count("1m") < 2'

A part of the text that cannot be read does not keep the others from being read.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_HEADER = "[[rule]]"


@dataclass(frozen=True)
class Written:
    """A rule as it was written, and in which line it begins; or why it cannot be read."""

    line: int
    name: str
    when: str = ""
    until: str | None = None
    error: str | None = None


def read_rules(text: str) -> list[Written]:
    """All rules of a text, in order.

    >>> [(rule.line, rule.name, rule.error) for rule in read_rules('{"name": "a"}')]
    [(1, 'a', "a rule has name, when and perhaps until, all of them texts: 'when' is missing")]
    """
    lines = text.splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    found = _json_lines(lines) if first.startswith("{") else _toml_parts(lines)
    seen: dict[str, int] = {}
    out = []
    for rule in found:
        before = seen.setdefault(rule.name, rule.line) if rule.error is None else rule.line
        if before != rule.line:
            error = f"there is a rule {rule.name!r} in line {before} already"
            out.append(Written(rule.line, rule.name, error=error))
        else:
            out.append(rule)
    return out


def written(rules: Any) -> str:
    """Rules as a text that ``read_rules`` reads: pairs and triples, or mappings."""
    lines = []
    for rule in rules:
        names = ("name", "when", "until")
        fields = rule if isinstance(rule, Mapping) else dict(zip(names, rule, strict=False))
        lines.append(json.dumps({name: v for name, v in fields.items() if v is not None}))
    return "\n".join(lines)


def digest(text: str) -> str:
    """A short name for a text: another text has another one."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _json_lines(lines: list[str]) -> list[Written]:
    out = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            out.append(_rule(number, json.loads(line)))
        except ValueError as error:
            out.append(Written(number, "", error=f"this is not JSON: {error}"))
    return out


def _toml_parts(lines: list[str]) -> list[Written]:
    """Each [[rule]] by itself, so that one that is broken leaves the others alone."""
    starts = [n for n, line in enumerate(lines) if line.split("#")[0].strip() == _HEADER]
    out = []
    before = "\n".join(lines[: starts[0]] if starts else lines)
    try:
        if tomllib.loads(before):
            out.append(Written(1, "", error=f"rules begin with {_HEADER}; there is something else"))
    except tomllib.TOMLDecodeError as error:
        out.append(Written(1, "", error=f"this is not TOML: {error}"))
    for start, end in pairwise([*starts, len(lines)]):
        try:
            out.append(_rule(start + 1, tomllib.loads("\n".join(lines[start:end]))["rule"][0]))
        except tomllib.TOMLDecodeError as error:
            place = re.search(r" \(at .*\)$", str(error))
            inner = re.search(r"line (\d+)", place.group() if place else "")
            line = start + (int(inner.group(1)) if inner else 1)
            text = str(error)[: place.start()] if place else str(error)
            out.append(Written(line, "", error=f"this is not TOML: {text}"))
    return out


def _rule(line: int, fields: Any) -> Written:
    what = "a rule has name, when and perhaps until, all of them texts"
    if not isinstance(fields, dict):
        return Written(line, "", error=f"{what}: this is {fields!r}")
    name = fields.get("name")
    known = name if isinstance(name, str) else ""
    for field, value in fields.items():
        if field not in ("name", "when", "until"):
            return Written(line, known, error=f"{what}: there is no {field!r}")
        if not isinstance(value, str) or not value:
            return Written(line, known, error=f"{what}: {field!r} is {value!r}")
    for field in ("name", "when"):
        if field not in fields:
            return Written(line, known, error=f"{what}: {field!r} is missing")
    return Written(line, known, fields["when"], fields.get("until"))
