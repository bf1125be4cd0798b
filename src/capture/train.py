# SPDX-License-Identifier: Apache-2.0
"""The references of mode train (docs/bundle.md, docs/method.md "Training"): loss, gradients and BatchNorm statistics of one float64 step for each weight set,
the errors of legitimate float32 steps, the same step with planted faults, and eager's losses with dropout."""
from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.faults import NotApplicable, shared_copy
from capture.probe import make_probe
from capture.problem import Problem, is_out_of_memory
from capture.train_faults import IN_FLOAT32, TRAIN_FAULTS, Plan, plant
from capture.weights import make_generic, state_of
from strata_sdk.models import bind, last_line, load_weights, source_files
from strata_sdk.torch_training import LOSSES, Dropouts, first_output

Named = dict[str, Tensor]
LEAST = 8 * 2.0**-24  # no envelope is smaller: one lucky step would accuse the others
TIMES = 8.0  # a level may err by so many envelopes
ENOUGH_POWER = 10.0  # bounds that a planted fault has to reach
WIDEST = 1e-3  # a gradient envelope beyond which the proof is weak
DROPOUT_LOSSES = 64
# Relative noise of further steps, for gradients alone, where the network has kinks: rounding flips a value there or does not, by luck, and both are legitimate.
KINK_NOISE = 2.0**-20
NOISY_STEPS = 4


class Stepper:
    """One training step of a module on one batch: loss, gradients, and the buffers after it. It leaves the module as it was."""

    def __init__(self, bundle: dict, device: str, threads: int, labels: Tensor) -> None:
        self.bundle, self.device, self.threads = bundle, device, threads
        self.labels = labels.to(device)
        self.loss_of = LOSSES[bundle["case"]["loss"]]

    def run(self, module: nn.Module, entry: Mapping[str, Tensor], change: Callable[[Tensor], Tensor] = lambda t: t, loss_of: Callable[[Tensor, Tensor], Tensor] | None = None) -> Named:
        """`loss`, `grad:<parameter>`, `stat:<buffer>` as CPU tensors; `change` maps each input after it was copied."""
        before = {name: value.clone() for name, value in module.named_buffers()}
        kept = set(module.state_dict())
        module.train()
        try:
            with torch.enable_grad():
                loss = (loss_of or self.loss_of)(self.output(module, entry, change), self.labels)
                parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
                gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
            found = {"loss": loss} | {f"grad:{name}": g for name, g in zip(parameters, gradients) if g is not None}
            found |= {f"stat:{name}": b for name, b in module.named_buffers() if name in kept and b.is_floating_point()}
            return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in found.items()}
        finally:
            module.eval()
            with torch.no_grad():
                for name, value in module.named_buffers():
                    value.copy_(before[name])

    def output(self, module: nn.Module, entry: Mapping[str, Tensor], change: Callable[[Tensor], Tensor] = lambda t: t) -> Tensor:
        args, kwargs = bind({k: change(v.clone()).to(self.device) for k, v in entry.items()}, self.bundle)
        return first_output(module(*args, **kwargs))


def errors(got: Named, wanted: Named, floor: float) -> dict[str, float]:
    """Of a gradient ||g - g64|| / (||g64|| + 0.01 floor sqrt(n)), since some are zero but for rounding; of the loss and a statistic the relative error. Missing: infinite."""
    found = {}
    for name, truth in wanted.items():
        if name not in got or got[name].shape != truth.shape:
            found[name] = float("inf")
            continue
        size = truth.double().norm().item() + (0.01 * floor * truth.numel() ** 0.5 if name.startswith("grad:") else 0.0)
        error = (got[name].double() - truth.double()).norm().item() / max(size, 1e-300)
        found[name] = error if error == error else float("inf")
    return found


def gradient_floor(wanted: Named) -> float:
    """The root mean square of all gradients together."""
    gradients = [v.double() for k, v in wanted.items() if k.startswith("grad:")]
    return (sum(g.square().sum().item() for g in gradients) / sum(g.numel() for g in gradients)) ** 0.5


class _Compared:
    """A Stepper in the place of a Runner: what it returns for the envelope are errors against the reference, not gradients, which would fill the memory."""

    def __init__(self, stepper: Stepper, wanted: Named, floor: float) -> None:
        self.stepper, self.wanted, self.floor = stepper, wanted, floor
        self.device, self.threads = stepper.device, stepper.threads

    def run(self, module: nn.Module, entry: Mapping[str, Tensor], change: Callable[[Tensor], Tensor] = lambda t: t) -> Named:
        return {k: torch.tensor(v, dtype=torch.float64) for k, v in errors(self.stepper.run(module, entry, change), self.wanted, self.floor).items()}


def train_envelope(stepper: Stepper, module: nn.Module, entry: Mapping[str, Tensor], wanted: Named, floor: float, seed: int) -> dict[str, float]:
    """The largest error of at least five legitimate float32 steps, by name; at least LEAST."""
    runs = ref.envelope(_Compared(stepper, wanted, floor), module, [entry], seed)
    return {name: max([LEAST, *(results[0][name].item() for results in runs.values())]) for name in wanted}


def widened(envelope: dict[str, float], stepper: Stepper, module: nn.Module, entry: Mapping[str, Tensor], wanted: Named, floor: float, seed: int) -> dict[str, float]:
    """The envelope with what a few flipped kinks do to gradients: steps with weights and inputs moved by KINK_NOISE."""
    generator = torch.Generator().manual_seed(seed)

    def moved(t: Tensor) -> Tensor:
        return t * (1 + KINK_NOISE * torch.randn(t.shape, generator=generator)).to(t) if t.is_floating_point() else t

    wide = dict(envelope)
    for _ in range(NOISY_STEPS):
        other = copy.deepcopy(module)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.copy_(moved(parameter))
        for name, error in errors(stepper.run(other, entry, moved), wanted, floor).items():
            if name.startswith("grad:"):
                wide[name] = max(wide[name], error)
    return wide


# ---------------------------------------------------------------------------------------------------- what a case needs

def make_labels(info: dict, seed: int) -> list[Tensor]:
    """int64 [batch] for each entry of the ring, over all classes. Raises Problem where the first output is no row of classes."""
    first = info["outputs"][0]
    batch = info["case"]["batch"]
    if len(first["shape"]) != 2 or first["shape"][0] != batch or first["shape"][1] < 2 or not first["dtype"].startswith("float"):
        raise Problem("unsupported", f"mode train needs a network whose first output is [{batch}, classes]; {first['name']} is {first['dtype']} {first['shape']}",
                      "return the classes' scores first, or use mode infer")
    generator = torch.Generator().manual_seed(seed * 1009 + 500)
    return [torch.randint(0, first["shape"][1], (batch,), generator=generator) for _ in range(info["ring"])]


def check_trains(stepper: Stepper, module: nn.Module, entry: Mapping[str, Tensor]) -> list[str]:
    """One float64 step: Problem when it cannot be had; else notes about what the proof cannot hold still."""
    if not any(p.requires_grad for p in module.parameters()):
        raise Problem("unsupported", "the network has no parameter to train: none requires a gradient", "let parameters require gradients in build(), or use mode infer")
    wide = ref.double_copy(module)
    try:
        found = stepper.run(wide, entry, ref.to_double)
        with torch.no_grad():
            output = stepper.output(wide.train(), entry, ref.to_double)
            again = stepper.loss_of(output, stepper.labels).item()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        hint = "mode train compares gradients with float64 ones; let the model follow the type of its inputs, or use mode infer"
        if "more than 1 value per channel" in str(error):
            hint = "a BatchNorm in train mode needs more than one value: use a larger --batch or larger images"
        raise Problem("unsupported", f"the network cannot take a training step in float64: {last_line(error, *source_files(module))}", hint) from error
    if not any(name.startswith("grad:") for name in found):
        raise Problem("unsupported", "no parameter has a gradient: the first output does not depend on any", "return the classes' scores first")
    bad = [name for name, value in found.items() if not bool(value.isfinite().all())]
    if bad:
        raise Problem("unsupported", f"the training step in float64 is not finite: {bad[0]}", "give weights and inputs with which the loss and its gradients are finite")
    rows = output.exp().sum(1)
    if stepper.bundle["case"]["loss"] == "nll" and not bool(((rows - 1).abs() < 1e-3).all()):
        raise Problem("usage", f"loss nll needs log-probabilities, and the exponentials of a row of the first output sum to {rows[0].item():.3g}", "use --loss cross_entropy, or end the network with log_softmax")
    return [] if abs(again - found["loss"].item()) <= 1e-9 * abs(again) else ["the network is random in train mode even without dropout"]


# ---------------------------------------------------------------------------------------------------- the whole

class TrainCapture:
    """Writes weights, labels, references and train.json. `module` is the float32 network with its timed weights, on the CPU; `write`: (name, tensors) to a file."""

    def __init__(self, spec: dict, info: dict, ring: list[Named], folder: Path, write: Callable[[str, Named], None], say: Callable[[str], None]) -> None:
        self.spec, self.info, self.ring, self.folder, self.write, self.say = spec, info, ring, folder, write, say
        self.labels = make_labels(info, spec["seed"])
        self.stepper = Stepper(info, spec["device"], spec["threads"], self.labels[0])
        self.sets: dict[str, dict] = {}
        self.doubts: list[str] = []

    def run(self, module: nn.Module, trained: list[str]) -> list[str]:
        """Returns notes for bundle.json. `trained`: names of the parameters that require gradients."""
        self.write("labels", {f"{i}/labels": labels for i, labels in enumerate(self.labels)})
        timed = state_of(module)
        for number in (1, 2):
            make_generic(module, timed, self.spec["seed"] + 7919 * number, self.ring, self.info)
            self.write(f"weights/generic{number}", state_of(module))
        load_weights(module, timed, "timed")
        work = copy.deepcopy(module).to(self.spec["device"])
        for name, parameter in work.named_parameters():
            parameter.requires_grad_(name in trained)
        dropouts = Dropouts(work)
        about = {"layers": [{"name": path, "p": p} for path, _, _, p in dropouts.found], "losses": self.dropout_losses(work) if dropouts.found else []}
        dropouts.switch(False)
        notes = check_trains(self.stepper, work, self.ring[0])
        self.doubts += notes
        self.one_set("timed", work, has_kinks=True)
        for number, name in enumerate(("probe1", "probe2")):
            load_weights(work, timed, "timed")
            wide = ref.double_copy(work)
            self.say(f"probe weights {name}")
            found = make_probe(wide, self.ring[0], self.info, self.spec["seed"] + 104729, bool(number))
            self.doubts += [s for s in [found.sentence(name)] if s]
            load_weights(work, state_of(wide), name)
            del wide
            self.one_set(name, work, has_kinks=found.maxima > 0)
            if not number:
                faults = self.faults(work)
        train = self.sets | {"faults": faults, "weak": self.weak(faults), "dropout": about}
        (self.folder / "reference" / "train.json").write_text(json.dumps(train, indent=1), encoding="utf-8")
        return notes

    def dropout_losses(self, work: nn.Module) -> list[float]:
        """Eager's float32 losses with dropout as given, one a forward pass; the running statistics stay."""
        torch.manual_seed(self.spec["seed"])
        before = {k: v.clone() for k, v in work.named_buffers()}
        work.train()
        with torch.no_grad():
            found = [self.stepper.loss_of(self.stepper.output(work, self.ring[0]), self.stepper.labels).item() for _ in range(DROPOUT_LOSSES)]
            for name, value in work.named_buffers():
                value.copy_(before[name])
        work.eval()
        return found

    def one_set(self, name: str, work: nn.Module, has_kinks: bool) -> None:
        self.write(f"weights/{name}", {k: v.cpu() for k, v in state_of(work).items()})
        self.say(f"training step of weight set {name}")
        wanted = self.stepper.run(ref.double_copy(work), self.ring[0], ref.to_double)
        still = {f"stat:{k}": v.cpu().double() for k, v in work.named_buffers()}
        wanted = {k: v for k, v in wanted.items() if k not in still or not torch.equal(v, still[k])}  # buffers that a step changes
        floor = gradient_floor(wanted)
        if not floor > 0:
            raise Problem("unsupported", f"all gradients of weight set {name} are zero", "give weights with which the loss follows the parameters")
        envelope = train_envelope(self.stepper, work, self.ring[0], wanted, floor, self.spec["seed"] + 1)
        if has_kinks:
            envelope = widened(envelope, self.stepper, work, self.ring[0], wanted, floor, self.spec["seed"] + 2)
        lost = [key for key, error in envelope.items() if not error < float("inf")]
        if lost:
            raise Problem("unsupported", f"weight set {name}: a float32 training step has no finite {lost[0]}, the float64 one has", "give weights and inputs with which float32 does not overflow")
        by_kind = {kind: {k.removeprefix(f"{kind}:"): v for k, v in envelope.items() if k.startswith(f"{kind}:")} for kind in ("grad", "stat")}
        self.sets[name] = {"envelope": {"loss": envelope["loss"], **by_kind}, "grad_floor": floor}
        if name == "timed":  # on ordinary weights a flip hits any tensor, and luck differs by tensor
            gradients = self.sets[name]["envelope"]["grad"]
            median = sorted(gradients.values())[len(gradients) // 2]
            self.sets[name]["envelope"]["grad"] = {k: max(e, median) for k, e in gradients.items()}
        tensors = {f"0/{k}": v.float() for k, v in wanted.items()}
        if name == "probe1":
            self.probe = wanted, floor, envelope
            tensors |= self.other_losses(work)
        self.write(f"reference/{name}.train", tensors)

    def other_losses(self, work: nn.Module) -> Named:
        """`<i>/loss` of the other entries of the ring, by which a level shows that it reads its inputs and labels."""
        wide = ref.double_copy(work).train()
        with torch.no_grad():
            return {f"{i}/loss": self.stepper.loss_of(self.stepper.output(wide, self.ring[i], ref.to_double), self.labels[i].to(self.stepper.device)).cpu().float() for i in range(1, len(self.ring))}

    def faults(self, work: nn.Module) -> dict[str, dict]:
        """Planted in the float64 step of probe1; by how many bounds each shows where it shows most."""
        self.say("planting faults")
        wanted, floor, envelope = self.probe
        wide = ref.double_copy(work)
        most = max(4, int(ref.FAULT_FLOPS / max(3.0 * self.info["flops"], 1.0)))
        found: dict[str, dict] = {}
        for name in list(TRAIN_FAULTS)[:most]:
            exact = name not in IN_FLOAT32
            plan = Plan(shared_copy(wide if exact else work), self.stepper.loss_of)
            try:
                sentence = plant(plan, name)
                got = self.stepper.run(plan.module, self.ring[0], ref.to_double if exact else lambda t: t, plan.loss_of)
            except NotApplicable:
                continue
            times = {k: e / (TIMES * envelope[k]) for k, e in errors(got, wanted, floor).items()}
            where = max(times, key=lambda k: times[k])
            found[name] = {"times_bound": min(times[where], 1e30), "sentence": f"{sentence}; shows most in {where}"}
        return found

    def weak(self, faults: dict[str, dict]) -> str:
        doubts = list(self.doubts)
        for name in ("probe1", "probe2"):
            gradients = self.sets[name]["envelope"]["grad"]
            widest = max(gradients, key=lambda k: gradients[k])
            if gradients[widest] > WIDEST:
                doubts.append(f"weak gradient proof: in {name} legitimate float32 steps differ by {gradients[widest]:.2g} in the gradient of {widest}")
        doubts += [f"planted fault {name} reaches {one['times_bound']:.2g} bounds only" for name, one in faults.items() if one["times_bound"] < ENOUGH_POWER]
        return "; ".join(doubts)
