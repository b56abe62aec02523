"""The command ``windrow``: pipelines in a file, checked, tried, run, explained and measured."""

from windrow.cli.main import main

__all__ = ["main"]
