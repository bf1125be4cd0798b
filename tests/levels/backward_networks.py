# SPDX-License-Identifier: Apache-2.0
"""Small networks whose gradients take every backward rule through odd shapes, from scores (N,
classes). NETWORKS has the input's shape of each."""

import functools

import torch
import torch.nn.functional as F
from backward_parts import PARTS, Bent, Chosen, Composed, Grown, Stopped  # noqa: F401
from recurrent_networks import Gates, Lstms  # noqa: F401
from torch import Tensor, nn
from torchvision.ops import StochasticDepth


class Convolutions(nn.Module):
    """Groups, depthwise, dilation, strides that leave a remainder, 'same', with and without
    bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, (3, 5), stride=(2, 3), padding=(1, 2))
        self.grouped = nn.Conv2d(6, 8, 3, padding=2, dilation=2, groups=2, bias=False)
        self.depthwise = nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=8)
        self.same = nn.Conv2d(16, 5, 3, padding="same")
        self.point = nn.Conv2d(5, 4, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.point(self.same(self.depthwise(self.grouped(self.first(x))))).flatten(1)[:, :7]


class Poolings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.most = nn.MaxPool2d(3, 2, padding=1, ceil_mode=True)
        self.dilated = nn.MaxPool2d(2, 1, dilation=2)
        self.padded = nn.AvgPool2d((3, 2), 2, padding=(1, 0), ceil_mode=True)
        self.inner = nn.AvgPool2d(3, 2, padding=1, count_include_pad=False)
        self.adaptive = nn.AdaptiveAvgPool2d((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        y = self.dilated(self.most(self.conv(x)))
        parts = [
            self.padded(y),
            self.inner(y),
            self.adaptive(y),
            F.avg_pool2d(y, 2, divisor_override=3),
        ]
        return torch.cat([part.flatten(1) for part in parts], 1)


class Norms(nn.Module):
    """In training, without parameters, without running statistics, with given statistics, and over
    rows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3)
        self.whole = nn.BatchNorm2d(5, momentum=0.3, eps=1e-3)
        self.bare = nn.BatchNorm2d(5, affine=False)
        self.untracked = nn.BatchNorm2d(5, track_running_stats=False)
        self.fixed = nn.BatchNorm2d(5)
        self.fc = nn.Linear(5, 6)
        self.rows = nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> Tensor:
        y = self.untracked(self.bare(self.whole(self.conv(x))))
        y = F.batch_norm(
            y,
            self.fixed.running_mean,
            self.fixed.running_var,
            self.fixed.weight,
            self.fixed.bias,
            False,
        )
        return self.rows(self.fc(y.mean((2, 3))))


class Activations(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(7, 9)
        self.scale = nn.Parameter(torch.full((9,), 3.0))

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x) * self.scale
        smooth = (
            torch.sigmoid(y)
            + torch.tanh(y)
            + F.silu(y)
            + F.gelu(y)
            + F.gelu(y, approximate="tanh")
            + y.softmax(-1)
        )
        return (
            smooth
            + F.relu(y)
            + F.relu6(y)
            + F.hardtanh(y, -0.5, 0.7)
            + F.hardswish(y)
            + F.hardsigmoid(y)
            + F.leaky_relu(y, 0.1)
            + y.log_softmax(0)
        )


class Arithmetic(nn.Module):
    """Broadcast operands, numbers, a value used twice by one operation and by several, operands
    without a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (
            nn.Parameter(torch.randn(4, 1, 5)),
            nn.Parameter(torch.randn(3, 1)),
            nn.Parameter(torch.rand(1) + 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.a
        z = y * y - self.b * x
        z = torch.sub(z, y, alpha=0.5) + torch.add(x, z, alpha=2)
        z = (1 - z) / self.c + (-z) / 7 + 3 * y
        return (z * self.b / (y * y + 1)).flatten(1)


class Views(nn.Module):
    """Reshapes, permutations, parts, some unused, joins; every value has several consumers."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 24, bias=False)
        self.token = nn.Parameter(torch.randn(1, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x).view(-1, 2, 3, 4)
        a, _ = y.chunk(2, 1)
        b, c = y.split([1, 3], -1)
        p = y.permute(0, 3, 1, 2).transpose(1, -1)
        joined = torch.cat([a.squeeze(1), y.select(1, 1), p.sum(1)], 1)
        first, *_ = y.unbind(2)
        stacked = torch.stack([first, y[:, :, 1]], 1).flatten(2)
        token = self.token.expand(y.shape[0], -1, 4).unsqueeze(-1)
        parts = [
            joined,
            stacked,
            b.mean(-1),
            y[:, :, 1:, ::2],
            c,
            y.mean((-1, -2), keepdim=True),
            y.mean(),
            token,
            y.unflatten(3, (2, 2)).sum(-1),
        ]
        return torch.cat(
            [
                part.expand(y.shape[0]).unsqueeze(1)
                if part.ndim == 0
                else part.reshape(y.shape[0], -1)
                for part in parts
            ],
            1,
        )


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Linear(4, 6)
        self.matrix = nn.Parameter(torch.randn(18, 5))
        self.last = nn.Linear(5, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(
            torch.mm(self.tokens(x).flatten(1) @ self.matrix, self.matrix.t() @ self.matrix)
        )


class Tokens(nn.Module):
    """Layer norms over one axis and two, with parameters, without, and with frozen ones; attention
    of a multi-head layer, with a trained mask and a scale; products of batches, broadcast."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(5, 8), nn.Linear(8, 5)
        self.token, self.place = (
            nn.Parameter(torch.randn(1, 1, 8)),
            nn.Parameter(torch.randn(1, 6, 8)),
        )
        self.norm, self.bare, self.both = (
            nn.LayerNorm(8, eps=1e-3),
            nn.LayerNorm(8, elementwise_affine=False),
            nn.LayerNorm((7, 8)),
        )
        self.held, self.shift = nn.LayerNorm(8).requires_grad_(False), nn.LayerNorm(8)
        self.shift.weight.requires_grad_(False)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mask, self.mix = nn.Parameter(torch.randn(7, 7)), nn.Parameter(torch.randn(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.cat([self.token.expand(x.shape[0], -1, -1), self.embed(x) + self.place], 1)
        z = self.norm(y)
        y = y + self.attention(z, z, z, need_weights=False)[0]
        heads = y.view(y.shape[0], 7, 2, 4).transpose(1, 2)
        y = y + F.scaled_dot_product_attention(
            heads, heads * 0.5, heads, attn_mask=self.mask, scale=0.3
        ).transpose(1, 2).reshape(y.shape)
        y = self.both(y) + self.bare(self.shift(self.held(y))) @ self.mix
        return self.head(F.gelu(y + 0.1 * (y @ y.transpose(1, 2)) @ y)[:, 0])


class Windows(nn.Module):
    """What Swin and MaxViT add: padding, rolls, a table whose rows are looked up several times or
    not at all, biases of which a part is set to zero, unit vectors, bounded and grown scales,
    einsum, functions of positive values."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(5, 8), nn.Linear(8, 5)
        self.table, self.bias = nn.Parameter(torch.randn(6, 2)), nn.Parameter(torch.randn(8))
        self.scale, self.words = nn.Parameter(torch.tensor([[[0.5]], [[3.0]]])), nn.Embedding(4, 8)
        self.register_buffer("places", torch.arange(16) * 5 % 7 % 5)
        self.register_buffer("named", torch.tensor([2, 0, 2, 1]))

    def forward(self, x: Tensor) -> Tensor:
        bias = self.bias.clone()
        bias[2:4].zero_()
        y = torch.roll(F.pad(self.embed(x) + bias, (0, 0, 1, 0, 0, 1)), (-1, 2), (1, 2))[:, :3, :4]
        y = y.reshape(y.shape[0], 12, 2, 4).transpose(1, 2)[:, :, 2:6]
        scores = (
            F.normalize(y, dim=-1)
            @ F.normalize(torch.tanh(y), dim=-1).transpose(-2, -1)
            * self.scale.clamp(max=2.5).exp()
        )
        scores = scores + self.table[self.places].view(4, 4, 2).permute(2, 0, 1)
        z = torch.einsum("b h i j, b h j d -> b h i d", scores.softmax(-1), y) + torch.einsum(
            "bhid,bhjd->bhij", y, torch.sqrt(y * y + 1)
        )
        z = (
            z.clamp(-1.5, 2).transpose(1, 2).flatten(2)
            + self.words(self.named)
            + F.pad(y.mean(-1).transpose(1, 2), (1, 5), value=0.5)
        )
        return self.head(z.clamp_min(-1).mean(1))


class Frozen(nn.Module):
    """What comes before the first trained parameter needs no gradient; a frozen one behind it hands
    it through."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        ).requires_grad_(False)
        self.conv, self.fc = nn.Conv2d(4, 5, 3), nn.Linear(5, 4).requires_grad_(False)
        self.fc.bias.requires_grad_(True)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(F.relu(self.conv(self.stem(x)), inplace=True).mean((2, 3)))


class Dense(nn.Module):
    """Joins of joins, as in DenseNet, and shuffled channels with half of them passed on, as in
    ShuffleNet."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(i), nn.ReLU(inplace=True), nn.Conv2d(i, 2, 3, padding=1, bias=False)
            )
            for i in (4, 6, 8)
        )
        self.last = nn.Conv2d(5, 5, 3, padding=1, groups=5)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.last(b)], 1)
        return y.view(y.shape[0], 2, 5, *y.shape[2:]).transpose(1, 2).reshape(y.shape).mean((2, 3))


class Halves(nn.Module):
    """Half of the channels passed on, twice, in channels that fill blocks: a library joins a
    strided part and a blocked tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.branches = nn.ModuleList(nn.Conv2d(16, 16, 1) for _ in range(2))
        self.last = nn.Conv2d(32, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for branch in self.branches:
            a, b = x.chunk(2, 1)
            x = torch.cat([a, branch(b)], 1)
        return self.last(x).mean((2, 3))


class Fire(nn.Module):
    """Poolings whose results lie in blocks, and whose gradients come from joins that do not."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.a, self.b = (
            nn.Conv2d(3, 32, 3),
            nn.Conv2d(32, 16, 3, padding=1),
            nn.Conv2d(32, 21, 1),
        )
        self.more = nn.ModuleList(nn.Conv2d(37, 5, 3) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        y = F.max_pool2d(F.relu(self.stem(x)), 3, 2, ceil_mode=True)
        z = F.max_pool2d(torch.cat([F.relu(self.a(y)), F.relu(self.b(y))], 1), 2)
        return torch.cat([layer(z) for layer in self.more], 1).mean((2, 3))


class Pixels(nn.Module):
    """Convolutions that give images of one pixel, of one and of several, with and without bias; a
    depthwise one that is wider than its image."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide = (
            nn.Conv2d(3, 32, 3, padding=1),
            nn.Conv2d(32, 32, 5, padding=2, groups=32, bias=False),
        )
        self.squeeze, self.expand = nn.Conv2d(32, 16, 1), nn.Conv2d(16, 32, 1)
        self.down, self.last = nn.Conv2d(32, 48, 1, stride=2, bias=False), nn.Conv2d(48, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.wide(F.relu(self.stem(x)))
        y = y * F.hardsigmoid(self.expand(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return self.last(F.relu(self.down(F.max_pool2d(y, 2)))).flatten(1)


class Tiles(nn.Module):
    """3x3 convolutions that strata's Winograd kernel trains: channels that fill no block, with and
    without bias and padding, one of them frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide = nn.Conv2d(3, 20, 1), nn.Conv2d(20, 37, 3, padding=1)
        self.held, self.last = (
            nn.Conv2d(37, 24, 3, padding=1).requires_grad_(False),
            nn.Conv2d(24, 19, 3, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(self.held(F.relu(self.wide(self.stem(x)))))).mean((2, 3))


class Dropouts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(F.dropout(torch.tanh(F.dropout(self.a(x), 0.3)), 0.6))


class Depths(nn.Module):
    """Stochastic depth of samples, beside images in blocks, and of the whole batch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 16, 3, padding=1), nn.Linear(16, 5)
        self.of_samples, self.of_batch = StochasticDepth(0.4, "row"), StochasticDepth(0.5, "batch")

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        y = (y + self.of_samples(torch.tanh(y))).mean((2, 3))
        return self.fc(y + self.of_batch(y * y))


class Typed(nn.Module):
    """What transformers add: lookups by computed numbers with a row for padding, masks of truths,
    RMS norms, norms of groups, a weight under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.words = nn.Linear(6, 8), nn.Embedding(6, 8, padding_idx=2)
        self.groups = nn.GroupNorm(2, 8)
        self.matrix, self.bias = nn.Parameter(torch.randn(8, 5)), nn.Parameter(torch.randn(5))
        self.register_buffer("causal", torch.ones(4, 4).tril() > 0)
        self.bags = nn.EmbeddingBag(6, 8, mode="mean")
        self.again = nn.Linear(6, 8)
        self.again.weight = self.fc.weight

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x) + 0.5 * self.again(x)
        y = y + self.words(x.argmax(-1)) + self.bags(x.argmax(-1)).unsqueeze(1)
        mask = (x[..., :1] > 0) | (x[..., 1:2] > 1)
        y = F.scaled_dot_product_attention(y, y, y, attn_mask=self.causal)
        y = y + F.scaled_dot_product_attention(y, 0.5 * y, y, is_causal=True, scale=0.7)
        rms = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-3)
        y = torch.where(mask, rms, 0.5 * y).masked_fill(x[..., 2:3] > 1.2, -0.25)
        y = self.groups(y.transpose(1, 2))
        y = torch.addcmul(y, y, y.sin(), value=0.3) + y.cos().pow(3) + (y * y + 1).log()
        return torch.addmm(self.bias, y.mean(-1), self.matrix)


NETWORKS = {
    "Convolutions": (3, 17, 19),
    "Poolings": (2, 13, 12),
    "Norms": (3, 6, 5),
    "Activations": (7,),
    "Arithmetic": (4, 3, 5),
    "Views": (12,),
    "Products": (3, 4),
    "Tokens": (6, 5),
    "Windows": (3, 4, 5),
    "Frozen": (3, 12, 11),
    "Dense": (4, 5, 5),
    "Halves": (3, 4, 4),
    "Fire": (3, 15, 15),
    "Pixels": (3, 4, 4),
    "Tiles": (3, 27, 25),
    "Typed": (4, 6),
    "Lstms": (6, 4),
    "Gates": (3, 7),
    **PARTS,
}


def network(name: str) -> nn.Module:
    torch.manual_seed(3)
    return globals()[name]()


# convolutions(), poolings(), ...: as a case names them
for _name in (*NETWORKS, "Depths"):
    globals()[_name.lower()] = functools.partial(network, _name)
