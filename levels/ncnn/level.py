# SPDX-License-Identifier: Apache-2.0
"""ncnn: the traced network, converted by pnnx. The artefact is <weight set>.param and .bin in the
cache, written by prepare.py."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

from strata_sdk import Job, Level, LevelError, UnsupportedError


class Ncnn(Level):
    def load(self, job: Job) -> None:
        self.shapes = [output["shape"][1:] for output in job.about["outputs"]]

    def load_weights(self, weights: str) -> None:
        self.path = self.job.cache / f"{weights}.param"
        if not self.path.is_file():
            raise LevelError(f"{self.path} is missing", "run the level's prepare command again")
        self.net = ncnn.Net()
        self.net.opt.num_threads = self.job.threads
        if self.job.variant == "default":  # ncnn's own is float16 on every CPU that can convert it
            self.net.opt.use_fp16_packed = self.net.opt.use_fp16_storage = (
                self.net.opt.use_fp16_arithmetic
            ) = False
        if (
            self.net.load_param(str(self.path)) != 0
            or self.net.load_model(str(self.path.with_suffix(".bin"))) != 0
        ):
            raise UnsupportedError(
                f"ncnn {ncnn.__version__} cannot load the converted network",
                "the worker's log names the layer",
            )

    def set_input(self, inputs: tuple[np.ndarray, ...]) -> None:
        # a Mat of an array shares its memory, which ncnn may write to: it is copied, as in the code
        # that pnnx writes
        self.samples = [
            [ncnn.Mat(sample).clone() for sample in samples]
            for samples in zip(*inputs, strict=True)
        ]

    def run(self) -> None:
        self.results = []
        for sample in self.samples:
            extractor = self.net.create_extractor()
            for i, mat in enumerate(sample):
                extractor.input(f"in{i}", mat)
            self.results.append(
                [self.extract(extractor, f"out{i}") for i in range(len(self.shapes))]
            )

    def extract(self, extractor: Any, name: str) -> Any:
        code, mat = extractor.extract(name)
        if code != 0:
            raise LevelError(
                f"ncnn could not compute {name} (code {code})", "the worker's log says more"
            )
        return mat

    def outputs(self) -> Sequence[np.ndarray]:
        results, self.results = self.results, []
        return [
            np.stack([np.array(result[i]).reshape(shape) for result in results])
            for i, shape in enumerate(self.shapes)
        ]

    def artefacts(self) -> Sequence[Path]:
        return [self.path, self.path.with_suffix(".bin")]

    def settings(self) -> dict[str, Any]:
        half = self.net.opt.use_fp16_storage
        return {
            "threads": self.net.opt.num_threads,
            "precision": "fp16" if half else "fp32",
            "layout": "blocked",
            "freezing": True,
            "graph": "traced",
        }

    def versions(self) -> dict[str, str]:
        return super().versions() | {"ncnn": ncnn.__version__}
