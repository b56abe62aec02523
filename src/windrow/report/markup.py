"""HTML and JSON in which nothing that came with the data can be anything but text."""

import html
import json
from typing import Any


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """Any text as HTML, in which it is only itself."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element; attributes that are None are left out, ``class_`` is ``class``.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{name}{shown}/>")
    return Markup(f"<{name}{shown}>{joined(*children)}</{name}>")


_EMPTY = ("br", "meta", "rect", "line", "path")


def joined(*children: Any) -> Markup:
    """Several elements and texts, one after the other; lists are looked into."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, list | tuple):
            parts.append(joined(*child))
        elif child is not None:
            parts.append(text(child))
    return Markup("".join(parts))


_ESCAPED = "<>&\u2028\u2029"


def embedded(data: Any) -> Markup:
    """JSON for a script element: no text in it can end the element, or begin another.

    >>> embedded({"key": "</script>"})
    '{"key":"\\\\u003c/script\\\\u003e"}'
    """
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for sign in _ESCAPED:
        plain = plain.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(plain)
