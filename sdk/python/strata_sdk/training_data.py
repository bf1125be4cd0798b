# SPDX-License-Identifier: Apache-2.0
"""Training on a data set (docs/protocol.md, data, steps, evaluate): the harness gathers batches,
the level sees what it sees in a step on its ring. The numbers are those of
sdk/cpp/strata/training_data.cpp to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import loop, tensors
from .errors import BadRequest, UnsupportedError

if TYPE_CHECKING:
    from .level import Job


@dataclass
class Split:
    """Images uint8 [n, channels, height, width] and labels int64 [n]."""

    images: np.ndarray
    labels: np.ndarray


@dataclass
class Order:
    """Which samples make which batch [steps, batch], and what is done to each: mirrored, moved by
    (rows, columns)."""

    samples: np.ndarray
    flip: np.ndarray | None
    shift: np.ndarray | None


class BatchMaker:
    """Turns samples into a level's input: (value / 255 - mean) / deviation by channel, computed in
    float64 and rounded once to float32. An image of one channel fills all channels of the network.
    Raises UnsupportedError where the network does not take one float32 image, BadRequest where
    numbers or sizes do not fit."""

    def __init__(self, job: Job, mean: Any, deviation: Any) -> None:
        inputs, outputs = job.about["inputs"], job.about["outputs"]
        if len(inputs) != 1 or inputs[0]["dtype"] != "float32" or len(inputs[0]["shape"]) != 4:
            raise UnsupportedError(
                "training on a data set wants a network with one float32 input [N, C, H, W]"
            )
        if len(outputs[0]["shape"]) != 2:
            raise UnsupportedError(
                "training on a data set wants a network whose first output is [N, classes]"
            )
        self.shape, self.classes = tuple(inputs[0]["shape"]), outputs[0]["shape"][1]
        self.middle, self.scale = (
            _by_channel(mean, self.shape[1], "mean"),
            _by_channel(deviation, self.shape[1], "deviation"),
        )
        if (self.scale <= 0).any():
            raise BadRequest("`deviation` must be above 0")
        levels = np.arange(256) / 255.0
        self.values = ((levels[None, :] - self.middle[:, None]) / self.scale[:, None]).astype(
            np.float32
        )

    def open_split(self, path: str) -> Split:
        """A split of a data set, checked against the network."""
        file = _mapped(path)
        images, labels = (
            _need(path, file, "images", np.uint8, 4),
            _need(path, file, "labels", np.int64, 1),
        )
        channels, *size = images.shape[1:]
        if len(images) != len(labels) or not len(images):
            raise BadRequest(f"{path}: it has {len(images)} images and {len(labels)} labels")
        if channels not in (1, self.shape[1]) or tuple(size) != self.shape[2:]:
            raise BadRequest(
                f"{path}: its images are {'x'.join(map(str, images.shape[1:]))}, the network's {'x'.join(map(str, self.shape[1:]))}"
            )
        if labels.min() < 0 or labels.max() >= self.classes:
            raise BadRequest(
                f"{path}: label {labels.min() if labels.min() < 0 else labels.max()} is not one of the network's {self.classes} classes"
            )
        return Split(images, labels)

    def open_order(self, path: str, split: Split) -> Order:
        """The order of an epoch's samples, checked against the split."""
        file, batch = _mapped(path), self.shape[0]
        samples = _need(path, file, "samples", np.int64, 2)
        flip = _need(path, file, "flip", np.uint8, 2) if "flip" in file else None
        shift = _need(path, file, "shift", np.int8, 3) if "shift" in file else None
        if samples.shape[1] != batch:
            raise BadRequest(
                f"{path}: `samples` has batches of {samples.shape[1]}; the case has {batch}"
            )
        if (flip is not None and flip.shape != samples.shape) or (
            shift is not None and shift.shape != (*samples.shape, 2)
        ):
            raise BadRequest(f"{path}: `flip` or `shift` is not of as many samples as `samples`")
        if samples.size and not 0 <= samples.min() <= samples.max() < len(split.images):
            raise BadRequest(
                f"{path}: `samples` holds {samples.min() if samples.min() < 0 else samples.max()}; allowed are 0 to {len(split.images) - 1}"
            )
        return Order(samples, flip, shift)

    def allocate(self) -> tuple[np.ndarray, np.ndarray]:
        """Memory of one batch: the input, and its labels."""
        return tensors.aligned(np.zeros(self.shape, np.float32)), np.zeros(self.shape[0], np.int64)

    def fill(
        self,
        split: Split,
        samples: np.ndarray,
        entry: tuple[np.ndarray, np.ndarray],
        flip: np.ndarray | None = None,
        shift: np.ndarray | None = None,
    ) -> None:
        images, labels = entry
        chosen = split.images[samples]
        if flip is not None:
            mirrored = flip != 0
            chosen[mirrored] = chosen[mirrored][..., ::-1]
        if shift is not None:
            chosen = np.stack(
                [
                    _moved(image, int(down), int(right))
                    for image, (down, right) in zip(chosen, shift)
                ]
            )
        for channel in range(self.shape[1]):
            images[:, channel] = self.values[channel][
                chosen[:, 0 if chosen.shape[1] == 1 else channel]
            ]
        labels[...] = split.labels[samples]

    def fill_step(
        self, split: Split, order: Order, step: int, entry: tuple[np.ndarray, np.ndarray]
    ) -> None:
        """The batch of one step of an order."""
        flip, shift = (None if rows is None else rows[step] for rows in (order.flip, order.shift))
        self.fill(split, order.samples[step], entry, flip, shift)


def _moved(image: np.ndarray, down: int, right: int) -> np.ndarray:
    """The image [C, H, W] moved by so many rows and columns; what comes in from outside is 0."""
    out, (height, width) = np.zeros_like(image), image.shape[1:]
    rows, columns = (
        slice(max(0, down), min(height, height + down)),
        slice(max(0, right), min(width, width + right)),
    )
    if rows.start < rows.stop and columns.start < columns.stop:
        out[:, rows, columns] = image[
            :, rows.start - down : rows.stop - down, columns.start - right : columns.stop - right
        ]
    return out


def _by_channel(values: Any, channels: int, name: str) -> np.ndarray:
    if (
        not isinstance(values, list)
        or len(values) not in (1, channels)
        or not all(isinstance(v, (int, float)) and math.isfinite(v) for v in values)
    ):
        raise BadRequest(f"`{name}` is {values!r}", f"allowed: one finite number, or {channels}")
    return np.broadcast_to(np.array(values, np.float64), (channels,))


def _mapped(path: str) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, mapped: a data set is larger than what one wants to
    copy."""
    import json

    types = {"U8": np.uint8, "I8": np.int8, "I64": np.int64}
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    whole = np.memmap(path, np.uint8, "r")
    arrays = {}
    for name, about in header.items():
        if name == "__metadata__" or about["dtype"] not in types:
            continue
        begin, end = (8 + length + offset for offset in about["data_offsets"])
        arrays[name] = whole[begin:end].view(types[about["dtype"]]).reshape(about["shape"])
    return arrays


def _need(
    path: str, file: dict[str, np.ndarray], name: str, dtype: Any, dimensions: int
) -> np.ndarray:
    value = file.get(name)
    if value is None or value.dtype != dtype or value.ndim != dimensions:
        raise BadRequest(
            f"{path}: `{name}` is {'missing' if value is None else f'{value.dtype} of {value.ndim} dimensions'}",
            f"allowed: {np.dtype(dtype).name} of {dimensions} dimensions",
        )
    return value


def ahead(
    fill: Callable[[int, Any], None], entries: tuple[Any, Any], count: int
) -> Iterator[tuple[int, int, int]]:
    """Batches one ahead of the level: while it works on one, the next is gathered by another
    thread. Gives which of the two entries holds the next batch (until the call after the next one),
    and in ns how long was waited for it and how long it took to gather."""

    def timed(step: int) -> int:
        start = loop.clock()
        fill(step, entries[step % 2])
        return loop.clock() - start

    with ThreadPoolExecutor(1) as pool:
        gathering = pool.submit(timed, 0) if count else None
        for step in range(count):
            start = loop.clock()
            assert gathering is not None
            gathered = gathering.result()
            waited = loop.clock() - start
            gathering = pool.submit(timed, step + 1) if step + 1 < count else None
            yield step % 2, waited, gathered


def score(output: np.ndarray, labels: np.ndarray, loss: str) -> tuple[float, int]:
    """The sum of the losses of the rows, in float64, and how many have their label as the largest
    entry (the first of equal ones)."""
    rows = output.astype(np.float64)
    own = rows[np.arange(len(rows)), labels]
    largest = rows.max(axis=1)
    total = (
        0.0
        if loss == "nll"
        else float((np.log(np.exp(rows - largest[:, None]).sum(axis=1)) + largest).sum())
    )
    return total - float(own.sum()), int((rows.argmax(axis=1) == labels).sum())
