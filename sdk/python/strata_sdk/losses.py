# SPDX-License-Identifier: Apache-2.0
"""What a network is trained with (docs/bundle.md, "Losses"): a loss of labels, which levels compute
beside the network, or one that is part of the network, whose first output it then is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from .models import TARGET, ModelError, View, flatten_outputs, last_line

# (the first output [batch, classes], labels int64 [batch]) -> mean loss
OF_LABELS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross_entropy": functional.cross_entropy,
    "nll": functional.nll_loss,
}
OWN = "output"  # the network's first output is its loss


def first_output(result: Any) -> Tensor:
    """The network's first output, which a loss is made of."""
    return result if isinstance(result, Tensor) else next(iter(flatten_outputs(result).values()))


def class_axis(output: Tensor) -> int:
    """Of scores: 1 of [batch, classes] and of an image's [batch, classes, height, width]; the last
    of a sequence's [batch, length, classes]."""
    return 2 if output.dim() == 3 else 1


def _of_classes(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    def of(result: Any, target: Tensor) -> Tensor:
        output = first_output(result)
        if output.dim() != 3:
            return loss(output, target)
        return loss(output.flatten(0, 1), target.flatten())

    return of


def _of_values(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    return lambda result, target: loss(first_output(result), target)


# (what the network returns, target) -> mean loss
_NAMED: dict[str, Callable[[Any, Tensor], Tensor]] = {
    **{name: _of_classes(loss) for name, loss in OF_LABELS.items()},
    "bce": _of_values(functional.binary_cross_entropy),
    "bce_with_logits": _of_values(functional.binary_cross_entropy_with_logits),
    "mse": _of_values(functional.mse_loss),
    "l1": _of_values(functional.l1_loss),
    "smooth_l1": _of_values(functional.smooth_l1_loss),
}


def is_output(bundle: Mapping[str, Any]) -> bool:
    """Whether the network of a bundle.json returns its loss: in mode train its first output is one
    number, where losses of labels take scores."""
    return bundle["case"]["mode"] == "train" and not bundle["outputs"][0]["shape"]


def loss_of(bundle: Mapping[str, Any]) -> Callable[[Tensor, Tensor | None], Tensor]:
    """(the network's first output, labels) -> the loss of a step, as bundle.json says."""
    if is_output(bundle):
        return lambda output, _: output
    of_labels = OF_LABELS[bundle["case"]["loss"] or "cross_entropy"]
    return cast("Callable[[Tensor, Tensor | None], Tensor]", of_labels)


def is_file(loss: str) -> bool:
    """Whether it is FILE.py:NAME."""
    return ".py:" in loss


def _own(result: Any) -> Tensor:
    """The first output; of a network that gives losses alone, as torchvision's detectors, their
    sum."""
    outputs = list(flatten_outputs(result).values())
    if len(outputs) > 1 and all(value.dim() == 0 for value in outputs):
        return torch.stack(outputs).sum()
    return outputs[0]


def function_of(loss: str) -> tuple[Callable[..., Tensor], list[str]]:
    """(what the network returns, targets) -> a scalar, and the names of the targets. Raises
    ModelError: there is no such loss, or it takes no output."""
    if loss == OWN:
        return _own, []
    if not is_file(loss):
        if loss not in _NAMED:
            raise ModelError(
                "usage",
                f"the loss '{loss}' is not known",
                f"allowed: {', '.join(_NAMED)}, {OWN} (the network's first output), FILE.py:FUNCTION",
            )
        return _NAMED[loss], [TARGET]
    from . import python_models

    path, name = python_models.place_of(loss, "the loss")
    function = python_models.function_in(path, name)
    if isinstance(function, type):
        try:
            function = function()
        except Exception as error:
            raise ModelError(
                "usage",
                f"the loss {path.name}:{name}() raised {last_line(error, path)}",
                "a class of a loss is made without arguments",
            ) from error
    takes = [
        p
        for p in inspect.signature(
            function.forward if isinstance(function, nn.Module) else function
        ).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not takes:
        raise ModelError(
            "usage",
            f"the loss {path.name}:{name} takes no arguments",
            f"write def {name}(output, target): what the network returns, and the targets",
        )
    return function, [p.name for p in takes[1:]]


class WithLoss(View):
    """A network and its loss: what it returns is the loss alone. Takes the network's inputs, and
    the targets by their names. A loss that is a module becomes a part `loss` of the network, so
    that it has its type and its device."""

    def __init__(self, inner: nn.Module, loss: Callable[..., Tensor], names: Sequence[str]) -> None:
        if isinstance(loss, nn.Module):
            if hasattr(inner, "loss"):
                raise ModelError(
                    "usage",
                    "the loss is a module, and the network has a part 'loss' already",
                    "write a function that calls it",
                )
            inner.add_module("loss", loss)
        super().__init__(inner)
        self.__dict__["loss_of"] = loss  # no part of its own
        self.target_names = list(names)

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        targets = [kwargs.pop(name) for name in self.target_names]
        return {"loss": self.loss_of(self.inner(*args, **kwargs), *targets)}


def with_loss(module: nn.Module, loss: str) -> WithLoss:
    """`loss`: as a case names it. Raises ModelError."""
    return WithLoss(module, *function_of(loss))
