# SPDX-License-Identifier: Apache-2.0
"""The extra work of slowed_eager. `extra_work.py TURNS` prints what so many turns take, in ns."""

import statistics
import sys
import time


def turn(times: int) -> None:
    for _ in range(times):
        pass


def cost_ns(turns: int, repeats: int = 300) -> float:
    """The median of `repeats` calls, after as many that warm up."""
    took = []
    for _ in range(2 * repeats):
        begin = time.perf_counter_ns()
        turn(turns)
        took.append(time.perf_counter_ns() - begin)
    begin = time.perf_counter_ns()
    for _ in range(repeats):
        time.perf_counter_ns()
    clock = (time.perf_counter_ns() - begin) / repeats
    return max(0.0, statistics.median(took[repeats:]) - clock)


if __name__ == "__main__":
    print(cost_ns(int(sys.argv[1])))
