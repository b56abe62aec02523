"""Pipelines in a file: read and checked with lines, built, tried in process, run on Spark."""
