"""Links to source files lead to pages that show them, at the line of the name that is linked."""

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from tools.site.reference import PAGES

ROOT = Path(__file__).parent.parent.parent
SHOWN = (".py", ".toml", ".sh", ".txt", "Makefile")
_NAVIGATION: dict[tuple[Any, ...], str] = {}
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def is_shown(path: Path) -> bool:
    return path.name.endswith(SHOWN) and path.is_file()


@cache
def line_of(path: Path, name: str) -> int | None:
    """The line in which a file defines a name, as a function, a class or a constant."""
    last = re.escape(name.rpartition(".")[2])
    found = re.search(rf"^ *(?:(?:def|class) {last}\b|{last}\b[^=\n(]*=)", path.read_text(), re.M)
    return None if found is None else path.read_text()[: found.start()].count("\n") + 1


def place(path: Path, name: str = "") -> str:
    """The address of a source file's page, from the site's root."""
    line = line_of(path, name) if re.fullmatch(r"[\w.]+", name) else None
    anchor = f"#line-{line}" if line else ""
    return f"source/{path.relative_to(ROOT).as_posix()}.html{anchor}"


def defined(module: str, name: str) -> Path | None:
    """The file in which a public name is defined."""
    thing: Any = importlib.import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part, None)
    thing = thing.fget if isinstance(thing, property) else thing
    try:
        file = inspect.getsourcefile(thing)
    except TypeError:  # a constant
        return None
    path = Path(file).resolve() if file else None
    return path if path and path.is_relative_to(ROOT / "src") else None


def link_to_name(module: str, name: str) -> str | None:
    """From a page of the reference."""
    path = defined(module, name)
    return None if path is None else f"../{place(path, name)}"


class SourceLinks(SphinxTransform):
    """Markdown's links to files become links to their pages."""

    default_priority = 210  # before files to download are collected

    def apply(self, **_: Any) -> None:
        for node in list(self.document.findall(addnodes.download_reference)):
            docname = self.env.docname
            path = (ROOT / Path(docname).parent / node["reftarget"]).resolve()
            if node["reftarget"].startswith("/"):
                path = (ROOT / node["reftarget"][1:]).resolve()
            if is_shown(path):
                up = "../" * docname.count("/")
                link = nodes.reference("", "", *node.children, internal=True)
                link["refuri"] = up + place(path, node.astext())
                node.replace_self(link)


def linked_files() -> Iterator[Path]:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in _LINK.findall(page.read_text()):
            path = (page.parent / target).resolve()
            if path.is_relative_to(ROOT) and is_shown(path):
                yield path
    for one in PAGES:
        for name in one.names:
            found = defined(one.module, name)
            if found is not None:
                yield found


def source_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    formatter = HtmlFormatter(linenos="inline", anchorlinenos=True, lineanchors="line")
    for path in sorted(set(linked_files())):
        shown = path.relative_to(ROOT).as_posix()
        lexer = get_lexer_for_filename(path.name)
        body = f"<h1>{shown}</h1>{highlight(path.read_text(), lexer, formatter)}"
        yield f"source/{shown}", {"title": shown, "body": body}, "page.html"


def share_navigation(app: Any, name: str, _: str, context: dict[str, Any], __: Any) -> None:
    """No source page is in the navigation: pages of one depth have the same, made once."""
    if not name.startswith("source/"):
        return
    make, depth = context["toctree"], name.count("/")

    def made(**options: Any) -> str:
        key = (depth, *sorted(options.items()))
        if key not in _NAVIGATION:
            _NAVIGATION[key] = make(**options)
        return _NAVIGATION[key]

    context["toctree"] = made


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", share_navigation, priority=400)  # before the theme's
    app.add_transform(SourceLinks)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
