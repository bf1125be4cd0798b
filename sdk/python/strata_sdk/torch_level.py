# SPDX-License-Identifier: Apache-2.0
"""What the levels that run a PyTorch module from Python share: building it, strict precision,
threads, reading weights back. Not a level by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import models, precision
from .capabilities import ReadsWeights, Serves
from .level import Job
from .torch_training import TorchTraining


class TorchLevel(TorchTraining, Serves, ReadsWeights):
    """Runs `self.runner`, by default `self.network`, the module in the case's precision, in
    inference mode; in a case of mode train TorchTraining's step."""

    client_threads = 1  # of the caller that a twin is for
    libraries = {"torch": torch.__version__}

    def load(self, job: Job) -> None:
        torch.set_num_threads(job.threads)
        precision.settle(job.precision)
        if job.about.get("model", {}).get("kind") == "onnx":
            raise models.ModelError(
                "unsupported",
                "an ONNX file holds no PyTorch module",
                "onnxruntime and openvino run it",
            )
        self.device = torch.device(job.device)
        self.progress("building the module")
        self.take(self.build_module(job))
        self.keywords = [i["name"] if i["keyword"] else None for i in job.about["inputs"]]
        if job.trains:
            self.prepare_training()

    def take(self, module: torch.nn.Module) -> None:
        """Runs this module from now on, in the case's precision."""
        self.module = module
        self.network = self.runner = precision.in_mode(
            module, self.job.case, self.job.about.get("outputs", [])
        )

    def build_module(self, job: Job) -> torch.nn.Module:
        """The case's network in eval mode on the case's device; its weights are loaded by
        load_weights()."""
        module = models.build_case(job.about)
        if job.trains:
            return module.to(self.device)
        module.requires_grad_(False)
        return (models.TapModule(module).eval() if job.deep else module).to(self.device)

    def load_weights(self, weights: str) -> None:
        from safetensors.torch import load_file

        path = self.job.weights_path(weights)
        models.load_weights(self.module, load_file(str(path)), str(path))
        self.wait()

    def host_input(self, arrays: tuple[np.ndarray, ...]) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(array) for array in arrays)

    def set_input(self, inputs: tuple[Tensor, ...]) -> None:
        if self.device.type != "cpu":
            inputs = tuple(tensor.to(self.device) for tensor in inputs)
        elif self.copy_inputs:
            inputs = tuple(tensor.clone() for tensor in inputs)
        self.inputs, self.named = self.split(inputs)

    def go_channels_last(self) -> None:
        """For a variant, after load(): weights stay in that layout; the caller's tensors are
        contiguous, so that bringing them into it is part of the iteration."""
        self.module.to(memory_format=torch.channels_last)
        self.set_input = self.set_channels_last  # type: ignore[method-assign]

    def set_channels_last(self, inputs: tuple[Tensor, ...]) -> None:
        TorchLevel.set_input(self, inputs)
        self.inputs = tuple(as_channels_last(x) for x in self.inputs)
        self.named = {name: as_channels_last(x) for name, x in self.named.items()}

    def split(self, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], dict[str, Tensor]]:
        """Positional and keyword arguments."""
        if not any(self.keywords):
            return inputs, {}
        pairs = list(zip(inputs, self.keywords))
        return [t for t, k in pairs if k is None], {k: t for t, k in pairs if k is not None}

    def run(self) -> None:
        with torch.inference_mode():
            self.result = self.runner(*self.inputs, **self.named)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def outputs(self) -> tuple[Tensor, ...]:
        result, self.result = self.result, None
        flat = (
            (result,)
            if isinstance(result, Tensor)
            else tuple(models.flatten_outputs(result).values())
        )
        if self.job.writes_buffers:  # a result may lie in a buffer, which the next call changes
            return tuple(tensor.to("cpu", copy=True) for tensor in flat)
        return flat if self.device.type == "cpu" else tuple(tensor.cpu() for tensor in flat)

    def clients(self, count: int, threads: int) -> Sequence[TorchLevel]:
        """Modules in inference mode hold no state of a call, so that callers share them."""
        torch.set_num_threads(threads)
        twins = [self.twin() for _ in range(count)]
        for twin in twins:
            twin.client_threads = threads
        return twins

    def enter(self) -> None:
        torch.set_num_threads(self.client_threads)  # OpenMP keeps it by thread
        if self.device.type == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream())
            self.wait = torch.cuda.current_stream().synchronize  # type: ignore[method-assign]

    def to_numpy(self, output: Tensor) -> np.ndarray:
        return output.detach().numpy()

    def weight_names(self) -> Sequence[str]:
        return [
            name for name, value in self.module.state_dict().items() if isinstance(value, Tensor)
        ]

    def weight(self, name: str) -> np.ndarray:
        value = self.module.state_dict()[name].detach().cpu().contiguous()
        # NumPy has no bfloat16; the bytes are what is compared
        return (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()

    def parameters(self) -> int:
        return models.count_parameters(self.module)

    def artefacts(self) -> Sequence[Path]:
        return [self.job.weights_path(self.job.weights)]

    def settings(self) -> dict[str, Any]:
        reported = {
            "threads": torch.get_num_threads(),
            "precision": precision.found_in(self.module, self.job.precision),
            "layout": "contiguous",
            "autotune": torch.backends.cudnn.benchmark if self.device.type == "cuda" else False,
        }
        return reported | ({"optimiser": self.optimiser_kind()} if self.job.trains else {})

    def device_peak_bytes(self) -> int | None:
        return torch.cuda.max_memory_allocated() if self.device.type == "cuda" else None

    def versions(self) -> dict[str, str]:
        names = super().versions()
        if torch.version.cuda and torch.cuda.is_available():
            names |= {"cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())}
        return names

    def build(self) -> dict[str, str]:
        return (
            {"type": "debug", "flags": "torch.version.debug"}
            if torch.version.debug
            else super().build()
        )

    def devices(self, declared: Sequence[str]) -> list[str]:
        return [device for device in declared if device != "cuda" or torch.cuda.is_available()]


def as_channels_last(x: Tensor) -> Tensor:
    return (
        x.contiguous(memory_format=torch.channels_last)
        if x.dim() == 4 and x.is_floating_point()
        else x
    )
