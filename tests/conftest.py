"""Hypothesis profiles: `ci` by default, `slow` for the long run."""

import os

from hypothesis import HealthCheck, settings

_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("ci", max_examples=50, stateful_step_count=20, **_COMMON)  # type: ignore[arg-type]
settings.register_profile("slow", max_examples=1000, stateful_step_count=40, **_COMMON)  # type: ignore[arg-type]
settings.load_profile(os.environ.get("WINDROW_TESTS", "ci"))
