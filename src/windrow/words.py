"""Words for people: texts of several lines, and what arguments are called elsewhere."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec

P = ParamSpec("P")


class Lines(str):
    """A text of several lines, which shells and notebooks show as it would be printed.

    >>> Lines("one\\ntwo")
    one
    two
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str.__str__(self)


_ELSEWHERE = {
    "key": "by group_by groupby keys over partition_by partitionby",
    "time": "on order_by orderby index_column timestamp ts",
    "windows": "window period size window_size frame",
    "aggregates": "agg aggs aggregate aggregations functions",
    "min_rows": "min_periods min_samples",
    "lateness": "watermark delay",
    "phi": "q quantile percentile p",
    "method": "interpolation",
}
_OURS = {word: ours for ours, words in _ELSEWHERE.items() for word in words.split()}
_ELSEWHERE_HERE = {
    "closed": 'a window has it, wr.time("1h", closed="left")',
    "center": "a window has it, wr.rows(3, after=2)",
    "ending": 'a window has it, wr.time("1h", ending="10m")',
    "after": 'a window has it, wr.time("1h", after="5m")',
    "within": 'a window has it, wr.rows(100, within="30d")',
    "alias": 'a method has it, wr.Mean("amount").alias("usual")',
    "name": 'a method has it, wr.Mean("amount").alias("usual")',
    "where": 'a method has it, wr.Count().where("status", "refused")',
    "filter": 'where() has it, wr.Count().where("status", "refused")',
    "column": 'it is given without a word, wr.Mean("amount")',
    "columns": 'they are given without a word, wr.Correlation("x", "y")',
}


def meant_argument(word: str, known: Iterable[str]) -> str:
    """What to write instead of a word that no argument has; nothing where that is not clear.

    >>> meant_argument("by", ["key", "time"]), meant_argument("windwos", ["windows"])
    ('; say key=', '; say windows=')
    >>> meant_argument("center", ["windows"])
    '; a window has it, wr.rows(3, after=2)'
    """
    names = list(known)
    if _OURS.get(word.lower()) in names:
        return f"; say {_OURS[word.lower()]}="
    if word in _ELSEWHERE_HERE:
        return f"; {_ELSEWHERE_HERE[word]}"
    close = difflib.get_close_matches(word, names, 1)
    return f"; say {close[0]}=" if close else ""


def in_our_words(init: Callable[P, None]) -> Callable[P, None]:
    """A constructor that says of an argument it does not have what is called so here."""
    accepted = inspect.signature(init).parameters

    @functools.wraps(init)
    def checked(*given: P.args, **options: P.kwargs) -> None:
        for word in options:
            if word not in accepted:
                kind = type(given[0])
                known = _options_of(kind)
                others = f"; it has {', '.join(f'{name}=' for name in known)}"
                raise TypeError(
                    f"{kind.__name__} has no {word}={meant_argument(word, known) or others}"
                )
        init(*given, **options)

    return checked


def _options_of(kind: type) -> list[str]:
    """What may be given by name, to a class and those that it passes the rest on to."""
    found: dict[str, Any] = {}
    for one in kind.__mro__:
        if "__init__" in vars(one) and one is not object:
            found |= inspect.signature(vars(one)["__init__"]).parameters
    plain = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, one in found.items() if one.kind in plain and name != "self"]
