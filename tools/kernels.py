"""Compile all kernels on two cores, so that whoever comes after finds them compiled."""

import sys
from multiprocessing import get_context

from windrow.columns.warm import COLUMNS, run_everything
from windrow.spark.worker import warm_up


def half(place: int) -> None:
    """What numbers of one kind need."""
    run_everything(COLUMNS[2 * place : 2 * place + 2])


def main() -> None:
    processes = [get_context("spawn").Process(target=half, args=(place,)) for place in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    warm_up()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
