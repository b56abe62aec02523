"""Watch a server's response times: the worst, the mean and the 3-σ line of the last ten seconds."""

import math
import random

import windrow as wr


def main() -> None:
    """Print one line a second for half a minute of made-up traffic."""
    watch = wr.Sliding(
        wr.time(10_000),  # milliseconds
        wr.Several(
            wr.Count().alias("requests"),
            wr.Mean().alias("mean"),
            wr.Max().alias("worst"),
            wr.StdDev().alias("sigma"),
        ),
        latency="worst_case",
    )
    print(watch.explain(), end="\n\n")
    print(f"{'second':>6} {'requests':>9} {'mean ms':>9} {'worst ms':>9}  last 10 s")
    generator = random.Random(11)
    now = 0.0
    next_line = 1000
    while next_line <= 30_000:
        now += generator.expovariate(1 / 20)
        slow = 12_000 < now < 15_000
        took = generator.lognormvariate(3.0 + slow, 0.4)
        answer = watch.insert(round(took, 2), at=int(now))
        if now >= next_line:
            bar = "█" * math.ceil(answer["mean"] / 2)
            print(
                f"{next_line // 1000:>6} {answer['requests']:>9} {answer['mean']:>9.1f} "
                f"{answer['worst']:>9.1f}  {bar}"
            )
            next_line += 1000
    print("\nSeconds 13 to 15 were slow; ten seconds later the window has forgotten them exactly.")


if __name__ == "__main__":
    main()
