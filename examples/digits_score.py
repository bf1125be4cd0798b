# SPDX-License-Identifier: Apache-2.0
"""A score for --eval: the share of scikit-learn's handwritten digits that mnist_convnet reads
right, in percent.

python examples/train_digits.py digits.safetensors
strata compare mnist_convnet --weights digits.safetensors --batch 8 --precision fp32,bf16 \\
    --eval examples/digits_score.py:score
"""

from __future__ import annotations

import numpy as np


def digits(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 1, 28, 28) float32 from 0 to 1, and labels (N,). Every third digit is for testing,
    the others are for training."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    # 8x8 pixels to 24x24, and a margin of 2
    large = np.kron(images.reshape(-1, 8, 8) / 16, np.ones((3, 3)))
    large = np.pad(large, ((0, 0), (2, 2), (2, 2))).astype(np.float32)[:, None]
    chosen = (np.arange(len(labels)) % 3 == 0) == (part == "test")
    return large[chosen], labels[chosen]


def inputs() -> np.ndarray:
    """What every level is asked: the digits that were not trained on, all of them."""
    return digits("test")[0]


def score(outputs: np.ndarray) -> np.ndarray:
    """One number an example, so that two levels can be compared example by example: 100 for a digit
    that was read right."""
    return 100.0 * (outputs.argmax(1) == digits("test")[1])
