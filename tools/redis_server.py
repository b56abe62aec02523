"""A Redis server of one's own on loopback, for tests and benchmarks; it ends with its block."""

import contextlib
import socket
import subprocess
import tempfile
import time
from pathlib import Path


class RedisServer:
    """Starts on a free port, keeps an append-only file, can be killed and started again."""

    def __init__(self, folder: str | None = None) -> None:
        self._temporary = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = Path(folder or self._temporary.name)  # type: ignore[union-attr]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "daemonize": "no",
        }
        command = [
            "redis-server",
            *(part for k, v in options.items() for part in (f"--{k}", str(v))),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1) as s,
            ):
                s.sendall(b"PING\r\n")
                if s.recv(16).startswith(b"+PONG"):
                    return
            time.sleep(0.02)
        raise RuntimeError("redis-server did not start within 20 seconds")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> "RedisServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self._temporary is not None:
            self._temporary.cleanup()
