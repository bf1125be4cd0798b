# SPDX-License-Identifier: Apache-2.0
"""Trains mnist_convnet on scikit-learn's digits for some seconds, so that its answers mean
something: python examples/train_digits.py OUT.safetensors"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "models" / "mnist_convnet")]
from digits_score import digits  # noqa: E402
from model import build  # noqa: E402

EPOCHS, BATCH = 3, 64


def main(out: str) -> None:
    torch.manual_seed(0)
    images, labels = (torch.from_numpy(array) for array in digits("train"))
    network = build().train()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH):
            optimiser.zero_grad()
            loss = torch.nn.functional.nll_loss(network(images[rows]), labels[rows])
            loss.backward()
            optimiser.step()
        print(f"epoch {epoch + 1} of {EPOCHS}: loss {loss.item():.3f}")
    save_file(network.state_dict(), out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
