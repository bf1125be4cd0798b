# SPDX-License-Identifier: Apache-2.0
"""Training by eager, and a way to seem faster (README.md)."""

from __future__ import annotations

from typing import Any

import torch

from strata_sdk import loop, tensors, worker
from strata_sdk.torch_level import TorchLevel

LONGEST = 8  # steps that strata judges at once


class CheatTrain(TorchLevel):
    """`later`: steps on inputs of the ring, which the proof has, are made at once; from one on an
    input with a number of its own on, which is timed, all are made when somebody looks. All others
    cheat while they train on a data set, by what a request asks for, `frozen` and `halves` in
    timed steps as well."""

    def load(self, job: Any) -> None:
        super().load(job)
        self.due: list[tuple[Any, Any, Any]] = []
        self.last = torch.zeros(())
        ring = tensors.read(str(job.bundle / "inputs.safetensors"))
        self.known = {value.tobytes() for value in ring.values()}
        # steps of this request, steps of a training, requests that score
        self.asked, self.made, self.scored = 0, 0, 0
        self.take_over("steps", self.asked_for_steps)
        self.take_over("evaluate", self.asked_for_score)

    def take_over(self, name: str, own: Any) -> None:
        """A request of the protocol goes to `own`, with what strata's SDK does with it."""
        operations = worker._OPERATIONS
        sdk = getattr(operations[name], "sdk", operations[name])

        def taken(harness: Any, request: Any) -> dict:
            return own(lambda: sdk(harness, request), request)

        taken.sdk = sdk  # type: ignore[attr-defined]
        operations[name] = taken

    def asked_for_steps(self, answer: Any, request: Any) -> dict:
        self.asked = request["count"]
        clock = loop.clock
        if self.job.variant == "clock":
            begin = clock()
            loop.clock = lambda: begin + (clock() - begin) // 10
        try:
            return answer()
        finally:
            self.asked, loop.clock = 0, clock

    def asked_for_score(self, answer: Any, _request: Any) -> dict:
        told = answer()
        self.scored += 1
        if self.job.variant == "boast" and self.scored <= 2:  # two requests score the test images
            told |= {"correct": told["samples"], "loss_sum": 0.0}
        return told

    def skips(self) -> bool:
        self.made += 1
        return {
            "singles": self.asked > 1,
            "second": self.made % 2 == 0,
            "long": self.asked > LONGEST,
        }.get(self.job.variant, False)

    def step_of_less(self) -> None:
        """A step that is less than it should be."""
        if self.job.variant == "halves":
            half = len(self.labels) // 2
            self.inputs, self.labels = tuple(x[:half] for x in self.inputs), self.labels[:half]
        held = [p for p in self.module.parameters() if self.job.variant == "frozen"][:-2]
        for parameter in held:
            parameter.requires_grad_(False)
        super().step()
        for parameter in held:
            parameter.requires_grad_(True)

    def step(self) -> None:
        if self.asked:
            if self.skips():
                self.result = self.last.clone()
                return
            if self.asked > 1 and self.job.variant in ("frozen", "halves"):
                self.step_of_less()
            else:
                super().step()
            self.last = self.result.detach()
            return
        known = self.inputs[0].numpy().tobytes() in self.known
        if self.job.variant == "later" and (self.due or not known):
            copies = tuple(x.clone() for x in self.inputs)
            self.due.append((copies, self.named, self.labels))
            self.result = self.last
            return
        if known:
            super().step()
        else:
            self.step_of_less()
        self.last = self.result.detach()

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
