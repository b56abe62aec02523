"""Current values by key, in Redis: written so that repeats and old rows change nothing; read fast.

Each key is a Redis hash with three fields:

    values   the columns of the row, as JSON: {"amount_sum_1h": 12.5, "count_1h": 3}
    time     the row's event time, in microseconds since 1970
    stamp    what orders rows of a key: version, time and batch, as digits that compare as texts

A row is written where its stamp is not below the one that is there. The comparison runs inside
Redis (a Lua script), so that nothing can come between reading and writing: not another task, nor an
attempt of the same task that everybody thought dead. Writes go in pipelines, one round trip for a
thousand keys. What a sink writes twice is the same twice; what comes late is not written.

A key that is gone loses its values at once, and the rest an hour later: until then its stamp keeps
older rows from coming back.
"""

import base64
import json
import time as clock
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from windrow.errors import BadSpecification, BadValue, StoreUnavailable
from windrow.times import Duration, duration, is_missing, moment

_AT_ONCE = 1000
_IN_ONE_CALL = 100  # others wait for a script: half a millisecond
_LONGEST_PAUSE = 1.0
_UPSERT = """
local written = 0
for i, key in ipairs(KEYS) do
  local stamp = ARGV[3 * i - 1]
  local known = redis.call('HGET', key, 'stamp')
  if not known or known <= stamp then
    redis.call('HSET', key, 'stamp', stamp, 'time', ARGV[3 * i])
    if ARGV[3 * i + 1] == '' then
      redis.call('HDEL', key, 'values')
      redis.call('PEXPIRE', key, 3600000)
    else
      redis.call('HSET', key, 'values', ARGV[3 * i + 1])
      if ARGV[1] ~= '0' then redis.call('PEXPIRE', key, ARGV[1]) else redis.call('PERSIST', key) end
    end
    written = written + 1
  end
end
return written
"""


def stamp_of(version: int, micros: int, batch: int) -> str:
    """Digits whose order as texts is that of (version, time, batch).

    >>> stamp_of(0, -5, 7) < stamp_of(0, 3, 0) < stamp_of(0, 3, 1) < stamp_of(1, -5, 0)
    True
    """
    return f"{version:05}.{micros + (1 << 63):020}.{batch:012}"


def key_name(prefix: str, key: Sequence[Any]) -> str:
    """The Redis key of a key: readable, and never the same for two keys of one stream.

    >>> key_name("user:", [42]), key_name("shop:", ["a:b", None])
    ('user:42', 'shop:a%3Ab:%null')
    """
    return prefix + ":".join(map(_part, key))


def _part(value: Any) -> str:
    if is_missing(value):
        return "%null"
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # finer ones would become integers
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        value += 0.0  # -0.0 and 0.0 are one key
    if isinstance(value, datetime):
        value = _utc(value).isoformat()
    return str(value).replace("%", "%25").replace(":", "%3A")


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo is None else value.astimezone(UTC)


def _plain(value: Any) -> Any:
    """What JSON has no form of its own for."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return _utc(value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise BadValue(f"{value!r} of type {type(value).__name__} cannot be written as JSON")


def _client(url: str, timeout: float) -> Any:
    try:
        import redis
    except ImportError as error:
        raise ImportError("serving needs redis: pip install 'windrow[stores]'") from error
    try:
        return redis.Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout)
    except ValueError as error:
        raise BadSpecification(f"{url!r}: write redis://host:port/0. {error}") from error


@dataclass(frozen=True)
class Upserts:
    """Writes rows as current values; made anew where it is used, it holds no connection."""

    url: str = "redis://127.0.0.1:6379/0"
    prefix: str = ""
    version: int = 0
    expire: Any = None
    """How long a key without new rows is kept, by the server's clock; None is for ever."""
    patience: Any = "30s"
    """How long a server that does not answer is tried again."""
    timeout: float = 5.0

    def __post_init__(self) -> None:
        if not isinstance(self.version, int) or not 0 <= self.version < 10**5:
            raise BadSpecification(f"version= is a number from 0 to 99999, not {self.version!r}")
        _client(self.url, self.timeout).close()
        if self.expire is not None and _milliseconds(self.expire, "expire=") < 1:
            raise BadSpecification(f"expire= is at least a millisecond, not {self.expire!r}")
        _milliseconds(self.patience, "patience=")

    def write(
        self, rows: Iterable[tuple[Sequence[Any], int, dict[str, Any] | None]], batch: int
    ) -> int:
        """Rows as (key, event time in microseconds, values); how many were not out of date.

        Without values, the key is gone.
        """
        lasts = 0 if self.expire is None else _milliseconds(self.expire, "expire=")
        client = _client(self.url, self.timeout)
        written = 0
        waiting: list[tuple[str, str, int, str]] = []
        try:
            for key, micros, values in rows:
                text = ""
                if values is not None:
                    text = json.dumps(values, default=_plain, separators=(",", ":"))
                stamp = stamp_of(self.version, micros, batch)
                waiting.append((key_name(self.prefix, key), stamp, micros, text))
                if len(waiting) == _AT_ONCE:
                    written += self._send(client, waiting, lasts)
                    waiting = []
            if waiting:
                written += self._send(client, waiting, lasts)
        finally:
            client.close()
        return written

    def _send(self, client: Any, rows: list[tuple[str, str, int, str]], lasts: int) -> int:
        """One round trip; all of it again where the server went away, which changes nothing."""
        import redis

        until = clock.monotonic() + _milliseconds(self.patience, "patience=") / 1000
        pause, tries = 0.05, 0
        gone = (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError)
        while True:
            tries += 1
            try:
                return _pipelined(client, rows, lasts)
            except gone as error:
                if clock.monotonic() + pause > until:
                    raise StoreUnavailable(
                        f"Redis at {self.url.rpartition('@')[2]} did not answer, tried {tries} "
                        f"times in {_shown(self.patience)}: {error}. Nothing is lost: the rows are "
                        "written when the query is started again with its checkpoint"
                    ) from error
            except redis.ResponseError as error:  # out of memory, read only, ...
                where = self.url.rpartition("@")[2]
                raise StoreUnavailable(f"Redis at {where} refused: {error}") from error
            clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _pipelined(client: Any, rows: list[tuple[str, str, int, str]], lasts: int) -> int:
    with client.pipeline(transaction=False) as pipe:
        pipe.script_load(_UPSERT)  # a server that was started again does not know it
        for first in range(0, len(rows), _IN_ONE_CALL):
            some = rows[first : first + _IN_ONE_CALL]
            names = [name for name, *_ in some]
            arguments = [part for _, *parts in some for part in parts]
            pipe.evalsha(_digest(), len(some), *names, lasts, *arguments)
        return sum(pipe.execute()[1:])


def _digest() -> str:
    import hashlib

    return hashlib.sha1(_UPSERT.encode()).hexdigest()  # as Redis names scripts


def _milliseconds(length: Any, what: str) -> int:
    found = duration(length, what)
    if not isinstance(found, Duration):
        raise BadSpecification(f'{what} is a length of time such as "7d", not {length!r}')
    return found.nanoseconds // 1_000_000


def _shown(length: Any) -> str:
    found = duration(length, "patience=")
    return found.label if isinstance(found, Duration) else str(found)


@dataclass(frozen=True)
class Current:
    """What a key has: its values, and the event time they are of."""

    values: dict[str, Any]
    time: datetime


class Features:
    """Reads current values; one connection pool, safe to share between threads.

    A server that is not there is ``StoreUnavailable``.
    """

    def __init__(self, url: str = "redis://127.0.0.1:6379/0", prefix: str = "") -> None:
        self.prefix = prefix
        self._where = url.rpartition("@")[2]
        self._client = _client(url, 5.0)

    def get(self, *key: Any) -> Current | None:
        """The values of a key, ``None`` where there are none; one round trip.

        A key of several columns is given as so many arguments, or as a tuple.
        """
        parts = key[0] if len(key) == 1 and isinstance(key[0], tuple) else key
        with self._asked():
            found = self._client.hmget(key_name(self.prefix, parts), "values", "time")
        return _current(found)

    def get_many(self, keys: Iterable[Any]) -> list[Current | None]:
        """The values of many keys (tuples, where a key has several columns); one round trip."""
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                parts = key if isinstance(key, tuple) else (key,)
                pipe.hmget(key_name(self.prefix, parts), "values", "time")
            with self._asked():
                answers = pipe.execute()
        return [_current(found) for found in answers]

    @contextmanager
    def _asked(self) -> Iterator[None]:
        import redis

        try:
            yield
        except redis.RedisError as error:
            raise StoreUnavailable(f"Redis at {self._where} did not answer: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _current(found: Sequence[bytes | None]) -> Current | None:
    values, time = found
    if values is None or time is None:
        return None
    return Current(json.loads(values), moment(int(time)))
