# SPDX-License-Identifier: Apache-2.0
"""Probe weights: a training step on them is smooth, so that float32 and float64 agree to rounding
and a fault shows. Without them the sign of a value near a kink (a ReLU's 0) flips with the
rounding, and with it a part of the gradient.

Layer by layer in float64, on the very batch that is proven, the bias that comes before a kinked
activation is moved per channel, so that no value lies within 1 of a kink: 70% of the channels on
the side where the activation passes values on, 30% where it does not. What is off in probe1 is on
in probe2. The other kind of kink is a largest value in a pooling's window that another comes near
to: where they are few, gradient steps on the weights part them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from capture.faults import PRODUCTS
from capture.weights import NORMS, away, draw_parameters
from strata_sdk.losses import first_output
from strata_sdk.models import bind

Size = int | Sequence[int]  # of a window, as PyTorch takes it
MARGIN = 1.0
OFF_SHARE = 0.3
ROUNDS = 4
# of a pooling's input, in its deviations: two largest values nearer than that may change places by
# rounding
TIE = 2.0**-17
# nearer than that is one patch of an image twice, summed in another order: its gradient is the same
# wherever it comes from
SAME = 1e-12
# beyond so many they are left as they are: one flip in a large batch moves a gradient little
MANY_TIES = 500
# after it some are left whatever it is: of 160 and 136 (ResNet-18, batch 8 at 128 pixels, both
# probes) 9 and 17 in round 30, 6 and 1 in round 60
TIE_ROUNDS = 30
SHARP_LOGITS = (
    3.0  # a deviation over the classes beyond which softmax leaves one class and no gradient
)

aten = torch.ops.aten
# Values at which an activation's derivative jumps. ReLU6 comes as hardtanh.
KINKS = {
    aten.relu: lambda a: (0.0,),
    aten.leaky_relu: lambda a: (0.0,),
    aten._prelu_kernel: lambda a: (0.0,),
    aten.hardswish: lambda a: (-3.0, 3.0),
    aten.hardsigmoid: lambda a: (-3.0, 3.0),
    aten.hardtanh: lambda a: (
        float(a[1]) if len(a) > 1 else -1.0,
        float(a[2]) if len(a) > 2 else 1.0,
    ),
}
KINKS |= {
    aten.relu_: KINKS[aten.relu],
    aten.leaky_relu_: KINKS[aten.leaky_relu],
    aten.hardswish_: KINKS[aten.hardswish],
    aten.hardsigmoid_: KINKS[aten.hardsigmoid],
    aten.hardtanh_: KINKS[aten.hardtanh],
}


@dataclasses.dataclass
class Found:
    """How far from the kinks the activations of a probe stay."""

    activations: int = 0
    least: float = float("inf")  # the least distance of any value to a kink
    near: int = 0  # values closer than half of MARGIN
    # poolings and reductions that choose a largest value, which ties make kinks too; those are not
    # moved
    maxima: int = 0

    def sentence(self, name: str) -> str:
        return (
            f"{name}: {self.near} values lie near a kink of an activation, where float32 may take the other side"
            if self.near
            else ""
        )


class _Pass(TorchDispatchMode):
    """One forward pass that looks at every kinked activation's input, and moves it (and the layer
    that made it) when `moves`."""

    def __init__(self, module: nn.Module, seed: int, second: bool, moves: bool) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)
        self.second, self.moves, self.found = second, moves, Found()
        self.produced: list[tuple[nn.Module, int, Tensor]] = []
        self.used: set[nn.Module] = set()
        self.last_product: nn.Module | None = None
        self.handles = [
            m.register_forward_hook(self.remember)
            for m in module.modules()
            if isinstance(m, (*PRODUCTS, *NORMS))
        ]

    def remember(self, layer: nn.Module, _args: tuple, output: Tensor) -> None:
        if isinstance(layer, PRODUCTS):
            self.last_product = layer
        bias = getattr(layer, "bias", None)
        if bias is not None and bias.dim() == 1 and isinstance(output, Tensor) and output.dim() > 1:
            self.produced.append(
                (
                    layer,
                    output.dim() - 1 if isinstance(layer, (nn.Linear, nn.LayerNorm)) else 1,
                    output,
                )
            )
            del self.produced[:-16]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kinks = KINKS.get(func.overloadpacket)
        self.found.maxima += "max_pool" in func.__name__ or func.overloadpacket in (
            aten.max,
            aten.amax,
        )
        if kinks is not None and args[0].dim() > 1 and args[0].is_floating_point():
            if self.moves:
                self.move(args[0], kinks(args))
            self.look(args[0], kinks(args))
        return func(*args, **(kwargs or {}))

    def look(self, x: Tensor, kinks: tuple[float, ...]) -> None:
        distance = torch.stack([(x - k).abs() for k in kinks]).amin(0)
        self.found.activations += 1
        self.found.least = min(self.found.least, distance.min().item())
        self.found.near += int((distance < _margin(kinks) / 2).sum())

    def producer(self, x: Tensor) -> tuple[nn.Module, int, Tensor] | None:
        """The layer whose bias moves x: the last one that made a tensor of this shape, or (before a
        pooling) of as many channels."""
        free = [place for place in reversed(self.produced) if place[0] not in self.used]
        alike = [place for place in free if place[2].shape == x.shape]
        alike += [
            place
            for place in free
            if place[2].dim() == x.dim() and place[2].shape[place[1]] == x.shape[place[1]]
        ]
        return alike[0] if alike else None

    def move(self, x: Tensor, kinks: tuple[float, ...]) -> None:
        source = self.producer(x)
        if source is None:
            return
        layer, dim, output = source
        self.used.add(layer)
        channels = x.shape[dim]
        order, count = torch.randperm(channels, generator=self.generator), int(OFF_SHARE * channels)
        extra = torch.rand(channels, generator=self.generator).to(x)
        off = torch.zeros(channels, dtype=torch.bool, device=x.device)
        off[order[count : 2 * count] if self.second else order[:count]] = True
        direct = (
            x.data_ptr() == output.data_ptr()
            and layer.weight is not None
            and layer.weight.shape[0] == channels
        )
        flat = x.movedim(dim, 0).reshape(channels, -1)
        scale, shift = _placement(flat.amin(1), flat.amax(1), off, extra, kinks, direct)
        shape = [1] * x.dim()
        shape[dim] = -1
        x.mul_(scale.view(shape)).add_(shift.view(shape))
        if direct:
            layer.weight.mul_(scale.view(-1, *[1] * (layer.weight.dim() - 1)))
        layer.bias.mul_(scale).add_(shift)


def _margin(kinks: tuple[float, ...]) -> float:
    return MARGIN if len(kinks) == 1 else min(MARGIN, (kinks[1] - kinks[0]) / 4)


def _placement(
    low: Tensor, high: Tensor, off: Tensor, extra: Tensor, kinks: tuple[float, ...], may_scale: bool
) -> tuple[Tensor, Tensor]:
    """Per channel a factor and a shift that bring the range low..high below the first kink (`off`),
    or above it and below the second; 1 and 0 where it lies there."""
    margin = _margin(kinks)
    scale, shift = torch.ones_like(low), kinks[0] + margin + extra - low
    fits = low >= kinks[0] + margin
    if len(kinks) == 2:
        room = kinks[1] - kinks[0] - 2 * margin
        fits = fits & (high <= kinks[1] - margin)
        if may_scale:
            scale = (0.9 * room / (high - low).clamp(min=1e-12)).clamp(max=1.0)
        shift = (kinks[0] + kinks[1]) / 2 - scale * (low + high) / 2
    scale = torch.where(off, torch.ones_like(scale), scale)
    shift = torch.where(off, kinks[0] - margin - extra - high, shift)
    fits = torch.where(off, high <= kinks[0] - margin, fits)
    return torch.where(fits, torch.ones_like(scale), scale), torch.where(
        fits, torch.zeros_like(shift), shift
    )


def make_probe(
    module: nn.Module, entry: Mapping[str, Tensor], bundle: dict, seed: int, second: bool
) -> Found:
    """Changes a float64 module, with dropout switched off, into a probe for `entry`: every
    parameter and running statistic drawn anew, then biases moved. A network without kinks keeps
    what was drawn."""
    generator = torch.Generator().manual_seed(seed + 1 + second)
    with torch.no_grad():
        draw_parameters(module, generator)
        found = Found()
        for _ in range(ROUNDS):
            _run(module, entry, bundle, _Pass(module, seed, second, moves=True))
            found = _run(module, entry, bundle, _Pass(module, seed, second, moves=False))
            if not found.near:
                break
    if found.maxima:
        _part_ties(module, entry, bundle)
    with torch.no_grad():
        for norm in module.modules():
            if isinstance(norm, _BatchNorm) and norm.running_mean is not None:
                norm.running_mean.copy_(away(norm.running_mean.shape, 0.1, 0.5, generator))
                norm.running_var.copy_(1 + away(norm.running_var.shape, 0.1, 0.5, generator))
    return found


class _Enough(Exception):
    """Nothing more of a forward pass is needed."""


class _Ties(TorchFunctionMode):
    """Looks for the first two-dimensional max pooling that has ties, and ends the pass there:
    `number` is its place among all, `close` holds by how much the largest value of a window leads,
    in deviations of the pooling's input, where that is less than twice TIE. `left`: poolings that
    are passed by. No gradient goes through one that was passed."""

    def __init__(self, left: set[int]) -> None:
        super().__init__()
        self.left = left
        self.number = -1
        self.close: Tensor | None = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if "max_pool2d" not in getattr(func, "__name__", "") or "adaptive" in func.__name__:
            return func(*args, **kwargs)
        self.look(*args, **kwargs)
        result = func(*args, **kwargs)
        return (
            result.detach()
            if isinstance(result, Tensor)
            else tuple(part.detach() for part in result)
        )

    def look(
        self,
        input: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        *_more: Any,
        **_named: Any,
    ) -> None:
        self.number += 1
        kernel, padding, dilation = (
            ((extent,) * 2 if isinstance(extent, int) else tuple(extent))
            for extent in (kernel_size, padding, dilation)
        )
        steps = (stride,) * 2 if isinstance(stride, int) else tuple(stride or kernel)
        if kernel[0] * kernel[1] < 2 or dilation != (1, 1) or self.number in self.left:
            return
        windows = _Windows(input, kernel, steps, padding)
        deviation = input.detach().std()
        leads = windows.leads() / deviation
        if 0 < int(((leads > SAME) & (leads < TIE)).sum()) <= MANY_TIES:
            near = windows.values((leads > SAME) & (leads < 2 * TIE))
            first, second = near.topk(2).values.unbind(-1)
            self.close = (first - second) / deviation
            raise _Enough


class _Windows:
    """The windows of a pooling over x, [..., height, width]. There are millions where few are
    looked at."""

    def __init__(
        self, x: Tensor, kernel: Sequence[int], steps: Sequence[int], padding: Sequence[int]
    ) -> None:
        self.planes = x.reshape(-1, *x.shape[-2:])
        self.kernel, self.steps, self.padding = kernel, steps, padding

    def leads(self) -> Tensor:
        """By how much the largest value of each leads the next one, [planes, rows, columns]."""
        (above, aside), (high, wide) = self.padding, self.kernel
        whole = functional.pad(
            self.planes.detach(), (aside, aside, above, above), value=float("-inf")
        )

        def at(place: int) -> Tensor:
            """Of each window the value at a place."""
            down, right = divmod(place, wide)
            below, beyond = whole.shape[1] - high + down + 1, whole.shape[2] - wide + right + 1
            return whole[:, down : below : self.steps[0], right : beyond : self.steps[1]]

        first = at(0)
        second = torch.full_like(first, float("-inf"))
        for place in range(1, high * wide):
            second = torch.maximum(second, torch.minimum(first, at(place)))
            first = torch.maximum(first, at(place))
        return first - second

    def values(self, chosen: Tensor) -> Tensor:
        """Of those that are True, [count, values]; with x's gradient."""
        _, height, width = self.planes.shape
        plane, row, column = chosen.nonzero().unsqueeze(-1).unbind(1)
        place = torch.arange(self.kernel[0] * self.kernel[1], device=chosen.device)
        down, right = place // self.kernel[1], place % self.kernel[1]
        y = row * self.steps[0] - self.padding[0] + down
        x = column * self.steps[1] - self.padding[1] + right
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        flat = (plane * height + y.clamp(0, height - 1)) * width + x.clamp(0, width - 1)
        return self.planes.flatten()[flat].where(inside, float("-inf"))


def _part_ties(module: nn.Module, entry: Mapping[str, Tensor], bundle: dict) -> None:
    """Pooling by pooling, steps of twice Polyak's length down the squares of what its ties lack to
    twice TIE, until none is nearer than TIE. The layers between a pooling and the one before it
    move, so that poolings that are done stay so, and a step costs no more than those layers."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    rounds: dict[int, int] = {}
    left: set[int] = set()
    while True:
        look = _Ties(left)
        with torch.enable_grad(), contextlib.suppress(_Enough):
            _forward(module, entry, bundle, look)
        if look.close is None:
            return
        rounds[look.number] = rounds.get(look.number, 0) + 1
        if rounds[look.number] == TIE_ROUNDS:
            left.add(look.number)
        lack = (2 * TIE - look.close).square().sum()
        gradients = (
            torch.autograd.grad(lack, parameters, allow_unused=True) if lack.requires_grad else []
        )
        length = sum(g.square().sum().item() for g in gradients if g is not None)
        if not length > 0:  # nothing before it is trained
            left.add(look.number)
            continue
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients):
                if gradient is not None:
                    parameter.sub_(2 * lack.item() / length * gradient)


def _forward(
    module: nn.Module,
    entry: Mapping[str, Tensor],
    bundle: dict,
    look: TorchDispatchMode | TorchFunctionMode,
) -> Tensor:
    """The logits of one pass in train mode under `look`."""
    device = next(module.parameters()).device
    args, kwargs = bind(
        {k: (v.double() if v.is_floating_point() else v).to(device) for k, v in entry.items()},
        bundle,
    )
    module.train()
    try:
        with look:
            return first_output(module(*args, **kwargs))
    finally:
        module.eval()


def _run(module: nn.Module, entry: Mapping[str, Tensor], bundle: dict, look: _Pass) -> Found:
    """One pass; logits that would leave softmax no gradient are made smaller, by the last layer."""
    try:
        logits = _forward(module, entry, bundle, look)
    finally:
        for handle in look.handles:
            handle.remove()
    deviation = logits.std(1).mean().item() if logits.dim() == 2 and logits.shape[1] > 1 else 0.0
    if look.moves and deviation > SHARP_LOGITS and look.last_product is not None:
        for parameter in look.last_product.parameters(recurse=False):
            parameter.mul_(1 / deviation)
    return look.found
