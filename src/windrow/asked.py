"""Windows and aggregates as a person gives them, and which aggregate is over which window."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from windrow.aggregates import Aggregate, ApproxCount, Count, Several, as_aggregate
from windrow.errors import BadSpecification
from windrow.slides import Kept, Spec, WindowSpec, as_window

_COUNTS = (Count, ApproxCount)
"""What counts rows: of a column, those where it is not missing."""


def named_windows(given: Any) -> dict[str, WindowSpec]:
    """Windows by name: a list of them, a dict, or one."""
    if isinstance(given, Mapping):
        found = {str(name): as_window(window) for name, window in given.items()}
    else:
        alone = isinstance(given, (str, Spec)) or not isinstance(given, Iterable)
        listed = [given] if alone else list(given)
        windows = [as_window(window) for window in listed]
        found = {window.label: window for window in windows}
        if len(found) < len(windows):
            raise BadSpecification(
                "two windows have the same name: give them as a dict {name: window}"
            )
    return found


def check_policies(name: str, window: WindowSpec) -> None:
    """Raise where a policy is about an aggregate of no column."""
    for policy in window.policies if isinstance(window, Kept) else ():
        for about in policy.over:
            if not about.columns and about.input_kinds:
                raise BadSpecification(
                    f"window {name!r}: {about!r} needs a column here: "
                    f'{type(about).__name__}("amount"), say'
                )


def aggregates_of(given: Any, nan: Any, overflow: Any) -> list[Aggregate]:
    """Copies of the aggregates, with what holds for all of them."""
    if isinstance(given, Mapping):
        raise BadSpecification(
            'aggregates= is a list, and each says its column: [windrow.Mean("price")]; '
            '.alias("usual") gives one another name'
        )
    alone = isinstance(given, (Aggregate, type, str)) or not isinstance(given, Iterable)
    listed: Iterable[Any] = [given] if alone else given
    found = []
    for item in listed:
        aggregate = copy.copy(as_aggregate(item, in_rolling=True))
        if isinstance(aggregate, Several):
            raise BadSpecification(
                "Several is for one window at a time; give Rolling its parts in the list"
            )
        if not aggregate.columns and aggregate.input_kinds:
            raise BadSpecification(
                f'{aggregate!r} needs a column here: {type(aggregate).__name__}("amount"), say'
            )
        if aggregate._where and not aggregate.columns and not isinstance(aggregate, _COUNTS):
            raise BadSpecification(
                f"{aggregate!r}: where() leaves out values of a column, and it has none"
            )
        if nan is not None:
            aggregate.nan = nan
        if overflow is not None:
            aggregate.overflow = overflow
        found.append(aggregate)
    if not found:
        raise BadSpecification("aggregates= is empty: give at least one")
    return found


def paired(
    aggregates: list[Aggregate], given: dict[str, WindowSpec]
) -> tuple[dict[str, WindowSpec], list[tuple[Aggregate, str]]]:
    """All windows by name, and which aggregate is over which, window by window."""
    windows, labels = dict(given), {}
    for aggregate in aggregates:
        labels[id(aggregate)] = [_label(one, windows, aggregate) for one in aggregate._over]
        if not aggregate._over:
            if not given:
                raise BadSpecification(
                    f"{aggregate!r} has no window: windows= is empty, and it has no .over(...)"
                )
            labels[id(aggregate)] = list(given)
        aggregate._over = ()
    pairs = [(a, label) for label in windows for a in aggregates if label in labels[id(a)]]
    for label in windows:
        if all(label != used for _, used in pairs):
            raise BadSpecification(
                f"window {label!r} is used by no aggregate: all of them say .over(...) others"
            )
    return windows, pairs


def _label(one: Any, windows: dict[str, WindowSpec], aggregate: Aggregate) -> str:
    """The name of a window that an aggregate asks for, which is noted if it is new."""
    if isinstance(one, str) and one in windows:
        return one
    try:
        window = as_window(one)
    except BadSpecification as error:
        names = ", ".join(map(repr, windows))
        near = f"no window has this name ({names}), and " if isinstance(one, str) and names else ""
        raise BadSpecification(f"{aggregate!r}.over({one!r}): {near}{error}") from None
    for label, known in windows.items():
        if known == window:
            return label
    if window.label in windows:
        raise BadSpecification(
            f"{aggregate!r}.over({one!r}): another window is called {window.label!r}: give "
            "windows= as a dict of names, and say the name"
        )
    windows[window.label] = window
    return window.label
