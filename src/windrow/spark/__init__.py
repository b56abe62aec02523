"""Spark: the same specification on tables and streams. The only package that imports pyspark."""
