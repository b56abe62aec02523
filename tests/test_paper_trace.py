"""The max-count trace of the DABA paper (section 2.3), step by step, on every algorithm."""

import pytest

import windrow as wr
from tests.pairs import accepted, pair_name
from windrow.windows import Window


class MaxTimes(wr.MaxCount):
    """Max-count that shows the paper's notation: 4×3 is max 4, three times."""

    @staticmethod
    def lower(partial: tuple[int, int]) -> str:  # type: ignore[override]
        return f"{partial[0]}×{partial[1]}"


@pytest.mark.parametrize("algorithm", accepted(wr.MaxCount()), ids=pair_name)
def test_trace(algorithm: type[Window]) -> None:
    window, counts = algorithm(MaxTimes()), algorithm(wr.MaxCount())

    def do(operation: str, *value: int) -> tuple[str, int]:
        for each in (window, counts):
            getattr(each, operation)(*value)
        return window.query(), counts.query()

    for value in (4, 5, 3, 4, 0, 4, 4):
        state = do("insert", value)
    assert state == ("5×1", 1)
    assert do("evict") == ("5×1", 1)
    assert do("evict") == ("4×3", 3)
    assert do("insert", 2) == ("4×3", 3)
    assert do("insert", 6) == ("6×1", 1)
    assert len(window) == 7
    # and the steps (O) and (P) that the paper shows for Two-Stacks: 5, 6, 1 follow, then 6
    for value in (5, 6, 1):
        state = do("insert", value)
    assert state == ("6×2", 2)
    assert do("insert", 6) == ("6×3", 3)
