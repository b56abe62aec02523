"""A Kafka broker of one's own on loopback, for tests, examples and benchmarks.

python -m tools.kafka_broker       # starts one, prints its address, ends with Ctrl-C
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tools.kafka_jars import jars, java

_CLUSTER = "d2luZHJvdy1vbmUtbm9kZQ"
_PATIENCE = 60.0


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class KafkaBroker:
    """One node that is broker and controller (KRaft); can be killed and started again.

    Its files lie in ``folder``, or in a temporary one that goes with the block. What was
    acknowledged is in the files of the operating system: it survives a SIGKILL.
    """

    def __init__(self, folder: str | None = None, memory: str = "512m") -> None:
        self._temporary = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = Path(folder or self._temporary.name)  # type: ignore[union-attr]
        self.memory = memory
        self.port, self._controller = _free_ports(2)
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = self.folder / "server.properties"

    @property
    def address(self) -> str:
        """What clients call ``bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when the broker takes connections."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._settings.exists():
            self._format()
        with (self.folder / "broker.log").open("ab") as log:
            command = self._java(f"-Xmx{self.memory}", "kafka.Kafka", str(self._settings))
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"the broker did not start:\n{self.said()}")
            time.sleep(0.05)

    def _java(self, memory: str, main: str, *arguments: str) -> list[str]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [java(), memory, level, "-cp", f"{jars().broker}/*", main, *arguments]

    def _format(self) -> None:
        listeners = f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "log.dirs": self.folder / "data",
            "auto.create.topics.enable": "false",
            "broker.session.timeout.ms": 2000,  # how long one that was killed is thought alive
            "broker.heartbeat.interval.ms": 500,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
        }
        self._settings.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        tool = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._settings))
        subprocess.run(self._java("-Xmx128m", *tool), capture_output=True, check=True)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def said(self) -> str:
        """The end of the broker's log."""
        return (self.folder / "broker.log").read_text()[-3000:]

    def kill(self) -> None:
        """SIGKILL, as a machine that fails would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """A clean end; SIGKILL where that takes more than ten seconds."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> "KafkaBroker":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()


def create_topics(address: str, **partitions: int) -> None:
    """Topics by name, each with so many partitions."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    new = [NewTopic(name, count, 1) for name, count in partitions.items()]
    for future in admin.create_topics(new, operation_timeout=30).values():
        future.result()


def main() -> None:
    """A broker until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with KafkaBroker() as broker:
        print(f"Kafka on {broker.address} (process {os.getpid()}); Ctrl-C ends it", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("ending")


if __name__ == "__main__":
    main()
