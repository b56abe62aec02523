"""The commands of the pages about pipelines, run as they stand there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.blocks import LOOSE, ROOT, SAME, blocks
from tests.pipelines import windrow
from windrow.cli.main import parser

DOCS = ROOT / "docs"
PAGES = [DOCS / "pipelines.md", DOCS / "tutorial.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pipelines_by_example(
    page: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks with a name are written, console blocks are run, and what they print is compared."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_LOGIN", "secret")
    (tmp_path / "days").mkdir()
    ran = 0
    for block in blocks(page):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text)
            if (
                block.language == "toml"
                and "[[rule]]" not in block.text
                and block.file != "wrong.toml"
            ):
                code, _, errors = windrow(capsys, "run", block.file, "--check")
                assert code == 0, (str(block), errors)
        if block.language != "console":
            continue
        for line, expected in re.findall(r"^\$ windrow (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
            ran += 1
            _, out, errors = windrow(capsys, *shlex.split(line))
            assert SAME.check_output(expected, out + errors, LOOSE), (line, out + errors)
    assert ran >= 3


def test_every_option_is_documented() -> None:
    page = (DOCS / "command.md").read_text()
    words: Any = parser()._subparsers._group_actions[0]  # type: ignore[union-attr]
    for name, command in words.choices.items():
        assert f"windrow {name}" in page, name
        for action in command._actions:
            for option in set(action.option_strings) - {"-h"}:
                assert f"`{option}" in page or f" {option}" in page, (name, option)
