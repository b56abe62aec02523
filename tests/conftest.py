"""Hypothesis profiles (`ci` by default, `slow` for the long run), and which worker runs what."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_COMMON = {
    "deadline": None,
    "derandomize": "CI" in os.environ,  # there a change is judged by examples that stay the same
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("ci", max_examples=35, stateful_step_count=20, **_COMMON)  # type: ignore[arg-type]
settings.register_profile("slow", max_examples=1000, stateful_step_count=40, **_COMMON)  # type: ignore[arg-type]
settings.load_profile(os.environ.get("WINDROW_TESTS", "ci"))

FIRST = (
    *("test_warm_up", "test_filters", "test_columns", "test_shared_compiled", "test_bank"),
    *("test_bucket", "test_sessions", "test_ever"),
    *("test_spark_tables", "test_streams", "test_stream_crashes", "test_stream_emission"),
    *("test_spark_clusters", "test_spark_order", "test_spark_fit", "test_stream_rules"),
    *("test_stream_evolution", "test_kafka", "test_serving", "test_spark_stretches"),
    *("test_spark_where_over", "test_spark_odd", "test_stream_odd", "test_stream_processor"),
    *("test_rule_source", "test_packaging", "test_demo", "test_examples", "test_report_page"),
    *("test_windows", "test_laws", "test_slots", "test_policies", "test_pipeline", "test_site"),
    *("test_emission", "test_blocks", "test_stores", "test_shared"),
)
"""What compiles the kernels for all others, beside what needs few of them; then what takes long."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files in order; the tests of a file stay as they are."""
    last = len(FIRST)
    places = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: places.get(item.path.stem, last))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A worker runs all tests of a file, so that two do not compile the same kernels at once.

    Files, not ``xdist_group``: pytest 9.2 changed what xdist 3.8 tells groups by, and it then
    spreads their tests without a word.
    """
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False  # else by number of tests
    return LoadFileScheduling(config, log)
