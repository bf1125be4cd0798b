# SPDX-License-Identifier: Apache-2.0
"""What a call of the network does beside answering: it may write into its inputs (an `x.sub_(mean)`
in front) and into its own buffers (a counter, a cache).

Seen by PyTorch's version counters as well as by values: writing what is there already is writing
too, and the next input may differ.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.errors import Problem
from strata_sdk.models import bind, flatten_outputs

CALLS = 3  # on one input: an answer that follows the state shows by then


@dataclasses.dataclass
class Effects:
    """Names of the inputs that a call writes into, and of the persistent buffers that it leaves
    changed."""

    inputs: list[str] = dataclasses.field(default_factory=list)
    buffers: list[str] = dataclasses.field(default_factory=list)

    def input_sentence(self) -> str:
        """For the report; empty: nothing to say."""
        return (
            f"the network writes into {_list(self.inputs)}: what runs it as it is gets a copy in every iteration"
            if self.inputs
            else ""
        )

    def buffer_sentence(self) -> str:
        return f"every call changes {_list(self.buffers, 'buffer')}" if self.buffers else ""


def find_effects(
    module: nn.Module, entry: Mapping[str, Tensor], bundle: dict, training: bool
) -> Effects:
    """Runs a copy of the network a few times on one input. `training`: in train mode, where buffers
    may change (BatchNorm's do) and answers may be random. Problem when answers in eval mode follow
    buffers that calls change: no two calls could be compared."""
    work = copy.deepcopy(module)
    if training:
        work.train()
    effects = Effects()
    answers: list[dict[str, Tensor]] = []
    for _ in range(1 if training else CALLS):
        before = (
            {}
            if training
            else {name: (value._version, value.clone()) for name, value in _state(work).items()}
        )
        args, kwargs = bind(entry, bundle)
        arguments = (
            dict(zip((i["name"] for i in bundle["inputs"] if not i["keyword"]), args)) | kwargs
        )
        versions = {name: value._version for name, value in arguments.items()}
        with torch.no_grad():
            answers.append(
                {
                    name: value.detach().clone()
                    for name, value in flatten_outputs(work(*args, **kwargs)).items()
                }
            )
        written = [
            name
            for name, value in arguments.items()
            if value._version != versions[name] or not ref.same(value, entry[name])
        ]
        changed = [
            name
            for name, value in _state(work).items()
            if name in before
            and (value._version != before[name][0] or not ref.same(value, before[name][1]))
        ]
        effects.inputs += [name for name in written if name not in effects.inputs]
        effects.buffers += [name for name in changed if name not in effects.buffers]
    if effects.buffers and any(_apart(answers[0], other) for other in answers[1:]):
        raise Problem(
            "unsupported",
            f"the network answers by what it was called with before: every call changes {_list(effects.buffers, 'buffer')}, and the answer follows",
            "let forward() begin from the same state in every call, or take the state as an input and return it; equal work of such a network cannot be shown",
        )
    return effects


def _state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}


def _apart(first: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    expected = {
        name: value.double() if value.is_floating_point() else value
        for name, value in first.items()
    }
    far = any(not error <= 1e-5 for error in ref.output_errors(other, expected).values())
    return far or any(
        not value.is_floating_point() and not ref.same(value, other[name])
        for name, value in first.items()
    )


def _list(names: list[str], kind: str = "") -> str:
    shown = ", ".join(f"'{name}'" if kind else name for name in names[:3]) + (
        f" and {len(names) - 3} more" if len(names) > 3 else ""
    )
    return (
        f"its {kind}{'s' if len(names) > 1 else ''} {shown}"
        if kind
        else f"its input{'s' if len(names) > 1 else ''} {shown}"
    )
