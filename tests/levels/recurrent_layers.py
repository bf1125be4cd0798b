# SPDX-License-Identifier: Apache-2.0
"""The graph's operation for one layer of a recurrent network in one direction
(src/graph/recurrent.hpp) and its gradients, by PyTorch's own LSTM, GRU and RNN in any type: ATen's
operation of that name has LSTM in float32 alone."""

from __future__ import annotations

import torch
from torch import Tensor

NETWORKS = (torch.rnn_relu, torch.rnn_tanh, torch.lstm, torch.gru)
WEIGHTS = ("weight0", "weight1", "weight2", "weight3")


def layer(
    input: Tensor, weights: list[Tensor | None], hx_: Tensor, cx_: Tensor | None, args: dict
) -> list[Tensor]:
    """The sequence, the last state, of an LSTM the last cell."""
    given = [w for w in weights if w is not None]
    state = hx_[None] if cx_ is None else [hx_[None], cx_[None]]
    steps = input.flip(0) if args["reverse"] else input
    output, *last = NETWORKS[args["mode"]](
        steps, state, given, len(given) == 4, 1, 0.0, False, False, False
    )
    return [output.flip(0) if args["reverse"] else output, *(one[0] for one in last)]


def forward(**args) -> list[Tensor]:
    outputs = layer(args["input"], [args[name] for name in WEIGHTS], args["hx_"], args["cx_"], args)
    return outputs + ([args["input"].new_zeros(0)] if args["train"] else [])


def backward(**args) -> list[Tensor]:
    operands = [args[name] for name in ("input", *WEIGHTS, "hx_", "cx_")]
    leaves = [None if one is None else one.detach().requires_grad_() for one in operands]
    with torch.enable_grad():
        outputs = layer(leaves[0], leaves[1:5], leaves[5], leaves[6], args)
    gradients = [args[name] for name in ("grad_output", "grad_hy", "grad_cy") if name in args]
    wanted = [one for one, flag in zip(leaves, args["output_mask"], strict=True) if flag]
    return list(torch.autograd.grad(outputs, wanted, gradients))


RECURRENT = {
    "aten.mkldnn_rnn_layer.default": forward,
    "aten.mkldnn_rnn_layer_backward.default": backward,
}
