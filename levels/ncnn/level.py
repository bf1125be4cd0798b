# SPDX-License-Identifier: Apache-2.0
"""ncnn: the traced network, converted by pnnx. The artefact is <weight set>.param and .bin in the
cache, written by prepare.py."""

import ncnn

from strata_sdk import LevelError, SampleLevel, UnsupportedError


class Ncnn(SampleLevel):
    libraries = {"ncnn": ncnn.__version__}

    def load_weights(self, weights):
        path = self.artefact(f"{weights}.param", f"{weights}.bin")
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads = self.job.threads
        if self.job.variant == "default":  # ncnn's own is float16 on every CPU that can convert it
            options.use_fp16_packed = options.use_fp16_storage = False
            options.use_fp16_arithmetic = False
        if self.net.load_param(str(path)) or self.net.load_model(str(path.with_suffix(".bin"))):
            raise UnsupportedError(
                "ncnn cannot load the network", "the worker's log names the layer"
            )

    def take_sample(self, inputs):
        # a Mat of an array shares its memory, which ncnn may write to: it is copied, as in the code
        # that pnnx writes
        return [ncnn.Mat(array).clone() for array in inputs]

    def run_sample(self, sample):
        extractor = self.net.create_extractor()
        for i, mat in enumerate(sample):
            extractor.input(f"in{i}", mat)
        results = [extractor.extract(f"out{i}") for i in range(len(self.job.output_names))]
        if any(code != 0 for code, _ in results):
            raise LevelError("ncnn cannot run the network", "the worker's log says more")
        return [mat for _, mat in results]

    def settings(self):
        precision = "fp16" if self.net.opt.use_fp16_storage else "fp32"
        return {"precision": precision, "layout": "blocked", "graph": "traced"}
