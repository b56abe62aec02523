"""What must be installed before Spark can start: said in a sentence, before Spark's own pages."""

import importlib.util
import os
import re
import shutil
import subprocess

LEAST_JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_OR = 'or let the pipeline run in this process: engine = "columns"'


def why_no_spark(master: str = "") -> str | None:
    """Why Spark cannot start here; None where nothing is known to be in its way."""
    for package in ("pyspark", "pandas"):
        if importlib.util.find_spec(package) is None:
            needed = f"{package} is not installed, which Spark needs"
            return f"{needed}: pip install 'windrow[spark]', {_OR}"
    if master.startswith("sc://"):
        return None  # Spark Connect: the other side has Java
    return why_no_java()


def why_no_java() -> str | None:
    """Why there is no Java that Spark can use; None where there is."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return (
            f"Java was not found, which Spark needs: install Java {LEAST_JAVA} or newer (Debian: "
            f"apt install default-jre-headless; macOS: brew install openjdk@{LEAST_JAVA}), {_OR}"
        )
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        where = f"JAVA_HOME is {home}, but " if home else ""
        said = f"{where}{java} cannot be started ({error})"
        return f"{said}: set JAVA_HOME to Java {LEAST_JAVA} or newer"
    found = _VERSION.search(done.stderr + done.stdout)
    if found and int(found[1]) < LEAST_JAVA:
        return (
            f"Spark needs Java {LEAST_JAVA} or newer, and {java} is Java {found[1]}: install a "
            f"newer one and set JAVA_HOME to it, {_OR}"
        )
    return None
