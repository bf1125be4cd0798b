# SPDX-License-Identifier: Apache-2.0
"""eager: the user's module, called from Python. Every other level is measured against it. Variants
change its layout, its optimiser, or replay a CUDA graph."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from strata_sdk import (
    Job,
    MeasuresLayers,
    RecordedIteration,
    TimesOperations,
    UnavailableError,
    UnsupportedError,
)
from strata_sdk.torch_level import TorchLevel


def own_batches() -> Any:
    """How people gather batches in Python. Raises UnavailableError without torchvision or
    Pillow."""
    try:
        from strata_sdk.dataloader import batches
    except ImportError as error:
        raise UnavailableError(
            f"it needs torchvision and Pillow: {error}", "pip install torchvision pillow"
        ) from None
    return batches


class Eager(TorchLevel, MeasuresLayers, TimesOperations):
    """TorchLevel with nothing changed: its defaults are this level. A variant replaces methods of
    the instance, so that the default pays nothing for it."""

    def supports(self, job: Job) -> None:
        if self.job.variant == "cudagraph" and job.dynamic:
            raise UnsupportedError(
                "a CUDA graph replays one shape", "eager without it serves every batch"
            )

    def load(self, job: Job) -> None:
        super().load(job)
        if self.job.variant == "channels_last":
            self.go_channels_last()
        elif self.job.variant == "fused":
            self.optimiser_options = {"fused": True}
        elif self.job.variant == "dataloader":
            self.batches_of = own_batches()
        elif self.job.variant == "cudagraph":
            self.capture_graph()
            self.set_input, self.run = self.set_static, self.replay

    def settings(self) -> dict[str, Any]:
        changed = {"channels_last": {"layout": "channels_last"}, "cudagraph": {"graph": "traced"}}
        return super().settings() | changed.get(self.job.variant, {})

    def clients(self, count: int, threads: int) -> Sequence[TorchLevel]:
        if self.job.variant == "cudagraph":
            raise UnsupportedError(
                "a recorded CUDA graph has one set of inputs and outputs",
                "eager serves several clients",
            )
        return super().clients(count, threads)

    def layer_norms(self) -> list[dict[str, Any]]:
        """Sizes of activations, gradients and weights by layer in a step on the batch that is set,
        which is not made."""
        from strata_sdk.layer_norms import of_step

        return of_step(self, self.inputs, self.named, self.labels)

    def record_operations(
        self, iterate: Callable[[int], None], indices: Sequence[int]
    ) -> Sequence[RecordedIteration]:
        if self.device.type != "cpu":
            raise UnsupportedError("operations on a GPU end after Python has gone on")
        from strata_sdk.operation_times import of_module

        return of_module(self.module, iterate, indices)

    # -- cudagraph --------------------------------------------------------------------------------

    def capture_graph(self) -> None:
        """Records one forward pass on tensors that stay; weights are loaded in place, so that the
        record holds for every set."""
        self.static = tuple(x.to(self.device) for x in self.host_input(self.job.example()))
        self.inputs, self.named = self.split(self.static)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # libraries choose and allocate before anything is recorded
                TorchLevel.run(self)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(self.graph):
            self.recorded = self.runner(*self.inputs, **self.named)

    def set_static(self, inputs: tuple[Tensor, ...]) -> None:
        for static, x in zip(self.static, inputs):
            static.copy_(x)

    def replay(self) -> None:
        self.graph.replay()
        self.result = self.recorded
