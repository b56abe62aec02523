"""Spark's Python daemon with the kernels loaded: workers are forked from it and start at once.

One line of configuration, before the session starts:

    spark.python.daemon.module   windrow.spark.daemon

Without it every new worker process imports numba and loads its kernels by itself.
"""

from pyspark import daemon


def preload() -> None:
    """Everything that a worker would load when its first rows come."""
    from windrow.spark.worker import warm_up

    warm_up()


if __name__ == "__main__":
    preload()
    daemon.manager()
