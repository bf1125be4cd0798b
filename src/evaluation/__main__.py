# SPDX-License-Identifier: Apache-2.0
"""`python -m evaluation check|inputs|score`: looks at the user's file, writes its inputs as files
for workers, or scores what a level made of them. One final JSON line on standard output."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import traceback
from pathlib import Path

import strata_sdk  # noqa: F401  it appends STRATA_OVERLAY, which may hold safetensors

# inputs in one file and their outputs, so that a worker's memory stays bounded; one batch at least
CHUNK_BYTES = 64 << 20


def check(options: argparse.Namespace) -> dict:
    """What can be said of the user's file before there is a network."""
    from evaluation.user_file import called, check_arrays, function, load

    module = load(options.file)
    function(module, options.file, options.function)
    check_arrays(called("inputs", function(module, options.file, "inputs"), options.file))
    return {}


def write_inputs(options: argparse.Namespace) -> dict:
    """`inputs-<n>.safetensors`, each with some whole batches `<i>/<input name>`; the last batch is
    filled up with its last example."""
    import numpy as np

    from evaluation.user_file import called, checked_inputs, function, load
    from strata_sdk import tensors

    bundle = json.loads((options.bundle / "bundle.json").read_text(encoding="utf-8"))
    module = load(options.file)
    function(module, options.file, options.function)
    arrays = checked_inputs(
        called("inputs", function(module, options.file, "inputs"), options.file), bundle
    )
    batch, count = bundle["case"]["batch"], len(next(iter(arrays.values())))
    batches = -(-count // batch)
    results = sum(
        math.prod(o["shape"]) * (2 if o["dtype"] == "bfloat16" else np.dtype(o["dtype"]).itemsize)
        for o in bundle["outputs"]
    )
    per_file = max(
        1, CHUNK_BYTES // max(1, results + sum(batch * a[:1].nbytes for a in arrays.values()))
    )
    chunks: list[int] = []
    for first in range(0, batches, per_file):
        held = range(first, min(batches, first + per_file))
        rows = {b: np.minimum(np.arange(b * batch, (b + 1) * batch), count - 1) for b in held}
        tensors.write(
            str(options.out / f"inputs-{len(chunks)}.safetensors"),
            {f"{b - first}/{name}": array[rows[b]] for b in held for name, array in arrays.items()},
        )
        chunks.append(len(held))
    return {"count": count, "batch": batch, "chunks": chunks}


def score(options: argparse.Namespace) -> dict:
    """The score of `outputs-<n>.safetensors`, which hold what a level made of the inputs, and its
    answers: the winners of the first output's rows."""
    import numpy as np

    from evaluation.user_file import Problem, called, checked_score, function, load
    from strata_sdk import tensors

    bundle = json.loads((options.bundle / "bundle.json").read_text(encoding="utf-8"))
    about = json.loads((options.out / "inputs.json").read_text(encoding="utf-8"))
    module = load(options.file)
    outputs = {}
    for name in (o["name"] for o in bundle["outputs"]):
        parts = [
            part
            for n, held in enumerate(about["chunks"])
            for part in tensors.read(
                str(options.out / f"outputs-{n}.safetensors"), [f"{i}/{name}" for i in range(held)]
            ).values()
        ]
        if not parts[0].shape or parts[0].shape[0] != about["batch"]:
            raise Problem(
                "failed",
                f"output {name} is {list(parts[0].shape)}: its first extent is not the batch of {about['batch']}",
                "a score needs outputs whose first extent counts examples",
            )
        outputs[name] = np.concatenate(parts)[: about["count"]]
    first = next(iter(outputs.values()))
    # before score(), which may change the arrays
    answers = (
        first.argmax(1).tolist()
        if first.ndim == 2 and first.shape[1] > 1 and first.dtype.kind == "f"
        else None
    )
    value = called(
        options.function,
        function(module, options.file, options.function),
        options.file,
        first if len(outputs) == 1 else outputs,
    )
    total, each = checked_score(value, about["count"], options.function)
    return {"score": total, "per_example": each, "answers": answers, "count": about["count"]}


ACTIONS = {"check": check, "inputs": write_inputs, "score": score}


def main() -> int:
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the user's file may print
    parser = argparse.ArgumentParser(
        prog="python -m evaluation", description="Inputs and score of a user's file."
    )
    parser.add_argument("what", choices=["check", "inputs", "score"])
    parser.add_argument(
        "--file", type=Path, required=True, help="the user's file, with inputs() and the score"
    )
    parser.add_argument("--function", default="score", help="the score's name")
    parser.add_argument("--bundle", type=Path, required=True, help="the network, docs/bundle.md")
    parser.add_argument("--out", type=Path, required=True, help="the folder of inputs and outputs")
    options = parser.parse_args()
    try:
        answer = {"ok": True} | ACTIONS[options.what](options)
    except BaseException as error:
        traceback.print_exc(file=sys.stderr)
        what = getattr(error, "what", None)
        answer = {
            "ok": False,
            "code": getattr(error, "code", "failed"),
            "what": f"{type(error).__name__}: {error}" if what is None else what,
            "hint": getattr(error, "hint", "the log has the whole trace"),
        }
    stream.write(json.dumps(answer) + "\n")
    stream.flush()
    sys.stderr.flush()
    os._exit(0 if answer["ok"] else 1)  # threads of a user's libraries must not hold the process


if __name__ == "__main__":
    main()
