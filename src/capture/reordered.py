# SPDX-License-Identifier: Apache-2.0
"""Legitimate runs that owe nothing to the order in which PyTorch's kernels add: every product of
matrices and convolution has its terms in another order, and every sum adds one term after the other
in float32, where PyTorch adds blocks or in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
LANES = 16
Order = Callable[[int], Tensor]  # of so many terms
Ints = Sequence[int]


def lanes(terms: int) -> Tensor:
    """As a vector of 16 adds: every 16th term, then those beside them."""
    return torch.argsort(torch.arange(terms) % LANES, stable=True)


def shuffled(seed: int) -> Order:
    generator = torch.Generator().manual_seed(seed)
    return lambda terms: torch.randperm(terms, generator=generator)


class Reordered(TorchDispatchMode):
    """Adds in `order`."""

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = NotImplemented
        if func in SUMS:
            result = SUMS[func](self, *args, **kwargs)
        elif func in PARTS:
            with self:
                result = PARTS[func](*args, **kwargs)
        elif func.overloadpacket in WHOLE:  # only inference mode shows them in one
            with self:
                result = func.decompose(*args, **kwargs)
        return func(*args, **kwargs) if result is NotImplemented else result

    def picked(self, t: Tensor, dim: int, order: Tensor) -> Tensor:
        return t.index_select(dim, order.to(t.device))

    def mm(self, a: Tensor, b: Tensor) -> Tensor:
        order = self.order(len(b))
        # along the rows of a weight, which comes transposed
        return aten.mm(self.picked(a, 1, order), self.picked(b.t(), 1, order).t())

    def addmm(
        self, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        return beta * c + alpha * self.mm(a, b)

    def bmm(self, a: Tensor, b: Tensor) -> Tensor:
        order = self.order(b.shape[1])
        return aten.bmm(self.picked(a, 2, order), self.picked(b.mT, 2, order).mT)

    def baddbmm(
        self, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        return beta * c + alpha * self.bmm(a, b)

    def mv(self, a: Tensor, b: Tensor) -> Tensor:
        return self.mm(a, b[:, None])[:, 0]

    def convolution(
        self,
        x: Tensor,
        w: Tensor,
        bias: Tensor | None,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: bool,
        out: Ints,
        groups: int,
    ) -> Tensor:
        if groups > 1:
            return NotImplemented
        order = self.order(x.shape[1])
        x, w = self.picked(x, 1, order), self.picked(w, 0 if transposed else 1, order)
        y = aten.convolution(x, w, None, stride, padding, dilation, transposed, out, groups)
        return y if bias is None else y + bias.reshape(-1, *[1] * (y.dim() - 2))

    def sum(
        self,
        t: Tensor,
        dims: Ints | None = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        if t.dtype != torch.float32 or dtype not in (None, t.dtype) or not t.numel() or not t.dim():
            return NotImplemented
        dims = sorted(d % t.dim() for d in dims) if dims else list(range(t.dim()))
        kept = [d for d in range(t.dim()) if d not in dims]
        rows = t.permute(*kept, *dims).reshape(-1, math.prod(t.shape[d] for d in dims))
        first = torch.zeros(1, 1, dtype=torch.int64, device=t.device).expand_as(rows)
        total = rows.new_zeros(len(rows), 1).scatter_add(1, first, rows)
        return total.reshape(
            [1 if d in dims else n for d, n in enumerate(t.shape) if keepdim or d in kept]
        )

    def mean(
        self, t: Tensor, dims: Ints | None = None, keepdim: bool = False, **named: Any
    ) -> Tensor:
        total = self.sum(t, dims, keepdim, **named)
        return total if total is NotImplemented else total * (total.numel() / t.numel())

    def var_mean(
        self,
        t: Tensor,
        dims: Ints | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
    ) -> tuple[Tensor, Tensor]:
        mean = self.mean(t, dims, True)
        if mean is NotImplemented:
            return mean
        squares = self.sum((t - mean).square(), dims, keepdim)
        terms = t.numel() // mean.numel() - (1 if correction is None else correction)
        return squares / max(terms, 0), mean.reshape(squares.shape)

    def var(self, t: Tensor, dims: Ints | None = None, **named: Any) -> Tensor:
        both = self.var_mean(t, dims, **named)
        return both if both is NotImplemented else both[0]

    def std(self, t: Tensor, dims: Ints | None = None, **named: Any) -> Tensor:
        var = self.var(t, dims, **named)
        return var if var is NotImplemented else var.sqrt()

    def cumsum(self, t: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
        if t.dtype != torch.float32 or dtype not in (None, t.dtype) or not t.dim():
            return NotImplemented
        return torch.from_numpy(t.detach().cpu().numpy().cumsum(dim)).to(t.device)


WHOLE = {
    aten.linear,
    aten.matmul,
    aten.einsum,
    aten.conv1d,
    aten.conv2d,
    aten.conv3d,
    aten.conv_transpose1d,
    aten.conv_transpose2d,
    aten.conv_transpose3d,
    aten.adaptive_avg_pool1d,
    aten.adaptive_avg_pool2d,
    aten.adaptive_avg_pool3d,
    aten.layer_norm,
    aten.group_norm,
    aten.instance_norm,
    aten.var,
    aten.std,
    aten.var_mean,
    aten.mean,
    aten.sum,
}
PARTS: dict[Any, Callable] = get_decompositions([aten.native_layer_norm, aten.native_group_norm])
SUMS: dict[Any, Callable] = {
    aten.mm.default: Reordered.mm,
    aten.addmm.default: Reordered.addmm,
    aten.bmm.default: Reordered.bmm,
    aten.baddbmm.default: Reordered.baddbmm,
    aten.mv.default: Reordered.mv,
    aten.convolution.default: Reordered.convolution,
    aten.sum.default: Reordered.sum,
    aten.sum.dim_IntList: Reordered.sum,
    aten.mean.default: Reordered.mean,
    aten.mean.dim: Reordered.mean,
    aten.var_mean.correction: Reordered.var_mean,
    aten.var.correction: Reordered.var,
    aten.std.correction: Reordered.std,
    aten.cumsum.default: Reordered.cumsum,
}
