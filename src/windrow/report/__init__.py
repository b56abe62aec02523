"""Reports: runs looked at, and written as one HTML file that opens anywhere, offline.

>>> import tempfile, pyarrow as pa, windrow as wr
>>> from windrow import report
>>> table = pa.table({"user": ["a", "b", "a"], "at": [1, 2, 9], "amount": [2.0, 3.0, 4.0]})
>>> features = wr.Rolling(
...     key="user", time="at", windows=[wr.time(5), wr.time(10)], aggregates=[wr.Sum("amount")]
... )
>>> seen = report.section(features, features(table), name="Payments")
>>> with tempfile.TemporaryDirectory() as folder:
...     size = report.write(f"{folder}/report.html", seen)
>>> size < 100_000
True

A section is one run; a report may have several. Runs of pipelines with ``detailed=True`` keep one.
"""

from windrow.looks.facts import Limits
from windrow.report.sections import Section, section
from windrow.report.writing import check_path, write

__all__ = ["Limits", "Section", "check_path", "section", "write"]
