# SPDX-License-Identifier: Apache-2.0
"""Dropout that a network calls as a function, `F.dropout(x, training=self.training)`: no layer
holds its probability, so it is changed on the way, by a mode that sees every call.

Only while dropout is off, or while a capture looks for it: a network as given runs without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

# All take (input, p, training); PyTorch's own operators call the last one `train`.
DROPOUTS = frozenset(
    {
        functional.dropout,
        functional.dropout1d,
        functional.dropout2d,
        functional.dropout3d,
        functional.alpha_dropout,
        functional.feature_alpha_dropout,
        torch.dropout,
        torch.dropout_,
        torch.feature_dropout,
        torch.feature_dropout_,
        torch.alpha_dropout,
        torch.alpha_dropout_,
        torch.feature_alpha_dropout,
        torch.feature_alpha_dropout_,
    }
)
# its fifth argument is dropout_p, whatever the module's mode
ATTENTION = functional.scaled_dot_product_attention


class NoDropoutCalls(TorchFunctionMode):
    """Every dropout has probability 0. Simple enough for torch.compile to follow."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in DROPOUTS:
            args, kwargs = with_argument(args, kwargs, 1, "p", 0.0)
        elif func is ATTENTION:
            args, kwargs = with_argument(args, kwargs, 4, "dropout_p", 0.0)
        return func(*args, **kwargs)


def with_argument(
    args: tuple, kwargs: dict, place: int, name: str, value: float
) -> tuple[tuple, dict]:
    if len(args) > place:
        return (*args[:place], value, *args[place + 1 :]), kwargs
    return args, {**kwargs, name: value}


def without_calls(network: Callable[..., Any]) -> Callable[..., Any]:
    """The network with every dropout that it calls switched off."""

    def still(*inputs: Any, **named: Any) -> Any:
        with NoDropoutCalls():
            return network(*inputs, **named)

    return still
