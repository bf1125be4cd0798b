# SPDX-License-Identifier: Apache-2.0
"""What eager answers where an input holds a NaN, and where it holds an infinity: levels are asked
too, and one that answers with numbers is told of (docs/warnings.md, W011)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from capture.errors import is_out_of_memory
from capture.reference import Entry, Runner, by_entry


def special_values(runner: Runner, module: nn.Module, entry: Entry) -> dict[str, dict[str, Tensor]]:
    """Files of the bundle and their tensors; none for a network without floats, or one that raises
    on such inputs, as by an index that follows them."""
    entries = [_with_one(entry, value) for value in (math.nan, math.inf)]
    if all(torch.equal(entries[1][name], value) for name, value in entry.items()):
        return {}
    try:
        answers = [runner.run(module, changed) for changed in entries]
    except Exception as error:  # whatever the model's code raises
        if is_out_of_memory(error):
            raise
        return {}
    files = {"special": entries, "reference/special": answers}
    return {name: by_entry(values) for name, values in files.items()}


def _with_one(entry: Entry, value: float) -> dict[str, Tensor]:
    """The inputs with this value in the middle of each tensor of floats."""
    changed = {name: tensor.clone() for name, tensor in entry.items()}
    for tensor in changed.values():
        if tensor.is_floating_point() and tensor.numel():
            tensor.view(-1)[tensor.numel() // 2] = value
    return changed
