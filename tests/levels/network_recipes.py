# SPDX-License-Identifier: Apache-2.0
"""Networks as recipes of plain data, so that one that failed can be printed and become a test."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Held(nn.Module):
    """A parameter that is an operand."""

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.randn(shape))

    def forward(self) -> Tensor:
        return self.value


# What has weights: made for the shapes of its operands. The rest is a function of its operands.
LAYERS: dict[str, Callable[..., nn.Module]] = {
    "conv": lambda x, out, kernel, **how: nn.Conv2d(x[1], out, kernel, **how),
    "batch_norm": lambda x, **how: (nn.BatchNorm2d if len(x) == 4 else nn.BatchNorm1d)(x[1], **how),
    "layer_norm": lambda x, dims, **how: nn.LayerNorm(x[-dims:], **how),
    "conv_transpose": lambda x, out, kernel, **how: nn.ConvTranspose2d(x[1], out, kernel, **how),
    "instance_norm": lambda x, **how: nn.InstanceNorm2d(x[1], **how),
    "prelu": lambda x, **how: nn.PReLU(**how),
    "linear": lambda x, out, **how: nn.Linear(x[-1], out, **how),
    "parameter": Held,
}
FUNCTIONS: dict[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    **{
        name: getattr(F, name)
        for name in (
            "relu",
            "relu6",
            "hardswish",
            "hardsigmoid",
            "hardtanh",
            "silu",
            "gelu",
            "leaky_relu",
            "elu",
            "softmax",
            "log_softmax",
            "max_pool2d",
            "avg_pool2d",
            "adaptive_avg_pool2d",
            "adaptive_max_pool2d",
            "interpolate",
            "glu",
            "unfold",
            "pixel_shuffle",
            "pixel_unshuffle",
            "pad",
            "dropout",
        )
    },
    **{
        name: getattr(torch, name)
        for name in (
            "sigmoid",
            "tanh",
            "exp",
            "abs",
            "neg",
            "clamp",
            "add",
            "sub",
            "mul",
            "rsub",
            "sum",
            "mean",
            "amax",
            "amin",
            "permute",
            "transpose",
            "flatten",
            "roll",
            "chunk",
            "unbind",
            "select",
            "matmul",
        )
    },
    "cat": lambda *parts, dim: torch.cat(parts, dim),
    "stack": lambda *parts, dim: torch.stack(parts, dim),
    "divide": lambda x, y: x / (y.abs() + 0.5),
    "square_root": lambda x: torch.sqrt(x.abs() + 0.25),
    "number": lambda x, name, number: getattr(torch, name)(x, number),
    "folded": lambda x, **how: F.fold(0.25 * F.unfold(x, **how), x.shape[2:], **how),
    "sorted": lambda x, dim, largest: torch.sort(x, dim, descending=largest).values,
    "top": lambda x, k, dim, largest: torch.topk(x, k, dim, largest=largest).values,
    "extreme": lambda x, dim, largest: (x.max(dim) if largest else x.min(dim)).values,
    "slice": lambda x, dim, start, stop, step: x[
        (slice(None),) * dim + (slice(start, stop, step),)
    ],
    "split": lambda x, sizes, dim: torch.split(x, sizes, dim=dim),
    "expand": lambda x, shape: x.expand(shape),
    "reshape": lambda x, shape: x.reshape(shape),
    "shuffle": lambda x, groups: (
        x.view(x.shape[0], groups, -1, *x.shape[2:]).transpose(1, 2).reshape(x.shape)
    ),
    "attention": lambda q, k, v, causal: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
    "picked": lambda x, part: x[part],
}


@dataclasses.dataclass
class Recipe:
    """`steps`: name -> [operation, names of its operands, its settings], in order; "input" has its
    shape as settings. What gives several tensors is read by "picked"."""

    steps: dict[str, list]
    outputs: list[str]
    seed: int = 0  # of weights and inputs
    trains: bool = False  # its only output are scores

    def text(self) -> str:
        lines = ",\n".join(
            f"        {json.dumps(name)}: {json.dumps(step)}" for name, step in self.steps.items()
        )
        return (
            f"Recipe({{\n{lines}}},\n    {json.dumps(self.outputs)}, {self.seed}, {self.trains})".replace(
                "true", "True"
            )
            .replace("false", "False")
            .replace("null", "None")
        )

    def inputs(self) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        return {
            name: torch.randn(how, generator=generator)
            for name, (operation, _, how) in self.steps.items()
            if operation == "input"
        }


class Network(nn.Module):
    """Gives outputs by name; one that trains gives its scores alone."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe
        self.layers = nn.ModuleDict()
        values = recipe.inputs()
        for name in recipe.steps:
            self._compute(name, values)
        self._draw_weights()
        self.train(recipe.trains)

    def forward(self, *inputs: Tensor) -> dict[str, Tensor] | Tensor:
        values = dict(
            zip((name for name, step in self.recipe.steps.items() if step[0] == "input"), inputs)
        )
        for name in self.recipe.steps:
            self._compute(name, values)
        found = {name: values[name] for name in self.recipe.outputs}
        return next(iter(found.values())) if self.recipe.trains else found

    def _compute(self, name: str, values: dict) -> None:
        operation, operands, how = self.recipe.steps[name]
        if operation == "input":
            return
        read = [values[operand] for operand in operands]
        if operation in LAYERS:
            if name not in self.layers:
                self.layers[name] = LAYERS[operation](
                    *([list(read[0].shape)] if read else []), **how
                )
            values[name] = self.layers[name](*read)
        else:
            values[name] = FUNCTIONS[operation](*read, **how)

    def _draw_weights(self) -> None:
        """No scale, shift or statistic is 0 or 1, and sums of products stay of order 1."""
        generator = torch.Generator().manual_seed(self.recipe.seed + 1)
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                if not tensor.is_floating_point():
                    continue
                if "running_var" in name:
                    tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
                else:
                    tensor.copy_(
                        torch.randn(tensor.shape, generator=generator)
                        / math.sqrt(max(1, tensor[0].numel()) if tensor.ndim > 1 else 1)
                    )


def without_dead(recipe: Recipe) -> Recipe:
    """Only what the outputs need."""
    needed: set[str] = set()
    left = list(recipe.outputs)
    while left:
        if (name := left.pop()) not in needed:
            needed.add(name)
            left += recipe.steps[name][1]
    return dataclasses.replace(
        recipe, steps={name: step for name, step in recipe.steps.items() if name in needed}
    )
