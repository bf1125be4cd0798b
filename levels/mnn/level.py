# SPDX-License-Identifier: Apache-2.0
"""mnn: the exported network, converted by MNN. The artefact is <weight set>.mnn in the cache,
written by prepare.py."""

from collections.abc import Sequence
from typing import Any

import MNN
import numpy as np
from MNN import expr, nn

from strata_sdk import Job, Level, UnsupportedError

# MNN has no 64-bit integers, and its converter makes the network's 32-bit ones
_TYPES = {
    "float32": (np.float32, expr.float),
    "int32": (np.int32, expr.int),
    "int64": (np.int32, expr.int),
}
# MNN's HintMode; 0: convolutions are direct
_WINOGRAD_MEMORY_LEVEL = 3


class Mnn(Level):
    libraries = {"mnn": MNN.version()}

    def load(self, job: Job) -> None:
        self.types = [output["dtype"] for output in job.about["outputs"]]
        # high: float32 throughout; low and the default may take float16 where the CPU has it
        self.runtime = nn.create_runtime_manager(
            ({"backend": "CPU", "precision": "high", "numThread": job.threads},)
        )
        if job.variant == "no-winograd":
            self.runtime.set_hint(_WINOGRAD_MEMORY_LEVEL, 0)

    def load_weights(self, weights: str) -> None:
        path = self.artefact(f"{weights}.mnn")
        self.net = nn.load_module_from_file(str(path), [], [], runtime_manager=self.runtime)
        if self.net is None:
            raise UnsupportedError(
                f"MNN {MNN.version()} cannot load the converted network",
                "the worker's log names the operation",
            )
        about = self.net.get_info()
        # an input that nothing reads may be gone
        self.order = [self.job.input_names.index(name) for name in about["inputNames"]]
        self.results = [about["outputNames"].index(name) for name in self.job.output_names]

    def set_input(self, inputs: tuple[np.ndarray, ...]) -> None:
        self.inputs = []
        for array in (inputs[i] for i in self.order):
            own, kind = _TYPES[array.dtype.name]
            # copies
            self.inputs.append(
                expr.const(array.astype(own, copy=False), list(array.shape), expr.NCHW, kind)
            )

    def run(self) -> None:
        self.variables = self.net.onForward(self.inputs)

    def outputs(self) -> Sequence[np.ndarray]:
        variables, self.variables = self.variables, None
        # an operation whose shape it cannot tell: it logs that and gives nothing
        if len(variables) < len(self.results):
            raise UnsupportedError(
                f"MNN {MNN.version()} computes {len(variables)} of the network's {len(self.results)} results",
                "the worker's log names the operation",
            )
        return [
            np.array(variables[i].read(), dtype=dtype)
            for i, dtype in zip(self.results, self.types, strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        return {"layout": "blocked", "graph": "exported"}
