# SPDX-License-Identifier: Apache-2.0
"""The references of mode train (docs/bundle.md, docs/proof_of_training.md): loss, gradients and
BatchNorm statistics of one float64 step for each weight set, the errors of legitimate float32
steps, the same step with planted faults, and eager's losses with dropout."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.dropout import DropoutCapture
from capture.dropout_calls import DropoutCalls
from capture.effects import random_in_training
from capture.errors import Problem, is_out_of_memory
from capture.faults import NotApplicable, shared_copy
from capture.smooth_weights import make_probe
from capture.train_faults import IN_FLOAT32, Plan, names_of, plant
from capture.training_step import (
    Exact,
    Named,
    Stepper,
    errors_of_runs,
    norm_error,
    terms_of_means,
    train_envelope,
    train_mode,
    widened,
)
from capture.weights import state_of
from strata_sdk.dropout_calls import NoDropoutCalls
from strata_sdk.losses import is_output
from strata_sdk.models import last_line, load_weights, source_files
from strata_sdk.precision import UNIT
from strata_sdk.torch_training import Dropout, Dropouts

TIMES = 8.0  # a level may err by so many envelopes
ENOUGH_POWER = 10.0  # bounds that a planted fault has to reach
WIDEST = 1e-3  # a gradient envelope beyond which the proof is weak
DROPOUT_LOSSES = 64


# ------------------------------------------------------------------------------ what a case needs


def make_labels(info: dict, seed: int) -> list[Tensor]:
    """int64 [batch] for each entry of the ring, over all classes. Raises Problem where the first
    output is no row of classes."""
    first = info["outputs"][0]
    batch = info["case"]["batch"]
    if (
        len(first["shape"]) != 2
        or first["shape"][0] != batch
        or first["shape"][1] < 2
        or not first["dtype"].startswith("float")
    ):
        raise Problem(
            "unsupported",
            f"mode train needs a network whose first output is [{batch}, classes]; {first['name']} is {first['dtype']} {first['shape']}",
            "return the classes' scores first, name the loss with --loss (mse, bce_with_logits, FILE.py:FUNCTION, or output: the network's own), or use mode infer",
        )
    generator = torch.Generator().manual_seed(seed * 1009 + 500)
    return [
        torch.randint(0, first["shape"][1], (batch,), generator=generator)
        for _ in range(info["ring"])
    ]


def check_trains(stepper: Stepper, wide: nn.Module, entry: ref.Entry) -> tuple[Named, str]:
    """The step of a float64 module, and why it cannot be repeated; Problem when there is none."""
    if not any(p.requires_grad for p in wide.parameters()):
        raise Problem(
            "unsupported",
            "the network has no parameter to train: none requires a gradient",
            "let parameters require gradients in build(), or use mode infer",
        )
    try:
        results = stepper.run(wide, entry, ref.to_double)
        with torch.no_grad(), train_mode(wide):
            output = stepper.output(wide, entry, ref.to_double)
            again = stepper.loss_of(output, stepper.labels).item()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        hint = "mode train compares gradients with float64 ones; let the model follow the type of its inputs, or use mode infer"
        if "more than 1 value per channel" in str(error):
            hint = "a BatchNorm in train mode needs more than one value: use a larger --batch or larger images"
        raise Problem(
            "unsupported",
            f"the network cannot take a training step in float64: {last_line(error, *source_files(wide))}",
            hint,
        ) from error
    if not any(name.startswith("grad:") for name in results):
        raise Problem(
            "unsupported",
            "no parameter has a gradient: the first output does not depend on any",
            "return the classes' scores first",
        )
    bad = [name for name, value in results.items() if not bool(value.isfinite().all())]
    if bad:
        raise Problem(
            "unsupported",
            f"the training step in float64 is not finite: {bad[0]}",
            "give weights and inputs with which the loss and its gradients are finite",
        )
    if stepper.labels is not None and stepper.bundle["case"]["loss"] == "nll":
        rows = output.exp().sum(1)
        if not bool(((rows - 1).abs() < 1e-3).all()):
            raise Problem(
                "usage",
                f"loss nll needs log-probabilities, and the exponentials of a row of the first output sum to {rows[0].item():.3g}",
                "use --loss cross_entropy, or end the network with log_softmax",
            )
    if abs(again - results["loss"].item()) <= 1e-9 * abs(again):
        return results, ""
    with train_mode(wide):
        return results, random_in_training(
            wide, {k: ref.to_double(v) for k, v in entry.items()}, stepper.bundle
        )


# -------------------------------------------------------------------------------------- the whole


def by_kind(values: dict[str, float], even: bool) -> dict:
    """An envelope as train.json has it. `even`: a flipped kink hits any tensor, and luck differs by
    tensor, so that no gradient's is below the median."""
    tensors = {
        kind: {k.removeprefix(f"{kind}:"): v for k, v in values.items() if k.startswith(f"{kind}:")}
        for kind in ("grad", "stat")
    }
    least = sorted(tensors["grad"].values())[len(tensors["grad"]) // 2] if even else 0.0
    return {
        "loss": values["loss"],
        "grad": {k: max(e, least) for k, e in tensors["grad"].items()},
        "stat": tensors["stat"],
    }


@dataclasses.dataclass
class TrainCapture:
    """Writes probe weights, labels, references and train.json. `module` is the float32 network with
    its timed weights, on the CPU; `write`: (name, tensors) to a file; `work`: FLOPs of one call,
    roughly."""

    spec: dict
    info: dict
    ring: list[Named]
    folder: Path
    write: Callable[[str, Named], None]
    say: Callable[[str], None]
    work: int

    def __post_init__(self) -> None:
        self.labels: list[Tensor | None] = [None] * self.info["ring"]
        if not is_output(self.info):
            self.labels = [*make_labels(self.info, self.spec["seed"])]
        self.stepper = Stepper(self.info, self.spec["device"], self.labels[0])
        self.probes = ("probe1",) if self.spec["light"] else ("probe1", "probe2")
        self.sets: dict[str, dict] = {}
        self.doubts: list[str] = []

    def run(self, module: nn.Module, trained: list[str]) -> None:
        """`trained`: names of the parameters that require gradients."""
        labels = {f"{i}/labels": one for i, one in enumerate(self.labels) if one is not None}
        if labels:
            self.write("labels", labels)
        work = copy.deepcopy(module).to(self.spec["device"])
        for name, parameter in work.named_parameters():
            parameter.requires_grad_(name in trained)
        dropouts, calls = Dropouts(work), self.calls_of(work)
        self.info["dropout_calls"] = len(calls.sites)
        with calls if calls.sites else contextlib.nullcontext():
            about = self.dropout(work, dropouts.places() + calls.places())
            dropouts.switch(False)
            calls.on = False
            self.references(module, work, about)

    def calls_of(self, work: nn.Module) -> DropoutCalls:
        """What one forward pass calls."""
        calls = DropoutCalls()
        with calls, torch.no_grad(), train_mode(work):
            self.stepper.output(work, self.ring[0])
        self.stepper.calls = calls
        return calls

    def references(self, module: nn.Module, work: nn.Module, about: dict) -> None:
        """Without dropout. `work`: the module on the device, its trained parameters marked."""
        wide = ref.double_copy(work)
        self.say("training step in float64")
        step, self.info["unproven"] = check_trains(self.stepper, wide, self.ring[0])
        self.one_set("timed", work, step, {}, has_kinks=True)
        faults: dict[str, dict] = {}
        for number, name in enumerate(self.probes):
            load_weights(wide, module.state_dict(), "timed")
            self.say(f"probe weights {name}")
            probe = make_probe(
                wide, self.ring[0], self.info, self.spec["seed"] + 104729, bool(number)
            )
            self.doubts += [s for s in [probe.sentence(name)] if s]
            load_weights(work, wide.state_dict(), name)
            load_weights(wide, work.state_dict(), name)  # as float32 holds them
            self.say("training step in float64")
            step, further = (
                self.stepper.run(wide, self.ring[0], ref.to_double),
                {} if number else self.other_losses(wide),
            )
            exact, envelope = self.one_set(name, work, step, further, has_kinks=probe.maxima > 0)
            if not number and not self.spec["light"]:
                faults = self.faults(work, wide, exact, envelope)
        train = self.sets | {"faults": faults, "weak": self.weak(faults), "dropout": about}
        (self.folder / "reference" / "train.json").write_text(
            json.dumps(train, indent=1), encoding="utf-8"
        )

    def dropout(self, work: nn.Module, dropouts: list[Dropout]) -> dict:
        """train.json's `dropout`: eager's float32 losses and gradients with dropout as given; the
        running statistics stay."""
        if not dropouts or self.spec["light"]:
            layers = [{"name": site.name, "p": site.p} for site in dropouts]
            return {"layers": layers, "losses": [], "groups": 0, "watched": {}}
        self.say("steps with dropout")
        losses = self.dropout_losses(work)
        with train_mode(work):
            dropout = DropoutCapture(
                work,
                dropouts,
                lambda names: self.stepper.gradients(work, self.ring[0], names),
                self.spec["seed"] + 3,
            ).run()
        return dropout | {"losses": losses}

    def dropout_losses(self, work: nn.Module) -> list[float]:
        """One a forward pass."""
        torch.manual_seed(self.spec["seed"])
        with torch.no_grad(), train_mode(work):
            return [self.stepper.loss(work, self.ring[0]).item() for _ in range(DROPOUT_LOSSES)]

    def one_set(
        self, name: str, work: nn.Module, step: Named, further: Named, has_kinks: bool
    ) -> tuple[Exact, dict[str, float]]:
        """Writes a set's weights, reference and envelope. `step`: that of the same weights in
        float64; `further`: tensors beside it."""
        if name != "timed":  # which is the network's
            self.write(f"weights/{name}", {k: v.cpu() for k, v in state_of(work).items()})
        self.say(f"training steps of weight set {name}")
        still = {f"stat:{k}": v.cpu().double() for k, v in work.named_buffers()}
        # buffers that a step changes
        exact = Exact(
            {k: v for k, v in step.items() if k not in still or not torch.equal(v, still[k])}
        )
        if not exact.floor > 0:
            raise Problem(
                "unsupported",
                f"all gradients of weight set {name} are zero",
                "give weights with which the loss follows the parameters",
            )
        envelope = train_envelope(
            self.stepper,
            work,
            self.ring[0],
            exact,
            terms_of_means(work, still, exact.values),
            self.spec["seed"] + 1,
            ref.few_runs(self.spec),
        )
        if has_kinks:
            envelope = widened(
                envelope, self.stepper, work, self.ring[0], exact, self.spec["seed"] + 2
            )
        lost = [key for key, error in envelope.items() if not error < float("inf")]
        if lost:
            raise Problem(
                "unsupported",
                f"weight set {name}: a float32 training step has no finite {lost[0]}, the float64 one has",
                "give weights and inputs with which float32 does not overflow",
            )
        self.sets[name] = {
            "envelope": by_kind(envelope, even=name == "timed"),
            "grad_floor": exact.floor,
        }
        if self.info["case"]["optimiser"]["clip_norm"]:
            self.sets[name]["norm"] = norm_error(self.stepper.run(work, self.ring[0]))
        self.write(
            f"reference/{name}.train",
            {f"0/{k}": v.float() for k, v in exact.values.items()} | further,
        )
        return exact, envelope

    def other_losses(self, wide: nn.Module) -> Named:
        """`<i>/loss` of the other entries of the ring, by which a level shows that it reads its
        inputs and labels."""
        tensors = {}
        for i in range(1, len(self.ring)):
            with torch.no_grad(), train_mode(wide):
                stepper = Stepper(self.info, self.spec["device"], self.labels[i])
                tensors[f"{i}/loss"] = (
                    stepper.loss_of(
                        self.stepper.output(wide, self.ring[i], ref.to_double), stepper.labels
                    )
                    .cpu()
                    .float()
                )
        return tensors

    def faults(
        self, work: nn.Module, wide: nn.Module, exact: Exact, envelope: dict[str, float]
    ) -> dict[str, dict]:
        """Planted in the float64 step of probe1; by how many bounds each shows where it shows
        most."""
        self.say("planting faults")
        most = max(4, int(ref.FAULT_FLOPS / max(3.0 * self.work, 1.0)))
        planted: dict[str, dict] = {}
        for name in names_of(self.labels[0] is not None)[:most]:
            in_double = name not in IN_FLOAT32
            plan = Plan(shared_copy(wide if in_double else work), self.stepper.loss_of)
            try:
                sentence = plant(plan, name)
                got = self.stepper.run(
                    plan.module,
                    self.ring[0],
                    ref.to_double if in_double else ref.as_it_is,
                    plan.loss_of,
                )
            except NotApplicable:
                continue
            times = {k: e / (TIMES * envelope[k]) for k, e in exact.errors(got).items()}
            where = max(times, key=lambda k: times[k])
            planted[name] = {
                "times_bound": min(times[where], 1e30),
                "sentence": f"{sentence}; shows most in {where}",
            }
        return planted

    def weak(self, faults: dict[str, dict]) -> str:
        doubts = list(self.doubts)
        for name in self.probes:
            gradients = self.sets[name]["envelope"]["grad"]
            widest = max(gradients, key=lambda k: gradients[k])
            if gradients[widest] > WIDEST:
                doubts.append(
                    f"weak gradient proof: in {name} legitimate float32 steps differ by {gradients[widest]:.2g} in the gradient of {widest}"
                )
        doubts += [
            f"planted fault {name} reaches {fault['times_bound']:.2g} bounds only"
            for name, fault in faults.items()
            if fault["times_bound"] < ENOUGH_POWER
        ]
        return "; ".join(doubts)


class StepsInMode:
    """Eager's training steps in the precision of `info`, a bundle of mode train in `folder` whose
    float32 part is there, against the same float64 steps: `reference/train.<mode>.json`."""

    def __init__(self, info: dict, folder: Path) -> None:
        from safetensors.torch import load_file

        self.case, self.folder, self.load = info["case"], folder, load_file
        self.light = ref.few_runs(info["spec"])
        self.calls = bool(info.get("dropout_calls"))
        self.path = folder / "reference" / f"train.{self.case['precision']}.json"
        labels = (
            None if is_output(info) else load_file(str(folder / "labels.safetensors"))["0/labels"]
        )
        self.stepper = Stepper(info, self.case["device"], labels)
        self.sets: dict[str, dict] = {}

    def add(self, name: str, view: nn.Module, entry: Named) -> None:
        """`view`: the module in the mode, with the weights of the set. Activations near kinks are
        flipped by the mode's rounding on every set."""
        state = self.load(str(self.folder / "reference" / f"{name}.train.safetensors"))
        exact = Exact(
            {k.removeprefix("0/"): v.double() for k, v in state.items() if k.startswith("0/")}
        )
        for path, parameter in view.named_parameters():
            parameter.requires_grad_(f"grad:{path}" in exact.values)
        Dropouts(view).switch(False)
        unit = UNIT[self.case["precision"]]
        with NoDropoutCalls() if self.calls else contextlib.nullcontext():
            errors = errors_of_runs(
                self.stepper, view, entry, exact, int(self.case["seed"]) + 1, 2 * unit, self.light
            )
        lost = [key for key, found in errors.items() if not max(found) < float("inf")]
        if lost:
            raise Problem(
                "unsupported",
                f"weight set {name}: a training step in {self.case['precision']} has no finite {lost[0]}, the float64 one has",
                "use fp32",
            )
        envelope = {key: max([unit, *found]) for key, found in errors.items()}
        self.sets[name] = {
            "envelope": by_kind(envelope, even=True),
            "least": {
                k.removeprefix("grad:"): min(found)
                for k, found in errors.items()
                if k.startswith("grad:")
            },
        }

    def write(self) -> None:
        self.path.write_text(json.dumps(self.sets, indent=1), encoding="utf-8")
