# SPDX-License-Identifier: Apache-2.0
"""Networks for levels that run the captured graph on a library's primitives: every family of
operations on odd shapes, each result an output of its own."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Images(nn.Module):
    """Batch 1, extents that no block divides: convolutions of every kind, batch norm, pooling,
    activations, concatenation, a channel shuffle, 1x1 images."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(12, eps=1e-3)
        self.depthwise = nn.Conv2d(12, 12, 3, padding=2, dilation=2, groups=12, bias=False)
        self.grouped = nn.Conv2d(12, 18, (1, 3), padding=(0, 1), groups=3)
        self.same = nn.Conv2d(18, 5, 2, padding="same")
        self.pointwise = nn.Conv2d(12, 12, 1)
        self.line, self.volume = nn.Conv1d(5, 7, 3), nn.Conv3d(1, 4, 2)
        self.unscaled = nn.BatchNorm2d(18, affine=False)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        first = F.relu6(self.norm(self.plain(x)))
        deep = F.hardswish(self.depthwise(first))
        wide = F.silu(self.unscaled(self.grouped(deep)))
        last = self.same(wide)
        gate = F.hardsigmoid(self.pointwise(F.adaptive_avg_pool2d(first, 1)))  # a 1x1 image
        shuffled = torch.cat([first, deep, wide], 1)
        n, c, h, w = shuffled.shape
        shuffled = shuffled.view(n, 3, c // 3, h, w).transpose(1, 2).reshape(n, c, h, w)
        left, right = shuffled.chunk(2, 1)
        return {
            "relu6": first,
            "depthwise": deep,
            "grouped": wide,
            "same": last,
            "gated": first * gate,
            "shuffled": shuffled,
            "halves": left - right,
            "max": F.max_pool2d(first, 3, 2, 1),
            "max_ceil": F.max_pool2d(first, 2, 3, ceil_mode=True),
            "max_dilated": F.max_pool2d(first, 2, 1, dilation=2),
            "avg": F.avg_pool2d(first, 3, 1, 1),
            "avg_inside": F.avg_pool2d(first, 3, 2, 1, count_include_pad=False),
            "avg_ceil": F.avg_pool2d(first, 4, 3, 1, ceil_mode=True),
            "avg_divisor": F.avg_pool2d(first, 2, divisor_override=3),
            "adaptive": F.adaptive_avg_pool2d(first, (4, 3)),
            "adaptive_up": F.adaptive_avg_pool2d(last[:, :, :2, :2], 3),
            "mean": deep.mean([2, 3]),
            "mean_kept": deep.mean(1, keepdim=True),
            "sum": wide.sum(-1),
            "line": self.line(last[:, :, 0]),
            "volume": self.volume(last.unsqueeze(1)),
            "sigmoid": torch.sigmoid(last),
            "tanh": torch.tanh(last),
            "elu": F.elu(last),
            "leaky": F.leaky_relu(last, 0.2),
            "hardtanh": F.hardtanh(last, -0.5, 0.25),
            "probability": F.softmax(last, 1),
            "log_probability": F.log_softmax(torch.flatten(last, 1), -1),
        }


def image_operations():
    torch.manual_seed(11)
    return Images().eval(), torch.randn(1, 3, 13, 9)


class Tokens(nn.Module):
    """What transformers are made of, on lengths that no block divides: attention in each form,
    layer norm, broadcasts in both directions, parts, rolls, lookups."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 20))
        self.position = nn.Parameter(torch.randn(1, 8, 20))
        self.norm, self.grid_norm = nn.LayerNorm(20, eps=1e-6), nn.LayerNorm([8, 20])
        self.attention = nn.MultiheadAttention(20, 2, batch_first=True)
        self.up, self.down = nn.Linear(20, 33), nn.Linear(33, 20, bias=False)
        self.table = nn.Parameter(torch.randn(9, 4))
        self.register_buffer("index", (torch.arange(16) * 5 % 9).view(4, 4))
        self.register_buffer("mask", torch.where(torch.rand(8, 8) > 0.5, 0.0, -1.5))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        hidden = self.norm(x)
        attended, _ = self.attention(hidden, hidden, hidden, need_weights=False)
        grown = self.up(attended)
        q, k, v = grown[..., :30].reshape(x.shape[0], 8, 3, 2, 5).permute(2, 0, 3, 1, 4).unbind(0)
        first, second = grown.split([3, 30], -1)
        grid = hidden.reshape(x.shape[0], 2, 4, 20)
        patched = grown.clone()
        patched[:, 1:7:2, 3:5] = attended[:, :3, 3:5]
        return {
            "attended": attended,
            "grid": self.grid_norm(x),
            "gelu": self.down(F.gelu(grown)),
            "gelu_tanh": F.gelu(grown, approximate="tanh"),
            "masked": F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, scale=0.3),
            "causal": F.scaled_dot_product_attention(q, k, v, is_causal=True),
            "outer": q[..., :1] * k.transpose(2, 3)[..., :1, :],
            "product": (q * 0.5) @ k.transpose(-2, -1) + 0.1 * x[:, None, :, :8],
            "narrowed": first - 2 * second[..., 1:8:3] / 3,
            "shared": hidden @ self.down.weight[:, :7],
            "vector": hidden @ self.position[0, 0],
            "rolled": torch.roll(grid, (-1, 3), (1, 2)),
            "padded": F.pad(grid, (0, 0, 1, 2), value=0.5),
            "patched": patched,
            "unit": F.normalize(q, dim=-1),
            "clamped": hidden.clamp(max=0.3),
            "einsum": torch.einsum(
                "b g h i d, b g j h d -> b h g i j",
                grid.view(3, 2, 2, 2, 20),
                grid.view(3, 2, 2, 2, 20) * 0.1,
            ),
            "looked_up": self.table[self.index.view(-1)].view(4, 4, 4).permute(2, 0, 1).contiguous()
            + x[0, 0, 0],
            "class": F.dropout(hidden, training=False)[:, 0],
            "negated": 1 - hidden,
        }


def token_operations():
    torch.manual_seed(12)
    return Tokens().eval(), torch.randn(3, 7, 20)


class Typed(nn.Module):
    """Whole numbers and truths: read, computed, looked up by, given; what no library of primitives
    calculates with. Values that rounding could move over a step are kept away from steps."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 8), nn.Embedding(20, 8)
        self.grid = nn.Parameter(torch.randn(4, 5, 6))
        self.weight, self.bias = nn.Parameter(torch.randn(8, 5)), nn.Parameter(torch.randn(5))
        self.groups = nn.GroupNorm(4, 8)
        self.register_buffer("turns", torch.arange(24).view(3, 8) * 7 % 8)
        self.register_buffer("causal", torch.ones(8, 8).tril() > 0)
        self.register_buffer("rows", torch.tensor([2, 0, -1]))
        self.bags = nn.EmbeddingBag(30, 8, mode="sum")

    def forward(self, ids: Tensor, kinds: Tensor, keep: Tensor) -> dict[str, Tensor]:
        x = self.words(ids)
        places = (torch.cumsum(keep, 1) * keep).clamp_max(19)
        hidden = x + self.places(places)
        heads = hidden.view(3, 8, 4, 2).transpose(1, 2)
        shared = hidden[..., :4].reshape(3, 8, 2, 2).transpose(1, 2)
        last = torch.eq(ids, ids[:, 3:4]).int().argmax(-1)
        steps = (ids * 3 - 5) // 4
        return {
            "hidden": hidden,
            "bags": self.bags(ids),
            "places": places,
            "steps": steps,
            "rest": (ids - 7) % 5 + ids.remainder(3),
            "power": ids**2 - abs(3 - ids),
            "truncated": torch.div(2 - ids, 3, rounding_mode="trunc"),
            "kinds": kinds.add(1).to(torch.int64) + ids,
            "wrapped": kinds * 1_500_000_000,
            "both": (ids > 4) & keep | (kinds == 1) ^ ~keep,
            "truth": torch.logical_not(ids != 3),
            "real": ids * 0.5 + keep + 1 / (kinds + 1.0),
            "quotient": ids / 4,
            "filled": hidden.masked_fill(keep.unsqueeze(-1), -2.5),
            "chosen": torch.where(keep.unsqueeze(-1), hidden, 0.25 * x),
            "softmax": torch.softmax(
                heads @ heads.transpose(2, 3) + torch.where(self.causal, 0.0, -1e4), -1
            ),
            "causal": F.scaled_dot_product_attention(heads, heads, heads, attn_mask=self.causal),
            "shared": F.scaled_dot_product_attention(heads, shared, shared, enable_gqa=True),
            "masked": F.scaled_dot_product_attention(
                heads,
                heads,
                heads,
                attn_mask=(keep | (kinds > 0) | (self.turns == 3))[:, None, None],
            ),
            "addmm": torch.addmm(self.bias, hidden[:, 0], self.weight),
            "addcmul": torch.addcmul(hidden, x, hidden, value=-0.5),
            "groups": self.groups(hidden.transpose(1, 2)),
            "rms": hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1e-3),
            "cubed": hidden.pow(3) + torch.log1p(x.abs()) + torch.sin(x) * torch.cos(hidden),
            "last": last,
            "of_last": hidden[torch.arange(3), last],
            "outer": self.grid[self.rows[:, None], :, self.rows],
            "middle": self.grid[:, self.rows],
            "gathered": torch.gather(x, 1, ids.remainder(8).unsqueeze(-1).expand(-1, -1, 5)),
            "selected": torch.index_select(x, 1, ids[0] % 8),
            "turned": ids.gather(1, self.turns).t().reshape(4, 6)[1:, ::2],
            "joined": torch.cat([ids[:, 2:4], kinds[:, :1].long().expand(3, 2)], 1),
            "repeated": self.rows.repeat(2, 3) + x.repeat(1, 2, 1)[0, 0, 0].long() * 0,
            "parts": hidden.tensor_split(3, 1)[1].reshape_as(hidden[:, :3]),
        }


def typed_operations():
    torch.manual_seed(14)
    generator = torch.Generator().manual_seed(5)
    return Typed().eval(), {
        "ids": torch.randint(0, 20, (3, 8), generator=generator),
        "kinds": torch.randint(0, 3, (3, 8), generator=generator, dtype=torch.int32),
        "keep": torch.rand(3, 8, generator=generator) > 0.4,
    }


class Sizes(nn.Module):
    """Images brought to other sizes, in every way and by factors that are no whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.grow = nn.Conv2d(2, 20, 3, padding=1)
        self.shrink = nn.Conv2d(20, 5, 1)
        self.norm = nn.GroupNorm(5, 20)
        self.twice = nn.ConvTranspose2d(20, 12, 2, stride=2)
        self.odd = nn.ConvTranspose2d(
            12, 18, (3, 4), (2, 3), (1, 2), output_padding=(1, 2), groups=3, dilation=(2, 1)
        )
        self.after = nn.BatchNorm2d(18)
        self.line, self.volume = nn.ConvTranspose1d(2, 5, 3, 2), nn.ConvTranspose3d(1, 3, 2, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        hidden = self.grow(x)
        normal = self.norm(hidden)
        return {
            "doubled": F.relu(self.twice(normal)),
            "odd": F.relu(self.after(self.odd(self.twice(hidden)))),
            "line": self.line(x[:, :, 0]),
            "volume": self.volume(x[:, None]),
            "nearest": F.interpolate(normal, scale_factor=2),
            "nearest_odd": F.interpolate(hidden, (5, 13)),
            "exact": F.interpolate(hidden, (4, 17), mode="nearest-exact"),
            "linear": self.shrink(F.interpolate(hidden, (9, 4), mode="bilinear")),
            "corners": F.interpolate(hidden, (3, 11), mode="bilinear", align_corners=True),
            "factor": F.interpolate(x, scale_factor=(1.7, 0.6), mode="bilinear"),
            "cubic": F.interpolate(hidden, (12, 5), mode="bicubic"),
            "cubic_corners": F.interpolate(x, (2, 9), mode="bicubic", align_corners=True),
        }


def image_sizes():
    torch.manual_seed(15)
    return Sizes().eval(), torch.randn(2, 2, 7, 6)


class Unknown(nn.Module):
    """A median, which no library of primitives has."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Linear(6, 6), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return torch.median(self.head(x).unflatten(1, (2, 3)), -1).values


def unknown_operation():
    torch.manual_seed(13)
    return Unknown().eval(), torch.randn(2, 6)
