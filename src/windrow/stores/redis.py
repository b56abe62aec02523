"""Redis, on this machine or another."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from windrow.errors import BadSpecification, StoreUnavailable
from windrow.stores.base import Expected, Store, require_expected

try:
    import redis
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry
except ImportError as error:
    raise ImportError("windrow.stores.Redis needs redis: pip install 'windrow[stores]'") from error

_GONE = (redis.ConnectionError, redis.TimeoutError)
_SCANNED_AT_ONCE = 1000
T = TypeVar("T")


class Redis(Store):
    """A Redis server (or one that speaks its protocol).

    A call that finds no server is tried again ``retries`` times, longer and longer apart, and then
    raises ``StoreUnavailable``; nothing is lost by that, and the next call tries again. What
    survives the *server's* end is the server's affair: switch on its append-only file.
    """

    def __init__(
        self, url: str = "redis://127.0.0.1:6379/0", *, retries: int = 4, timeout: float = 5.0
    ) -> None:
        self.retries = retries
        try:
            self._client = redis.Redis.from_url(
                url,
                socket_timeout=timeout,
                socket_connect_timeout=timeout,
                retry=Retry(ExponentialBackoff(cap=1.0, base=0.05), retries),
                retry_on_error=[redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError],
            )
        except ValueError as error:
            raise BadSpecification(f"Redis({url!r}): write redis://host:port/0. {error}") from error
        details = self._client.connection_pool.connection_kwargs
        self._where = f"{details.get('host', details.get('path'))}:{details.get('port', '')}"

    def _call(self, work: Callable[[], T]) -> T:
        self.calls += 1
        try:
            return work()
        except redis.ResponseError as error:  # out of memory, read only, ...
            raise StoreUnavailable(f"Redis at {self._where} refused: {error}") from error
        except _GONE as error:
            raise StoreUnavailable(
                f"Redis at {self._where} did not answer, tried {self.retries + 1} times: {error}. "
                "Nothing that was acknowledged is lost; try again when it is back"
            ) from error

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """One MGET."""
        found: list[Any] = self._call(lambda: list(self._client.mget(list(keys))))
        return found

    def write(
        self,
        puts: Mapping[bytes, bytes],
        deletes: Iterable[bytes] = (),
        expected: Expected | None = None,
    ) -> None:
        """One MULTI; deleted values are freed in the server's background (UNLINK).

        A transaction whose answer was lost is not known to have happened: it is sent again, which
        is right because it writes the same.
        """
        gone = list(deletes)

        def transaction() -> None:
            with self._client.pipeline(transaction=True) as pipe:
                if expected is not None:
                    pipe.watch(expected[0])  # type: ignore[no-untyped-call]
                    found: Any = pipe.get(expected[0])
                    if found is not None and found == puts.get(expected[0]):
                        return  # it did happen
                    require_expected(expected, found)
                pipe.multi()
                if puts:
                    pipe.mset(dict(puts))
                if gone:
                    pipe.unlink(*gone)
                pipe.execute()

        def watched() -> None:
            try:
                transaction()
            except redis.WatchError as error:  # another's write, or a connection lost: look again
                raise redis.ConnectionError(str(error)) from error

        def retried() -> None:
            retry = Retry(ExponentialBackoff(cap=1.0, base=0.05), self.retries, _GONE)
            retry.call_with_retry(watched, lambda _: None)

        self._call(retried)

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """All keys that begin so, by SCAN."""
        pattern = b"".join(b"\\" + bytes([c]) if c in b"*?[]^\\-" else bytes([c]) for c in prefix)
        seen = self._call(
            lambda: list(self._client.scan_iter(match=pattern + b"*", count=_SCANNED_AT_ONCE))
        )
        return iter(set(seen))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __repr__(self) -> str:
        return f"Redis({self._where!r})"
