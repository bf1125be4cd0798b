# SPDX-License-Identifier: Apache-2.0
"""Batches of a training as people write them in Python: a Dataset of PIL images, torchvision's
transforms, a DataLoader with its defaults (it loads in the training's own process). The images are
the mapped ones of `data`, so that no decoding is in it; samples, mirroring and moves are those of
the order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from torchvision.transforms import functional

from . import loop
from .training_data import BatchMaker, Order, Split


class Images(Dataset):
    """(image, label) by (index, mirrored, rows, columns): what RandomHorizontalFlip and RandomCrop
    with padding do, decided by the order."""

    def __init__(self, split: Split, maker: BatchMaker) -> None:
        self.images, self.labels = split.images, split.labels
        steps: list[Any] = (
            [transforms.Grayscale(maker.shape[1])]
            if split.images.shape[1] != maker.shape[1]
            else []
        )
        self.transform = transforms.Compose(
            [
                *steps,
                transforms.ToTensor(),
                transforms.Normalize(maker.middle.tolist(), maker.scale.tolist()),
            ]
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, draw: tuple[int, bool, int, int]) -> tuple[torch.Tensor, int]:
        index, mirrored, down, right = draw
        array = self.images[index]
        image = (
            Image.fromarray(array[0], mode="L")
            if len(array) == 1
            else Image.fromarray(np.ascontiguousarray(array.transpose(1, 2, 0)))
        )
        if mirrored:
            image = functional.hflip(image)
        if down or right:
            margin = max(abs(down), abs(right))
            image = functional.crop(
                functional.pad(image, margin), margin - down, margin - right, *array.shape[1:]
            )
        return self.transform(image), int(self.labels[index])


def batches(
    maker: BatchMaker, split: Split, order: Order, steps: range
) -> Iterator[tuple[Any, int, int]]:
    """For each step what a level takes as an entry ((images,), labels), how long was waited for it
    and how long it took to gather, in ns: the same, since nothing runs ahead."""

    def draws_of(step: int) -> list[tuple[int, bool, int, int]]:
        flips = [False] * len(order.samples[step]) if order.flip is None else order.flip[step] != 0
        shifts = (
            np.zeros((len(order.samples[step]), 2), np.int8)
            if order.shift is None
            else order.shift[step]
        )
        return [
            (int(index), bool(flip), int(down), int(right))
            for index, flip, (down, right) in zip(order.samples[step], flips, shifts)
        ]

    loader = iter(
        DataLoader(Images(split, maker), batch_sampler=[draws_of(step) for step in steps])
    )
    for _ in steps:
        begin = loop.clock()
        images, labels = next(loader)
        waited = loop.clock() - begin
        yield ((images,), labels), waited, waited
