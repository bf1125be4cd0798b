# SPDX-License-Identifier: Apache-2.0
"""onnxruntime: the exported network in an InferenceSession. The artefact is <weight set>.onnx in
the cache, written by prepare.py."""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from strata_sdk import (
    Job,
    Level,
    RecordedIteration,
    Serves,
    TimesOperations,
    UnavailableError,
    UnsupportedError,
)

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_TENSORRT = "TensorrtExecutionProvider"
_WARM_UP = 3  # iterations before those that are recorded, in which a new session takes its memory


class OnnxRuntime(Level, Serves, TimesOperations):
    libraries = {"onnxruntime": ort.__version__}

    def supports(self, job: Job) -> None:
        self.tensorrt = job.variant == "tensorrt"
        if self.tensorrt and _TENSORRT not in ort.get_available_providers():
            raise UnavailableError(
                f"ONNX Runtime {ort.__version__} has no {_TENSORRT}, only {', '.join(ort.get_available_providers())}",
                "install onnxruntime-gpu and TensorRT",
            )

    def load(self, job: Job) -> None:
        self.options = ort.SessionOptions()
        self.options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.options.intra_op_num_threads = job.threads
        self.options.inter_op_num_threads = 1
        self.options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        self.on_device = job.device != "cpu"

    def load_weights(self, weights: str) -> None:
        self.path = self.artefact(f"{weights}.onnx", f"{weights}.onnx.data")
        self.open_session()

    def open_session(self) -> None:
        self.session = None  # the old one is freed before the new one is made
        try:
            self.session = ort.InferenceSession(
                str(self.path), self.options, providers=self.providers()
            )
        except ort.capi.onnxruntime_pybind11_state.NotImplemented as error:
            raise UnsupportedError(
                f"ONNX Runtime {ort.__version__} cannot run the network: {' '.join(str(error).split())[:300]}"
            ) from error
        # ONNX Runtime falls back without an error
        if self.tensorrt and _TENSORRT not in self.session.get_providers():
            raise UnavailableError(
                f"ONNX Runtime could not start {_TENSORRT}",
                "the worker's log says why; TensorRT's libraries must be found",
            )
        own = [value.name for value in self.session.get_inputs()]
        # in their order, since one that is also an output is renamed
        if len(own) == len(self.job.input_names):
            self.taken = [(name, i) for i, name in enumerate(own)]
        else:  # the exporter drops an input that nothing reads
            self.taken = [(name, i) for i, name in enumerate(self.job.input_names) if name in own]
        self.bind_outputs()

    def bind_outputs(self) -> None:
        if self.on_device:
            self.binding = self.session.io_binding()
            for name in self.job.output_names:
                self.binding.bind_output(name, "cuda")

    def clients(self, count: int, threads: int) -> Sequence[Level]:
        """One session, run by all: its pool works for every caller, so that callers and pool
        together have the threads of all clients."""
        pool = max(1, count * threads - count + 1)
        if self.options.intra_op_num_threads != pool:
            self.options.intra_op_num_threads = pool
            self.open_session()
        twins = [self.twin() for _ in range(count)]
        for twin in twins:
            twin.bind_outputs()
        return twins

    def providers(self) -> list[Any]:
        """The execution providers by preference. TensorRT leaves what it cannot run to CUDA, and
        keeps its engines, whose making takes minutes, in the cache."""
        if not self.on_device:
            return [_PROVIDERS["cpu"]]
        tf32 = self.job.precision == "tf32"
        cuda = (_PROVIDERS["cuda"], {"use_tf32": str(int(tf32))})
        if not self.tensorrt:
            return [cuda]
        # the provider has no option for TF32, NVIDIA's libraries read this when they start
        os.environ["NVIDIA_TF32_OVERRIDE"] = str(int(tf32))
        return [
            (
                _TENSORRT,
                {
                    "trt_engine_cache_enable": "1",
                    "trt_engine_cache_path": str(self.job.cache / "tensorrt"),
                },
            ),
            cuda,
        ]

    def set_input(self, inputs: tuple[np.ndarray, ...]) -> None:
        if self.on_device:
            for name, i in self.taken:
                self.binding.bind_ortvalue_input(
                    name, ort.OrtValue.ortvalue_from_numpy(inputs[i], "cuda", 0)
                )
        else:
            self.feed = {name: inputs[i] for name, i in self.taken}

    def run(self) -> None:
        if self.on_device:
            self.session.run_with_iobinding(self.binding)  # returns when the device has finished
        else:
            self.result = self.session.run(None, self.feed)

    def outputs(self) -> Sequence[np.ndarray]:
        if self.on_device:
            return self.binding.copy_outputs_to_cpu()
        result, self.result = self.result, None
        return result

    def record_operations(
        self, iterate: Callable[[int], None], indices: Sequence[int]
    ) -> Sequence[RecordedIteration]:
        """By a session of its own, since the profiler is on from a session's start to its end."""
        if self.on_device:
            raise UnsupportedError("ONNX Runtime times its calls of a device, not what runs there")
        from strata_sdk import onnx_operations

        with tempfile.TemporaryDirectory() as folder:
            self.options.enable_profiling = True
            self.options.profile_file_prefix = str(Path(folder) / "profile")
            try:
                clocks = [(clock, clock()) for clock in (time.time_ns, time.monotonic_ns)]
                self.open_session()
                start_ns = self.session.get_profiling_start_time_ns()
                # by which of them the profiler counts is its platform's choice
                clock = next((c for c, before in clocks if before <= start_ns <= c()), None)
                if clock is None:
                    raise UnsupportedError("ONNX Runtime's profiler counts by a clock of its own")
                for _ in range(_WARM_UP):
                    iterate(indices[0])
                spans = []
                for index in indices:
                    begin = clock()
                    iterate(index)
                    spans.append((begin, clock()))
                file = Path(self.session.end_profiling())
                nodes = onnx_operations.Nodes(self.path)
                return onnx_operations.of_profile(file, start_ns, spans, nodes)
            finally:
                self.options.enable_profiling = False
                self.open_session()

    def settings(self) -> dict[str, Any]:
        # cuDNN's algorithms are searched exhaustively by default; on a CPU, convolutions run in
        # blocked layout (NCHWc)
        return {"graph": "exported", "autotune": self.on_device}

    def devices(self, declared: Sequence[str]) -> list[str]:
        present = ort.get_available_providers()
        return [device for device in declared if _PROVIDERS[device] in present]
