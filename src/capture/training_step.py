# SPDX-License-Identifier: Apache-2.0
"""One training step of eager PyTorch: exact in float64, and how far legitimate float32 steps are
from it (docs/proof_of_training.md)."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.dropout_calls import DropoutCalls
from strata_sdk.losses import first_output, loss_of
from strata_sdk.models import bind

Named = dict[str, Tensor]
Loss = Callable[[Tensor, Tensor | None], Tensor]
LEAST = 8 * 2.0**-24  # no envelope is smaller: one lucky step would accuse the others
# Relative noise of further steps, for gradients alone, where the network has kinks: rounding flips
# a value there or does not, by luck, and both are legitimate.
KINK_NOISE = 2.0**-20
NOISY_STEPS = 4


@contextlib.contextmanager
def train_mode(module: nn.Module) -> Iterator[None]:
    """The module in train mode; afterwards in eval mode, with the buffers that it had."""
    before = {name: value.clone() for name, value in module.named_buffers()}
    module.train()
    try:
        yield
    finally:
        module.eval()
        with torch.no_grad():
            for name, value in module.named_buffers():
                value.copy_(before[name])


class Stepper:
    """One training step of a module on one batch: loss, gradients, and the buffers after it. It
    leaves the module as it was. `labels`: None where the loss is the network's output."""

    def __init__(self, bundle: dict, device: str, labels: Tensor | None) -> None:
        self.bundle, self.device = bundle, device
        self.labels = labels if labels is None else labels.to(device)
        self.loss_of = loss_of(bundle)
        self.calls: DropoutCalls | None = None

    def run(
        self,
        module: nn.Module,
        entry: ref.Entry,
        change: ref.Change = ref.as_it_is,
        loss_of: Loss | None = None,
    ) -> Named:
        """`loss`, `grad:<parameter>`, `stat:<buffer>` as CPU tensors; `change` maps each input, and
        must not write into it."""
        stored = set(module.state_dict())
        with train_mode(module):
            with torch.enable_grad():
                loss = (loss_of or self.loss_of)(self.output(module, entry, change), self.labels)
                parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
                gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
            results = {"loss": loss} | {
                f"grad:{name}": g for name, g in zip(parameters, gradients) if g is not None
            }
            results |= {
                f"stat:{name}": b.clone()
                for name, b in module.named_buffers()
                if name in stored and b.is_floating_point()
            }
        return {name: value.detach().cpu().contiguous() for name, value in results.items()}

    def gradients(self, module: nn.Module, entry: ref.Entry, names: list[str]) -> list[Tensor]:
        """Of the named parameters, of the module in the mode that it is in; zero where the loss
        does not follow one."""
        own = dict(module.named_parameters())
        with torch.enable_grad():
            loss = self.loss(module, entry)
            by_autograd = torch.autograd.grad(
                loss, [own[name] for name in names], allow_unused=True
            )
        return [
            torch.zeros_like(own[name]) if g is None else g for name, g in zip(names, by_autograd)
        ]

    def loss(self, module: nn.Module, entry: ref.Entry) -> Tensor:
        return self.loss_of(self.output(module, entry), self.labels)

    def output(
        self, module: nn.Module, entry: ref.Entry, change: ref.Change = ref.as_it_is
    ) -> Tensor:
        if self.calls:
            self.calls.begin()
        args, kwargs = bind({k: change(v).to(self.device) for k, v in entry.items()}, self.bundle)
        return first_output(module(*args, **kwargs))


class Exact:
    """A float64 step, and how far others are from it: of a gradient ||g - g64|| / (||g64|| + 0.01
    floor sqrt(n)), since some are zero but for rounding, with the root mean square of all gradients
    together for the floor; of the loss and a statistic the relative error."""

    def __init__(self, values: Named) -> None:
        self.values = values
        sizes = {name: value.norm().item() for name, value in values.items()}
        gradients = [name for name in values if name.startswith("grad:")]
        self.floor = (
            sum(sizes[name] ** 2 for name in gradients)
            / sum(values[name].numel() for name in gradients)
        ) ** 0.5
        self.sizes = sizes | {
            name: sizes[name] + 0.01 * self.floor * values[name].numel() ** 0.5
            for name in gradients
        }

    def errors(self, got: Named) -> dict[str, float]:
        """By name; infinite where a value is missing or not a number."""
        buffers = {}
        for name, truth in self.values.items():
            alike = name in got and got[name].shape == truth.shape
            error = (
                (truth - got[name]).norm().item() / max(self.sizes[name], 1e-300)
                if alike
                else float("inf")
            )
            buffers[name] = error if error == error else float("inf")
        return buffers


class _Compared:
    """A Stepper in the place of a Runner: what it returns for the envelope are errors, not
    gradients, which would fill the memory."""

    def __init__(self, stepper: Stepper, exact: Exact) -> None:
        self.stepper, self.exact = stepper, exact
        self.device = stepper.device

    def run(self, module: nn.Module, entry: ref.Entry, change: ref.Change = ref.as_it_is) -> Named:
        return {
            k: torch.tensor(v, dtype=torch.float64)
            for k, v in self.exact.errors(self.stepper.run(module, entry, change)).items()
        }


def errors_of_runs(
    stepper: Stepper,
    module: nn.Module,
    entry: ref.Entry,
    exact: Exact,
    seed: int,
    unit: float | None = None,
    light: bool = False,
) -> dict[str, list[float]]:
    """The errors of legitimate steps, by name. `unit`: of the noise, `light`: fewer of them, both
    as ref.envelope takes them."""
    runs = ref.envelope(_Compared(stepper, exact), module, [entry], seed, unit, light)
    return {name: [results[0][name].item() for results in runs.values()] for name in exact.values}


def terms_of_means(module: nn.Module, before: Named, after: Named) -> dict[str, float]:
    """How many times as large as each running mean the terms that a step adds to it are, by `stat:`
    name, where more than 1: momentum * the batch's deviation / |mean|. `before`, `after`: the
    buffers; what the batch adds to a running variance is what is not of the old one."""
    terms = {}
    for path, norm in module.named_modules():
        mean, var = (f"stat:{path}.running_{kind}" for kind in ("mean", "var"))
        if mean in after and var in after:
            # None: the mean of all batches until now
            share = getattr(norm, "momentum", None) or 1.0
            added = (after[var] - (1.0 - share) * before[var]).clamp(min=0.0)
            deviation = (share * added).sqrt().norm().item()
            terms[mean] = max(1.0, deviation / max(after[mean].norm().item(), 1e-300))
    return terms


def norm_error(step: Named) -> float:
    """How far eager's float32 norm of all gradients of a step, which it clips by, is from that of
    the same gradients in float64, relatively: it adds up in float32."""
    gradients = [value for name, value in step.items() if name.startswith("grad:")]
    truth = torch.stack([g.double().norm() for g in gradients]).norm().item()
    copies = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for copy_of, gradient in zip(copies, gradients):
        copy_of.grad = gradient.clone()
    found = nn.utils.clip_grad_norm_(copies, 1.0).item()
    return max(LEAST, abs(found - truth) / max(truth, 1e-300))


def train_envelope(
    stepper: Stepper,
    module: nn.Module,
    entry: ref.Entry,
    exact: Exact,
    terms: Mapping[str, float],
    seed: int,
    light: bool,
) -> dict[str, float]:
    """The largest error of legitimate float32 steps, by name; at least LEAST, and as many times as
    `terms_of_means` says: a mean near zero is as exact as the sum of which it is left."""
    return {
        name: max([LEAST * terms.get(name, 1.0), *errors])
        for name, errors in errors_of_runs(stepper, module, entry, exact, seed, light=light).items()
    }


def widened(
    envelope: dict[str, float],
    stepper: Stepper,
    module: nn.Module,
    entry: ref.Entry,
    exact: Exact,
    seed: int,
) -> dict[str, float]:
    """The envelope with what a few flipped kinks do to gradients: steps with weights and inputs
    moved by KINK_NOISE."""
    generator = torch.Generator().manual_seed(seed)

    def moved(t: Tensor) -> Tensor:
        return (
            torch.randn(t.shape, generator=generator).mul_(KINK_NOISE).add_(1).to(t).mul_(t)
            if t.is_floating_point()
            else t
        )

    wide = dict(envelope)
    other = copy.deepcopy(module)
    for _ in range(NOISY_STEPS):
        with torch.no_grad():
            for parameter, whole in zip(other.parameters(), module.parameters()):
                parameter.copy_(moved(whole))
        for name, error in exact.errors(stepper.run(other, entry, moved)).items():
            if name.startswith("grad:"):
                wide[name] = max(wide[name], error)
    return wide
