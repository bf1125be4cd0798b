# SPDX-License-Identifier: Apache-2.0
"""More small networks whose gradients are taken: images grown and taken apart, computed places,
layers made of others (backward_networks.py has the rest)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations


class Grown(nn.Module):
    """A U-Net: transposed convolutions with groups, dilation, padding, without bias, of lines and
    volumes too; images resized in every way, larger and smaller, by sizes and factors."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
        self.up, self.join = nn.ConvTranspose2d(8, 6, 2, 2), nn.Conv2d(12, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.odd = nn.ConvTranspose2d(
            6, 9, (3, 4), (2, 3), (1, 2), output_padding=(1, 2), groups=3, dilation=(2, 1)
        )
        self.same = nn.ConvTranspose2d(9, 9, 3, padding=1, bias=False)
        self.line, self.volume = nn.ConvTranspose1d(9, 4, 3, 2), nn.ConvTranspose3d(1, 2, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.down(x))
        z = self.up(F.relu(self.deep(F.max_pool2d(y, 2))))
        z = torch.tanh(self.norm(self.join(torch.cat([y, z], 1))))
        parts = [
            F.interpolate(z, scale_factor=2),
            F.interpolate(z, (5, 3)),
            F.interpolate(z, (4, 11), mode="nearest-exact"),
            F.interpolate(z, (9, 4), mode="bilinear"),
            F.interpolate(z, (3, 13), mode="bilinear", align_corners=True),
            F.interpolate(z, scale_factor=(1.7, 0.6), mode="bilinear"),
            F.interpolate(z, (7, 5), mode="bicubic"),
            F.interpolate(z[:, :, 1], 9, mode="linear"),
            F.interpolate(z[:, None, :3], (4, 3, 9), mode="trilinear"),
            F.interpolate(z[:, :, 0], scale_factor=2),
            self.volume(z[:, None, :, :3]).tanh(),
        ]
        w = self.same(self.odd(z))
        parts += [w, self.line(w[:, :, 2])]
        return torch.cat([part.flatten(1)[:, ::7] for part in parts], 1)


class Chosen(nn.Module):
    """Extremes and orders along axes, with places that are read and others that are not; lookups
    and writes by several lists, some of them more than once."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.table = nn.Linear(6, 8), nn.Parameter(torch.randn(4, 5, 8))
        self.register_buffer("rows", torch.tensor([2, 0, 2, 3]))
        self.register_buffer("columns", torch.tensor([1, 4, 1, 0]))

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        kinds = x.argsort(-1)
        most, place = y.max(1)
        order, of_order = y.sort(1, descending=True)
        top = y.topk(3, -1)
        last = y[torch.arange(y.shape[0]), x[..., 0].argmax(-1)]
        z = y.scatter_add(2, kinds[..., :4], 0.5 * y[..., :4]).index_put(
            (torch.arange(y.shape[0]), x[..., 1].argmax(-1)), 2 * last
        )
        parts = [
            most * place.float(),
            y.min(-1, keepdim=True).values,
            order * 0.5 + of_order,
            top.values * (top.indices + 1),
            y.gather(1, kinds[:, :1, :].remainder(4)).repeat(1, 1, 2),
            y.gather(2, kinds),
            z,
            z.scatter(1, place[:, None].expand(-1, 2, -1), order[:, :2]),
            y.index_select(2, self.columns),
            self.table[self.rows, :, self.columns].expand(y.shape[0], -1, -1),
            self.table[:, self.columns, None].expand(y.shape[0], -1, -1, -1, -1),
            torch.maximum(y, 0.5 * x[..., :1]) - torch.minimum(y, y * y),
            y.amax((1, 2), keepdim=True) - y.amin(1),
            (y.max() * y[:, 0, :1]) + last[:, :1],
        ]
        return torch.cat([part.flatten(1) for part in parts], 1)


class Composed(nn.Module):
    """What consists of others: norms of instances, gates, edges of every kind, windows, poolings of
    lines and volumes, maxima to a wanted size, a norm of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 8, 3, padding=1, padding_mode="reflect")
        self.gate, self.shared = nn.PReLU(8), nn.PReLU()
        self.instance = nn.InstanceNorm2d(8, affine=True)
        self.normed = parametrizations.weight_norm(nn.Linear(6, 4))
        self.around = nn.Conv1d(8, 3, 3, padding=2, padding_mode="circular")
        self.volume = nn.Conv3d(1, 2, 2, padding=1, padding_mode="replicate")

    def forward(self, x: Tensor) -> Tensor:
        y = self.shared(self.gate(self.stem(x)))
        line, deep = y[:, :, 2], y[:, None, :6]
        windows = F.unfold(y, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(2, 1)) ** 2
        parts = [
            F.glu(self.instance(y), 1),
            self.normed(y),
            self.around(line),
            self.volume(deep),
            F.pixel_unshuffle(F.pixel_shuffle(y, 2)[..., :6, :6], 3),
            windows,
            F.fold(windows, y.shape[2:], (2, 3), dilation=(2, 1), padding=(1, 0), stride=(2, 1)),
            F.pad(y, (2, 1, 0, 3), mode="reflect"),
            F.pad(y, (3, 0, 1, 2), mode="replicate"),
            F.pad(y, (1, 2, 7, 0), mode="circular"),
            F.pad(y, (-1, 2, 1, -2), value=0.5),
            F.adaptive_max_pool2d(y, (3, 4)),
            F.adaptive_max_pool1d(line, 3),
            F.adaptive_avg_pool1d(line, 4),
            F.adaptive_avg_pool3d(deep, (4, 3, 5)),
            F.avg_pool1d(line, 3, 2, 1),
            F.max_pool1d(line, 2, 2),
            F.max_pool3d(deep, 2, (1, 2, 1), padding=1),
            F.avg_pool3d(deep, 3, 2, padding=1, count_include_pad=False),
        ]
        return torch.cat([(part * part).flatten(1)[:, ::5] for part in parts], 1)


class Bent(nn.Module):
    """Functions and statistics that are made of others, on both sides of where they bend."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.rms = nn.Linear(6, 6), nn.RMSNorm(6, eps=1e-4)
        self.scale = nn.Parameter(torch.full((6,), 4.0))

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x) * self.scale
        bent = (
            F.mish(y)
            + F.softplus(y, 2.0, 5.0)
            + F.logsigmoid(9 * y)
            + F.selu(y)
            + F.celu(y, 0.7)
            + F.elu(y, 1.3)
            + torch.lerp(y, x, 0.3)
            + F.threshold(y, 0.2, 1.5)
        )
        z = self.rms(y) + y.square() + y.abs() + torch.log1p(y * y) + (1 + y * y).reciprocal()
        parts = [
            bent,
            z,
            y.var(1),
            y.std((1, 2), keepdim=True),
            y.flip(1, 2) * x,
            y.unfold(1, 3, 1).square(),
            y.repeat_interleave(2, 1) * z.repeat(1, 2, 1),
            torch.expm1(0.1 * y).index_fill(1, x.argmax(1)[0, :1], -2.5),
        ]
        return torch.cat([part.flatten(1) for part in parts], 1)


class Stopped(nn.Module):
    """Gradients that stop: of a parameter, of what rounds (straight through), of a part of a
    tensor, of a factor that is otherwise trained."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.out = nn.Linear(6, 8), nn.Linear(8, 5)
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, 8))

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        y = y / (1 + y.abs().amax(-1, keepdim=True).detach())
        y = y + (torch.floor(4 * y) / 4 - y).detach()
        y = y * self.scale + torch.cat([y[..., :3].detach(), y[..., 3:]], -1) * self.scale.detach()
        return self.out(torch.relu(y)).mean(1) + (y.detach() * self.scale).mean((1, 2))[:, None]


PARTS = {
    "Bent": (4, 6),
    "Grown": (2, 8, 6),
    "Chosen": (4, 6),
    "Composed": (2, 7, 6),
    "Stopped": (4, 6),
}
