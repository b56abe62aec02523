"""What went wrong in Spark, in one sentence: its own first line, or that of the Python below it."""

import re
from typing import Any

_OWN_ERROR = re.compile(r"^(?:windrow\.(?:\w+\.)*)(?!\w*Warning)\w+: (.*)$", re.M)
_PYTHON_ERROR = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception)): (.*)$", re.M)
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*([\w$]+): (.*)$", re.M)
_ABORTED = re.compile(r"^.*Job aborted due to stage failure: .*? executor \S+\): ")
_JAVA_NAMES = re.compile(r"^(?:(?:[\w$]+\.)+[\w$]*(?:Exception|Error): )+")
_HINTS = (
    ("UnknownTopicOrPartition", "create the topic, or look at its name in the options"),
    ("DATA_SOURCE_NOT_FOUND", 'name the Maven package of the format: [spark] packages = ["…"]'),
    ("Failed to find the data source", "name the Maven package of the format: [spark] packages"),
    ("UNRESOLVED_DEPENDENCIES", "is the package's name right, and is Maven Central within reach?"),
    ("unresolved dependency", "is the package's name right, and is Maven Central within reach?"),
    ("PATH_ALREADY_EXISTS", 'sink.mode = "overwrite" replaces it, "append" adds to it'),
    ("PATH_NOT_FOUND", "look at source.path"),
    ("Permission denied", "choose another folder, or change its mode"),
    ("AccessControlException", "choose another folder, or change its mode"),
    ("CAST_INVALID_INPUT", "is the type under [columns] right?"),
    ("MALFORMED", 'is the type under [columns] right? options.mode = "PERMISSIVE" makes it null'),
    ("FAILED_READ_FILE", "is the format right, and the types under [columns]?"),
    ("OutOfMemoryError", 'give Spark more memory: [spark.settings] "spark.driver.memory" = "4g"'),
    ("STATE_STORE", "the checkpoint belongs to another specification: use a new folder for it"),
)


def said(error: BaseException) -> str:
    """One sentence for a person; the whole is in Spark's log."""
    text = _text(error)
    own = _OWN_ERROR.findall(text)
    if own:
        return str(own[-1]).strip()
    python = _PYTHON_ERROR.findall(text)
    if python and "Traceback (most recent call last)" in text:
        return f"{python[-1][0]}: {python[-1][1]}".strip()
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    first = _JAVA_NAMES.sub("", _ABORTED.sub("", first))
    causes = _CAUSE.findall(text)
    if causes and causes[-1][1] not in first:
        first += f" ({causes[-1][1]})"
    hint = next((hint for word, hint in _HINTS if word in text), None)
    return f"{first.rstrip('.')}. {hint[0].upper()}{hint[1:]}" if hint else first


def _text(error: Any) -> str:
    if hasattr(error, "java_exception"):
        return f"{error.java_exception.toString()}\n{error}"
    return str(error) or type(error).__name__
