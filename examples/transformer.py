# SPDX-License-Identifier: Apache-2.0
"""A small text encoder with integer inputs by keyword:

strata compare examples/transformer.py:build --input ids=int64:1x128:0..30521 --input
mask=int64:1x128:1
"""

import torch
from torch import Tensor, nn


class Layer(nn.Module):
    """Attention and a feed-forward part, each normalised first and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act, self.down = (
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: Tensor, visible: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            self.qkv(self.norm1(x))
            .view(batch, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Encoder(nn.Module):
    """ids and mask, both (N, L) int64 -> {"last": (N, L, width), "pooled": (N, classes)}."""

    def __init__(
        self,
        vocabulary: int = 30522,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        longest: int = 512,
        classes: int = 5,
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        visible = mask[:, None, None, :] != 0
        for layer in self.layers:
            x = layer(x, visible)
        last = self.norm(x)
        share = mask[:, :, None].to(last.dtype)
        return {
            "last": last,
            "pooled": self.head((last * share).sum(1) / share.sum(1).clamp(min=1)),
        }


def build() -> nn.Module:
    return Encoder()
