"""Functions as texts that stand by themselves: what can be said of them, and what is kept then."""

# mypy: disable-error-code="untyped-decorator, no-any-return, index, operator, misc"

import importlib
import math
import os
import subprocess
import sys
from collections.abc import Callable
from math import log as ln
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import njit
from numpy import exp

import windrow as wr
from windrow.columns.own import _KNOWN, compile_aggregate, keep_texts
from windrow.columns.texts import definitions

BASE = 2.5
PAIR = (1.0, math.inf)
TABLE = {"a": 1}


def helper(x: float) -> float:
    return x * BASE


def second(x: float) -> float:
    return helper(x) + ln(PAIR[0])


@njit
def compiled(x: float) -> float:
    return x + 1.0


@njit(fastmath=True)
def fast(x: float) -> float:
    return x + 1.0


def combine(x: float) -> float:
    return x


def uses_much(x: float) -> float:
    return second(x) + math.log(x) + exp(x) + float(np.int64(3)) + compiled(x) + helper(x)


def with_default(x: float, y: float = BASE) -> float:
    return x + y


def uses_a_table(x: float) -> float:
    return x + TABLE["a"]


def uses_what_is_taken(x: float) -> float:
    return combine(x)


def uses_fast(x: float) -> float:
    return fast(x)


def recursive(x: float) -> float:
    return recursive(x - 1.0) if x > 0 else x


def uses_nothing_known(x: float) -> float:
    return missing(x)  # type: ignore[name-defined]  # noqa: F821


def uses_what_modules_have(x: float) -> float:
    """Of generated ones, not of this: Python knows no such name."""
    return lower(x)  # type: ignore[name-defined]  # noqa: F821


def not_there_yet() -> Callable[[float], float]:
    later = 2.0

    def early(x: float) -> float:
        return x * later  # noqa: F821

    del later
    return early


def inside(x: float) -> float:
    return sum([BASE * each for each in (x, x)])


def closed_over(factor: Any) -> Callable[[float], float]:
    def scaled(x: float) -> float:
        return x * factor

    return scaled


def as_it_is(**_: bool) -> Callable[[Any], Any]:
    """In place of numba's decorator."""
    return lambda function: function


def test_a_text_comes_after_all_that_it_names() -> None:
    found = definitions("lift", uses_much)
    assert found is not None
    assert set(found) == {"BASE", "PAIR", "ln", "exp", "helper", "second", "compiled", "lift"}
    assert found["ln"] == "from math import log as ln"
    assert found["exp"] == "from numpy import exp as exp"
    assert found["PAIR"] == "PAIR = (1.0, inf)"
    made: dict[str, Any] = {
        "math": math,
        "np": np,
        "inf": math.inf,
        "njit": lambda **_: lambda f: f,
    }
    exec("from __future__ import annotations\n" + "\n".join(found.values()), made)
    assert made["lift"](3.0) == uses_much(3.0)


@pytest.mark.parametrize("factor", [2.0, 3, True, (1, 2.0), math.nan])
def test_numbers_around_a_function(factor: Any) -> None:
    found = definitions("lift", closed_over(factor))
    assert found is not None
    assert found["factor"] == f"factor = {factor!r}"
    assert found["lift"].startswith("@njit(cache=True)\ndef lift(x: float)")


def test_names_in_a_comprehension() -> None:
    found = definitions("lift", inside)
    assert found is not None
    assert set(found) == {"BASE", "lift"}


@pytest.mark.parametrize(
    "function",
    [
        *(with_default, uses_a_table, uses_what_is_taken, uses_fast, recursive),
        *(
            uses_nothing_known,
            uses_what_modules_have,
            not_there_yet(),
            closed_over([1]),
            closed_over("a"),
            lambda x: x,
            math.log,
            len,
        ),
    ],
)
def test_what_does_not_stand_by_itself(function: Any) -> None:
    assert definitions("lift", function) is None


def test_functions_that_mean_different_things_by_a_name() -> None:
    class Both(wr.Aggregate):
        identity = 0.0
        lift = staticmethod(closed_over(2.0))
        combine = staticmethod(lambda a, b: a + b)
        lower = staticmethod(closed_over(3.0))

    made = compile_aggregate(Both("x"), (np.dtype(np.float64),), False)
    assert made.module is not None
    assert made.module.lower(made.module.lift(1.0)) == 6.0


class Squares(wr.Aggregate):
    identity = 0

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return x * x

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return a + b


class Pairs(Squares):
    identity = (0, 0)  # type: ignore[assignment]

    def lift(x):  # type: ignore[no-untyped-def]  # noqa: N805
        return (x, x)

    def combine(a, b):  # type: ignore[no-untyped-def]  # noqa: N805
        return (a[0] + b[0], a[1] + b[1])

    def lower(p):  # type: ignore[no-untyped-def]  # noqa: N805
        return p[0]


@pytest.mark.parametrize(("kind", "partial"), [(Squares, (3,)), (Pairs, (3, 4))])
def test_partials_are_not_lifted_again(kind: Any, partial: tuple[int, ...]) -> None:
    """Whether the texts travelled with the aggregate or not."""
    for travelled in (False, True):
        aggregate = kind("x")
        if travelled:
            keep_texts(aggregate)
            _KNOWN.clear()
        made = compile_aggregate(aggregate, (), False, lifted=True)
        assert made.module is not None
        assert made.module.lift(*partial) == (partial if len(partial) > 1 else partial[0])
        made = compile_aggregate(aggregate, (np.dtype(np.int64),), False)
        assert made.module is not None
        assert made.module.lift(3) == kind.lift(3)


MODULE = """import math
import windrow as wr
{}
class Plain(wr.Aggregate):
    identity = 0.0
    def lift(x):
        return math.sqrt(x) * 2.0
    def combine(a, b):
        return a + b

class Sees(Plain):
    factor = 3.0
    def lift(self, x):
        return math.sqrt(x) * self.factor
"""


@pytest.mark.parametrize("change", [("2.0", "9.0"), ("self.factor", "9.0"), ("{}", "# more\n\n")])
def test_a_file_that_has_changed_since(
    change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs is what Python read, wherever the file has it now."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "changing.py"
    file.write_text(MODULE.format(""))
    monkeypatch.delitem(sys.modules, "changing", raising=False)
    module = importlib.import_module("changing")
    file.write_text(MODULE.replace(*change).replace("{}", ""))
    aggregates = [module.Plain("x").alias("plain"), module.Sees("x").alias("sees")]
    spec = wr.Rolling(windows={"w": wr.rows(1)}, aggregates=aggregates)
    found = spec(pa.table({"x": [4.0]})).select([1, 2]).to_pylist()
    assert found == [{"plain_w": 4.0, "sees_w": 6.0}]


PROGRAM = """
import math
import pyarrow as pa
import windrow as wr

SHIFT = 1.0

def shifted(x):
    return x + SHIFT

class Own(wr.Aggregate):
    identity = (0.0, 0)
    def lift(x):
        return (math.log(shifted(x)), 1)
    def combine(a, b):
        return (a[0] + b[0], a[1] + b[1])
    def lower(p):
        return math.exp(p[0] / p[1])

spec = wr.Rolling(windows=[wr.rows(2)], aggregates=[Own("x"), wr.Product("x"), wr.BitAnd("i")])
table = pa.table({"x": [1.0, 2.0, 3.0], "i": [1, 2, 3]})
print([column.to_pylist() for column in spec(table).columns])
"""


def test_what_was_compiled_is_kept(tmp_path: Path) -> None:
    """The second process compiles nothing; one with another constant does."""
    kept: list[set[str]] = []
    answers = []
    for place, text in enumerate((PROGRAM, PROGRAM, PROGRAM.replace("SHIFT = 1.0", "SHIFT = 2.0"))):
        file = tmp_path / f"program{min(place, 1)}.py"
        file.write_text(text)
        environment = os.environ | {"WINDROW_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, str(file)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answers.append(done.stdout)
        kept.append({str(path) for path in (tmp_path / "cache").rglob("*.nbc")})
    assert kept[0] == kept[1]
    assert kept[0] < kept[2]
    for name in ("own_own", "own_float_product", "own_plain_bit_and"):
        assert any(f"windrow_kernel_{name}" in path for path in kept[0]), name
    assert answers[0] == answers[1] != answers[2]
    x = pa.array([1.0, 2.0, 3.0]).to_pylist()
    assert f"{math.sqrt((x[1] + 1) * (x[2] + 1)):.6f}"[:6] in answers[0]
