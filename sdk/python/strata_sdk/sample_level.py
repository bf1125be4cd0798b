# SPDX-License-Identifier: Apache-2.0
"""For frameworks that know no batch: a level derived from `SampleLevel` runs one sample, and the
batch of a case is run sample by sample."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from .level import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


class SampleLevel(Level):
    """`load_weights`, `take_sample` and `run_sample` are to write; every input and output has the
    batch as its first extent."""

    @abstractmethod
    def take_sample(self, inputs: Sequence[np.ndarray]) -> Any:
        """What run_sample() takes, of one sample's inputs, without the batch. Timed."""

    @abstractmethod
    def run_sample(self, sample: Any) -> Sequence[Any]:
        """The sample's results, as arrays or what NumPy reads as one, in the order of
        job.output_names. Timed."""

    def set_input(self, inputs: Sequence[np.ndarray]) -> None:
        self.samples = [self.take_sample(sample) for sample in zip(*inputs, strict=True)]

    def run(self) -> None:
        self.results = [self.run_sample(sample) for sample in self.samples]

    def outputs(self) -> list[np.ndarray]:
        import numpy

        results, self.results = self.results, []
        shapes = [output["shape"][1:] for output in self.job.about["outputs"]]
        return [
            numpy.stack([numpy.asarray(part).reshape(shape) for part in parts])
            for shape, parts in zip(shapes, zip(*results, strict=True), strict=True)
        ]
