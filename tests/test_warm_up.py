"""Everything is compiled once, before Spark's workers ask for it."""

from windrow.spark.worker import warm_up


def test_warming_up_runs_everything() -> None:
    warm_up()
