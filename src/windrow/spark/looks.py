"""A Spark table looked at for a report: by jobs whose results are small, whatever its size."""

from typing import Any

from windrow.looks.facts import AnswerFacts, DataFacts, Limits
from windrow.looks.tables import answer_facts as answers_of_table
from windrow.looks.tables import data_facts as data_of_table
from windrow.looks.tables import roles
from windrow.rolling import Rolling
from windrow.spark.keyed import quoted


def looked_at(
    spec: Rolling, df: Any, limits: Limits, wanted: Any
) -> tuple[AnswerFacts, DataFacts | None]:
    """The answers, and the rows they stand beside."""
    names = list(roles(spec, df.columns)) if spec.answers_rows else [*spec.key, spec.time]
    names += [name for name, _, _ in spec.outputs]
    table = _needed(df, names).toArrow()
    made = answers_of_table(spec, table, limits, wanted)
    return made, data_of_table(spec, table, False) if spec.answers_rows else None


def data_facts(spec: Rolling, df: Any, limits: Limits) -> DataFacts:
    """The rows that went in."""
    table = _needed(df, list(roles(spec, df.columns))).toArrow()
    return data_of_table(spec, table, False)


def _needed(df: Any, names: list[str | None]) -> Any:
    there = set(df.columns)
    return df.select(*(quoted(name) for name in dict.fromkeys(names) if name in there))
