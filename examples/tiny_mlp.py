# SPDX-License-Identifier: Apache-2.0
"""Two linear layers with a ReLU between: the smallest network that every level can be tried with,
the one in Perl included (perl_level/).

strata compare examples/tiny_mlp.py:build --levels eager,perl --threads 1
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TinyMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.first(x)))


def build() -> tuple[nn.Module, Tensor]:
    """The module and an example input, so that no --input is needed."""
    return TinyMlp(), torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
