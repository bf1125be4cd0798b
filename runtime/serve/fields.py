# SPDX-License-Identifier: Apache-2.0
"""The check of files, inputs and results against case.json, before anything reads them. Errors are
ValueErrors: what it is, what was given, what is taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tensor_files import TYPES

TORCH = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
NAMES = {np.dtype(numpy_name): name for name, numpy_name in TYPES.items()}


def described(dtype: str, shape: list[int] | tuple[int, ...]) -> str:
    """As "F32 [4,3,32,32]"."""
    return f"{dtype} [{','.join(map(str, shape))}]"


def check_tensor(what: str, name: str, value: np.ndarray, about: dict, does: str = "takes") -> None:
    """ValueError unless the array has the type and shape that `about` (an input or output of
    case.json) says."""
    actual, taken = (
        described(NAMES.get(value.dtype, str(value.dtype)), value.shape),
        described(TORCH[about["dtype"]], about["shape"]),
    )
    if actual != taken:
        raise ValueError(f"{what} {name} is {actual}; this artefact {does} {taken}")


def check_files(folder: Path, case: dict) -> None:
    """ValueError for a file of the artefact that is missing or has another size."""
    for name, size in case["files"].items():
        path = folder / name
        if not path.is_file():
            raise ValueError(f"{path} cannot be read")
        if path.stat().st_size != size:
            raise ValueError(
                f"{path} has {path.stat().st_size} bytes; this artefact's has {size}: not all of it is there, or it is another one"
            )


def check_inputs(case: dict, tensors: dict[str, np.ndarray]) -> int:
    """The tensors must be <entry>/<input> of entries 0, 1, ..., and no others. Returns how many
    entries there are."""
    inputs = case["inputs"]
    entries = 1
    while inputs and f"{entries}/{inputs[0]['name']}" in tensors:
        entries += 1
    expected = {f"{entry}/{about['name']}": about for entry in range(entries) for about in inputs}
    for name, about in expected.items():
        if name not in tensors:
            raise ValueError(
                f"the inputs lack '{name}', which is {described(TORCH[about['dtype']], about['shape'])}"
            )
        check_tensor("input", name.removeprefix("0/"), tensors[name], about)
    for name, value in tensors.items():
        if name not in expected:
            raise ValueError(
                f"the inputs hold '{name}' ({described(NAMES[value.dtype], value.shape)}), which is no input of this artefact"
            )
    return entries


def check_outputs(case: dict, results: list[np.ndarray]) -> None:
    """ValueError unless the network gave the outputs of case.json."""
    if len(results) != len(case["outputs"]):
        raise ValueError(
            f"the network gave {len(results)} outputs; this artefact gives {len(case['outputs'])}"
        )
    for about, value in zip(case["outputs"], results):
        check_tensor("output", about["name"], value, about, "gives")
