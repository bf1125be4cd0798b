#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Would a step from states along a trajectory show a fault that the probe step does not? For states before steps 0, 1, 5, 20 and 49 of eager's SGD and for the probe: the
gradients' envelopes, and by how many bounds each planted fault shows where it shows most. Prints a Markdown table. Needs the packages of strata's own environment."""
from __future__ import annotations

import argparse
import copy
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("src", "sdk/python")]

import torch  # noqa: E402
from torch import nn  # noqa: E402

from capture import bundle, reference, train  # noqa: E402
from capture.case import check_spec  # noqa: E402
from capture.probe import make_probe  # noqa: E402
from capture.weights import state_of  # noqa: E402
from strata_sdk.models import load_weights  # noqa: E402

STEPS = (0, 1, 5, 20, 49)
CASES = {"mnist_convnet": [4, 1, 28, 28], "resnet18": [4, 3, 64, 64]}


class Forced(train.TrainCapture):
    """Takes the place of the capture of mode train; prints instead of writing."""

    def run(self, module: nn.Module, trained: list[str]) -> list[str]:
        timed, work = state_of(module), copy.deepcopy(module)
        for name, parameter in work.named_parameters():
            parameter.requires_grad_(name in trained)
        train.Dropouts(work).switch(False)
        optimiser = torch.optim.SGD([p for p in work.parameters() if p.requires_grad], lr=0.01, momentum=0.9, weight_decay=1e-4)
        for step in range(STEPS[-1] + 1):
            entry, labels = self.ring[step % len(self.ring)], self.labels[step % len(self.ring)]
            self.stepper = train.Stepper(self.info, self.spec["device"], self.spec["threads"], labels)
            if step in STEPS:
                self.judge(f"step {step}", copy.deepcopy(work).eval(), entry, has_kinks=True)
            optimiser.zero_grad()
            self.stepper.loss_of(self.stepper.output(work.train(), entry), labels).backward()
            optimiser.step()
        load_weights(work, timed, "timed")
        wide = reference.double_copy(work.eval())
        make_probe(wide, self.ring[0], self.info, self.spec["seed"] + 104729, False)
        load_weights(work, state_of(wide), "probe1")
        self.stepper = train.Stepper(self.info, self.spec["device"], self.spec["threads"], self.labels[0])
        self.judge("probe1", work, self.ring[0], has_kinks=False)
        return []

    def judge(self, name: str, work: nn.Module, entry: train.Named, has_kinks: bool) -> None:
        wide = reference.double_copy(work)
        wanted = self.stepper.run(wide, entry, reference.to_double)
        still = {f"stat:{k}": v.double() for k, v in work.named_buffers()}
        wanted = {k: v for k, v in wanted.items() if k not in still or not torch.equal(v, still[k])}
        exact = train.Exact(wanted)
        envelope = train.train_envelope(self.stepper, work, entry, exact, 1)
        if has_kinks:
            envelope = train.widened(envelope, self.stepper, work, entry, exact, 2)
        seen = []
        for fault in train.TRAIN_FAULTS:
            in_double = fault not in train.IN_FLOAT32
            plan = train.Plan(train.shared_copy(wide if in_double else work), self.stepper.loss_of)
            try:
                train.plant(plan, fault)
                got = self.stepper.run(plan.module, entry, reference.to_double if in_double else lambda t: t, plan.loss_of)
            except train.NotApplicable:
                continue
            seen.append(f"{fault} {max(e / (train.TIMES * envelope[k]) for k, e in exact.errors(got).items()):,.0f}")
        gradients = sorted(v for k, v in envelope.items() if k.startswith("grad:"))
        print(f"| {self.info['model']['name']} | {name} | {gradients[len(gradients) // 2]:.1e}, {gradients[-1]:.1e} | {', '.join(seen)} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help=f"of {', '.join(CASES)}; all of them if none is named")
    models = parser.parse_args().models
    if unknown := set(models) - set(CASES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; allowed: {', '.join(CASES)}")
    bundle.TrainCapture = Forced
    print("| network | state | envelope of a gradient: median, widest | faults, in bounds of 8 envelopes |\n|---|---|---|---|")
    for model in models or CASES:
        spec = check_spec({"model": model, "mode": "train", "precision": "fp32", "device": "cpu", "threads": 2, "seed": 0, "ring": 4, "inputs": [{"name": "", "dtype": "float32", "shape": CASES[model]}]})
        with tempfile.TemporaryDirectory() as folder:
            for name in ("reference", "weights"):
                (Path(folder) / name).mkdir()
            bundle._Capture(spec, Path(folder), lambda _: None).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
