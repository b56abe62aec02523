"""The commands of the pages about pipelines, run as they stand there."""

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines import windrow
from windrow.cli.main import parser

DOCS = Path(__file__).parent.parent / "docs"
_BLOCK = re.compile(r"(?:<!-- file: ([^>]+) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)
_SAME = doctest.OutputChecker()
_LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_pipelines_by_example(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks with a name are written, console blocks are run, and what they print is compared."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_LOGIN", "secret")
    (tmp_path / "days").mkdir()
    ran = 0
    for name, kind, text in _BLOCK.findall((DOCS / "pipelines.md").read_text()):
        if name:
            (tmp_path / name).write_text(text)
            if kind == "toml" and name not in ("wrong.toml", "alarms.toml"):
                code, _, errors = windrow(capsys, "run", name, "--check")
                assert code == 0, (name, errors)
        if kind != "console":
            continue
        for line, expected in re.findall(r"^\$ windrow (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
            ran += 1
            _, out, errors = windrow(capsys, *shlex.split(line))
            assert _SAME.check_output(expected, out + errors, _LOOSE), (line, out + errors)
    assert ran >= 7


def test_every_option_is_documented() -> None:
    page = (DOCS / "command.md").read_text()
    words: Any = parser()._subparsers._group_actions[0]  # type: ignore[union-attr]
    for name, command in words.choices.items():
        assert f"windrow {name}" in page, name
        for action in command._actions:
            for option in set(action.option_strings) - {"-h"}:
                assert f"`{option}" in page or f" {option}" in page, (name, option)
