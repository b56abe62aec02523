"""The fenced blocks of README.md and docs/: what each is, and how those in Python are run.

```python with >>>      a doctest: pytest runs the page
```python               run here, after the page's doctests, with a Spark session
<!-- file: name -->     the next block is a file, which later commands and imports find
<!-- prints -->         the next block is what the block before it prints
```console              commands and what they print: run
```sh                   commands: their words are checked
```toml                 a pipeline, or rules: checked
```text                 a picture, or data
"""

import contextlib
import doctest
import io
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.spark_session import SLOW

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(
    r"^(?:<!-- (?:file: (?P<file>[^>]+?)|(?P<prints>prints)) -->\n)?"
    r"(?P<indent> *)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
SAME = doctest.OutputChecker()
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NONE: dict[str, str] = {}
PATIENCE = 60
"""Seconds until a query has done its first batch; the long run waits for it."""


@dataclass(frozen=True)
class Block:
    """A fenced block, and where it stands."""

    page: str
    line: int
    language: str
    text: str
    file: str | None
    printed: bool

    @property
    def is_doctest(self) -> bool:
        return self.language == "python" and ">>> " in self.text

    @property
    def is_program(self) -> bool:
        return self.language == "python" and not self.is_doctest and self.file is None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """All blocks of a page, in order."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        yield Block(
            page.relative_to(ROOT).as_posix(),
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["text"],
            found["file"],
            bool(found["prints"]),
        )


def fences(page: Path) -> int:
    """How many fences a page has, counted without looking at what they are."""
    return len(re.findall(r"^ *```", page.read_text(), re.MULTILINE))


def run_page(page: Path, names: dict[str, Any], changes: Mapping[str, str] = NONE) -> int:
    """Run a page's programs in order, after what its doctests define; how many there were.

    ``changes`` are written into the programs: addresses of servers that a test has started.
    """
    ran, printed = 0, ""
    for block in blocks(page):
        if block.is_doctest:
            _define(block, names)
        elif block.file is not None:
            Path(block.file).parent.mkdir(exist_ok=True)
            Path(block.file).write_text(block.text)
        elif block.is_program:
            text = block.text
            for old, new in changes.items():
                text = text.replace(old, new)
            printed = _run(block, text, names)
            ran += 1
        elif block.printed:
            assert SAME.check_output(block.text, printed, LOOSE), f"{block} prints\n{printed}"
    return ran


def _run(block: Block, text: str, names: dict[str, Any]) -> str:
    place = "\n" * block.line + text  # so that a traceback names the line of the page
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(place, block.page, "exec"), names)
    return out.getvalue()


def _define(block: Block, names: dict[str, Any]) -> None:
    """A doctest's statements; what they print, pytest has compared."""
    for example in doctest.DocTestParser().get_examples(block.text):
        with contextlib.suppress(Exception) if example.exc_msg else contextlib.nullcontext():
            exec(compile(example.source, block.page, "single"), names)


@contextlib.contextmanager
def page_folder(spark: Any, folder: Path, patch: Any) -> Iterator[dict[str, Any]]:
    """Names to run a page with, in a folder of Python and of Java; no query is left behind."""
    before = Path.cwd()
    patch.chdir(folder)
    _work_in(spark, folder)
    names: dict[str, Any] = {"spark": spark, "__name__": "page"}
    try:
        yield names
        for query in spark.streams.active if SLOW else ():
            until = time.monotonic() + PATIENCE
            while query.isActive and not query.recentProgress and time.monotonic() < until:
                time.sleep(0.05)
            assert query.recentProgress, query.exception()
        failed = [query.exception() for query in spark.streams.active if query.exception()]
        assert not failed, failed
    finally:
        for query in spark.streams.active:
            query.stop()
        if "metrics" in names:  # a listener, and a server
            names["metrics"].close()
        _work_in(spark, before)


def _work_in(spark: Any, folder: Path) -> None:
    """Java's working folder: relative paths of tables follow the one, checkpoints the other."""
    files = spark._jvm.org.apache.hadoop.fs
    local = files.FileSystem.get(spark._jsc.hadoopConfiguration())
    local.setWorkingDirectory(files.Path(str(folder)))
    spark._jvm.System.setProperty("user.dir", str(folder))
