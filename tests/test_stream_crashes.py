"""Streams elsewhere: on executors, through Connect, with workers killed, and killed altogether."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.spark_session import SLOW
from tests.stream_elsewhere import MANY
from tests.stream_session import Pipe

ROOT = Path(__file__).parent.parent
KILLS = 20 if SLOW else 2
PATIENCE = 180.0


def command(what: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.stream_elsewhere", what, str(folder)]


@pytest.mark.parametrize("where", ["cluster", "workers", *(["connect"] if SLOW else [])])
def test_the_same_answers(where: str, tmp_path: Path) -> None:
    done = subprocess.run(
        command(where, tmp_path),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("same: ")]
    assert said == [f"same: {where}"], done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]


def written(folder: Path) -> int:
    """The number of the last batch that is in a log of the checkpoint."""
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return max((int(name) for name in names if name.isdigit()), default=-1)


class Query:
    """The program in a process group of its own, which does not outlive the block."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "said"
        self.arguments = command("killed", folder / "stream")

    def __enter__(self) -> "Query":
        with self.log.open("w") as file:
            self.process = subprocess.Popen(
                self.arguments,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                start_new_session=True,
            )
        self.until = time.monotonic() + PATIENCE
        return self

    def __exit__(self, *_: object) -> None:
        """Python and Spark's JVM are killed at once; workers go with them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text()[-3000:]

    def wait_for(self, log: Path, batch: int) -> None:
        """Until a batch is in a log of the checkpoint."""
        while written(log) < batch:
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < self.until, self.said()
            time.sleep(0.02)


def test_nothing_is_lost_or_twice_when_the_query_is_killed(tmp_path: Path) -> None:
    generator = np.random.default_rng()
    pipe = Pipe(None, tmp_path / "stream", "end")
    offsets, commits = pipe.checkpoint / "offsets", pipe.checkpoint / "commits"
    waiting = list(MANY)
    share = len(MANY) // (KILLS + 1)
    unfinished = 0
    for _ in range(KILLS):
        before = written(offsets)
        pipe.feed(waiting.pop(0))
        with Query(tmp_path) as query:
            query.wait_for(offsets, before + 1)  # a batch of its own
            query.wait_for(commits, 0)
            for _ in range(int(generator.integers(1, share + 1))):
                if len(waiting) > 1:
                    pipe.feed(waiting.pop(0))
                time.sleep(generator.random() * 1.5)
            assert query.process.poll() is None, query.said()
        unfinished += written(offsets) > written(commits)
    assert unfinished, "no kill hit a batch"
    pipe.feed(*waiting, end=True)
    with Query(tmp_path) as query:
        query.process.wait(PATIENCE + 20 * len(waiting))
    assert "same: killed" in query.said()
    assert query.process.returncode == 0, query.said()
