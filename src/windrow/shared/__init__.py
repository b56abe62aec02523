"""Shared windows: many windows over one stream, served from one structure."""

from windrow.shared.b_int import BInt
from windrow.shared.base import Card, Shared
from windrow.shared.baselines import MaterialiseAll, MaterialiseNone, Tree
from windrow.shared.hub import EACH, Hub, Query
from windrow.shared.l_int import LInt
from windrow.shared.quantiles import Quantiles
from windrow.shared.r_int import RInt

STRUCTURES: dict[str, type[Shared]] = {kind.__name__: kind for kind in (RInt, LInt, BInt)}
"""What the planner chooses from, best first; tests and the docs read this too."""

__all__ = [
    "EACH",
    "STRUCTURES",
    "BInt",
    "Card",
    "Hub",
    "LInt",
    "MaterialiseAll",
    "MaterialiseNone",
    "Quantiles",
    "Query",
    "RInt",
    "Shared",
    "Tree",
]
