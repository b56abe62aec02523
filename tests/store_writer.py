"""A process that inserts rows into a stored window until it is killed; says what was flushed."""

import random
import sys

import windrow as wr


def value_of(row: int) -> float:
    """Row by row the same values in every process, of many sizes."""
    return random.Random(row).choice((1.0, -1.0)) * 2.0 ** (row * 7919 % 60 - 30)


def window(store: wr.stores.Store, kind: str) -> wr.Sliding:
    if kind == "rows":
        return wr.Sliding(wr.rows(3000), wr.Sum(), store=store, name="crash")
    return wr.Sliding(wr.time(700), wr.Max(), store=store, name="crash", lateness=20)


def time_of(row: int) -> int:
    """Disorder, and now and then a jump that lets thousands of rows go at once."""
    return row // 4 + (row // 5000) * 2000 + row * 31 % 17


def insert(sliding: wr.Sliding, kind: str, row: int) -> None:
    if kind == "rows":
        sliding.insert(value_of(row))
    else:
        sliding.insert(value_of(row), at=time_of(row))


def store_at(where: str) -> wr.stores.Store:
    if where.startswith("redis:"):
        return wr.stores.Redis(where, retries=2)
    return wr.stores.Rocks(where)


if __name__ == "__main__":
    where, kind = sys.argv[1:]
    sliding = window(store_at(where), kind)
    generator = random.Random()
    row = sliding.restored_through
    print(f"opened {row}", flush=True)
    while True:
        insert(sliding, kind, row)
        row += 1
        if generator.random() < 0.002:
            sliding.flush()
            print(f"flushed {row}", flush=True)
