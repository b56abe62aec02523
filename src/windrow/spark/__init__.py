"""Spark: the same specification on tables and streams. The only package that imports pyspark."""

import importlib.util
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from windrow import java
from windrow.version import __version__

for _needed in ("pyspark", "pandas"):
    if importlib.util.find_spec(_needed) is None:
        raise ImportError(
            f"windrow.spark needs {_needed}, which is not installed: pip install 'windrow[spark]'",
            name=_needed,
        )
java.provide()


def apply(spec: Any, df: Any, **options: Any) -> Any:
    """A specification on a Spark table, or on a stream."""
    from windrow.spark import streams, tables

    return (streams if _is_stream(df, options) else tables).apply(spec, df, **options)


def explain(spec: Any, df: Any, **options: Any) -> str:
    """What is done on a Spark table, or on a stream, and why."""
    from windrow.spark import streams, tables

    if _is_stream(df, options):
        return streams.explain(spec, df, **options)
    return tables.explain(spec, df, **options)


def _is_stream(df: Any, options: dict[str, Any]) -> bool:
    """Whether rows never end; schema= is for pipelines of tables, which must not be asked."""
    return options.get("schema") is None and bool(df.isStreaming)


def table_settings() -> dict[str, str]:
    """Settings with which rows of tables cross to Python faster; see ``docs/spark.md``."""
    from windrow.spark import stream_state

    return stream_state.table_settings()


def stream_settings(buckets: int = 8) -> dict[str, str]:
    """Settings that streams need, or are better off with; see ``docs/streaming.md``."""
    from windrow.spark import stream_state

    return stream_state.stream_settings(buckets)


def rules(stream: Any, source: Any, **options: Any) -> Any:
    """Events of rules that start and stop for the keys of a stream; see ``docs/stream_rules.md``.

    ``source``: a list of (name, when) and (name, when, until) as ``wr.Rules`` has them; a file
    (TOML or JSON lines) that may be changed in place; a folder of such files, of which the newest
    is in force; a function that reads a table with columns ``name``, ``when`` and perhaps ``until``
    and ``version``, called again every ``reread``; or a streaming DataFrame with columns
    ``version`` and ``text``. ``key``, ``time``, ``tie``, ``lateness`` are those of
    ``wr.Rolling``, ``buckets``, ``flush``, ``idle_after`` and ``history`` those of streams.
    ``longest``: how far back rules may look, now and later. ``version``: of a list. ``features``:
    windowed aggregates by name, as ``wr.Rules`` has them.
    """
    from windrow.spark import stream_rules

    return stream_rules.apply(stream, source, **options)


def History(rows: Any, until: Any) -> Any:
    """Rows from before a stream, ``features(stream, history=...)``; see ``docs/streaming.md``."""
    from windrow.spark import stream_history

    return stream_history.History(rows, until)


def history(checkpoint: str, schema: Any, session: Any = None) -> Any:
    """What a stopped stream's state keeps, as the start of another; see ``docs/streaming.md``."""
    from windrow.spark.stream_history import from_checkpoint

    return from_checkpoint(checkpoint, schema, session)


def state(checkpoint: str, session: Any = None) -> Any:
    """What the state of a stream holds, read from outside: a ``stream_state.StreamState``."""
    from windrow.spark import stream_state

    return stream_state.state(checkpoint, session)


def lookup(checkpoint: str, key: Any, features: Any = None, session: Any = None) -> Any:
    """The answers of one key as of the frontier, from a stream's state: a ``serving.Current``.

    Exact: what a row at the frontier's time would be told of the rows before it. The stream may be
    running; it is a Spark job over one bucket's state, so it takes a second, not a millisecond.
    ``key``: the value, or a tuple for several columns. ``features``: the specification; needed for
    aggregates of your own, ``min_rows``, and what answers are called by an alias or ``where``,
    which the state does not know. Counters (``ApproxCount``, ``ApproxSum``) are left out: they
    answer rows, and a look is none.
    """
    from windrow.spark import state_lookup

    return state_lookup.lookup(checkpoint, key, features, session or _active())


def metrics(session: Any, port: int = 0, host: str = "127.0.0.1") -> Any:
    """Serve what all streams of a session report, as Prometheus reads it; ``.url`` says where."""
    from windrow.spark.progress import Metrics

    return Metrics(session, port, host)


def parse(df: Any, schema: Any, format: str = "json", **options: Any) -> tuple[Any, Any]:
    """Messages as (good, bad): rows, and messages with the ``reason`` why they are none."""
    from windrow.spark import messages

    return messages.parse(df, schema, format, **options)


def _active() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.active()


def __getattr__(name: str) -> Any:
    if name == "RedisSink":  # loaded when used
        from windrow.spark.redis_sink import RedisSink

        return RedisSink
    raise AttributeError(f"module 'windrow.spark' has no attribute {name!r}")


def ship(session: Any) -> None:
    """Make windrow available to executors that lack it, for this session.

    Its files are sent along as a zip; NumPy, PyArrow and numba must be there. Kernels are then
    compiled once on every executor: for more than a try, install the package there.
    """
    package = Path(__file__).parent.parent
    folder = Path(tempfile.mkdtemp(prefix="windrow-"))
    path = folder / f"windrow-{__version__}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(package.rglob("*.py")):
            archive.write(file, file.relative_to(package.parent))
    session.addArtifacts(str(path), pyfile=True)
