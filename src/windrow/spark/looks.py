"""A Spark table looked at for a report: by jobs whose results are small, whatever its size.

A table of few cells comes to the driver and is looked at there. A larger one stays where it is: one
job counts, one finds the busiest keys, one follows rows of equal keys (of some keys, where there
are many rows), one counts rows over time, one takes a sample, and one reduces the lines of the
chosen keys to the corners that are drawn.
"""

import math
from typing import Any

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.looks.axis import Axis
from windrow.looks.facts import (
    STRETCHES,
    AnswerFacts,
    ColumnFacts,
    DataFacts,
    Example,
    Key,
    Limits,
    OrderFacts,
    label_of,
)
from windrow.looks.points import Columns, Line
from windrow.looks.spread import spread
from windrow.looks.tables import both_facts, floats, note_left_out, roles
from windrow.looks.tables import data_facts as data_of_table
from windrow.rolling import Rolling
from windrow.spark.axis import micros_without_zone, quoted
from windrow.spark.jobs import described
from windrow.spark.look_lines import lines_of

_FLOATS = (T.FloatType, T.DoubleType)
_ORDERED = (
    *(T.NumericType, T.StringType, T.BooleanType),
    *(T.DateType, T.TimestampType, T.TimestampNTZType),
)
_ENDLESS = (float("inf"), float("-inf"))


def looked_at(
    spec: Rolling, df: Any, limits: Limits, wanted: Any
) -> tuple[AnswerFacts, DataFacts | None]:
    """The answers, and the rows they stand beside."""
    used = list(roles(spec, df.columns)) if spec.answers_rows else [*spec.key, spec.time]
    outputs = [name for name, _, _ in spec.outputs if name in df.columns]
    needed = _selected(df, [*used, *outputs])
    with described(df.sparkSession, "windrow report"):
        rows = needed.count()
        if rows * len(needed.columns) <= limits.cells:
            return both_facts(spec, needed.toArrow(), limits, wanted, False)
        look = _Look(spec, needed, limits, outputs)
        return look.answers(wanted), look.data() if spec.answers_rows else None


def data_facts(spec: Rolling, df: Any, limits: Limits) -> DataFacts:
    """The rows that went in."""
    needed = _selected(df, list(roles(spec, df.columns)))
    with described(df.sparkSession, "windrow report"):
        if needed.count() * len(needed.columns) <= limits.cells:
            return data_of_table(spec, needed.toArrow(), False)
        return _Look(spec, needed, limits, []).data()


def _selected(df: Any, names: list[str | None]) -> Any:
    there = set(df.columns)
    return df.select(*(quoted(name) for name in dict.fromkeys(names) if name and name in there))


class _Look:
    """One table under plain names: keys ``k0``…, ticks ``t``, inputs ``v0``…, answers ``o0``…"""

    def __init__(self, spec: Rolling, df: Any, limits: Limits, outputs: list[str]) -> None:
        self.spec, self.limits, self.schema = spec, limits, df.schema
        self.session = df.sparkSession
        self.keys = [name for name in spec.key if name in df.columns]
        self.roles = roles(spec, df.columns)
        self.axis = self._axis(df)
        self.numbers = [n for n in outputs if _is_number(self.schema[n].dataType)]
        self.others = [n for n in outputs if n not in self.numbers]
        places = {f"k{i}": F.col(quoted(name)) for i, name in enumerate(self.keys)}
        places |= {f"v{i}": F.col(quoted(name)) for i, name in enumerate(self.roles)}
        places |= {
            f"o{i}": F.col(quoted(name)).cast("double") for i, name in enumerate(self.numbers)
        }
        ticks = F.lit(None).cast("long") if self.axis is None else self._ticks()
        self.df = df.select(ticks.alias("t"), *(e.alias(n) for n, e in places.items()))
        self.found = self._counted()
        self.rows = int(self.found["rows"])

    def _axis(self, df: Any) -> Axis | None:
        time = self.spec.time
        if time is None or time not in df.columns:
            return None
        kind = self.schema[time].dataType
        if isinstance(kind, T.TimestampType):
            return Axis("time", self.session.conf.get("spark.sql.session.timeZone"))
        if isinstance(kind, T.TimestampNTZType | T.DateType):
            return Axis("time")
        return Axis("number", unit=self.spec.unit)

    def _ticks(self) -> Any:
        name = str(self.spec.time)
        column, kind = F.col(quoted(name)), self.schema[name].dataType
        if isinstance(kind, T.TimestampType):
            return F.unix_micros(column)
        if isinstance(kind, T.TimestampNTZType):
            return micros_without_zone(column)
        if isinstance(kind, T.DateType):
            return F.unix_date(column).cast("long") * F.lit(86_400_000_000)
        return column.cast("double" if isinstance(kind, _FLOATS) else "long")

    @property
    def key_names(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.keys))]

    # --- one job that counts ---------------------------------------------------------------------

    def _counted(self) -> Any:
        row = F.struct(*self.key_names, "t")
        asked = [
            F.count(F.lit(1)).alias("rows"),
            F.min("t").alias("first"),
            F.max("t").alias("last"),
        ]
        if self.keys:
            asked.append(F.approx_count_distinct(F.xxhash64(*self.key_names)).alias("keys"))
        for i, name in enumerate(self.roles):
            column, kind = F.col(f"v{i}"), self.schema[name].dataType
            for word, odd in _odd(column, kind).items():
                asked.append(F.count_if(odd).alias(f"{word}{i}"))
                asked.append(F.first(F.when(odd, row), ignorenulls=True).alias(f"{word}{i}_at"))
            if isinstance(kind, _ORDERED):
                asked += [F.min(column).alias(f"least{i}"), F.max(column).alias(f"most{i}")]
        for i in range(len(self.numbers)):
            column = F.col(f"o{i}")
            finite = ~F.isnan(column) & ~column.isin(*_ENDLESS)
            asked.append(F.count_if(column.isNull()).alias(f"missing{i}"))
            asked.append(F.count_if(column.isNotNull() & ~finite).alias(f"odd{i}"))
            asked.append(F.min(F.when(finite, column)).alias(f"low{i}"))
            asked.append(F.max(F.when(finite, column)).alias(f"high{i}"))
        return self.df.agg(*asked).toArrow().to_pylist()[0]

    def _example(self, row: Any) -> Example:
        key = label_of(tuple(row[name] for name in self.key_names)) if self.keys else None
        time = None
        if self.axis is not None and row["t"] is not None:
            time = self.axis.shown(row["t"])
        return Example(key, time)

    # --- what went in ----------------------------------------------------------------------------

    def data(self) -> DataFacts:
        """The input."""
        made = DataFacts(self.rows)
        for i, (name, role) in enumerate(self.roles.items()):
            column = ColumnFacts(name, role)
            for word in ("nulls", "nans", "infinities"):
                count = int(self.found.get(f"{word}{i}") or 0)
                setattr(column, word, count)
                if count:
                    column.examples[word] = self._example(self.found[f"{word}{i}_at"])
            least, most = self.found.get(f"least{i}"), self.found.get(f"most{i}")
            if least is not None and least == most and not column.nans and self.rows > 1:
                column.constant = label_of((least,))
            made.columns.append(column)
        if self.axis is not None and self.found["first"] is not None:
            made.axis, made.first, made.last = self.axis, self.found["first"], self.found["last"]
            made.stretches = self._stretches()
            made.order = self._order()
        return made

    def _stretches(self) -> list[int]:
        first, last = self.found["first"], self.found["last"]
        span = float(last) - float(first)
        place = F.lit(0)
        if span > 0:
            share = (F.col("t") - F.lit(first)) * F.lit(STRETCHES / span)
            place = F.least(share.cast("int"), F.lit(STRETCHES - 1))
        counted = self.df.where("t is not null").groupBy(place.alias("place")).count()
        made = [0] * STRETCHES
        for row in counted.toArrow().to_pylist():
            made[row["place"]] = row["count"]
        return made

    def _order(self) -> OrderFacts | None:
        """How rows follow each other, of so many keys as have the rows that are followed."""
        if not self.keys:
            return None  # all rows would go to one task
        assert self.axis is not None
        shares = math.ceil(self.rows / self.limits.followed)
        some = self.df.where("t is not null")
        if shares > 1:
            some = some.where(F.pmod(F.xxhash64(*self.key_names), F.lit(shares)) == 0)
        before = F.lag("t").over(Window.partitionBy(*self.key_names).orderBy("t"))
        steps = some.select(*self.key_names, "t", (F.col("t") - before).alias("step"))
        row, step = F.struct(*self.key_names, "t"), F.col("step")
        lengths = {n: self.axis.length(w) for n, w in self.spec.windows.items()}
        known = {n: length for n, length in lengths.items() if length is not None}
        asked = [
            F.count(F.lit(1)).alias("rows"),
            F.count_if(step == 0).alias("equal"),
            F.first(F.when(step == 0, row), ignorenulls=True).alias("equal_at"),
            F.max("step").alias("longest"),
            F.max_by(row, "step").alias("longest_at"),
        ]
        for i, length in enumerate(known.values()):
            asked.append(F.count_if(step > F.lit(length)).alias(f"pauses{i}"))
        found = steps.agg(*asked).toArrow().to_pylist()[0]
        made = OrderFacts(rows=found["rows"], equal=found["equal"], share_of_keys=1 / shares)
        made.pauses = {name: found[f"pauses{i}"] for i, name in enumerate(known)}
        if made.equal:
            made.examples["equal"] = self._example(found["equal_at"])
        if found["longest"]:
            made.longest = self.axis.span(found["longest"])
            made.examples["longest"] = self._example(found["longest_at"])
        return made

    # --- what came out ---------------------------------------------------------------------------

    def answers(self, wanted: Any) -> AnswerFacts:
        """The output."""
        many = int(self.found["keys"]) if self.keys else 1
        keys, outputs, columns = self.limits.share(max(1, many), len(self.numbers))
        made = AnswerFacts(self.rows, axis=self.axis)
        note_left_out(made, self.numbers, self.others, outputs)
        self.numbers = self.numbers[:outputs]
        found = self._busiest(keys, wanted)
        made.keys_exact = not self.keys or (len(found) <= keys and not wanted)
        made.keys = len(found) if made.keys_exact else many
        made.chosen = found[:keys]
        if self.axis is None:
            made.left_out.append(
                "there is no time, and Spark has no order of rows: nothing to draw"
            )
        else:
            made.lines = self._lines(made.chosen, columns)
        self._spreads(made)
        return made

    def _busiest(self, count: int, wanted: Any) -> list[Key]:
        """The keys asked for, else those with the most rows; one more than needed."""
        ends = [F.count(F.lit(1)).alias("n"), F.min("t").alias("a"), F.max("t").alias("b")]
        rows = self.df if self.axis is None else self.df.where("t is not null")
        if wanted:
            texts = [F.col(name).cast("string") for name in self.key_names]
            some = rows.where(_any_of(texts, [tuple(map(str, key)) for key in wanted]))
            found = self._grouped(some, ends, count)
            if found:
                return found
        return self._grouped(rows, ends, count)

    def _grouped(self, rows: Any, ends: list[Any], count: int) -> list[Key]:
        if not self.keys:
            held = rows.agg(*ends)
        else:
            order = [F.col("n").desc(), *self.key_names]
            held = rows.groupBy(*self.key_names).agg(*ends).orderBy(*order).limit(count + 1)
        made = []
        for row in held.toArrow().to_pylist():
            values = tuple(row[name] for name in self.key_names)
            made.append(Key(label_of(values), values, row["n"], row["a"], row["b"]))
        return made

    def _lines(self, chosen: list[Key], columns: int) -> dict[tuple[int, str], Line]:
        keys = [key for key in chosen if key.rows]
        if not keys or not self.numbers:
            return {}
        place = F.lit(-1)
        for i, key in enumerate(chosen):
            place = F.when(_is(self.key_names, key.values), F.lit(i)).otherwise(place)
        named = [f"o{i}" for i in range(len(self.numbers))]
        rows = self.df.where("t is not null").select(place.alias("place"), "t", *named)
        cut = [Columns(key.first, key.last, columns) for key in chosen]
        few = [key.rows <= 4 * columns for key in chosen]
        found = lines_of(rows.where("place >= 0"), cut, few)
        return {
            (i, self.numbers[o]): Line(times, values, None if few[i] else columns)
            for (i, o), (times, values) in found.items()
        }

    def _spreads(self, made: AnswerFacts) -> None:
        if not self.numbers:
            return
        most = min(self.limits.sample, 4_000_000 // len(self.numbers))
        named = self.df.select(*(f"o{i}" for i in range(len(self.numbers))))
        if self.rows > most:
            named = named.sample(fraction=most / self.rows, seed=1)
        table = named.toArrow()
        for i, name in enumerate(self.numbers):
            column = table[f"o{i}"]
            there = floats(column.drop_null())
            low, high = self.found[f"low{i}"], self.found[f"high{i}"]
            ends = None if low is None else (low, high)
            one = spread(there, self.rows, self.found[f"missing{i}"], ends)
            one.odd = self.found[f"odd{i}"]
            made.spreads[name] = one


def _odd(column: Any, kind: T.DataType) -> dict[str, Any]:
    found = {"nulls": column.isNull()}
    if isinstance(kind, _FLOATS):
        found |= {"nans": F.isnan(column), "infinities": column.isin(*_ENDLESS)}
    return found


def _is_number(kind: T.DataType) -> bool:
    return isinstance(kind, T.NumericType | T.BooleanType)


def _is(names: list[str], values: tuple[Any, ...]) -> Any:
    """Whether a row is of this key; null is a key too."""
    made = F.lit(True)
    for name, value in zip(names, values, strict=True):
        made = made & F.col(name).eqNullSafe(F.lit(value))
    return made


def _any_of(texts: list[Any], wanted: list[tuple[str, ...]]) -> Any:
    made = F.lit(False)
    for key in wanted:
        if len(key) == len(texts):
            one = F.lit(True)
            for column, text in zip(texts, key, strict=True):
                one = one & (column == F.lit(text))
            made = made | one
    return made
