# SPDX-License-Identifier: Apache-2.0
"""Wrong training steps on purpose: the capture plants them in the reference for the power of the
proof, tests plant them in a real level.

A fault changes a Plan in place and returns a sentence that says what was done; NotApplicable when
the network has nothing to break that way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from capture.faults import FAULTS, NotApplicable, _middle, _norms, _residual_blocks
from strata_sdk.losses import WithLoss

Loss = Callable[[Tensor, Any], Tensor]


@dataclasses.dataclass
class Plan:
    """What a training step is made of: a module, and (its first output, labels) -> mean loss;
    labels: None where the output is the loss."""

    module: nn.Module
    loss_of: Loss


def plant(plan: Plan, name: str) -> str:
    """Plants fault `name`; returns what was done. Raises NotApplicable or KeyError."""
    with torch.no_grad():
        return TRAIN_FAULTS[name](plan)


def _label_smoothing(plan: Plan) -> str:
    inner = plan.loss_of
    plan.loss_of = lambda output, labels: (
        0.99 * inner(output, labels) - 0.01 * nn.functional.log_softmax(output, 1).mean()
    )
    return "labels smoothed by 0.01"


def _loss_summed(plan: Plan) -> str:
    inner = plan.loss_of

    def loss_of(output: Tensor, labels: Tensor) -> Tensor:
        if len(labels) == 1:
            raise NotApplicable("the sum of one is its mean")
        return inner(output, labels) * len(labels)

    plan.loss_of = loss_of
    return "the loss summed over the batch, not averaged"


def _labels_off_by_one(plan: Plan) -> str:
    inner = plan.loss_of
    plan.loss_of = lambda output, labels: inner(output, (labels + 1) % output.shape[1])
    return "every label one too high"


def _targets_moved(plan: Plan) -> str:
    module = plan.module
    if not isinstance(module, WithLoss) or not module.target_names:
        raise NotApplicable("no input is known as a target")

    def move(_module: nn.Module, args: tuple, named: dict[str, Any]) -> tuple[tuple, dict]:
        moved = {name: named[name].roll(1, 0) for name in module.target_names if named[name].dim()}
        if all(torch.equal(value, named[name]) for name, value in moved.items()):
            raise NotApplicable("the targets of all samples are the same")
        return args, named | moved

    module.register_forward_pre_hook(move, with_kwargs=True)
    return "every sample with the targets of the one before"


def _relu_dropped(plan: Plan) -> str:
    return FAULTS["relu_dropped"](plan.module, 0)


_ADDITIONS = {torch.add, Tensor.add, Tensor.add_, Tensor.__add__, Tensor.__iadd__, Tensor.__radd__}


class _DetachInSums(TorchFunctionMode):
    """Detaches one tensor wherever it is a term of a sum: the value is the same, the gradient is
    not."""

    def __init__(self, term: Tensor) -> None:
        super().__init__()
        self.term, self.count = term, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _ADDITIONS:
            self.count += sum(a is self.term for a in args)
            args = tuple(a.detach() if a is self.term else a for a in args)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def _shortcut_backward(plan: Plan) -> str:
    name, block = _middle(
        [
            (n, m)
            for n, m in _residual_blocks(plan.module)
            if getattr(m, "downsample", None) is None
        ],
        "residual block that this fault knows",
    )
    inner = block.forward

    def forward(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        with _DetachInSums(x) as mode:
            result = inner(x, *args, **kwargs)
        if not mode.count:
            raise NotApplicable(f"{name} does not add its input")
        return result

    block.forward = forward
    return f"{name}: the shortcut is left out of the backward pass"


def _bn_eval(plan: Plan) -> str:
    name, norm = _middle(_norms(plan.module), "BatchNorm")
    norm.eval()
    # stays in eval mode when the network is put into train mode
    norm.train = lambda mode=True: norm
    return f"{name} in eval mode"


def _bn_biased(plan: Plan) -> str:
    norms = _norms(plan.module)
    _middle(norms, "BatchNorm")
    for _, norm in norms:
        before: list[Tensor] = []

        def save(module: nn.Module, _args: tuple, before: list[Tensor] = before) -> None:
            before[:] = [module.running_var.clone()]

        def bias(
            module: nn.Module, args: tuple, _output: Tensor, before: list[Tensor] = before
        ) -> None:
            if module.training and module.momentum is not None:
                count = args[0].numel() // args[0].shape[1]
                old_part = before[0] * (1 - module.momentum)
                # By .data: autograd holds the buffer for the backward pass, which does not read it
                # in train mode.
                module.running_var.data.copy_(
                    old_part + (module.running_var - old_part) * ((count - 1) / count)
                )

        norm.register_forward_pre_hook(save)
        norm.register_forward_hook(bias)
    return f"running variances of {len(norms)} BatchNorms from the biased variance"


def _bias_skipped(plan: Plan) -> str:
    count = 0
    for module in plan.module.modules():
        bias = module._parameters.get("bias")
        if bias is not None and bias.requires_grad:
            # one of its own, which no sound copy shares
            module.bias = nn.Parameter(bias.detach().clone())
            module.bias.register_hook(torch.zeros_like)
            count += 1
    if not count:
        raise NotApplicable("the network has no bias")
    return f"gradients of {count} biases left at zero"


def _bf16(plan: Plan) -> str:
    inner, device = plan.module.forward, next(plan.module.parameters()).device.type

    def forward(*args, **kwargs):
        with torch.autocast(device, torch.bfloat16):
            return inner(*args, **kwargs)

    plan.module.forward = forward
    loss_of = plan.loss_of
    plan.loss_of = lambda output, labels: loss_of(output.float(), labels)
    return "products computed in bfloat16"


# In order of importance: where float64 steps are slow, the last ones are left out.
TRAIN_FAULTS: dict[str, Callable[[Plan], str]] = {
    "relu_dropped": _relu_dropped,
    "labels_off_by_one": _labels_off_by_one,
    "targets_moved": _targets_moved,
    "shortcut_backward": _shortcut_backward,
    "bn_eval": _bn_eval,
    "bias_skipped": _bias_skipped,
    "bn_biased_variance": _bn_biased,
    "label_smoothing": _label_smoothing,
    "bf16": _bf16,
    "loss_summed": _loss_summed,
}
IN_FLOAT32 = {"bf16"}  # autocast leaves float64 alone
_OF_LABELS = {"labels_off_by_one", "label_smoothing", "loss_summed"}
_OF_TARGETS = {"targets_moved"}


def names_of(labelled: bool) -> list[str]:
    """Of faults that there are where a loss is of labels, or is the network's output."""
    others = _OF_TARGETS if labelled else _OF_LABELS
    return [name for name in TRAIN_FAULTS if name not in others]
