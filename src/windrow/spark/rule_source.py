"""Rules from a file that is changed in place, or from a table: a source for Spark's streams.

Its offset *is* the text of the rules, with its version. So Spark's own checkpoint says which rules
a batch had, and a batch that is done again has the same, whatever has become of the file meanwhile.
The reader runs beside the driver and is asked for the latest offset before every batch; it looks at
the file's time and size first. What cannot be read, or is being written, leaves the last text as it
is.

A table is read by the session that built the query, which listens on a socket of the file system:
a source's reader has no session of its own.
"""

import base64
import json
import os
import socket
import socketserver
import tempfile
import threading
import time
import uuid
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from windrow.rules.texts import digest, read_rules, written

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2, where that trigger then makes one batch of everything

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Not known yet."""


FORMAT = "windrow_rules"
SCHEMA = "place bigint, version string, text string"
SETTLED_SECONDS = 1.0
"""A file with a mistake that was changed more recently may be half written: it is waited for."""
_NOTHING = {"version": "", "text": ""}


class RuleSource(DataSource):
    """``file``: a file of rules; ``server``: where to ask for those of a table, and how often."""

    @classmethod
    def name(cls) -> str:
        """What ``readStream.format`` calls it."""
        return FORMAT

    def schema(self) -> str:
        """What orders texts, the version, the text."""
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """A reader of either."""
        if "server" in self.options:
            return _Reader(_Asked(self.options["server"], float(self.options["seconds"])))
        return _Reader(_File(self.options["file"]))


def registered(session: Any) -> str:
    """The name by which this session finds the source: one of its own, every time.

    Spark 4.3 refuses a session the name that another one has registered, and does not find the
    source there either.
    """
    unique = f"{FORMAT}_{uuid.uuid4().hex}"

    class Named(RuleSource):
        @classmethod
        def name(cls) -> str:
            return unique

    session.dataSource.register(Named)
    return unique


class _Text(InputPartition):
    """The one row of a batch in which rules change."""


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """``look`` tells version and text, or None where nothing can be told."""

    def __init__(self, look: "_File | _Asked") -> None:
        self._look = look
        self._last = _NOTHING
        self._fixed: list[tuple[str, str] | None] = []

    def prepareForTriggerAvailableNow(self) -> None:
        """The rules of now are in force until all that is there has been read."""
        self._fixed = [self._look()]

    def initialOffset(self) -> dict[str, str]:
        return _NOTHING

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, str]:
        """The rules as they are now; those of ``start`` where they are the same, or not there."""
        last = start if start is not None and start["text"] else self._last
        found = self._fixed[0] if self._fixed else self._look()
        if found is not None:
            now = {"version": found[0], "text": _packed(found[1])}
            if now["text"] != last["text"] or not self._look.same(last["version"], found[0]):
                last = now
        self._last = last
        return dict(last)

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        return [_Text(end)] if end["text"] and end != start else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        end = partition.value
        yield (0, end["version"], zlib.decompress(base64.b64decode(end["text"])).decode())


def _packed(text: str) -> str:
    """Small, for it is written with every batch."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


# --- a file --------------------------------------------------------------------------------------


class _File:
    """Looks at a file; None where it is not there, or not yet written to its end."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: Any = None
        self._found: tuple[str, str] | None = None

    def __call__(self) -> tuple[str, str] | None:
        try:
            if self._found is not None and _stamp(self.path) == self._seen:
                return self._found
            found = self._read()
            if found is not None and _broken(found[1]):
                rest = found[0][0] / 1e9 + SETTLED_SECONDS - time.time()
                if rest > 0:
                    time.sleep(min(rest, SETTLED_SECONDS))
                    again = self._read()
                    if again is not None and again != found and _broken(again[1]):
                        return None  # it is still being written
                    found = again
        except (OSError, UnicodeDecodeError):
            return None
        if found is None:
            return None
        self._seen, text = found
        changed = datetime.fromtimestamp(self._seen[0] / 1e9, UTC)
        name = os.path.basename(self.path)
        self._found = f"{name} {changed:%Y-%m-%dT%H:%M:%S}Z {digest(text)}", text
        return self._found

    def _read(self) -> tuple[tuple[int, int, int], str] | None:
        before = _stamp(self.path)
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        return (before, text) if text.strip() and _stamp(self.path) == before else None

    @staticmethod
    def same(before: str, now: str) -> bool:
        """The same text is the same version, whenever it was written."""
        return True


def _broken(text: str) -> bool:
    return any(rule.error is not None for rule in read_rules(text))


def _stamp(path: str) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


# --- a table -------------------------------------------------------------------------------------


class _Asked:
    """Asks for a table's rules, at most every so many seconds."""

    def __init__(self, server: str, seconds: float) -> None:
        self.server, self.seconds = server, seconds
        self._next = 0.0
        self._found: tuple[str, str] | None = None

    def __call__(self) -> tuple[str, str] | None:
        if time.monotonic() < self._next:
            return self._found
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(self.server)
                found = json.loads(connection.makefile("rb").read() or b"null")
            except (OSError, ValueError):
                found = None
        self._next = time.monotonic() + self.seconds
        self._found = None if found is None else (found[0], found[1])
        return self._found

    @staticmethod
    def same(before: str, now: str) -> bool:
        """A table says itself which version it is."""
        return before == now


class _Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        table = self.server.table  # type: ignore[attr-defined]
        try:
            answer = table()
        except Exception:  # being replaced, or gone for a moment: the last rules stay
            answer = None
        self.wfile.write(json.dumps(answer).encode())


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def serve(read: Callable[[], Any]) -> str:
    """Answer with the rules of a table whenever asked; where to ask. Lives as the process does."""
    folder = tempfile.TemporaryDirectory(prefix="windrow-rules-")  # only this user may enter
    server = _Server(f"{folder.name}/socket", _Answer)
    server.table = lambda: text_of(read())  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True, name="windrow rules").start()
    weakref.finalize(server, folder.cleanup)
    return f"{folder.name}/socket"


def text_of(table: Any) -> tuple[str, str]:
    """A table of rules as a text, in order of their names, with its version."""
    names = [name for name in ("name", "when", "until", "version") if name in table.columns]
    rows = [row.asDict() for row in table.select(*names).collect()]
    versions = [str(row.pop("version")) for row in rows if row.get("version") is not None]
    for row in rows:
        row.pop("version", None)
    rows.sort(key=lambda row: (str(row["name"]), str(row["when"])))
    text = written(rows) or "# no rules"
    return max(versions, default=f"table {digest(text)}"), text
