# SPDX-License-Identifier: Apache-2.0
"""The sizes of activations, gradients and weights in every layer of one training step
(docs/protocol.md, norms): where a network's signal dies out or grows."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import models


class Size:
    """The root mean square of all elements that were added, in float64."""

    def __init__(self) -> None:
        self.squares, self.count = 0.0, 0

    def add(self, tensor: Tensor) -> None:
        self.squares += float(tensor.detach().double().square().sum())
        self.count += tensor.numel()

    def value(self) -> float | None:
        """None: nothing was added, or what was is not finite."""
        rms = math.sqrt(self.squares / self.count) if self.count and self.squares >= 0 else math.nan
        return rms if math.isfinite(rms) else None


def layers_of(module: nn.Module) -> dict[str, tuple[nn.Module, list[Tensor]]]:
    """What is called a layer: a module that has trained parameters of two dimensions or more itself
    (convolutions, linear layers, embeddings, attention), with these."""
    own = {
        name: (
            part,
            [p for p in part.parameters(recurse=False) if p.requires_grad and p.dim() >= 2],
        )
        for name, part in module.named_modules()
    }
    return {name or "network": norms for name, norms in own.items() if norms[1]}


def of_step(
    level: Any, inputs: Sequence[Tensor], named: Mapping[str, Tensor], labels: Tensor
) -> list[dict[str, Any]]:
    """One entry a layer, in the order in which they ran: its name, `activation` (its output),
    `gradient` and `weight` as root mean squares; None: not finite, or no such tensor. The level is
    as before: weights are not moved, buffers and generators are put back, gradients are gone."""
    layers = layers_of(level.module)
    sizes: dict[str, Size] = {}

    def watch(name: str) -> Any:
        def hook(_module: nn.Module, _inputs: Any, result: Any) -> None:
            for output in (
                [result] if isinstance(result, Tensor) else models.flatten_outputs(result).values()
            ):
                if output.is_floating_point():
                    sizes.setdefault(name, Size()).add(output)

        return hook

    with contextlib.ExitStack() as undo:
        undo.enter_context(
            torch.random.fork_rng(devices=[] if level.device.type == "cpu" else None)
        )
        undo.enter_context(kept_buffers(level.module))
        for name, (layer, _) in layers.items():
            undo.callback(layer.register_forward_hook(watch(name)).remove)
        level.optimiser.zero_grad()
        level.loss_of_batch(inputs, named, labels).backward()
    entries = []
    # hooks ran in the order of the layers
    for name in [
        *sizes,
        *(name for name in layers if name not in sizes),
    ]:
        gradient, weight = Size(), Size()
        for parameter in layers[name][1]:
            weight.add(parameter)
            if parameter.grad is not None:
                gradient.add(parameter.grad)
        entries.append(
            {
                "name": name,
                "activation": sizes.get(name, Size()).value(),
                "gradient": gradient.value(),
                "weight": weight.value(),
            }
        )
    level.optimiser.zero_grad()
    return entries


@contextlib.contextmanager
def kept_buffers(module: nn.Module) -> Iterator[None]:
    """BatchNorm's statistics and the like are afterwards what they were."""
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    try:
        yield
    finally:
        with torch.no_grad():
            for name, buffer in module.named_buffers():
                buffer.copy_(before[name])
