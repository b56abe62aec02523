"""On which line of a TOML text each key and value stands: ``tomllib`` does not say.

The text is one that ``tomllib`` has read, so nothing is checked here: the scanner only follows
headers, keys, strings, arrays and inline tables, and notes where each of them begins.
"""

import re

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]+")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
_LONG_BASIC = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''.*?'{3,5}", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1 on, of every table, key and element.

    >>> text = 'mode = "batch"\\n[source]\\npath = [\\n  "a.csv",\\n  "b.csv"]'
    >>> lines_of(text)[("source", "path", 1)]
    5
    """
    return _Scanner(text).scan()


def line_at(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a path, or of the nearest thing that it is in."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted, self.line = 0, 1
        self.found: dict[Path, int] = {}
        self.arrays: dict[Path, int] = {}  # how many tables an array of tables has so far

    def scan(self) -> dict[Path, int]:
        """Follow the text from its first to its last key."""
        table: Path = ()
        while self.skip():
            if self.text.startswith("[[", self.at):
                self.at += 2
                path = self.key(table=())
                count = self.arrays.get(path, 0)
                self.arrays[path] = count + 1
                table = (*path, count)
                self.found[table] = self.here()
                self.at = self.text.index("]]", self.at) + 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self.key(table=())
                self.at = self.text.index("]", self.at) + 1
            else:
                self.pair(table)
        return self.found

    def skip(self) -> bool:
        """Past blanks and comments; whether something follows."""
        blank = _BLANK.match(self.text, self.at)
        assert blank is not None
        self.at = blank.end()
        return self.at < len(self.text)

    def here(self) -> int:
        """The line of the current place."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def key(self, table: Path) -> Path:
        """A key, dotted or not; elements of arrays of tables are the last ones so far."""
        path = table
        while True:
            self.skip()
            line = self.here()
            path = (*path, self.part())
            self.found.setdefault(path, line)
            self.skip()
            if self.text[self.at] != ".":
                return path
            self.at += 1
            if path in self.arrays:
                path = (*path, self.arrays[path] - 1)

    def part(self) -> str:
        """One part of a key."""
        for pattern in (_BASIC, _LITERAL, _BARE_KEY):
            match = pattern.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                if pattern is _BARE_KEY:
                    return match[0]
                return _unescaped(match[1]) if pattern is _BASIC else match[1]
        raise AssertionError(f"no key at {self.at}")

    def pair(self, table: Path) -> None:
        """A key and its value."""
        path = self.key(table)
        self.at += 1  # the equals sign
        self.value(path)

    def value(self, path: Path) -> None:
        """A value of any kind, with the values inside it."""
        self.skip()
        opening = self.text[self.at]
        if opening == "[":
            self.elements(path)
        elif opening == "{":
            self.members(path)
        else:
            for pattern in (_LONG_BASIC, _LONG_LITERAL, _BASIC, _LITERAL, _SCALAR):
                match = pattern.match(self.text, self.at)
                if match is not None:
                    self.at = match.end()
                    return

    def elements(self, path: Path) -> None:
        """An array."""
        self.at += 1
        index = 0
        while self.skip() and self.text[self.at] != "]":
            self.found[(*path, index)] = self.here()
            self.value((*path, index))
            index += 1
            self.skip()
            self.at += self.text[self.at] == ","
        self.at += 1

    def members(self, path: Path) -> None:
        """An inline table."""
        self.at += 1
        while self.skip() and self.text[self.at] != "}":
            self.pair(path)
            self.skip()
            self.at += self.text[self.at] == ","
        self.at += 1


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if code[0] in "uU" else _ESCAPED.get(code, code)

    return _ESCAPE.sub(plain, text)
