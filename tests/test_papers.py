"""The map from papers to code cannot rot: what it names is there, and every line names a test."""

import re

import pytest

from tests.blocks import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and " --- " not in line]
LINKS = re.findall(r"\[`([\w.]+)`\]\(\.\./([^)]+\.py)\)", PAGE)


@pytest.mark.parametrize(("name", "file"), sorted(set(LINKS)))
def test_what_is_named_is_there(name: str, file: str) -> None:
    text = (ROOT / file).read_text()
    module = file.removesuffix(".py").replace("/", ".")
    assert name == module or re.search(rf"^ *(?:def|class) {name}\b", text, re.MULTILINE), file


def test_every_line_says_where_and_names_a_test() -> None:
    headers = [row for row in ROWS if row.startswith("| in the paper |")]
    assert len(headers) == 5, "five papers"
    for row in ROWS:
        if row not in headers:
            _, _, built, checked = row.strip("| ").split(" | ")
            assert re.search(r"\]\(\.\./(src|benchmarks)/", built), row
            assert re.search(r"\[`test_\w+`\]\(\.\./tests/", checked), row
