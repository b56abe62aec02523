"""What must be installed before Spark can start: said in a sentence, before Spark's own pages."""

import importlib.util

from windrow import java

_OR = 'or let the pipeline run in this process: engine = "columns"'


def why_no_spark(master: str = "", way_out: str = f", {_OR}", extra: str = "spark") -> str | None:
    """Why Spark cannot start here; None where nothing is known to be in its way."""
    for package in ("pyspark", "pandas"):
        if importlib.util.find_spec(package) is None:
            needed = f"{package} is not installed, which Spark needs"
            return f"{needed}: pip install 'windrow[{extra}]'{way_out}"
    if master.startswith("sc://"):
        return None  # Spark Connect: the other side has Java
    reason = java.why_none()
    return None if reason is None else f"{reason}{way_out}"
