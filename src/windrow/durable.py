"""A window in a store: opened where it was left, written all or nothing, deleted without a trace.

    windrow/name/h        the head: what the window is, which rows it holds, what waits outside
    windrow/name/c n      chunks of its levels (``windows.stored_levels``, ``stores.chunks``)

A flush writes the chunks that became full, the rows of the one that is not, and the head, in one
write of the store: whoever opens the window sees all of a flush or nothing of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any
from urllib.parse import quote

from windrow.aggregates import Partial, codec
from windrow.aggregates.schema import frame, unframe
from windrow.errors import BadBytes, BadSpecification
from windrow.stores import Store
from windrow.stores.chunks import head_key
from windrow.windows import Amta
from windrow.windows.levels import BITS
from windrow.windows.stored_levels import StoredLevels

_KIND = b"H"
_OWNER = b"windrow\0"
_MOST_PENDING = 16
"""Full chunks that wait for a write."""
_DELETED_AT_ONCE = 1000


@dataclass
class Outside:
    """What a sliding window knows besides the rows in it; times are in ticks."""

    arrivals: int = 0
    example: Any = None
    """A time of the kind that rows have."""
    now: int | None = None
    seen: int | None = None
    drained: int | None = None
    families: tuple[Any, ...] = ()
    waiting: Sequence[tuple[int, int, Partial]] = ()
    ahead: Sequence[tuple[int | None, Partial]] = ()


class Durable:
    """One named window in a store."""

    def __init__(self, store: Store, name: Any, window: Amta, specification: str) -> None:
        if not isinstance(store, Store):
            raise BadSpecification(
                f'store= is a store, as in windrow.stores.Rocks("folder"), not {store!r}'
            )
        if not isinstance(name, str) or not name:
            raise BadSpecification(f"a window in a store needs a name=, not {name!r}")
        self.store, self.name, self.window = store, name, window
        self.specification = specification
        try:
            self.prefix = f"windrow/{quote(name, safe='')}/".encode()
        except UnicodeEncodeError as error:
            raise BadSpecification(f"name={name!r} is not valid Unicode") from error
        self._head_key = head_key(self.prefix)
        self.levels = StoredLevels(store, self.prefix, window.aggregate)
        self._head: bytes | None = None
        self._tried: bytes | None = None  # a head of which it is not known whether it was written
        self._written = b""
        self._writer = token_hex(8)
        self._flushes = 0
        store.windows += 1

    @property
    def full(self) -> bool:
        """Whether enough has gathered for a write."""
        return len(self.levels.pending) >= _MOST_PENDING

    def open(self) -> Outside:
        """Go on where the last flush was; a new window where there was none."""
        self._head = self.store.get(self._head_key)
        if self._head is None:
            self.levels.incarnation = token_hex(8)
            self.window.take_levels(self.levels, 0, 0)
            return Outside()
        what = f"window {self.name!r} (key {self._head_key!r})"
        reader = unframe(_KIND, _OWNER, self._head, what)
        found = codec.decode(reader)
        if found != self.specification:
            raise BadSpecification(
                f"window {self.name!r} in the store is another one. It was written as\n"
                f"  {found}\nand is opened as\n  {self.specification}\n"
                "Open it as it was, choose another name, or delete it (a policy() without name= is "
                "another one in another version of Python)"
            )
        self.levels.incarnation, *_ = codec.decode(reader)
        first, end, swept, arrivals, example, now, seen, drained, families = codec.decode(reader)
        schema = self.window.aggregate.partial_schema
        waiting_times, ahead_times = codec.decode(reader), codec.decode(reader)
        waiting, ahead = schema.read(reader), schema.read(reader)
        if reader.remaining():
            raise BadBytes(f"{what}: {reader.remaining()} bytes too many")
        counts: list[int] = []
        while (count := (end + 1 >> len(counts)) - 1) > first >> len(counts):
            counts.append(count)
        self.levels.reopen(first, end, list(swept), counts)
        self.window.take_levels(self.levels, first, end)
        return Outside(
            arrivals,
            example,
            now,
            seen,
            drained,
            families,
            [(*times, p) for times, p in zip(waiting_times, waiting, strict=True)],
            list(zip(ahead_times, ahead, strict=True)),
        )

    def flush(self, outside: Outside) -> None:
        """Write what changed; nothing is forgotten here unless the store has it."""
        window, levels = self.window, self.levels
        first, end = window.first, window.end
        puts = dict(levels.pending)
        tail = end - 1 >> BITS
        if end > first and tail in levels.chunks[0]:
            puts[levels.key(0, tail)] = levels.encoded(0, tail)
        dead = list(levels.dead(first))
        swept = list(levels.swept)
        for level, name in dead:
            swept[level] = name + 1
        inside = self._encoded(outside, first, end, tuple(swept))
        if inside == self._written:
            return  # nothing happened since
        if self._tried is not None and self.store.get(self._head_key) == self._tried:
            self._head = self._tried  # it was written, only the answer was lost
        self._flushes += 1
        who = (levels.incarnation, self._writer, self._flushes)  # no two heads are the same
        head = frame(_KIND, _OWNER, codec.encode(self.specification) + codec.encode(who) + inside)
        puts[self._head_key] = self._tried = head
        gone = [levels.key(level, name) for level, name in dead]
        self.store.write(puts, gone, expected=(self._head_key, self._head))
        self._head, self._tried, self._written = head, None, inside
        levels.pending.clear()
        levels.deleted(dead)

    def _encoded(self, outside: Outside, first: int, end: int, swept: tuple[int, ...]) -> bytes:
        schema = self.window.aggregate.partial_schema
        plain = (
            first,
            end,
            swept,
            outside.arrivals,
            outside.example,
            outside.now,
            outside.seen,
            outside.drained,
            outside.families,
        )
        parts = [
            codec.encode(plain),
            codec.encode(tuple((ticks, arrival) for ticks, arrival, _ in outside.waiting)),
            codec.encode(tuple(ticks for ticks, _ in outside.ahead)),
            schema.write([partial for _, _, partial in outside.waiting]),
            schema.write([partial for _, partial in outside.ahead]),
        ]
        return b"".join(parts)

    def delete(self) -> None:
        """Remove every key of the window; the head first, so that no half of it is ever opened."""
        self.store.write({}, [self._head_key])
        keys = list(self.store.keys(self.prefix))
        for i in range(0, len(keys), _DELETED_AT_ONCE):
            self.store.write({}, keys[i : i + _DELETED_AT_ONCE])

    def close(self) -> None:
        """Let go of the store, which is closed with its last window."""
        self.store.windows -= 1
        if not self.store.windows:
            self.store.close()
