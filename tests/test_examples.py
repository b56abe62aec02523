"""Examples run, print what they promise, and their own aggregates keep the laws."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from windrow.testing import check_laws
from windrow.windows import Recalc

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name: str) -> Any:
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_classifier_is_an_aggregate() -> None:
    """Models merge in any grouping, and columns learn what Recalc learns."""
    module = example("own_classifier")
    table = module.readings(90)
    rows = list(zip(*(table[name].tolist() for name in ("x", "y", "label")), strict=True))
    check_laws(module.NaiveBayes(), rows, rounds=100)
    aggregate = module.NaiveBayes("x", "y", "label").alias("p")
    spec = wr.Rolling(windows={"w": wr.rows(25)}, aggregates=[aggregate])
    assert "compiled" in spec.explain(table)
    found = spec(table)["p_w"]
    for i in range(90):
        window = Recalc(module.NaiveBayes())
        for row in rows[max(0, i - 24) : i + 1]:
            window.insert(row)
        assert found[i] == pytest.approx(window.query(), rel=1e-9)


def test_the_classifier_learns_and_forgets(capsys: pytest.CaptureFixture[str]) -> None:
    example("own_classifier").main()
    lines = capsys.readouterr().out.splitlines()
    shares = {
        line: [float(share) for share in re.findall(r"([0-9.]+)%", line)]
        for line in lines
        if "%" in line
    }
    assert len(shares) == 12
    change = next(found for line, found in shares.items() if "upside down" in line)
    before, *_, after = shares.values()
    assert all(share > 80 for share in (*before, *after))
    assert change[0] > 80 > change[1] > 50 > change[2]


def test_the_first_window_prints_a_line_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    example("first_window").main()
    assert capsys.readouterr().out.count("█") > 100
