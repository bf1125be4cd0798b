# SPDX-License-Identifier: Apache-2.0
"""Serves the network: serve.py FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds
model.onnx and case.json; inputs are named <entry>/<input> with entries from 0 on, outputs
<entry>/<output>. Needs onnxruntime and numpy."""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # as in the run that was measured

import onnxruntime as ort
from fields import check_files, check_inputs, check_outputs
from tensor_files import read_safetensors, write_safetensors


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: serve.py FOLDER INPUTS.safetensors [OUTPUTS.safetensors]")
    folder = Path(sys.argv[1])
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    check_files(folder, case)
    inputs = read_safetensors(Path(sys.argv[2]))
    entries = check_inputs(case, inputs)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads, options.inter_op_num_threads = case["threads"], 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    # TF32 is off, as in the run that was measured
    provider = (
        ("CUDAExecutionProvider", {"use_tf32": "0"})
        if case["device"] == "cuda"
        else "CPUExecutionProvider"
    )
    network = ort.InferenceSession(str(folder / "model.onnx"), options, providers=[provider])

    outputs = {}
    for entry in range(entries):
        results = network.run(
            None, {value.name: inputs[f"{entry}/{value.name}"] for value in network.get_inputs()}
        )
        check_outputs(case, results)
        for about, result in zip(case["outputs"], results):
            outputs[f"{entry}/{about['name']}"] = result
    for name, value in outputs.items():
        print(name, value.dtype, list(value.shape), *value.reshape(-1)[:8])
    if len(sys.argv) == 4:
        write_safetensors(Path(sys.argv[3]), outputs)


try:
    main()
except (OSError, ValueError) as error:
    sys.exit(f"error: {error}")
