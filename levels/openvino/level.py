# SPDX-License-Identifier: Apache-2.0
"""openvino: the converted network, compiled by OpenVINO's CPU plugin. The artefact is <weight
set>.xml and .bin in the cache, written by prepare.py."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from strata_sdk import Job, Level, Serves, UnsupportedError

sys.modules["openvino_telemetry"] = None  # README.md, telemetry

import openvino as ov  # noqa: E402

_PRECISIONS = {"f32": "fp32", "bf16": "bf16", "f16": "fp16"}


class OpenVino(Level, Serves):
    libraries = {"openvino": ov.get_version().split("-")[0]}

    def supports(self, job: Job) -> None:
        # it would run float32 without a word
        if job.precision == "bf16" and "BF16" not in ov.Core().get_property(
            "CPU", "OPTIMIZATION_CAPABILITIES"
        ):
            raise UnsupportedError(
                "OpenVINO has no bf16 on this CPU", "it needs a CPU with AVX512_BF16 or AMX"
            )

    def load(self, job: Job) -> None:
        self.core = ov.Core()
        self.properties = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": job.threads}
        if job.variant == "default":
            # its own choice is bf16 where the CPU has it
            hint = "bf16" if job.precision == "bf16" else "f32"
            self.properties["INFERENCE_PRECISION_HINT"] = hint

    def load_weights(self, weights: str) -> None:
        self.path = self.artefact(f"{weights}.xml", f"{weights}.bin")
        self.compile_model()
        # an input that nothing reads may be gone
        self.order = [self.job.input_names.index(port.any_name) for port in self.compiled.inputs]

    def compile_model(self) -> None:
        self.compiled = None  # the old one is freed before the new one is made
        self.compiled = self.core.compile_model(self.path, "CPU", self.properties)

    def clients(self, count: int, threads: int) -> Sequence[Level]:
        """One infer request and one stream a client; the streams share the threads of all."""
        streams = {"NUM_STREAMS": count, "INFERENCE_NUM_THREADS": count * threads}
        if not streams.items() <= self.properties.items():
            self.properties |= streams
            self.compile_model()
        twins = [self.twin() for _ in range(count)]
        for twin in twins:
            # as calling the compiled model does
            twin.compiled = partial(self.compiled.create_infer_request().infer, share_inputs=True)
        return twins

    def set_input(self, inputs: tuple[np.ndarray, ...]) -> None:
        self.inputs = [inputs[i] for i in self.order]

    def run(self) -> None:
        self.result = self.compiled(self.inputs)  # shares the inputs, copies the outputs

    def outputs(self) -> Sequence[np.ndarray]:
        result, self.result = self.result, None
        return list(result.values())

    def settings(self) -> dict[str, Any]:
        precision = self.compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        return {
            "threads": self.compiled.get_property("INFERENCE_NUM_THREADS"),
            "precision": _PRECISIONS.get(precision, precision),
            "graph": "exported",
        }
