# SPDX-License-Identifier: Apache-2.0
"""Training by eager, and a way to seem faster (README.md)."""

from __future__ import annotations

from typing import Any

import torch

from strata_sdk import tensors
from strata_sdk.torch_level import TorchLevel


class CheatTrain(TorchLevel):
    """`later`: steps on inputs of the ring, which the proof has, are made at once; from one on an
    input with a number of its own on, which is timed, all are made when somebody looks."""

    def load(self, job: Any) -> None:
        super().load(job)
        self.due: list[tuple[Any, Any, Any]] = []
        self.last = torch.zeros(())
        ring = tensors.read(str(job.bundle / "inputs.safetensors"))
        self.known = {value.tobytes() for value in ring.values()}

    def step(self) -> None:
        known = self.inputs[0].numpy().tobytes() in self.known
        if self.job.variant == "later" and (self.due or not known):
            copies = tuple(x.clone() for x in self.inputs)
            self.due.append((copies, self.named, self.labels))
            self.result = self.last
            return
        if known:
            super().step()
        else:
            self.timed_step()
        self.last = self.result.detach()

    def timed_step(self) -> None:
        """A step that may be less than it should be."""
        if self.job.variant == "timed_half":
            half = len(self.labels) // 2
            self.inputs, self.labels = tuple(x[:half] for x in self.inputs), self.labels[:half]
        held = [p for p in self.module.parameters() if self.job.variant == "timed_frozen"][:-2]
        for parameter in held:
            parameter.requires_grad_(False)
        super().step()
        for parameter in held:
            parameter.requires_grad_(True)

    def make_due(self) -> None:
        due, self.due = self.due, []
        for self.inputs, self.named, self.labels in due:
            super().step()

    def set_optimiser(self, optimiser: dict[str, Any]) -> None:
        self.due = []  # of weights that are no more
        super().set_optimiser(optimiser)

    def state(self) -> dict[str, Any]:
        self.make_due()
        return super().state()
