# SPDX-License-Identifier: Apache-2.0
"""What a program needs to run a network at this level: standalone.py path/to/file.py:build
WEIGHTS.safetensors THREADS INPUTS.safetensors. Inputs are named <entry>/<input>, entries from 0 on,
in the order of the arguments. It is what "lines of code to maintain" counts (docs/measuring.md),
and a test runs it."""

import importlib.util
import sys

import torch
from safetensors.torch import load_file


def main() -> None:
    file, function = sys.argv[1].rsplit(":", 1)
    spec = importlib.util.spec_from_file_location("network", file)
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    built = getattr(source, function)()
    network = (built[0] if isinstance(built, tuple) else built).eval()
    network.load_state_dict(load_file(sys.argv[2]))
    torch.set_num_threads(int(sys.argv[3]))
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False

    inputs = load_file(sys.argv[4])
    entries = sorted({int(name.split("/")[0]) for name in inputs})
    with torch.inference_mode():
        for entry in entries:
            result = network(
                *[inputs[name] for name in sorted(inputs) if name.startswith(f"{entry}/")]
            )
            print(entry, list(result.shape), *result.reshape(-1)[:8].tolist())


main()
