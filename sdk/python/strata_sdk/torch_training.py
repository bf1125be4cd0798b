# SPDX-License-Identifier: Apache-2.0
"""The training half of the levels that run a PyTorch module from Python, and the parts of a step
that the capture shares: losses and dropout's switch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.optimizer import _default_to_fused_or_foreach

from .capabilities import Profiles, Trains
from .dropout_calls import without_calls
from .errors import BadRequest
from .level import Level
from .losses import first_output, loss_of
from .optimiser import BUFFERS

# Where a layer keeps its dropout's probability: torch's own layers by class, torchvision's and
# timm's by name.
_BY_CLASS = (
    (nn.modules.dropout._DropoutNd, "p"),
    (nn.MultiheadAttention, "dropout"),
    (nn.RNNBase, "dropout"),
)
_BY_NAME = {"StochasticDepth": "p", "DropPath": "drop_prob"}


@dataclass(frozen=True)
class Dropout:
    """One dropout of a network: its name, the probability that it was given, and what gives it
    another."""

    name: str
    p: float
    give: Callable[[float], None]


class Dropouts:
    """Every dropout of a module, to be switched off (probability 0) and on again."""

    def __init__(self, module: nn.Module) -> None:
        self.found: list[tuple[str, nn.Module, str, float]] = []
        for path, layer in module.named_modules():
            attribute = next(
                (a for kind, a in _BY_CLASS if isinstance(layer, kind)),
                _BY_NAME.get(type(layer).__name__),
            )
            if attribute and (probability := getattr(layer, attribute, None)):
                self.found.append((path, layer, attribute, float(probability)))

    def places(self) -> list[Dropout]:
        return [
            Dropout(path, p, functools.partial(setattr, layer, attribute))
            for path, layer, attribute, p in self.found
        ]

    def switch(self, on: bool) -> None:
        for _, layer, attribute, probability in self.found:
            setattr(layer, attribute, probability if on else 0.0)


# By the name of a case's optimiser: PyTorch's, and the arguments that are the case's by another
# name.
OPTIMISERS: dict[str, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
# What PyTorch calls a buffer of a state (docs/protocol.md).
_HELD = {"momentum:": "momentum_buffer", "exp_avg:": "exp_avg", "exp_avg_sq:": "exp_avg_sq"}


def arguments_of(optimiser: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a case's optimiser as PyTorch's takes them."""
    fields = {
        name: value
        for name, value in optimiser.items()
        if name not in ("name", "schedule", "beta1", "beta2", "clip_norm")
    }
    return fields | (
        {"betas": (optimiser["beta1"], optimiser["beta2"])} if "beta1" in optimiser else {}
    )


def weights_and_counts(module: nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What a state holds of the module itself: `weight:<name>` and `count:<name>`
    (docs/protocol.md)."""
    held = {k: v for k, v in module.state_dict().items() if isinstance(v, Tensor)}
    return (
        {f"weight:{name}": value for name, value in held.items() if value.is_floating_point()},
        {
            f"count:{name}": value
            for name, value in held.items()
            if value.dtype == torch.int64 and not value.dim()
        },
    )


class TorchTraining(Level, Trains, Profiles):
    """One optimiser step of `self.module`, which `self.network` runs in the case's precision, by
    PyTorch's autograd and its optimisers. `objective`: (positional inputs, named inputs, labels) ->
    mean loss. No labels (None): the network's output is its loss."""

    optimiser_options: Mapping[str, Any] = {}  # of PyTorch's optimiser, beside the case's

    # which TorchLevel, the other half of such a level, sets
    device: torch.device
    module: nn.Module
    network: Callable[..., Any]
    inputs: Sequence[Tensor]
    named: Mapping[str, Tensor]

    def prepare_training(self) -> None:
        """After the module was built, before its weights are loaded."""
        self.loss_of = loss_of(self.job.about)
        self.dropouts, self.whole = Dropouts(self.module), self.network
        self.objective = self.loss_of_batch

    def loss_of_batch(
        self, inputs: Sequence[Tensor], named: Mapping[str, Tensor], labels: Tensor | None
    ) -> Tensor:
        return self.loss_of(first_output(self.network(*inputs, **named)), labels)

    def set_mode(self, mode: str, dropout: bool) -> None:
        self.module.train(mode == "train")
        self.dropouts.switch(dropout)
        self.network = (
            self.whole
            if dropout or not self.job.about.get("dropout_calls")
            else without_calls(self.whole)
        )

    def set_optimiser(self, optimiser: dict[str, Any]) -> None:
        self.trained = trained = [p for p in self.module.parameters() if p.requires_grad]
        self.clip_norm = optimiser["clip_norm"]
        self.optimiser = OPTIMISERS[optimiser["name"]](
            trained, **arguments_of(optimiser), **self.optimiser_options
        )
        self.buffers = BUFFERS[optimiser["name"]]

    def optimiser_kind(self) -> str:
        """How PyTorch's optimiser walks the parameters: its own choice, unless the level made one.
        SGD, Adam and AdamW choose alike."""
        if self.optimiser_options.get("fused"):
            return "fused"
        _, foreach = _default_to_fused_or_foreach(
            list(self.module.parameters()), differentiable=False
        )
        return "foreach" if foreach else "loop"

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def host_labels(self, labels: np.ndarray) -> Tensor:
        return torch.from_numpy(labels)

    def set_batch(self, inputs: Sequence[Tensor], labels: Tensor | None) -> None:
        self.set_input(inputs)
        self.labels = labels if labels is None else labels.to(self.device)

    def step(self) -> None:
        self.optimiser.zero_grad()
        self.result = self.objective(self.inputs, self.named, self.labels)
        self.result.backward()
        self.update()

    def update(self) -> None:
        if self.clip_norm:
            nn.utils.clip_grad_norm_(self.trained, self.clip_norm)
        self.optimiser.step()

    def loss(self) -> float:
        result, self.result = self.result, None
        return result.item()

    def step_in_phases(
        self, inputs: Sequence[Tensor], labels: Tensor | None, mark: Callable[[str], None]
    ) -> None:
        mark("input")  # the caller's tensors are taken as they are
        self.set_batch(inputs, labels)
        mark("to_device")
        self.optimiser.zero_grad()
        self.result = self.forward_in_phases(mark)
        self.result.backward()
        mark("backward")
        self.update()
        mark("update")

    def forward_in_phases(self, mark: Callable[[str], None]) -> Tensor:
        output = first_output(self.network(*self.inputs, **self.named))
        mark("forward")
        loss = self.loss_of(output, self.labels)
        mark("loss")
        return loss

    # -- state ------------------------------------------------------------------------------------

    def _generators(self) -> dict[str, torch.Generator]:
        """PyTorch's own, which every layer that draws may use."""
        own = {"generator:torch": torch.default_generator}
        return own | (
            {"generator:torch-cuda": torch.cuda.default_generators[torch.cuda.current_device()]}
            if self.device.type == "cuda"
            else {}
        )

    def seed_dropout(self, seed: int) -> None:
        torch.manual_seed(seed)

    def state(self) -> dict[str, np.ndarray]:
        weights, counts = weights_and_counts(self.module)
        buffers = {
            prefix + name: self.optimiser.state.get(p, {}).get(_HELD[prefix])
            for prefix in self.buffers
            for name, p in self.module.named_parameters()
        }
        generators = {name: generator.get_state() for name, generator in self._generators().items()}
        return {
            name: value.detach().cpu().contiguous().numpy()
            for name, value in (weights | counts | buffers | generators).items()
            if value is not None
        }

    def load_state(self, tensors: Mapping[str, np.ndarray], step: int) -> None:
        (weights, counts), generators = weights_and_counts(self.module), self._generators()
        trained = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        known = (
            weights
            | counts
            | {prefix + name: p for prefix in self.buffers for name, p in trained.items()}
        )
        missing = [name for name in weights if name not in tensors]
        if missing:
            raise BadRequest(f"the state lacks {missing[0]}", "load a file as `state` writes it")
        for name, array in tensors.items():
            if name.startswith("generator:"):
                continue
            own = known.get(name)
            if own is None or tuple(own.shape) != array.shape:
                raise BadRequest(
                    f"the state holds {name} of shape {list(array.shape)}",
                    f"allowed: {'no such tensor' if own is None else f'shape {list(own.shape)}'}",
                )
        with torch.no_grad():
            for name, own in weights.items():
                own.copy_(torch.from_numpy(tensors[name]))
            for name, own in counts.items():
                if name in tensors:
                    own.copy_(torch.from_numpy(tensors[name]))
            for name, parameter in trained.items():
                self.load_buffers(
                    parameter,
                    {
                        prefix: tensors[prefix + name]
                        for prefix in self.buffers
                        if prefix + name in tensors
                    },
                    step,
                )
        for name, generator in generators.items():
            if name in tensors:
                generator.set_state(torch.from_numpy(tensors[name]))
        self.wait()

    def load_buffers(
        self, parameter: nn.Parameter, values: Mapping[str, np.ndarray], step: int
    ) -> None:
        """The optimiser's buffers of one parameter, in its own layout. Where Adam has taken a step,
        what is not given is zero."""
        held = self.optimiser.state[parameter]
        held.clear()
        counts = len(self.buffers) > 1
        if counts and not values and step == 0:
            return
        for prefix in self.buffers:
            if prefix in values:
                held[_HELD[prefix]] = torch.empty_like(parameter, requires_grad=False).copy_(
                    torch.from_numpy(values[prefix])
                )
            elif counts:
                held[_HELD[prefix]] = torch.zeros_like(parameter, requires_grad=False)
        if counts:  # PyTorch keeps it on the host, but for the fused kernel
            held["step"] = torch.tensor(
                float(step),
                dtype=torch.float32,
                device=parameter.device if self.optimiser_options.get("fused") else "cpu",
            )
