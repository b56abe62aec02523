"""Columns: compiled windows over whole tables. The only package that imports numba."""


def warm_up() -> None:
    """Compile every built-in kernel, or load it from the disk, so that no first call waits.

    Compiled code is kept in the user's cache folder; ``WINDROW_CACHE_DIR`` names another.
    """
    from windrow.columns.warm import run_everything

    run_everything()
