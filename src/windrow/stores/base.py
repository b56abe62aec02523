"""What a store does: bytes under keys, read many at once, written all or nothing."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

from windrow.errors import StoreConflict

Expected = tuple[bytes, bytes | None]
"""A key and what must be under it for a write to happen."""


class Store(ABC):
    """Byte values under byte keys.

    A store of your own has ``get_many``, ``write``, ``keys`` and ``close``; the rest follows.
    ``write`` must be atomic: after a crash, all of it happened or nothing. ``calls`` counts what
    went to the store, however many keys each call was about.
    """

    calls = 0
    windows = 0
    """How many are open in it: it is closed with the last one."""

    @abstractmethod
    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under some keys, None where there is none."""

    @abstractmethod
    def write(
        self,
        puts: Mapping[bytes, bytes],
        deletes: Iterable[bytes] = (),
        expected: Expected | None = None,
    ) -> None:
        """Write and delete, all or nothing.

        ``expected``: nothing happens, and ``StoreConflict`` is raised, unless the key holds that.
        """

    @abstractmethod
    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """All keys that begin so, in any order."""

    def close(self) -> None:  # noqa: B027  # many have nothing to let go
        """Let go of files and connections; whatever is asked next opens them again."""

    def get(self, key: bytes) -> bytes | None:
        """The value under a key."""
        return self.get_many([key])[0]

    def put(self, key: bytes, value: bytes) -> None:
        """Write one value."""
        self.write({key: value})

    def put_many(self, values: Mapping[bytes, bytes]) -> None:
        """Write some values, all or nothing."""
        self.write(values)

    def delete(self, key: bytes) -> None:
        """Delete one key; one that is not there is no error."""
        self.write({}, [key])

    def delete_many(self, keys: Iterable[bytes]) -> None:
        """Delete some keys, all or nothing."""
        self.write({}, keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def require_expected(expected: Expected | None, found: bytes | None) -> None:
    """Raise unless a key holds what it should."""
    if expected is not None and found != expected[1]:
        raise StoreConflict(
            f"another process wrote {expected[0]!r} since this one opened the window: only one may "
            "have a window open. Close the other, and open this one again"
        )


class Memory(Store):
    """A dict: for tests, and to see what a store would be asked."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under some keys."""
        self.calls += 1
        return [self.data.get(key) for key in keys]

    def write(
        self,
        puts: Mapping[bytes, bytes],
        deletes: Iterable[bytes] = (),
        expected: Expected | None = None,
    ) -> None:
        """Write and delete."""
        self.calls += 1
        if expected is not None:
            require_expected(expected, self.data.get(expected[0]))
        self.data.update(puts)
        for key in deletes:
            self.data.pop(key, None)

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """All keys that begin so."""
        self.calls += 1
        return iter([key for key in self.data if key.startswith(prefix)])
