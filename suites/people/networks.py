# SPDX-License-Identifier: Apache-2.0
"""Networks that people write themselves, written anew and small, for the suite people: images from
noise and their discriminator (DCGAN), sound sample by sample (WaveNet), speech by recurrent layers,
clicks and films (DLRM, NCF), translation by recurrent layers with attention (the shape of GNMT).

Each build function gives the module, an example of its inputs and, where the loss needs it, one of
its targets.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional


def drawn() -> torch.Generator:
    return torch.Generator().manual_seed(0)


class Generator(nn.Module):
    """Noise [N, 100, 1, 1] -> images [N, 3, 64, 64] of -1 to 1, by transposed convolutions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = [100, 8 * width, 4 * width, 2 * width, width]
        for index, (before, after) in enumerate(itertools.pairwise(channels)):
            stride, padding = (1, 0) if index == 0 else (2, 1)
            layers += [
                nn.ConvTranspose2d(before, after, 4, stride, padding, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(inplace=True),
            ]
        self.main = nn.Sequential(
            *layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()
        )

    def forward(self, noise: Tensor) -> Tensor:
        return self.main(noise)


def generator() -> tuple[nn.Module, Tensor]:
    return Generator(), torch.randn(4, 100, 1, 1, generator=drawn())


class Discriminator(nn.Module):
    """Images [N, 3, 64, 64] -> a score [N, 1] of being real, by strided convolutions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        for factor in (1, 2, 4):
            before, after = factor * width, 2 * factor * width
            layers += [
                nn.Conv2d(before, after, 4, 2, 1, bias=False),
                nn.BatchNorm2d(after),
                nn.LeakyReLU(0.2, inplace=True),
            ]
        self.main = nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, bias=False), nn.Flatten())

    def forward(self, images: Tensor) -> Tensor:
        return self.main(images)


def discriminator() -> tuple[nn.Module, Tensor]:
    return Discriminator(), torch.randn(4, 3, 64, 64, generator=drawn())


class GatedLayer(nn.Module):
    """A dilated causal convolution with a gate, what remains and what is skipped to the end."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.dilation = dilation
        self.filter = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.gate = nn.Conv1d(channels, channels, 2, dilation=dilation)
        self.remain = nn.Conv1d(channels, channels, 1)
        self.skip = nn.Conv1d(channels, channels, 1)

    def forward(self, sound: Tensor) -> tuple[Tensor, Tensor]:
        padded = functional.pad(sound, (self.dilation, 0))
        gated = torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded))
        return sound + self.remain(gated), self.skip(gated)


class WaveNet(nn.Module):
    """Sound as codes [N, L] of 256 -> scores [N, 256, L] of the code that follows."""

    def __init__(self, channels: int = 32, layers: int = 6) -> None:
        super().__init__()
        self.codes = nn.Embedding(256, channels)
        self.layers = nn.ModuleList(GatedLayer(channels, 2**index) for index in range(layers))
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv1d(channels, channels, 1), nn.ReLU(), nn.Conv1d(channels, 256, 1)
        )

    def forward(self, codes: Tensor) -> Tensor:
        sound = self.codes(codes).transpose(1, 2)
        skipped = torch.zeros_like(sound)
        for layer in self.layers:
            sound, skip = layer(sound)
            skipped = skipped + skip
        return self.head(skipped)


def wavenet() -> tuple[nn.Module, Tensor]:
    return WaveNet(), torch.randint(0, 256, (2, 400), generator=drawn())


class Speech(nn.Module):
    """Spectra [N, 1, 40, T] -> scores [N, T / 2, 29] of letters: a convolution, GRUs both ways."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(1, 16, (11, 5), stride=2, padding=(5, 2)),
            nn.BatchNorm2d(16),
            nn.Hardtanh(0, 20),
        )
        self.states = nn.GRU(16 * 20, width, num_layers=3, bidirectional=True, batch_first=True)
        self.letters = nn.Sequential(nn.LayerNorm(2 * width), nn.Linear(2 * width, 29))

    def forward(self, spectra: Tensor) -> Tensor:
        heard = self.first(spectra).flatten(1, 2).transpose(1, 2)
        states, _ = self.states(heard)
        return self.letters(states)


def speech() -> tuple[nn.Module, Tensor]:
    return Speech(), torch.randn(4, 1, 40, 100, generator=drawn())


class Dlrm(nn.Module):
    """Numbers [N, 13] and four lists of visited pages [N, 10] -> a score [N, 1] of a click."""

    def __init__(self, rows: int = 2000, width: int = 16) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(4))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + 10, 64), nn.ReLU(), nn.Linear(64, 1))
        self.register_buffer("pairs", torch.tril_indices(5, 5, -1), persistent=False)

    def forward(self, numbers: Tensor, pages: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        each = [table(pages[:, index]) for index, table in enumerate(self.tables)]
        stacked = torch.stack([dense, *each], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        return self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], 1))


def dlrm() -> tuple[nn.Module, dict[str, Tensor]]:
    draw = drawn()
    pages = torch.randint(0, 2000, (32, 4, 10), generator=draw)
    return Dlrm(), {"numbers": torch.randn(32, 13, generator=draw), "pages": pages}


class Ncf(nn.Module):
    """A user [N] and a film [N] -> a score [N] of a view: a product beside layers."""

    def __init__(self, users: int = 1000, films: int = 500, width: int = 16) -> None:
        super().__init__()
        self.user_factor, self.film_factor = nn.Embedding(users, width), nn.Embedding(films, width)
        self.user, self.film = nn.Embedding(users, 2 * width), nn.Embedding(films, 2 * width)
        self.layers = nn.Sequential(
            nn.Linear(4 * width, 2 * width),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(2 * width, width),
            nn.ReLU(),
        )
        self.score = nn.Linear(2 * width, 1)

    def forward(self, user: Tensor, film: Tensor) -> Tensor:
        product = self.user_factor(user) * self.film_factor(film)
        deep = self.layers(torch.cat([self.user(user), self.film(film)], -1))
        return self.score(torch.cat([product, deep], -1)).squeeze(-1)


def ncf() -> tuple[nn.Module, dict[str, Tensor]]:
    draw = drawn()
    users, films = (torch.randint(0, most, (64,), generator=draw) for most in (1000, 500))
    return Ncf(), {"user": users, "film": films}


class Translator(nn.Module):
    """Words [N, L] and those of another language [N, K] -> scores [N, K, words] of the next."""

    def __init__(self, words: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
        self.both_ways = nn.LSTM(width, width // 2, bidirectional=True, batch_first=True)
        self.encoder = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.later = nn.LSTM(2 * width, width, batch_first=True)
        self.query, self.key = (
            nn.Linear(width, width, bias=False),
            nn.Linear(width, width, bias=False),
        )
        self.weigh = nn.Linear(width, 1, bias=False)
        self.words = nn.Linear(2 * width, words)

    def attend(self, states: Tensor, memory: Tensor) -> Tensor:
        """Additive attention of each state [N, K, width] to the memory [N, L, width]."""
        scores = self.weigh(torch.tanh(self.query(states)[:, :, None] + self.key(memory)[:, None]))
        return torch.softmax(scores.squeeze(-1), -1) @ memory

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        first, _ = self.both_ways(self.source(source))
        second, last = self.encoder(first)
        memory = first + second
        start = tuple(part[-1:].contiguous() for part in last)
        states, _ = self.decoder(self.target(target), start)
        context = self.attend(states, memory)
        later, _ = self.later(torch.cat([states, context], -1))
        return self.words(torch.cat([states + later, context], -1))


def translator() -> tuple[nn.Module, dict[str, Tensor]]:
    source, target = torch.randint(0, 1000, (2, 4, 16), generator=drawn())
    return Translator(), {"source": source, "target": target}


class Pyramid(nn.Module):
    """Images [N, 3, H, W] -> five maps of features, of a quarter of the size and smaller: what a
    detector of torchvision looks at them with."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

        self.features = resnet_fpn_backbone(
            backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d, trainable_layers=5
        )

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return self.features(images)


def pyramid() -> tuple[nn.Module, Tensor]:
    return Pyramid(), torch.randn(2, 3, 96, 96, generator=drawn())
