# SPDX-License-Identifier: Apache-2.0
"""A tagger of words: an embedding, two layers of LSTM in both directions, a tag for each word; its
loss leaves padding out and smooths the tags.

strata compare examples/tagger.py:build --mode infer,train --loss examples/tagger.py:loss
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS, TAGS, PADDING = 500, 17, -100
BATCH, LENGTH = 8, 24


class Tagger(nn.Module):
    """Words [batch, length] -> scores [batch, length, TAGS]."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 64)
        self.lstm = nn.LSTM(64, 96, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(2 * 96, TAGS)

    def forward(self, words: Tensor) -> Tensor:
        states, _ = self.lstm(self.words(words))
        return self.tags(states)


def loss(scores: Tensor, tags: Tensor) -> Tensor:
    """The mean over words that are no padding. `tags` are what build() gives under that name."""
    return functional.cross_entropy(
        scores.flatten(0, 1), tags.flatten(), ignore_index=PADDING, label_smoothing=0.05
    )


def build() -> tuple[nn.Module, dict[str, Tensor], dict[str, Tensor]]:
    """The module, an example of its inputs, and one of its targets."""
    draw = torch.Generator().manual_seed(0)
    tags = torch.randint(0, TAGS, (BATCH, LENGTH), generator=draw)
    tags[:, LENGTH - 4 :] = PADDING
    words = torch.randint(0, WORDS, (BATCH, LENGTH), generator=draw)
    return Tagger(), {"words": words}, {"tags": tags}
