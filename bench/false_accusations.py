#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Over many draws of the weights and all shipped models: how often is a sound level called unequal
or mistrusted? Prints a Markdown table; exit code 1 if ever.

In inference each draw is a weight set of its own; all of a model's are proven in one run, so that
each level compiles once where it can change its weights. In training (--train) each draw is a run
of its own, with other weights, inputs' order, labels and probes. With --busy N each draw is a run
of its own, too, timed for six seconds beside N programs that use the processors without end, in
bursts, or the memory: what load does to times must accuse nobody."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

from common import compare

MODELS = {
    "mnist_convnet": [],
    "resnet18": ["--input", "1x3x64x64"],
    "resnet34": ["--input", "1x3x64x64"],
    "resnet50": ["--input", "1x3x96x96"],
    "resnet101": ["--input", "1x3x64x64"],
    "resnet152": ["--input", "1x3x64x64"],
}
TRAINED = {"mnist_convnet": ["--batch", "4"], "resnet18": ["--input", "4x3x64x64"]}
SHORT = ["--restarts", "1", "--budget", "1s"]
TIMED = ["--restarts", "1", "--budget", "6s"]
LOADS = (
    "while True: pass",
    "import numpy\na = numpy.ones(30_000_000)\nwhile True: a += 1",
    "import random, time\nwhile True:\n  until = time.time() + random.random() * 0.05\n  while time.time() < until: pass\n  time.sleep(random.random() * 0.05)",
)


@contextlib.contextmanager
def beside(programs: int) -> Iterator[None]:
    """So many programs that use processors and memory."""
    loads = itertools.islice(itertools.cycle(LOADS), programs)
    running = [subprocess.Popen([sys.executable, "-c", load]) for load in loads]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def judged(rows: list[dict], pattern: str) -> Iterable[tuple[str, list[float], str]]:
    """(level, errors in envelopes of the lines that `wanted` matches, why it is accused or "") of
    each row that was proven."""
    for row in rows:
        if row["harness"] or row["state"] not in ("measured", "unequal", "mistrusted"):
            continue
        values = [
            line["value"].split()[0]
            for line in row["proof"]["lines"]
            if re.match(pattern, line["check"])
            and line["result"] != "not_checked"
            and line["value"]
        ]
        yield (
            row["level"],
            [float(value) for value in values],
            "" if row["state"] == "measured" else row["reason"],
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="a training step instead of inference")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--levels", help="as in compare (default: all)")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="beside N other programs")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    with beside(options.busy):
        return judge_all(options)


def judge_all(options: argparse.Namespace) -> int:
    models = TRAINED if options.train else MODELS
    print(
        "| model | level | proofs | error in envelopes: median, largest (bound 8) | accused |\n|---|---|---|---|---|"
    )
    total = rows = 0
    for model in options.models or models:
        words = [
            model,
            *models.get(model, []),
            *(TIMED if options.busy else SHORT),
            *(["--levels", options.levels] if options.levels else []),
        ]
        runs: Iterator[dict]
        if options.train or options.busy:
            mode = "train" if options.train else "infer"
            runs = (
                compare(*words, "--mode", mode, "--seed", str(seed))
                for seed in range(options.draws)
            )
        else:
            runs = iter([compare(*words, "--weight-sets", str(options.draws))])
        seen: dict[str, tuple[list[float], list[str]]] = {}
        for run in runs:
            for level, errors, why in judged(
                run["cases"][0]["rows"], "loss, gradients" if options.train else "outputs, generic"
            ):
                seen.setdefault(level, ([], []))[0].extend(errors)
                seen[level][1].extend([why] if why else [])
                rows += 1
        for level, (errors, accused) in seen.items():
            errors.sort()
            total += len(accused)
            spread = f"{errors[len(errors) // 2]}, {errors[-1]}" if errors else ""
            print(
                f"| {model} | {level} | {len(errors)} | {spread} | {'; '.join(accused) or 'no'} |",
                flush=True,
            )
    print(f"\n{total} of {rows} rows accused")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
