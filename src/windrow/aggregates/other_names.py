"""What aggregates (and windows) are called elsewhere: in SQL, pandas, Polars and Spark."""

import difflib
import re
from collections.abc import Iterable

_ELSEWHERE = {
    "avg": "Mean",
    "average": "Mean",
    "std": "StdDev",
    "stddev_samp": "StdDev",
    "sd": "StdDev",
    "var": "Variance",
    "var_samp": "Variance",
    "nunique": "Distinct",
    "n_unique": "Distinct",
    "count_distinct": "Distinct",
    "countdistinct": "Distinct",
    "approx_count_distinct": "ApproxDistinct",
    "percentile": "Quantile",
    "percentile_approx": "ApproxQuantile",
    "approx_percentile": "ApproxQuantile",
    "idxmax": "ArgMax",
    "idxmin": "ArgMin",
    "max_by": "ArgMax",
    "min_by": "ArgMin",
    "range": "Spread",
    "ptp": "Spread",
    "corr": "Correlation",
    "cov": "Covariance",
    "skew": "Skewness",
    "kurt": "Kurtosis",
    "prod": "Product",
    "gmean": "GeometricMean",
    "collect_list": "Collect",
    "array_agg": "Collect",
    "string_agg": "Concat",
    "listagg": "Concat",
    "first_value": "First",
    "last_value": "Last",
    "nlargest": "TopK",
    "nsmallest": "BottomK",
    "bool_and": "All",
    "bool_or": "Any",
    "session_window": "session",
}


def meant(word: str, known: Iterable[str]) -> str | None:
    """The aggregate that somebody means by a word; None where nothing is close.

    >>> meant("avg", ["Mean", "Max"]), meant("Meen", ["Mean"]), meant("P95", ["Quantile"])
    ('Mean', 'Mean', 'Quantile')
    """
    names = {name.lower(): name for name in known}
    small = word.lower()
    elsewhere = "Quantile" if re.fullmatch(r"[pq]\d\d?", small) else _ELSEWHERE.get(small, "")
    if elsewhere.lower() in names:
        return names[elsewhere.lower()]
    close = difflib.get_close_matches(small, list(names), 1, cutoff=0.7)
    return names[close[0]] if close else None
