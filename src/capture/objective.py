# SPDX-License-Identifier: Apache-2.0
"""The loss of a case of mode train, where it is not of labels beside the network (docs/bundle.md,
"Losses"): the network becomes one that returns its loss, and takes the targets as inputs."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from capture.case import Input
from capture.errors import Problem, is_out_of_memory
from capture.forward import parameters_of
from capture.inputs import make_ring
from strata_sdk.losses import (
    OF_LABELS,
    OWN,
    WithLoss,
    class_axis,
    first_output,
    function_of,
    is_file,
)
from strata_sdk.models import Built, last_line, source_files

LABELS = "labels"  # what networks that give their own loss call its target
FORMS = "[batch, classes], [batch, length, classes] or [batch, classes, height, width]"


class Objective:
    """What the network of a spec of mode train is trained with, before its inputs are resolved."""

    def __init__(self, spec: dict, built: Built) -> None:
        self.spec, self.built = spec, built
        self.loss = spec["loss"] or built.loss
        self.function, self.names = function_of(self.loss)
        # those that build() gave and the loss takes are inputs like any others
        built.targets = {k: v for k, v in built.targets.items() if k in self.names}

    def join(self, inputs: list[Input]) -> None:
        """Makes the network one with its loss, whose targets come to `inputs`, unless the loss is
        of labels. Raises Problem."""
        result = output = None
        if not is_file(self.loss):
            try:
                result = self.run(self.built.module, self.of_network(inputs))
                output = first_output(result)
            except Exception as error:  # which the capture says better
                if is_out_of_memory(error):
                    raise
                return
        if not self.spec["loss"] and _is_number(output):
            self.loss = self.built.loss = OWN
            self.function, self.names = function_of(OWN)
        elif self.is_of_labels(output, inputs):
            return
        self.add_targets(inputs, output)
        self.built.module = WithLoss(self.built.module, self.function, self.names).eval()
        self.check(inputs)

    def is_of_labels(self, output: Tensor | None, inputs: list[Input]) -> bool:
        """A class for each row of scores, which strata draws; a loss by default is no other."""
        given = any(declared.name in self.names for declared in inputs if declared.keyword)
        if output is None or given or self.loss not in OF_LABELS:
            return False
        return not self.spec["loss"] or output.dim() == 2

    def of_network(self, inputs: list[Input]) -> list[Input]:
        """Without the targets."""
        return [i for i in inputs if not (i.keyword and i.name in self.names)]

    def run(self, module: nn.Module, inputs: list[Input]) -> Any:
        """What a copy of the module returns for one entry of a ring."""
        entry = make_ring(self.spec | {"ring": 1}, inputs)[0][0]
        with torch.no_grad():
            return copy.deepcopy(module)(
                *[entry[i.name] for i in inputs if not i.keyword],
                **{i.name: entry[i.name] for i in inputs if i.keyword},
            )

    def add_targets(self, inputs: list[Input], output: Tensor | None) -> None:
        """Those that nobody gave: what a named loss takes of the network's first output, or what a
        network that gives its own loss calls labels. `output`: None of a loss of a file."""
        given = {declared.name for declared in inputs}
        names = self.names
        if self.loss == OWN:
            takes = {p.name for p in parameters_of(self.built.module)}
            names = [LABELS] if LABELS in takes and not _is_number(output) else []
        for name in names:
            if name in given:
                continue
            if output is None:
                raise Problem(
                    "usage",
                    f"--loss {self.loss} takes '{name}', which is neither a target nor an input",
                    f"let build() return (module, inputs, {{'{name}': tensor}}), or write --input {name}=int64:8x16:0..9",
                )
            inputs.append(self.like(output, name))

    def like(self, output: Tensor, name: str) -> Input:
        """The target that goes with such an output: classes, shares from 0 to 1, or numbers."""
        shape = list(output.shape)
        if self.loss not in OF_LABELS and self.loss != OWN:
            shares = (0.0, 1.0) if self.loss.startswith("bce") else (None, None)
            return Input(name, True, "float32", shape, *shares)
        if output.dim() < 2 or not output.is_floating_point():
            raise Problem(
                "usage",
                f"--loss {self.loss} needs scores of classes; the network's first output is {_words(output)}",
                f"return {FORMS} first, or write --loss FILE.py:FUNCTION",
            )
        classes = shape.pop(class_axis(output))
        return Input(name, True, "int64", shape, 0, classes - 1)

    def check(self, inputs: list[Input]) -> None:
        """The network with its loss runs and gives one number."""
        module = self.built.module
        try:
            value = self.run(module, inputs)["loss"]
        except Exception as error:
            if is_out_of_memory(error) or isinstance(error, Problem):
                raise
            raise Problem(
                "usage",
                f"--loss {self.loss}: {last_line(error, *self.files(module))}",
                "check what the loss takes: the network's result, and targets of the shapes that it needs",
            ) from error
        if not _is_number(value):
            raise Problem(
                "usage",
                f"--loss {self.loss} gives {_words(value)}",
                "a loss is one floating-point number, as of mean()"
                + ("; name one with --loss" if self.loss == OWN else ""),
            )

    def files(self, module: nn.Module) -> Iterable[str]:
        """Whose lines an error is told with."""
        return [
            *source_files(module),
            *([self.loss.rpartition(":")[0]] if is_file(self.loss) else []),
        ]


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() == 0 and value.is_floating_point()


def _words(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"an object of type {type(value).__name__}"
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
