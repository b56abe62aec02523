"""Numbers and lengths of time as the page writes them."""

from typing import Any


def amount(value: float) -> str:
    """``12,345``."""
    return f"{value:,.0f}"


def number(value: Any) -> str:
    """A value of the data.

    >>> number(0.1 + 0.2), number(-1234567.0), number(1e-9), number(None)
    ('0.3', '−1,234,567', '1e-09', 'none')
    """
    if value is None:
        return "none"
    size = abs(value)
    if size != 0 and (size >= 1e15 or size < 1e-4):
        return f"{value:.6g}".replace("-", "−", value < 0)
    if float(value).is_integer():
        shown = f"{int(value):,}"
    elif size >= 1e6:
        shown = f"{value:,.2f}"
    else:
        places = max(0, 6 - len(str(int(size)))) if size >= 1 else 6
        shown = f"{value:,.{places}f}".rstrip("0").rstrip(".") if size >= 1 else f"{value:.6g}"
    return shown.replace("-", "−", 1) if value < 0 else shown


def brief(value: float | None) -> str:
    """A value where room is short: five digits, or a whole part up to 10**10; four beyond.

    >>> brief(12345.678), brief(0.123456), brief(-1234567890.0), brief(100_000_000_000_043.0)
    ('12,346', '0.12346', '−1,234,567,890', '1e14')
    """
    if value is None:
        return "none"
    if abs(value) >= 1e10:
        return f"{value:.4g}".replace("e+", "e").replace("-", "−")
    return number(float(f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.5g}"))


def percent(share: float) -> str:
    """A share of something.

    >>> percent(0.25), percent(0.00001), percent(1.0), percent(0.999)
    ('25 %', '< 0.1 %', '100 %', '99.9 %')
    """
    if 0 < share < 0.001:
        return "< 0.1 %"
    shown = f"{share * 100:.1f}"
    if shown == "100.0" and share < 1:
        return "> 99.9 %"
    return f"{shown.removesuffix('.0')} %"


def seconds_shown(seconds: float) -> str:
    """How long a step took.

    >>> seconds_shown(0.0123), seconds_shown(12.34), seconds_shown(200)
    ('12 ms', '12.3 s', '3 min 20 s')
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
