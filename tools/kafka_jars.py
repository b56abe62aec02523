"""Kafka's broker and Spark's Kafka connector: fetched once, into the user's cache folder.

    python -m tools.kafka_jars      # fetches, and prints where the files are

Needs Java and PySpark, nothing else: the client is Ivy, which comes with PySpark and asks Maven
Central. Sites with a mirror of their own name its Ivy settings in ``WINDROW_IVY_SETTINGS``.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KAFKA = "4.1.0"
SCALA = "2.13"
_SPARK = "org.apache.spark"
_CONNECTOR = f"spark-sql-kafka-0-10_{SCALA}"
_TOKENS = f"spark-token-provider-kafka-0-10_{SCALA}"
_AVRO = f"spark-avro_{SCALA}"
_EARLIER = {_CONNECTOR: "4.2.0", _TOKENS: "4.0.0", _AVRO: "4.1.1"}
"""Where PySpark is released before its connectors: these were seen to run with PySpark 4.3."""
_BESIDE = {
    ("org.apache.kafka", "kafka-clients"): KAFKA,
    ("org.apache.commons", "commons-pool2"): "2.12.1",
}
_BROKER = {
    ("org.apache.kafka", f"kafka_{SCALA}"): KAFKA,
    ("org.slf4j", "slf4j-simple"): "1.7.36",  # else the broker says nothing, whatever happens
}
Wanted = dict[tuple[str, str], str]


@dataclass(frozen=True)
class KafkaJars:
    """Folders of jars: what a broker runs on, and what Spark needs to read and write topics."""

    broker: Path
    connector: Path

    @property
    def spark_setting(self) -> dict[str, Any]:
        """For a session's builder: ``.config(map=jars().spark_setting)``."""
        return {"spark.jars": ",".join(map(str, sorted(self.connector.glob("*.jar"))))}


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def _base() -> Path:
    chosen = os.environ.get("WINDROW_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(chosen) if chosen else Path.home() / ".cache") / "windrow" / "kafka"


def kept_jars() -> KafkaJars | None:
    """The jars, where they were fetched before."""
    import pyspark

    folder = _base() / f"kafka-{KAFKA}-spark-{pyspark.__version__}"
    return KafkaJars(folder / "broker", folder / "connector") if folder.exists() else None


def jars() -> KafkaJars:
    """The jars, from the cache folder; fetched where they are not there yet."""
    import pyspark

    base = _base()
    base.mkdir(parents=True, exist_ok=True)
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes want them at once
        if kept_jars() is None:
            with tempfile.TemporaryDirectory(dir=base) as work:
                whole = Path(work, "whole")
                _retrieve(_BROKER, whole / "broker", Path(work), transitive=True)
                _connector(pyspark.__version__, whole / "connector", Path(work))
                shutil.move(whole, base / f"kafka-{KAFKA}-spark-{pyspark.__version__}")
    found = kept_jars()
    assert found is not None
    return found


def _connector(version: str, into: Path, work: Path) -> None:
    same = dict.fromkeys(_EARLIER, version)
    for modules in (same, _EARLIER):
        wanted = {(_SPARK, name): found for name, found in modules.items()} | _BESIDE
        try:
            return _retrieve(wanted, into, work, transitive=False)
        except RuntimeError:
            if modules is _EARLIER:
                raise


def _retrieve(wanted: Wanted, into: Path, work: Path, transitive: bool) -> None:
    """One run of Ivy; all or nothing."""
    import pyspark

    lines = [
        f'<dependency org="{group}" name="{name}" rev="{version}" '
        f'transitive="{str(transitive).lower()}" '
        f'conf="default->{"default" if transitive else "master"}"/>'
        for (group, name), version in wanted.items()
    ]
    module = work / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="windrow" module="kafka"/>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )
    (ivy,) = Path(pyspark.__path__[0], "jars").glob("ivy-*.jar")
    settings = os.environ.get("WINDROW_IVY_SETTINGS")
    command = [
        *(java(), "-cp", str(ivy), "org.apache.ivy.Main", "-warn"),
        *(("-settings", settings) if settings else ()),
        *("-ivy", str(module), "-cache", str(work / "cache"), "-types", "jar", "bundle"),
        *("-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not any(into.glob("*.jar")):
        names = ", ".join(f"{name} {version}" for (_, name), version in wanted.items())
        raise RuntimeError(f"Ivy did not get {names}:\n{(done.stdout + done.stderr)[-2000:]}")


if __name__ == "__main__":
    folders = jars()
    print(folders.broker, folders.connector, sep="\n")
