"""An aggregate of one's own, beside the pipeline that names it."""

import windrow as wr


class ShareLate(wr.Aggregate):
    """The share of flights that left more than 15 minutes late."""

    identity = (0, 0)
    commutative = True

    def lift(late):
        """One flight, and whether it was late."""
        return (1, 1 if late > 15.0 else 0)

    def combine(a, b):
        """Count both."""
        return (a[0] + b[0], a[1] + b[1])

    def lower(p):
        """Their ratio."""
        return p[1] / p[0]
