"""Names for the small jobs, as Spark's pages show them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def described(session: Any, text: str) -> Iterator[None]:
    """Jobs started inside carry this description; through Spark Connect, a tag."""
    context = _context(session)
    if context is None:
        tag = text.replace(",", "").replace(" ", "_")
        session.addTag(tag)
        try:
            yield
        finally:
            session.removeTag(tag)
        return
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)


def parallelism(session: Any) -> int:
    """How many tasks run at once, where that can be known."""
    context = _context(session)
    return _USUAL if context is None else int(context.defaultParallelism)


_USUAL = 4


def _context(session: Any) -> Any:
    """The classic session's context; None through Spark Connect."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return None
    return session.sparkContext
