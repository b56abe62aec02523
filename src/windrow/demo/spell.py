"""An aggregate of one's own, as a user writes it: the demo has nothing that a user has not."""

import windrow as wr

ALLOWED = 15.0
"""Minutes: up to so many, an airline calls a departure on time."""
Spell = tuple[float, float, float, float]


class WorstSpell(wr.Aggregate):
    """Minutes lost in the worst spell: the run of departures whose delays add up to most.

    Every minute beyond a quarter of an hour counts, every minute below it makes up for one. A
    window's worst spell lies in its older part, or in its newer part, or ends the one and begins
    the other; so the partial is (all, best beginning, best end, best). There is no way to take a
    row out of it again, and order matters: associativity is all that windrow asks for.
    """

    identity = (0.0, 0.0, 0.0, 0.0)
    reproducible = True  # whole minutes add up exactly

    @staticmethod
    def lift(late: float) -> Spell:
        """One departure."""
        over = late - ALLOWED
        lost = over if over > 0.0 else 0.0
        return (over, lost, lost, lost)

    @staticmethod
    def combine(a: Spell, b: Spell) -> Spell:
        """An older run of departures, and the one that follows it."""
        return (
            a[0] + b[0],
            max(a[1], a[0] + b[1]),
            max(b[2], b[0] + a[2]),
            max(a[3], b[3], a[2] + b[1]),
        )

    @staticmethod
    def lower(p: Spell) -> float:
        """What was lost."""
        return p[3]
