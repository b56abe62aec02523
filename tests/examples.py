"""Examples as modules, and Spark for them: the tests' own, whatever they start and stop."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> Any:
    """The file as a module; what lies beside it can be imported, as when it is run."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@contextmanager
def session_for_examples(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An example that starts a session gets one beside the tests', with its own SQL settings."""
    from pyspark.sql import SparkSession

    other = spark.newSession()
    with monkeypatch.context() as patch:
        patch.setattr(SparkSession, "_instantiatedSession", other)
        patch.setattr(SparkSession, "stop", lambda self: None)
        patch.setattr(type(spark.sparkContext), "setLogLevel", lambda self, level: None)
        yield other
    other.catalog.clearCache()
