"""Shared windows: many windows over one stream, served from one structure."""

from windrow.shared.b_int import BInt

__all__ = ["BInt"]
