"""Pipelines in a file: read and checked with lines, built, tried in process, run on Spark."""

from windrow.pipeline.checking import load
from windrow.pipeline.reading import BadPipeline
from windrow.pipeline.running import Run, RunFailed, run

__all__ = ["BadPipeline", "Run", "RunFailed", "load", "run"]
