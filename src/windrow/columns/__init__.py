"""Columns: compiled windows over whole tables. The only package that imports numba."""
