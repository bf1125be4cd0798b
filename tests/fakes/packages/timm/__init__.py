# SPDX-License-Identifier: Apache-2.0
"""Stands for timm in tests: one small network, by timm's functions as strata calls them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

TAG = "tiny_net.large"
SIZES = {"tiny_net": (3, 16, 16), TAG: (3, 24, 24)}


class TinyNet(nn.Module):
    def __init__(
        self,
        in_chans: int = 3,
        num_classes: int = 5,
        width: int = 4,
        drop_rate: float = 0.0,
        img_size: int | tuple[int, int] | None = None,
        act_layer: str | Callable = "relu",
        norm_layer: Callable | None = None,
    ) -> None:
        super().__init__()
        self.body = nn.Conv2d(in_chans, width, 3)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.mix(self.body(x).relu().mean((2, 3)))))


def tiny_net(pretrained: bool = False, **kwargs: Any) -> TinyNet:
    return TinyNet(**dict({"drop_rate": 0.0}, **kwargs))


def own_width(pretrained: bool = False, **kwargs: Any) -> TinyNet:
    """Sets what a caller must not."""
    return TinyNet(width=6, **kwargs)


def with_numbers(pretrained: bool = False, **kwargs: Any) -> TinyNet:
    """Needs a tensor's value while it is made, which a tensor without memory has not."""
    return TinyNet(width=int(torch.linspace(0, 8, 3)[1].item()), **kwargs)


def downloads(pretrained: bool = False, **kwargs: Any) -> TinyNet:
    """Asks for what it lacks, which none of its users wants."""
    socket.create_connection(("192.0.2.1", 80), timeout=1)
    return TinyNet(**kwargs)


BUILDERS = {f.__name__: f for f in (tiny_net, own_width, with_numbers, downloads)}


def list_models(filter: str = "", pretrained: bool = False) -> list[str]:
    return [TAG] if pretrained else sorted(BUILDERS)


def model_entrypoint(model_name: str) -> Callable[..., nn.Module]:
    return BUILDERS[model_name.partition(".")[0]]


def create_model(model_name: str, pretrained: bool = False, **kwargs: Any) -> nn.Module:
    assert not pretrained, "weights were asked for"
    model: Any = model_entrypoint(model_name)(pretrained=False, **kwargs)
    model.pretrained_cfg = {"input_size": SIZES.get(model_name, SIZES["tiny_net"])}
    return model
