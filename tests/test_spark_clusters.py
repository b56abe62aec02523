"""Executors of their own, Spark Connect, and tasks that fail: each in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark_elsewhere import FAILING

SAME = {
    "cluster": ["keyed", "one line", "stream"],
    "connect": ["keyed", "one line", "hot keys", "native"],
    "retries": [*FAILING, "worker killed"],
}


@pytest.mark.parametrize("where", SAME)
def test_the_same_answers(where: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark_elsewhere", where, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        timeout=240,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("same: ")]
    assert said == [f"same: {name}" for name in SAME[where]], done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]
