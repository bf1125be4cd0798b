# SPDX-License-Identifier: Apache-2.0
"""Networks for the level static: what its passes change (folded batch norms, fused sums and
activations, layouts, shared memory), and the operations of transformers."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):
    """Channels that no block divides beside some that one does; a sum whose operand is read again,
    one that dies; a norm that cannot be folded; a gate; shared weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.stem_norm = (
            nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(16),
        )
        self.same, self.same_norm = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16, eps=1e-3)
        self.deep, self.deep_norm = (
            nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False),
            nn.BatchNorm2d(16, affine=False),
        )
        self.early_norm, self.odd = nn.BatchNorm2d(32), nn.Conv2d(32, 13, 1)
        self.gate = nn.Conv2d(13, 13, 1)
        self.head, self.head_norm = nn.Linear(13, 7), nn.BatchNorm1d(7)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = F.relu(self.stem_norm(self.stem(x)))
        y = F.relu(self.same_norm(self.same(x)) + x)
        z = self.deep_norm(self.deep(y)) + y
        z = F.hardswish(z)
        both = torch.cat([y, z], 1)
        odd = self.odd(F.relu(self.early_norm(both)))
        odd = odd * F.hardsigmoid(self.gate(F.adaptive_avg_pool2d(odd, 1)))
        odd = odd + self.odd(both)
        pooled = F.max_pool2d(F.relu6(odd), 2)
        return {
            "scores": F.log_softmax(self.head_norm(self.head(pooled.mean([2, 3]))), 1),
            "places": pooled,
            "early": y,
        }


def residual_operations():
    torch.manual_seed(21)
    return Residual().eval(), torch.randn(2, 3, 15, 18)


class Kernels(nn.Module):
    """Layers for strata's own kernels: channels that fill no block, sums in place, clamps, no
    padding, stride 2, images of one pixel, a linear layer of a flattened image."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide, self.wide_norm = (
            nn.Conv2d(3, 20, 1),
            nn.Conv2d(20, 37, 3, padding=1, bias=False),
            nn.BatchNorm2d(37),
        )
        self.same, self.inner = nn.Conv2d(37, 37, 3, padding=1, bias=False), nn.Conv2d(37, 24, 3)
        self.halved, self.quarter, self.point = (
            nn.Conv2d(i, o, 3, stride=2, padding=1) for i, o in ((24, 36), (36, 36), (36, 36))
        )
        self.last, self.one, self.one_norm = (
            nn.Conv2d(36, 36, 3, stride=2, padding=1, bias=False),
            nn.Conv2d(36, 36, 3, padding=1),
            nn.BatchNorm2d(36),
        )
        self.hidden, self.hidden_norm, self.head = (
            nn.Linear(36 * 6, 32),
            nn.BatchNorm1d(32),
            nn.Linear(32, 7),
        )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = F.relu(self.wide_norm(self.wide(self.stem(x))))
        # one weight, twice; the sum may lie over x
        y = F.relu6(self.same(F.relu(self.same(x))) + x)
        small = F.relu(self.quarter(F.relu(self.halved(F.hardtanh(self.inner(y), -0.5, 0.75)))))
        pixel = F.relu(self.last(self.point(small)))
        pixel = F.relu(self.one_norm(self.one(pixel)) + pixel)
        hidden = F.relu(self.hidden_norm(self.hidden(small.flatten(1))))
        return {"places": y, "pixel": pixel, "scores": self.head(hidden)}


def kernel_operations():
    torch.manual_seed(23)
    return Kernels().eval(), torch.randn(33, 3, 13, 10)


class Block(nn.Module):
    """A transformer's block on odd lengths: a class token, attention, layer norms, parts, rolls,
    padding, lookups, norms, sums of products."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = (
            nn.Parameter(torch.randn(1, 1, 20)),
            nn.Parameter(torch.randn(1, 8, 20)),
        )
        self.norm, self.grid_norm = nn.LayerNorm(20, eps=1e-6), nn.LayerNorm([8, 20])
        self.attention = nn.MultiheadAttention(20, 2, batch_first=True)
        self.up, self.down = nn.Linear(20, 33), nn.Linear(33, 20, bias=False)
        self.register_buffer(
            "mask", torch.where(torch.rand(8, 8) > 0.5, 0.0, -1.5), persistent=False
        )
        self.table = nn.Parameter(torch.randn(9, 4))
        self.register_buffer("index", (torch.arange(16) * 5 % 9).view(4, 4))
        self.register_buffer("order", torch.tensor([2, -1, 0, 2]), persistent=False)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        hidden = self.norm(x)
        attended, _ = self.attention(hidden, hidden, hidden, need_weights=False)
        grown = self.up(attended)
        q, k, v = grown[..., :30].reshape(x.shape[0], 8, 3, 2, 5).permute(2, 0, 3, 1, 4).unbind(0)
        grid = hidden.reshape(x.shape[0], 2, 4, 20)
        first, second = grown.split([3, 30], -1)
        return {
            "out": x + self.down(F.gelu(grown)),
            "grid": self.grid_norm(x),
            "masked": F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, scale=0.3),
            "causal": F.scaled_dot_product_attention(q, k, v, is_causal=True),
            "product": (q * 0.5) @ k.transpose(-2, -1),
            "narrowed": first - 2 * second[..., 1:8:3] / 3,
            "rolled": torch.roll(grid, (-1, 3), (1, 2)),
            "padded": F.pad(grid, (0, 0, 1, 2), value=0.5),
            "class": hidden[:, 0],
            "negated": 1 - hidden,
            "looked_up": self.table[self.index.view(-1)].view(4, 4, 4).permute(2, 0, 1).contiguous()
            + grid[0, 0, 0, :4],
            "reordered": hidden[self.order],
            "unit": F.normalize(q, dim=-1),
            "einsum": torch.einsum(
                "b g h i d, b g j h d -> b h g i j",
                grid.view(3, 2, 2, 2, 20),
                grid.view(3, 2, 2, 2, 20) * 0.1,
            ),
            "weighed": torch.einsum("bij,bjd->bid", hidden[..., :8], grown),
        }


def block_operations():
    torch.manual_seed(22)
    return Block().eval(), torch.randn(3, 7, 20)
