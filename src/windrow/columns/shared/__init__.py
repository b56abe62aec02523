"""Shared windows, compiled: many windows over one stream of numbers, served from one structure."""

from windrow.columns.shared.b_int import BInt
from windrow.columns.shared.baselines import MaterialiseAll, MaterialiseNone, Tree
from windrow.columns.shared.l_int import LInt
from windrow.columns.shared.quantiles import Quantiles
from windrow.columns.shared.r_int import RInt

__all__ = ["BInt", "LInt", "MaterialiseAll", "MaterialiseNone", "Quantiles", "RInt", "Tree"]
