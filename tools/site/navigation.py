"""The site's navigation is docs/README.md: its headings, and the pages linked in their lists."""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

from tools.site.reference import PAGES

_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#:]+)\.md\)", re.MULTILINE)


def toctree(entries: list[str], caption: str = "") -> str:
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", *head, "", *entries, "```", ""])


def add_navigation(app: Any, name: str, source: list[str]) -> None:
    """Before a page is read: the trees that make it a page with pages below it."""
    folder = Path(name).parent
    if name == app.config.root_doc:
        for caption, text in _SECTION.findall(source[0]):
            entries = [f"{title} <{place}>" for title, place in _ENTRY.findall(text)]
            if entries:
                source[0] += toctree(entries, caption)
    elif name == "docs/api":
        for page in PAGES:
            for thing in page.names:
                shown, full = f"| `{thing}` |", f"{page.module}.{thing}"
                source[0] = source[0].replace(shown, f"| {{py:obj}}`{thing} <{full}>` |", 1)
        source[0] += toctree([f"/api/{page.name}" for page in PAGES])
    elif folder.name and Path(name).name == "README":
        pages = sorted(p.stem for p in Path(app.srcdir, folder).glob("*.md") if p.stem != "README")
        source[0] += toctree(pages)


class TrimBlocks(SphinxTransform):
    """Examples end with an empty line, which doctest needs and readers do not."""

    default_priority = 200

    def apply(self, **_: Any) -> None:
        for block in self.document.findall(nodes.literal_block):
            text = block.astext().rstrip("\n")
            block.rawsource, block[:] = text, [nodes.Text(text)]


def setup(app: Any) -> dict[str, bool]:
    app.add_transform(TrimBlocks)
    app.connect("source-read", add_navigation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
