# SPDX-License-Identifier: Apache-2.0
"""Networks for levels that run the captured graph on a library's primitives: elements in order and
at computed places; images taken apart, padded and pooled in ways that are made of others."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations


class Places(nn.Module):
    """Extremes, orders and writes along every axis. `steps` has many equal elements, of which
    PyTorch's are to be taken."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(6) + 0.5)
        self.register_buffer("rows", torch.tensor([2, 0, 2]))
        self.register_buffer("columns", torch.tensor([[1], [5]]))
        self.register_buffer("turns", torch.tensor([[3], [1], [7], [5], [2]]))

    def forward(self, x: Tensor, ids: Tensor) -> dict[str, Tensor]:
        y = x * self.scale
        steps = (ids[:, None] * self.turns + self.turns).remainder(4).float()
        most, place = y.max(1)
        least, where = steps.min(-1, keepdim=True)
        top, of_top = steps.topk(3, -1)
        many, of_many = steps.flatten().topk(2, largest=False)
        low, of_low = y.topk(2, 1, largest=False, sorted=False)
        order, of_order = torch.sort(steps, dim=1, stable=True)
        down, of_down = ids.sort(dim=-1, descending=True, stable=True)
        written = y.clone()
        written[self.rows[1:], :, self.columns] = -1.5
        single = y.clone()
        single[:, 1] = 2 * y[:, 0]
        return {
            "most": most,
            "place": place,
            "least": least,
            "where": where,
            "alone": y.max(-1).values,
            "alone_kept": y.min(0, keepdim=True).values,
            "all": y.max() - y.min() + y.amin(),
            "whole_numbers": ids.max(1).values + ids.min(),
            "lower": y.amin((0, 2), keepdim=True) + y.amax(1, keepdim=True),
            "of_two": torch.max(y, x) - torch.min(y, 0.5 * x),
            "top": top,
            "of_top": of_top,
            "many": many,
            "of_many": of_many,
            "low": low,
            "of_low": of_low,
            "order": order,
            "of_order": of_order,
            "down": down,
            "of_down": of_down,
            "argsort": torch.argsort(x, -1, descending=True),
            "one_hot": torch.zeros_like(y).scatter(1, place[:, None], 1.0),
            "scattered": y.scatter(2, of_down[:, None, :3].expand(-1, 4, -1), x),
            "added": y.scatter_add(1, ids[:, None, :].remainder(4).expand(-1, 3, -1), x),
            "counted": torch.zeros_like(ids).scatter_add(1, ids, torch.ones_like(ids)),
            "put": y.index_put((self.rows, self.turns[:3, 0].remainder(4)), x[:, 0, :]),
            "summed": y.index_put((self.rows,), x, accumulate=True),
            "columns": y.index_add(2, self.columns[:, 0], x[:, :, :2], alpha=0.5),
            "copied": y.index_copy(0, self.rows[:2], x[:2]),
            "written": written,
            "single": single,
        }


def place_operations():
    torch.manual_seed(16)
    generator = torch.Generator().manual_seed(6)
    return Places().eval(), {
        "x": torch.randn(3, 4, 6, generator=generator),
        "ids": torch.randint(0, 6, (3, 6), generator=generator),
    }


class Parts(nn.Module):
    """Windows, pixels that become channels, edges of every kind, sizes of lines and volumes, maxima
    to a wanted size, layers without a batch, norms of instances and of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 8, 3, padding=1, padding_mode="reflect")
        self.gate, self.shared = nn.PReLU(8), nn.PReLU()
        self.instance = nn.InstanceNorm2d(8, affine=True)
        self.bare, self.tracked = (
            nn.InstanceNorm1d(8),
            nn.InstanceNorm2d(8, track_running_stats=True),
        )
        self.normed = parametrizations.weight_norm(nn.Conv2d(8, 5, 3, bias=False))
        self.whole = parametrizations.weight_norm(nn.Linear(6, 4), dim=None)
        self.around = nn.Conv1d(8, 3, 3, padding=2, padding_mode="circular")
        self.volume = nn.Conv3d(1, 2, 2, padding=1, padding_mode="replicate")
        self.up = nn.ConvTranspose2d(8, 2, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.stem(x)
        line, deep = y[:, :, 2], y[:, None, :6]
        windows = F.unfold(y, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(2, 1))
        return {
            "gate": self.gate(y) + self.shared(-y),
            "glu": F.glu(y, 1) + F.glu(y[..., :4], -1)[:, :4, :, :1],
            "instance": self.instance(y),
            "instance_line": self.bare(line),
            "tracked": self.tracked(y),
            "normed": self.normed(y),
            "whole": self.whole(y),
            "around": self.around(line),
            "volume": self.volume(deep),
            "alone": self.up(F.max_pool2d(self.stem(x[1]), 2))
            + F.adaptive_avg_pool2d(y[0, :2], (4, 4)),
            "shuffled": F.pixel_shuffle(y, 2),
            "unshuffled": F.pixel_unshuffle(y[..., :6, :3], 3),
            "channels": F.channel_shuffle(y, 4),
            "windows": windows,
            "pixels": F.fold(
                windows, y.shape[2:], (2, 3), dilation=(2, 1), padding=(1, 0), stride=(2, 1)
            ),
            "patches": F.fold(F.unfold(y[0, :, :6, :6], 3, stride=3), (6, 6), 3, stride=3),
            "mirrored": F.pad(y, (2, 1, 0, 3), mode="reflect"),
            "repeated": F.pad(y, (3, 0, 1, 2), mode="replicate"),
            "wrapped": F.pad(y, (1, 2, 7, 0), mode="circular"),
            "cut": F.pad(y, (-1, 2, 1, -2), value=0.5),
            "line_nearest": F.interpolate(line, scale_factor=2),
            "line_exact": F.interpolate(line, 9, mode="nearest-exact"),
            "line_linear": F.interpolate(line, 13, mode="linear"),
            "line_corners": F.interpolate(line, 4, mode="linear", align_corners=True),
            "volume_nearest": F.interpolate(deep, (4, 9, 5)),
            "volume_linear": F.interpolate(deep, (9, 5, 8), mode="trilinear"),
            "volume_factor": F.interpolate(deep, scale_factor=(1.5, 2, 0.7), mode="trilinear"),
            "most": F.adaptive_max_pool2d(y, 1),
            "most_uneven": F.adaptive_max_pool2d(y, (3, 4)),
            "most_line": F.adaptive_max_pool1d(line, 4),
            "most_volume": F.adaptive_max_pool3d(deep, (2, 7, 4)),
            "pool_line": F.avg_pool1d(line, 3, 2, 1) + F.max_pool1d(line, 2, 2),
            "pool_volume": F.max_pool3d(deep, 2, 1) + F.avg_pool3d(deep, 2, 1),
            "pool_adaptive": F.adaptive_avg_pool3d(deep, (4, 3, 5)),
        }


def part_operations():
    torch.manual_seed(17)
    return Parts().eval(), torch.randn(2, 2, 7, 6)


class Functions(nn.Module):
    """Functions and statistics that are made of others; values moved along axes."""

    def __init__(self) -> None:
        super().__init__()
        self.rms, self.bare = nn.RMSNorm(6, eps=1e-3), nn.RMSNorm((5, 6), elementwise_affine=False)
        self.register_buffer("rows", torch.tensor([3, 0]))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = 3 * x
        high = x > 0.4
        variance, mean = torch.var_mean(x, (0, 2), correction=0)
        return {
            "mish": F.mish(y),
            "softplus": F.softplus(10 * y) + F.softplus(y, 2.0, 5.0),
            "log_sigmoid": F.logsigmoid(10 * y),
            "selu": F.selu(y) + F.celu(y, 0.7) + F.elu(y, 1.3),
            "square": y.square() + torch.lerp(x, y, 0.3),
            "threshold": F.threshold(y + 100, 20.0, 1.5),
            "var": x.var(1),
            "std": y.std((1, 2), keepdim=True) + y.std(),
            "variance": variance,
            "mean": mean,
            "rms": self.rms(y) + self.bare(x),
            "any": high.any(1) & ~high.any(),
            "all": high.all(-1, keepdim=True) | (x[:, :1] < 9).all(),
            "filled": y.index_fill(1, self.rows, -2.5),
            "flipped": y.flip(1, 2) + x.flip(0),
            "windows": y.unfold(1, 3, 2),
            "repeated": y.repeat_interleave(2, 1),
        }


def function_operations():
    torch.manual_seed(18)
    return Functions().eval(), torch.randn(3, 5, 6)
