"""What can go wrong, said to the person: each error names the thing, the place and the way out."""


class WindrowError(Exception):
    """The root of every error that windrow raises itself."""


class BadSpecification(WindrowError, ValueError):
    """A window, aggregate or option that cannot mean anything."""


class Refused(WindrowError, TypeError):
    """A pair that would not give right answers, such as ``SubtractOnEvict(Max())``."""


class BadValue(WindrowError, TypeError):
    """A value that the aggregate cannot take."""


class EmptyWindow(WindrowError, IndexError):
    """More rows were evicted than the window holds."""


class OutOfOrder(WindrowError, ValueError):
    """A row whose time is before one already taken."""


class SumOverflow(WindrowError, OverflowError):
    """An exact result that its output type cannot hold."""


class BadBytes(WindrowError, ValueError):
    """Bytes that are not what they should be: damaged, of another version or another aggregate."""


class StoreUnavailable(WindrowError, ConnectionError):
    """A store that does not answer; nothing that was acknowledged is lost."""


class StoreConflict(WindrowError, RuntimeError):
    """Another process writes the same window."""


class NotMonotone(WindrowError, ValueError):
    """A policy that lets go of some oldest rows but would keep fewer of them."""


class InvariantBroken(WindrowError, AssertionError):
    """An algorithm's invariant does not hold: a bug, or a combine that is not associative."""


class LawBroken(WindrowError, AssertionError):
    """An aggregate does not keep a promise it declares; the message shows a counter-example."""
