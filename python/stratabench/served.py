# SPDX-License-Identifier: Apache-2.0
"""A process that runs a function as often as it is asked to: `python served.py FILE`, where the
file holds what timing.py pickled. Prints a line when it is ready; for each line with a number it
then calls the function so often and prints how many ns that took."""

from __future__ import annotations

import os
import pickle
import sys
import time


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the function prints goes to the log
    with open(sys.argv[1], "rb") as file:
        paths, threads, both = pickle.loads(file.read())
    sys.path += [path for path in paths if path not in sys.path]
    if threads:
        import torch

        torch.set_num_threads(threads)
    setup, function = pickle.loads(both)  # found by the paths above
    if setup is not None:
        setup()
    print("ready", file=answers, flush=True)
    clock = time.perf_counter_ns
    for line in sys.stdin:
        times = range(int(line))
        begin = clock()
        for _ in times:
            function()
        print(max(1, clock() - begin), file=answers, flush=True)


if __name__ == "__main__":
    main()
