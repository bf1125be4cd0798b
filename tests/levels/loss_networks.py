# SPDX-License-Identifier: Apache-2.0
"""Networks that are trained with losses of their own, and losses of files."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, LENGTH, CLASSES = 3, 5, 4


class EveryLoss(nn.Module):
    """Returns the sum of every loss that a level derives, of heads on one hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(6, 8)
        self.scores, self.values = nn.Linear(8, CLASSES), nn.Linear(8, 3)
        self.pixels = nn.Conv2d(1, CLASSES, 3, padding=1)
        self.register_buffer("weight", torch.tensor([0.5, 1.0, 2.0, 1.5]))
        self.register_buffer("positive", torch.tensor([2.0, 0.5, 1.0]))

    def forward(
        self, x: Tensor, classes: Tensor, tokens: Tensor, values: Tensor, shares: Tensor
    ) -> dict[str, Tensor]:
        hidden = torch.tanh(self.hidden(x))  # [batch, length, 8]
        scores, out = self.scores(hidden), self.values(hidden)
        first, flat = scores[:, 0], scores.flatten(0, 1)
        image = self.pixels(x.unsqueeze(1))[..., :LENGTH]  # [batch, classes, length, length]
        rows = tokens.unsqueeze(2).expand(-1, -1, LENGTH).clamp(min=0)
        return {
            "loss": sum(
                self.of_classes(first, flat, classes, tokens, scores, torch.softmax(x[:, 0, 2:], 1))
            )
            + F.cross_entropy(image, rows, weight=self.weight, label_smoothing=0.2)
            + F.nll_loss(F.log_softmax(image, 1), rows)
            + sum(self.of_values(out, values, shares))
        }

    def of_classes(
        self,
        first: Tensor,
        flat: Tensor,
        classes: Tensor,
        tokens: Tensor,
        scores: Tensor,
        shares: Tensor,
    ) -> list[Tensor]:
        several = tokens.flatten()
        weight = self.weight
        return [
            F.cross_entropy(first, classes),
            F.cross_entropy(flat, several, weight=weight, ignore_index=-1),
            F.cross_entropy(flat, several, ignore_index=-1, reduction="sum") / 10,
            F.cross_entropy(flat, several, ignore_index=-1, reduction="none").mean(),
            F.cross_entropy(scores.transpose(1, 2), tokens, ignore_index=-1, label_smoothing=0.1),
            F.cross_entropy(first, shares, weight=weight),
            F.cross_entropy(first, shares, label_smoothing=0.3),
            F.nll_loss(F.log_softmax(flat, -1), several, weight=weight, ignore_index=-1),
        ]

    def of_values(self, out: Tensor, values: Tensor, shares: Tensor) -> list[Tensor]:
        return [
            F.mse_loss(out, values),
            F.mse_loss(out[:, :1], values, reduction="sum") / 20,  # which broadcasts
            F.l1_loss(out, values),
            F.smooth_l1_loss(out, values),
            F.smooth_l1_loss(out, values, beta=0.3),
            F.huber_loss(out, values, delta=0.7),
            F.binary_cross_entropy(torch.sigmoid(out), shares),
            F.binary_cross_entropy(torch.sigmoid(out), shares, weight=self.positive),
            F.binary_cross_entropy_with_logits(out, shares),
            F.binary_cross_entropy_with_logits(
                out, shares, weight=self.positive, pos_weight=self.positive
            ),
            F.softplus(out).mean() - F.logsigmoid(values * out).mean(),
            F.softplus(out, beta=2.0).mean(),
        ]


def inputs_of_every_loss(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, CLASSES, (BATCH, LENGTH), generator=generator)
    tokens[:, 1] = -1  # which is ignored
    return {
        "x": torch.randn(BATCH, LENGTH, 6, generator=generator),
        "classes": torch.randint(0, CLASSES, (BATCH,), generator=generator),
        "tokens": tokens,
        "values": torch.randn(BATCH, LENGTH, 3, generator=generator),
        "shares": torch.rand(BATCH, LENGTH, 3, generator=generator),
    }


def every_loss() -> tuple[nn.Module, dict[str, Tensor]]:
    torch.manual_seed(0)
    return EveryLoss(), inputs_of_every_loss(1)


class Rows(nn.Module):
    """[batch, 6] -> [batch, `out`]."""

    def __init__(self, out: int = 3) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))


def rows() -> tuple[nn.Module, Tensor]:
    return Rows(), torch.randn(BATCH, 6, generator=torch.Generator().manual_seed(2))


def rows_with_targets() -> tuple[nn.Module, Tensor, dict[str, Tensor]]:
    module, x = rows()
    return module, x, {"target": torch.randn(BATCH, 3), "mask": torch.ones(BATCH, 1)}


class Sequences(nn.Module):
    """Token ids [batch, length] -> scores [batch, length, 11]."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.scores = nn.Embedding(11, 6), nn.Linear(6, 11)

    def forward(self, ids: Tensor) -> Tensor:
        return self.scores(F.gelu(self.table(ids)))


def sequences() -> tuple[nn.Module, dict[str, Tensor]]:
    return Sequences(), {"ids": torch.randint(0, 11, (2, 5))}


class Images(nn.Module):
    """[batch, 3, 6, 6] -> scores [batch, 4, 6, 6]."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 5, 3, padding=1), nn.Conv2d(5, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x)))


def images() -> tuple[nn.Module, Tensor]:
    return Images(), torch.randn(2, 3, 6, 6)


class Labelled(nn.Module):
    """As networks of Hugging Face: its loss where it is given labels, and its scores."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
        scores = self.second(torch.tanh(self.first(x)))
        loss = scores if labels is None else F.cross_entropy(scores, labels)
        return loss, scores


def labelled() -> tuple[nn.Module, dict[str, Tensor]]:
    return Labelled(), {"x": torch.randn(BATCH, 6)}


# -------------------------------------------------------------------------------------- of files


def masked(output: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    return ((output - target).square() * mask).sum() / mask.sum().clamp(min=1)


criterion = nn.MSELoss()


class Weighted(nn.Module):
    """A loss with a buffer and a parameter that is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.tensor([1.0, 2.0, 0.5]))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return ((output * self.scale - target).square() * self.weight).mean()


class Needy(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()


def of_each(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).square()


def raises(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target[:1])


def nothing() -> Tensor:
    return torch.zeros(())


def shipped(output: Tensor) -> Tensor:
    """Of a network of strata's own, without targets."""
    return output.square().mean()
