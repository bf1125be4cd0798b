# SPDX-License-Identifier: Apache-2.0
"""ncnn: the traced network, converted by pnnx. The artefact is <weight set>.param and .bin in the
cache, written by prepare.py."""

from typing import Any

import ncnn
import numpy as np

from strata_sdk import Job, Level, LevelError, UnsupportedError


class Ncnn(Level):
    libraries = {"ncnn": ncnn.__version__}

    def load(self, job: Job) -> None:
        self.shapes = [output["shape"][1:] for output in job.about["outputs"]]

    def load_weights(self, weights: str) -> None:
        layers, numbers = f"{weights}.param", f"{weights}.bin"
        path = self.artefact(layers, numbers)
        self.net = ncnn.Net()
        self.net.opt.num_threads = self.job.threads
        if self.job.variant == "default":  # ncnn's own is float16 on every CPU that can convert it
            self.net.opt.use_fp16_packed = self.net.opt.use_fp16_storage = False
            self.net.opt.use_fp16_arithmetic = False
        if self.net.load_param(str(path)) or self.net.load_model(str(path.with_name(numbers))):
            raise UnsupportedError(
                f"ncnn {ncnn.__version__} cannot load the converted network",
                "the worker's log names the layer",
            )

    def set_input(self, inputs: tuple[np.ndarray, ...]) -> None:
        # a Mat of an array shares its memory, which ncnn may write to: it is copied, as in the code
        # that pnnx writes
        self.samples = [
            [ncnn.Mat(part).clone() for part in sample] for sample in zip(*inputs, strict=True)
        ]

    def run(self) -> None:
        self.results = [self.run_sample(sample) for sample in self.samples]

    def run_sample(self, sample: list[Any]) -> list[Any]:
        extractor = self.net.create_extractor()
        for i, mat in enumerate(sample):
            extractor.input(f"in{i}", mat)
        results = [extractor.extract(f"out{i}") for i in range(len(self.shapes))]
        if failed := [code for code, _ in results if code != 0]:
            raise LevelError(f"ncnn ended with code {failed[0]}", "the worker's log says more")
        return [mat for _, mat in results]

    def outputs(self) -> list[np.ndarray]:
        results, self.results = self.results, []
        return [
            np.stack([np.array(result[i]).reshape(shape) for result in results])
            for i, shape in enumerate(self.shapes)
        ]

    def settings(self) -> dict[str, Any]:
        options = self.net.opt
        precision = "fp16" if options.use_fp16_storage else "fp32"
        found = {"threads": options.num_threads, "precision": precision}
        return found | {"layout": "blocked", "graph": "traced"}
