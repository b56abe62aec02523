"""A sliding sum for each of a million keys in a few bytes a key, with an error that is proven.

    python examples/million_counters.py

Bytes sent by each of a million hosts over its last 1,000 packets. Exactly, that takes the 1,000
packets of each: two gigabytes. A bank of approximate counters keeps 11 bytes of state for each.
"""

import time

import numpy as np

import windrow as wr

WINDOW, LARGEST, EPSILON = 1_000, 1_500, 0.01


def main(keys: int = 1_000_000, rounds: int = 5) -> None:
    """Feed the bank, and compare some hosts with exact sums."""
    bank = wr.approx.Bank("sum", window=WINDOW, epsilon=EPSILON, maximum=LARGEST)
    generator = np.random.default_rng(7)
    watched = generator.choice(keys, 40, replace=False)
    talkers = watched[:20]  # these send all the time, the others now and then
    sent: dict[int, list[int]] = {int(host): [] for host in watched}
    count, seconds = 0, 0.0
    for _ in range(rounds):
        hosts = np.concatenate([generator.permutation(keys), np.repeat(talkers, 600)])
        generator.shuffle(hosts)
        sizes = generator.integers(40, LARGEST + 1, len(hosts))
        start = time.perf_counter()
        bank.insert_many(hosts, sizes)
        seconds += time.perf_counter() - start
        count += len(hosts)
        for place in np.flatnonzero(np.isin(hosts, watched)):
            sent[int(hosts[place])].append(int(sizes[place]))
    print(f"{count:,} packets of {len(bank):,} hosts: {count / seconds / 1e6:.1f} million a second")
    exact = keys * WINDOW * 2
    print(
        f"{bank.nbytes / len(bank):.1f} bytes a host, key and index included; "
        f"{bank.bits()} bits of them are the counter (no algorithm can do with fewer than "
        f"{bank.lower_bound_bits()})"
    )
    print(f"{bank.nbytes / 1e6:,.0f} MB in all, instead of {exact / 1e6:,.0f} MB\n")

    estimates = bank.query(watched)
    worst = 0.0
    for host, estimate in zip(watched, estimates, strict=True):
        worst = max(worst, abs(estimate - sum(sent[int(host)][-WINDOW:])))
    print(f"worst error of {len(watched)} hosts: {worst:,.0f} bytes; proven bound: ", end="")
    print(f"{bank.error_bound:,.0f} of at most {WINDOW * LARGEST:,}")

    heavy, _ = bank.heavy(500_000)
    found = len(set(heavy.tolist()) & set(talkers.tolist()))
    print(f"hosts with 500,000 bytes or more: {len(heavy)}, {found} of the {len(talkers)} talkers")


if __name__ == "__main__":
    main()
