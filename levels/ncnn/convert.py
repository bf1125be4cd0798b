# SPDX-License-Identifier: Apache-2.0
"""convert.py NETWORK.pt TARGET SHAPES: TARGET.param and TARGET.bin as pnnx makes them, weights in
float32. Needs no PyTorch: the package's program alone is started."""

import importlib.util
import subprocess
import sys
from pathlib import Path

from strata_sdk import LevelError, UnsupportedError, preparing


def convert(source: str, target: str, shapes: str) -> None:
    # importing the package imports PyTorch
    program = Path(importlib.util.find_spec("pnnx").origin).with_name("pnnx")
    done = subprocess.run(
        [
            program,
            source,
            f"inputshape={shapes}",
            "fp16=0",
            f"ncnnparam={target}.param",
            f"ncnnbin={target}.bin",
        ],
        cwd=Path(source).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    print(done.stdout, file=sys.stderr)
    param = Path(f"{target}.param")
    if done.returncode != 0 or not param.is_file():
        raise LevelError(
            f"pnnx ended with exit code {done.returncode}: {' '.join(done.stdout.split())[-300:]}",
            "the lines above say more",
        )
    # an operation that pnnx has no layer of ncnn for stays as PyTorch calls it, as aten::cumsum or
    # F.grid_sample
    foreign = sorted(
        {
            word
            for line in param.read_text().splitlines()[2:]
            if "::" in (word := line.split()[0]) or "." in word
        }
    )
    if foreign:
        raise UnsupportedError(
            f"pnnx has no layer of ncnn for {', '.join(foreign)}",
            "onnxruntime and openvino have more operations",
        )


if __name__ == "__main__":
    preparing.answer_for(lambda: convert(*sys.argv[1:]))
