# SPDX-License-Identifier: Apache-2.0
"""Draws a network of network_recipes.py step after step: what may follow what, with settings at
random."""

from __future__ import annotations

import math
import random

import torch
from network_parts import PARTS, PARTS_TO_TRAIN
from network_recipes import FUNCTIONS, LAYERS, Recipe, without_dead
from torch import Tensor

# values beyond are not drawn on: a network that grows without bounds says nothing of rounding
LARGEST = 50.0
MOST_ELEMENTS = 6000


class Draw(random.Random):
    """Draws step after step; one that PyTorch refuses, or whose result is too large, is left
    out."""

    def __init__(self, seed: int, trains: bool) -> None:
        super().__init__(seed)
        self.recipe, self.trains = Recipe({}, [], seed, trains), trains
        self.values: dict[str, Tensor] = {}

    def network(self) -> Recipe:
        image = [
            self.choice((1, 1, 2, 3)),
            self.choice((1, 2, 3, 4, 5, 8, 16, 17, 32)),
            self.choice((1, 1, 2, 3, 5, 7)),
            self.choice((1, 1, 3, 4, 6)),
        ]
        if self.trains:
            image[0] = self.choice((1, 2, 3, 5))
        self.step(
            "input",
            [],
            image
            if self.random() < 0.8 or self.trains
            else self.choice(([2, 5, 12], [1, 1, 16], [3, 17], [1, 7], [2, 3, 4, 5, 6])),
        )
        if self.random() < 0.15:
            self.step("input", [], [1, *image[1:]])
        for _ in range(self.choice((3, 5, 8, 12))):
            self.choice(MOVES_TO_TRAIN if self.trains else MOVES)(self, self.recent())
        read = {operand for _, operands, _ in self.recipe.steps.values() for operand in operands}
        ends = [name for name in self.values if name not in read]
        self.recipe.outputs = (
            [self.scores(ends)]
            if self.trains
            else self.sample(ends, min(len(ends), self.choice((1, 2, 3, 4))))
        )
        return without_dead(self.recipe)

    def scores(self, ends: list[str]) -> str:
        rows = self.shape("v0")[0]
        of_batch = [
            name for name in ends if self.rank(name) > 1 and self.shape(name)[0] == rows
        ] or ["v0"]
        flat = [
            self.step("mean", [name], {"dim": [2, 3]})
            if self.rank(name) == 4 and self.random() < 0.5
            else self.step("flatten", [name], {"start_dim": 1})
            for name in self.sample(of_batch, min(len(of_batch), 3))
        ]
        return self.step(
            "linear",
            [self.step("cat", flat, {"dim": 1}) if len(flat) > 1 else flat[0]],
            {"out": self.choice((2, 5, 10)), "bias": True},
        )

    def step(self, operation: str, operands: list[str], how: dict | list) -> str:
        """The new value's name, or nothing where the step cannot be."""
        name = f"v{len(self.recipe.steps)}"
        self.recipe.steps[name] = [operation, operands, how]
        try:
            value = (
                torch.randn(how)
                if operation == "input"
                else self.computed(operation, operands, how)
            )
            if isinstance(value, Tensor):
                if (
                    value.numel() == 0
                    or value.numel() > MOST_ELEMENTS
                    or value.ndim > 6
                    or not value.abs().max() <= LARGEST
                ):
                    raise ValueError(name)
                self.values[name] = value
            else:
                parts = [
                    self.recipe.steps.__setitem__(f"{name}_{i}", ["picked", [name], {"part": i}])
                    or f"{name}_{i}"
                    for i in range(len(value))
                ]
                for part, tensor in zip(parts, value):
                    self.values[part] = tensor
            return name
        except (ValueError, RuntimeError, IndexError, TypeError):
            del self.recipe.steps[name]
            return ""

    def computed(self, operation: str, operands: list[str], how: dict):
        read = [self.values[operand] for operand in operands]
        if operation in LAYERS:
            return LAYERS[operation](*([list(read[0].shape)] if read else []), **how)(
                *read
            ).detach()
        return FUNCTIONS[operation](*read, **how)

    def recent(self) -> str:
        """Later values more often, so that networks get deep."""
        names = list(self.values)
        return names[max(self.randrange(len(names)), self.randrange(len(names)))]

    def shape(self, x: str) -> list[int]:
        return list(self.values[x].shape)

    def rank(self, x: str) -> int:
        return self.values[x].ndim

    def dim(self, x: str) -> int:
        return self.randrange(-self.rank(x), self.rank(x)) if self.rank(x) else 0

    def like(self, x: str, but: int | None = None) -> list[str]:
        """Values of the same shape, but for one dimension."""

        def key(name: str) -> list[int]:
            shape = self.shape(name)
            if but is not None and len(shape) == self.rank(x):
                shape[but] = 0
            return shape

        return [name for name in self.values if key(name) == key(x)]


def convolution(d: Draw, x: str) -> str:
    if d.rank(x) != 4:
        return ""
    channels = d.shape(x)[1]
    out = d.choice((1, 3, 4, 8, 16, 17, 32, channels, channels, 2 * channels))
    groups = d.choice((1, 1, 1, channels, math.gcd(channels, out), 2))
    padding, stride = d.choice((0, 1, 1, 2, "same", [1, 0])), d.choice((1, 1, 1, 2, [1, 2], 3))
    if d.trains and padding == "same":  # of an even kernel it is refused
        padding = 1
    return d.step(
        "conv",
        [x],
        {
            "out": out,
            "kernel": d.choice((1, 1, 3, 3, 3, 2, 5, [1, 3])),
            "stride": 1 if padding == "same" else stride,
            "padding": padding,
            "dilation": d.choice((1, 1, 1, 2, [1, 3])),
            "groups": groups,
            "bias": d.random() < 0.4,
        },
    )


def norm(d: Draw, x: str) -> str:
    if d.rank(x) not in (2, 3, 4):
        return ""
    return d.step(
        "batch_norm",
        [x],
        {
            "affine": d.random() < 0.8,
            "eps": d.choice((1e-5, 1e-3)),
            "track_running_stats": d.random() < 0.93,
        },
    )


ACTIVATIONS = [
    ("relu", {}),
    ("relu", {}),
    ("relu6", {}),
    ("hardswish", {}),
    ("hardsigmoid", {}),
    ("hardtanh", {"min_val": -0.5, "max_val": 0.7}),
    ("sigmoid", {}),
    ("tanh", {}),
    ("silu", {}),
    ("gelu", {}),
    ("gelu", {"approximate": "tanh"}),
    ("leaky_relu", {"negative_slope": 0.1}),
    ("clamp", {"min": -0.3}),
    ("clamp", {"max": 0.4}),
    ("clamp", {"min": -0.2, "max": 0.6}),
    ("exp", {}),
    ("neg", {}),
]
ONLY_INFERRED = [
    ("elu", {}),
    ("hardtanh", {"min_val": 0.2, "max_val": 0.9}),
    ("abs", {}),
    ("square_root", {}),
    ("dropout", {"training": False}),
]


def activation(d: Draw, x: str) -> str:
    name, how = d.choice(ACTIVATIONS if d.trains else ACTIVATIONS + ONLY_INFERRED)
    return d.step(name, [x], how)


def block(d: Draw, x: str) -> str:
    """A convolution with what usually follows."""
    y = convolution(d, x)
    if y and d.random() < 0.6:
        y = norm(d, y) or y
    if y and d.random() < 0.6:
        y = activation(d, y) or y
    return y


def residual(d: Draw, x: str) -> str:
    if d.rank(x) != 4:
        return ""
    channels = d.shape(x)[1]
    y = d.step(
        "conv",
        [x],
        {
            "out": channels,
            "kernel": 3,
            "padding": 1,
            "groups": d.choice((1, 1, channels)),
            "bias": d.random() < 0.4,
        },
    )
    if y and d.random() < 0.6:
        y = norm(d, y) or y
    y = y and d.step("add", d.choice(([x, y], [y, x])), {})
    return activation(d, y) if y and d.random() < 0.6 else y


def arithmetic(d: Draw, x: str) -> str:
    operation = d.choice(
        ("add", "add", "sub", "mul") if d.trains else ("add", "add", "sub", "mul", "divide")
    )
    operands = [x, d.choice(d.like(x))]
    d.shuffle(operands)
    return d.step(
        operation,
        operands,
        {"alpha": 0.5} if operation in ("add", "sub") and d.random() < 0.15 else {},
    )


def broadcast(d: Draw, x: str) -> str:
    """With a parameter, or with what the value itself gives, of fewer elements."""
    shape = [extent if d.random() < 0.5 else 1 for extent in d.shape(x)][d.choice((0, 0, 1)) :]
    choice = d.random()
    if choice < 0.4:
        y = d.step("parameter", [], {"shape": shape or [1]})
    elif choice < 0.7 and d.rank(x) == 4:
        y = d.step("adaptive_avg_pool2d", [x], {"output_size": 1})
    else:
        y = d.step("mean", [x], {"dim": [d.dim(x)], "keepdim": True})
    operands = [x, y]
    if d.random() < 0.4:
        d.shuffle(operands)
    return y and d.step(d.choice(("add", "mul", "sub")), operands, {})


def number(d: Draw, x: str) -> str:
    return d.step(
        "number",
        [x],
        {
            "name": d.choice(("add", "sub", "mul", "div", "rsub")),
            "number": d.choice((0.5, 2, -1.5, 3)),
        },
    )


def pooling(d: Draw, x: str) -> str:
    if d.rank(x) != 4:
        return ""
    window = {
        "kernel_size": d.choice((2, 3, [2, 1], [1, 3])),
        "stride": d.choice((1, 2, 3, [2, 1])),
        "padding": d.choice((0, 0, 1, [1, 0])),
        "ceil_mode": d.random() < 0.3,
    }
    kind = d.choice(("max", "average", "adaptive", "adaptive"))
    if kind == "max":
        return d.step("max_pool2d", [x], window | {"dilation": d.choice((1, 1, 2))})
    if kind == "average":
        return d.step(
            "avg_pool2d",
            [x],
            window
            | {
                "count_include_pad": d.random() < 0.5,
                "divisor_override": d.choice((None, None, 3)),
            },
        )
    return d.step("adaptive_avg_pool2d", [x], {"output_size": d.choice((1, 2, [2, 3], [1, 4], 7))})


def reduction(d: Draw, x: str) -> str:
    dims = (
        [2, 3]
        if d.rank(x) == 4 and d.random() < 0.4
        else sorted(d.sample(range(d.rank(x)), d.choice((1, 1, min(2, d.rank(x))))))
    )
    return d.step(
        d.choice(("mean", "sum") if d.trains else ("mean", "mean", "sum", "amax")),
        [x],
        {"dim": dims, "keepdim": d.random() < 0.6},
    )


def softmax(d: Draw, x: str) -> str:
    return d.step(d.choice(("softmax", "log_softmax")), [x], {"dim": d.dim(x)})


def layer_norm(d: Draw, x: str) -> str:
    dims = d.choice((1, 1, min(2, d.rank(x))))
    rows = d.values[x].flatten(-dims)
    # of equal values nothing is left but the rounding of their mean
    if dims == 0 or rows.std(-1, correction=0).min() < 0.01 * rows.abs().max():
        return ""
    return d.step(
        "layer_norm", [x], {"dims": dims, "elementwise_affine": d.random() < 0.8, "eps": 1e-5}
    )


def linear(d: Draw, x: str) -> str:
    y = d.step("linear", [x], {"out": d.choice((1, 5, 16, 20)), "bias": d.random() < 0.7})
    return activation(d, y) if y and d.random() < 0.5 else y


def join(d: Draw, x: str) -> str:
    dim = 1 if d.random() < 0.7 else d.dim(x)
    others = d.like(x, dim) if -d.rank(x) <= dim < d.rank(x) else []
    parts = [x, *d.sample(others, min(len(others), d.choice((1, 2))))]
    d.shuffle(parts)
    return (
        d.step("cat", parts, {"dim": dim})
        if d.random() < 0.85
        else d.step("stack", [x, d.choice(d.like(x))], {"dim": d.dim(x)})
    )


def divide(d: Draw, x: str) -> str:
    dim = 1 if d.random() < 0.5 else d.dim(x)
    extent = d.shape(x)[dim] if -d.rank(x) <= dim < d.rank(x) else 0
    kind = d.choice(("chunk", "split", "unbind", "select", "slice"))
    if extent < 2 or (kind == "unbind" and extent > 4):
        return ""
    first = d.randrange(1, extent)
    how = {
        "chunk": {"chunks": 2, "dim": dim},
        "split": {"sizes": [first, extent - first], "dim": dim},
        "unbind": {"dim": dim},
        "select": {"dim": dim, "index": d.randrange(-extent, extent)},
        "slice": {
            "dim": dim % d.rank(x),
            "start": d.choice((0, first, -1)),
            "stop": d.choice((None, extent, -1)),
            "step": d.choice((1, 1, 2)),
        },
    }
    return d.step(kind, [x], how[kind])


def order(d: Draw, x: str) -> str:
    dims = list(range(d.rank(x)))
    d.shuffle(dims)
    shape = d.shape(x)
    kind = d.choice(
        ("permute", "transpose", "flatten", "shuffle", "reshape", "roll", "pad", "expand")
    )
    how = {
        "permute": {"dims": dims},
        "transpose": {"dim0": d.dim(x), "dim1": d.dim(x)},
        "flatten": {"start_dim": d.choice((0, 1, 2, -2))},
        "shuffle": {"groups": d.choice((2, shape[1] if len(shape) > 1 else 1))},
        "reshape": {
            "shape": d.choice(([*shape[:-2], -1], [-1, *shape[2:]], [*shape, 1], [1, *shape]))
        },
        "roll": {"shifts": d.choice((1, -1, 2)), "dims": d.dim(x)},
        "pad": {
            "pad": [d.choice((0, 1, 2)) for _ in range(2 * d.choice((1, 2)))],
            "value": d.choice((0.0, 0.5)),
        },
        "expand": {"shape": [d.choice((2, 3)) if extent == 1 else extent for extent in shape]},
    }
    return d.step(kind, [x], how[kind])


def product(d: Draw, x: str) -> str:
    if d.rank(x) < 2:
        return ""
    other = d.step("transpose", [d.choice(d.like(x))], {"dim0": -1, "dim1": -2})
    return d.step("matmul", d.choice(([x, other], [other, x])), {})


def attention(d: Draw, x: str) -> str:
    # PyTorch 2.15's own gradient of a batch norm is wrong for what comes back from attention over
    # images of one column
    if d.trains and d.rank(x) == 4:
        return ""
    return (
        d.step(
            "attention",
            [x, d.choice(d.like(x)), d.choice(d.like(x))],
            {"causal": d.random() < 0.3 and not d.trains},
        )
        if d.rank(x) in (3, 4)
        else ""
    )


MOVES_TO_TRAIN = [
    block,
    block,
    block,
    block,
    residual,
    residual,
    norm,
    activation,
    activation,
    arithmetic,
    broadcast,
    number,
    pooling,
    pooling,
    reduction,
    softmax,
    linear,
    join,
    join,
    divide,
    order,
    order,
    layer_norm,
    product,
    attention,
    *PARTS_TO_TRAIN,
]
MOVES = [*MOVES_TO_TRAIN, convolution, layer_norm, product, attention, pooling, divide, order]
MOVES += PARTS
