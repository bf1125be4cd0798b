# SPDX-License-Identifier: Apache-2.0
"""faulty_eager: eager with the fault that STRATA_FAULT names, of the network
(src/capture/faults.py), of a training step (train_faults.py) or of the level (below)."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from strata_sdk import Job, UnsupportedError, models
from strata_sdk.torch_level import TorchLevel

sys.path.append(str(Path(__file__).resolve().parents[3] / "src"))
from capture import dropout_calls, faults, train_faults


def wanted_fault() -> str:
    """STRATA_FAULT, or what the file that it names by @FILE holds."""
    name = os.environ.get("STRATA_FAULT", "").strip()
    return (
        Path(name[1:]).read_text(encoding="utf-8").strip() if name.startswith("@") else name
    ) or "none"


def applies_to(place: str, shape: list[int]) -> bool:
    """Whether a fault `name:batch=8`, `name:batch>8` or `name:size=64` is one of a case with inputs
    of this shape."""
    if not place:
        return True
    axis, sign, value = next(
        (a, s, int(v)) for s in "=>" if s in place for a, v in [place.split(s)]
    )
    own = shape[0] if axis == "batch" else shape[-1]
    return own == value if sign == "=" else own > value


def names(trains: bool) -> list[str]:
    """The faults that a case of this mode can have."""
    return list(
        dict.fromkeys(
            [*train_faults.TRAIN_FAULTS, *faults.FAULTS, *TRAINING_FAULTS]
            if trains
            else [*faults.FAULTS, *LEVEL_FAULTS]
        )
    )


class FaultyEager(TorchLevel):
    def load(self, job: Job) -> None:
        self.fault, _, place = wanted_fault().partition(":")
        if not applies_to(place, job.about["inputs"][0]["shape"]):
            self.fault = "none"
        if self.fault != "none" and self.fault not in names(job.trains):
            raise UnsupportedError(
                f"STRATA_FAULT is '{self.fault}'", f"allowed: none, {', '.join(names(job.trains))}"
            )
        if self.fault == "other_batch" and job.about["inputs"][0]["shape"][0] < 2:
            raise UnsupportedError("other_batch needs a batch of 2 or more")
        self.count, self.first_inputs, self.first_labels, self.memo, self.has_weights = (
            0,
            None,
            None,
            None,
            False,
        )
        super().load(job)
        if self.fault == "ignores_precision":
            self.take_as_it_is(self.build_module(job))
        torch.set_flush_denormal(self.fault == "flushes_subnormals")

    def take_as_it_is(self, module: torch.nn.Module) -> None:
        self.module = self.network = self.runner = module

    def load_weights(self, weights: str) -> None:
        if self.fault == "baked_weights" and self.has_weights:
            return
        # network faults overwrite weights and wrap layers, so each set starts from a sound network
        if self.has_weights and self.fault != "keeps_buffers":
            (self.take_as_it_is if self.fault == "ignores_precision" else self.take)(
                self.build_module(self.job)
            )
            if self.job.trains:
                self.prepare_training()
                self.set_mode(*self.mode)
        super().load_weights(weights)
        self.has_weights = True
        if self.fault == "wrong_seed":
            other = models.build_model(
                self.job.case["model"], int(self.job.case.get("seed") or 0) + 1
            ).module
            self.module.load_state_dict(other.state_dict())
        if self.fault in faults.FAULTS or self.fault in train_faults.TRAIN_FAULTS:
            try:
                print(self.plant(), file=sys.stderr)
            except faults.NotApplicable as error:
                raise UnsupportedError(f"{self.fault}: {error}") from error

    def plant(self) -> str:
        if not self.job.trains or self.fault not in train_faults.TRAIN_FAULTS:
            return faults.apply_fault(
                self.module.inner if self.job.deep else self.module, self.fault
            )
        plan = train_faults.Plan(self.module, self.loss_of)
        sentence = train_faults.plant(plan, self.fault)
        self.loss_of = plan.loss_of
        return sentence

    def settings(self) -> dict:
        return super().settings() | (
            {"precision": self.job.precision} if self.fault == "ignores_precision" else {}
        )

    def set_input(self, inputs: tuple[Tensor, ...]) -> None:
        if self.fault == "stale_input":  # the buffer is filled once
            self.first_inputs = self.first_inputs or inputs
            inputs = self.first_inputs
        elif self.fault == "un_normalised_input":
            # undoes (x - mean) / std with the mean and deviation of photographs
            inputs = tuple(x * 0.226 + 0.449 if x.is_floating_point() else x for x in inputs)
        elif self.fault == "other_batch":  # half of the work, then the results twice
            inputs = tuple(x[: x.shape[0] // 2] for x in inputs)
        super().set_input(inputs)

    def run(self) -> None:
        if self.fault == "memo" and self.memo is not None:
            return
        super().run()

    def outputs(self) -> tuple[Tensor, ...]:
        if self.fault == "memo":
            self.memo = self.memo or super().outputs()
            return self.memo
        result = super().outputs()
        self.count += 1
        change = LEVEL_FAULTS.get(self.fault)
        return tuple(change(self, i, y) for i, y in enumerate(result)) if change else result

    # -- training ---------------------------------------------------------------------------------

    def set_mode(self, mode: str, dropout: bool) -> None:
        self.mode = mode, dropout
        if self.fault == "late_stale_evaluation":
            self.weights_of_first_evaluation()
        on = {"dropout_never": False, "dropout_always": True}.get(self.fault, dropout)
        super().set_mode(mode, on)
        if on and self.fault in OTHER_PROBABILITY:
            _, layer, attribute, p = self.dropouts.found[-1]
            setattr(layer, attribute, p + OTHER_PROBABILITY[self.fault])
        if self.fault == "dropout_by_elements":
            self.drop_by_elements()
        if on and self.fault == "called_dropout_less_by_5":
            self.network = self.with_another_probability

    def with_another_probability(self, *inputs, **named):
        """Of the first dropout that the network calls as a function."""
        calls = dropout_calls.DropoutCalls()
        calls.shifted[0] = 0.45
        with calls:
            return self.whole(*inputs, **named)

    def drop_by_elements(self) -> None:
        """In place of whole channels."""
        for layer in self.module.modules():
            if isinstance(layer, torch.nn.Dropout2d):
                layer.forward = lambda x, layer=layer: torch.dropout(x, layer.p, layer.training)

    def set_optimiser(self, optimiser: dict) -> None:
        if self.fault in ADAM_FAULTS and optimiser["name"] != "sgd":
            super().set_optimiser(optimiser)
            self.optimiser = WrongAdam(
                self.optimiser.param_groups[0]["params"], optimiser, self.fault
            )
            self.steps = 0
            return
        buffers = (
            self.state() if self.fault == "keeps_buffers" and hasattr(self, "optimiser") else {}
        )
        changed = {
            "no_momentum": {"momentum": 0.0, "nesterov": False},
            "no_weight_decay": {"weight_decay": 0.0},
            "no_dampening": {"dampening": 0.0},
            "no_nesterov": {"nesterov": False},
            "no_clipping": {"clip_norm": 0.0},
            "rate_off": {"lr": optimiser["lr"] * 0.999},
        }
        super().set_optimiser(
            optimiser
            | {
                name: value
                for name, value in changed.get(self.fault, {}).items()
                if name in optimiser
            }
        )
        self.steps = 0
        if buffers:
            self.load_state(buffers | self.weights_alone(), 0)

    def weights_alone(self) -> dict:
        return {name: value for name, value in self.state().items() if name.startswith("weight:")}

    def is_late(self) -> bool:
        """In the middle of a training: after more steps than a proof takes at once."""
        return self.steps >= LATE

    def set_learning_rate(self, rate: float) -> None:
        if self.fault == "late_rate_stuck" and self.is_late():
            return
        super().set_learning_rate(rate * 0.999 if self.fault == "rate_off" else rate)

    def set_batch(self, inputs: tuple[Tensor, ...], labels: Tensor) -> None:
        if self.fault == "stale_labels":
            self.first_labels = labels = labels if self.first_labels is None else self.first_labels
        elif self.fault == "other_batch":
            labels = labels[: len(labels) // 2]
        super().set_batch(inputs, labels)

    def step(self) -> None:
        self.steps += 1
        if self.is_late():
            for group in self.optimiser.param_groups if self.fault == "late_no_momentum" else ():
                group |= (
                    {"momentum": 0.0}
                    if "momentum" in group
                    else {"betas": (0.0, group["betas"][1])}
                )
            for layer in self.module.modules() if self.fault == "late_statistics" else ():
                if isinstance(layer, torch.nn.BatchNorm2d):
                    layer.momentum = 0.3
        if self.fault == "late_last_batch_skipped" and self.steps % LATE == 0:
            self.result = torch.zeros(())  # it says that it has learned
            return
        super().step()
        if self.fault == "decay_inside":  # a schedule that nobody asked for
            for group in self.optimiser.param_groups:
                group["lr"] *= 0.99

    def loss(self) -> float:
        return super().loss() * 0 + 1.0 if self.fault == "constant_loss" else super().loss()

    def weights_of_first_evaluation(self) -> None:
        """In eval mode, weights that were copied the first time that there was one in the middle of
        a training."""
        if self.mode[0] == "eval" and self.steps:
            self.copied = getattr(self, "copied", None) or {
                name: value.clone() for name, value in self.module.state_dict().items()
            }
            self.runner = lambda *x, **named: torch.func.functional_call(
                self.module, self.copied, x, named
            )

    def repeat_batch(self, _i: int, y: Tensor) -> Tensor:
        whole = self.job.about["inputs"][0]["shape"][0]
        return torch.cat([y, y, y])[:whole] if y.dim() else y


class WrongAdam(torch.optim.Adam):
    """Adam or AdamW, parameter by parameter, with one fault."""

    def __init__(self, parameters: list[Tensor], optimiser: dict, fault: str) -> None:
        super().__init__(
            parameters,
            lr=optimiser["lr"],
            betas=(optimiser["beta1"], optimiser["beta2"]),
            eps=optimiser["eps"],
            weight_decay=optimiser["weight_decay"],
        )
        self.fault, self.decoupled = (
            fault,
            (optimiser["name"] == "adamw") != (fault == "adam_other_decay"),
        )

    @torch.no_grad()
    def step(self) -> None:
        group = self.param_groups[0]
        (beta1, beta2), rate, eps, decay = (
            group["betas"],
            group["lr"],
            group["eps"],
            group["weight_decay"],
        )
        beta2 = 0.99 if self.fault == "adam_beta2" else beta2
        for p in (p for p in group["params"] if p.grad is not None):
            held = self.state[p]
            m, v, count = (
                held.setdefault(key, start)
                for key, start in (
                    ("exp_avg", torch.zeros_like(p)),
                    ("exp_avg_sq", torch.zeros_like(p)),
                    ("step", torch.tensor(0.0)),
                )
            )
            count += 1
            g = p.grad if self.decoupled else p.grad + decay * p
            m.mul_(beta1).add_(g, alpha=1 - beta1)
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            of_m, of_v = (
                (1.0, 1.0)
                if self.fault == "adam_no_correction"
                else (1 - beta1 ** count.item(), 1 - beta2 ** count.item())
            )
            divisor = (
                (v / of_v + eps).sqrt()
                if self.fault == "adam_eps_in_root"
                else (v / of_v).sqrt() + eps
            )
            if self.decoupled:
                p.mul_(1 - rate * decay)
            p.addcdiv_(m, divisor, value=-rate / of_m)


def spoil_element(y: Tensor, value: float) -> Tensor:
    """A copy with one element in the middle replaced."""
    y = y.clone()
    y.view(-1)[y.numel() // 2] = value
    return y


# Faults of the level: what becomes of output i; None: the methods above do it.
LEVEL_FAULTS: dict[str, Callable[[FaultyEager, int, Tensor], Tensor] | None] = {
    "stale_input": None,
    "memo": None,
    "un_normalised_input": None,
    "baked_weights": None,
    "wrong_seed": None,
    "ignores_precision": None,
    "flushes_subnormals": None,
    "other_batch": FaultyEager.repeat_batch,
    "constant_output": lambda _s, _i, y: torch.full_like(y, 0.5),
    "nan_output": lambda _s, i, y: spoil_element(y, float("nan")) if i == 0 else y,
    "one_element": lambda _s, i, y: spoil_element(y, y.abs().max().item() * 2 + 1) if i == 0 else y,
    "wrong_dtype": lambda _s, _i, y: y.double() if y.is_floating_point() else y,
    "wrong_shape": lambda _s, _i, y: y.unsqueeze(0),
    "every_tenth": lambda s, _i, y: y + 1 if s.count % 10 == 0 else y,
}

# What is added to the probability of the last dropout.
OTHER_PROBABILITY = {
    "dropout_less_by_5": -0.05,
    "dropout_less_by_2": -0.02,
    "dropout_more_by_2": 0.02,
}

# Of Adam's step; the first is none, by the same code.
ADAM_FAULTS = (
    "adam_none",
    "adam_no_correction",
    "adam_other_decay",
    "adam_beta2",
    "adam_eps_in_root",
)

# Those that begin in the middle of a training, after so many steps.
LATE = 10
LATE_FAULTS = (
    "late_no_momentum",
    "late_rate_stuck",
    "late_statistics",
    "late_last_batch_skipped",
    "late_stale_evaluation",
)

# Faults of the training step and its optimiser; the methods above do them.
TRAINING_FAULTS = (
    *OTHER_PROBABILITY,
    "stale_input",
    "un_normalised_input",
    "baked_weights",
    "wrong_seed",
    "other_batch",
    "no_momentum",
    "no_weight_decay",
    "no_dampening",
    "no_nesterov",
    "rate_off",
    "decay_inside",
    "no_clipping",
    "keeps_buffers",
    "stale_labels",
    "dropout_by_elements",
    "called_dropout_less_by_5",
    "dropout_never",
    "dropout_always",
    "constant_loss",
    *ADAM_FAULTS,
    *LATE_FAULTS,
)

if __name__ == "__main__":
    print(
        "\n".join(
            dict.fromkeys(
                names("train" in sys.argv) if len(sys.argv) > 1 else [*names(False), *names(True)]
            )
        )
    )
