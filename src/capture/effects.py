# SPDX-License-Identifier: Apache-2.0
"""What a call of the network does beside answering: it may write into its inputs (an `x.sub_(mean)`
in front), change its own state (a counter, a cache), draw random numbers, or let Python look at
values of its inputs.

Writing is seen by PyTorch's version counters as well as by values: writing what is there already is
writing too, and the next input may differ.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.errors import is_out_of_memory
from capture.watch import Watch
from strata_sdk.models import bind, call, flatten_outputs

Named = dict[str, Tensor]
SEEDS = 4  # that are tried where a network draws, though two runs were equal
PLAIN = (bool, int, float, str, type(None))
STATE_HINT = "let forward() begin from the same state in every call, or take the state as an input and return it; equal work of such a network cannot be shown"
DEPTH = 4  # of lists, dicts and objects in an attribute


@dataclasses.dataclass
class Effects:
    """Names of the inputs that a call writes into, of the buffers and attributes that it leaves
    changed, and the places where it reads values of its inputs. `unproven`: why no two calls could
    be compared, `keeps_state`: since they follow the calls before."""

    inputs: list[str] = dataclasses.field(default_factory=list)
    buffers: list[str] = dataclasses.field(default_factory=list)
    attributes: list[str] = dataclasses.field(default_factory=list)
    overwritten: list[str] = dataclasses.field(default_factory=list)  # of those, in place
    reads: list[str] = dataclasses.field(default_factory=list)
    unproven: str = ""
    keeps_state: bool = False

    def input_sentence(self) -> str:
        """For the report; empty: nothing to say."""
        return (
            f"the network writes into {_list(self.inputs)}: what runs it as it is gets a copy in every iteration"
            if self.inputs
            else ""
        )

    def state_sentence(self) -> str:
        parts = [_list(self.buffers, "buffer"), _list(self.attributes, "attribute")]
        return f"every call changes {' and '.join(filter(None, parts))}" if any(parts) else ""


def find_effects(module: nn.Module, ring: list[Named], bundle: dict, training: bool) -> Effects:
    """What calls of copies that never ran do, two inputs in turn; `module` itself does not run, so
    that its state stays as it was built. `training`: in train mode, where buffers may change
    (BatchNorm's do) and answers may be random."""
    effects = Effects()
    fresh = _Asked(module, bundle, effects)
    if training:
        fresh.network.train()
        fresh.ask(ring[0])
        return Effects(inputs=effects.inputs)
    other = ring[1]
    first, second, again = fresh.ask(ring[0]), fresh.ask(other), fresh.ask(ring[0])
    del fresh
    asked = _Asked(module, bundle, Effects())
    apart = _apart(first, again) or _apart(second, asked.ask(other, seed=1))
    draws, effects.reads = asked.watch(ring[0])
    for seed in range(2, 2 + SEEDS) if draws and not apart else ():
        apart = apart or _apart(first, asked.ask(ring[0], seed))
    del asked
    if not apart:
        return effects
    answers = [_Asked(module, bundle, Effects()).ask(ring[0], seed) for seed in range(SEEDS)]
    if any(_apart(answers[0], answer) for answer in answers[1:]):
        effects.unproven = (
            f"this network draws random numbers in eval mode: {_few(draws)}"
            if draws
            else "this network answers one input in two ways in eval mode, though no operation of PyTorch draws random numbers (Python's or numpy's own?)"
        )
        return effects
    effects.keeps_state = True
    effects.unproven = f"the network answers by what it was called with before: {effects.state_sentence() or 'calls change something that it keeps'}, and the answer follows"
    return effects


def random_in_training(network: nn.Module, entry: Named, bundle: dict) -> str:
    """Why a network in train mode, whose dropout is off, answers one input in two ways."""
    watch = Watch(network, [])
    with torch.no_grad(), watch:
        call(network, entry, bundle)
    return (
        f"this network draws random numbers in training, beside its dropout: {_few(watch.draws)}"
        if watch.draws
        else "this network answers one batch in two ways in training, without its dropout too"
    )


class Answers:
    """What a copy of the network answers in eval mode, as make_ring() asks; made when it is first
    asked."""

    def __init__(self, module: nn.Module, bundle: dict) -> None:
        self.module, self.bundle = module, bundle
        self.network: nn.Module | None = None

    def __call__(self, entry: Mapping[str, Tensor]) -> Named | None:
        self.network = self.network or copy.deepcopy(self.module)
        try:
            with torch.no_grad():
                return call(self.network, entry, self.bundle)
        except Exception as error:  # whatever the model's code raises
            if is_out_of_memory(error):
                raise
            return None


class _Asked:
    """A copy of the network that never ran; notes what its calls do."""

    def __init__(self, module: nn.Module, bundle: dict, effects: Effects) -> None:
        self.network, self.bundle, self.effects = copy.deepcopy(module), bundle, effects

    def ask(self, entry: Mapping[str, Tensor], seed: int = 0) -> Named:
        torch.manual_seed(seed)
        args, kwargs = bind(entry, self.bundle)
        inputs = self.bundle["inputs"]
        arguments = dict(zip((i["name"] for i in inputs if not i["keyword"]), args)) | kwargs
        versions = {name: value._version for name, value in arguments.items()}
        before = {
            name: (value, value._version, value.detach().clone())
            if isinstance(value, Tensor)
            else (value, 0, value)
            for name, value in _state(self.network)
        }
        with torch.no_grad():
            outputs = flatten_outputs(self.network(*args, **kwargs))
        answer = {name: value.detach().clone() for name, value in outputs.items()}
        for name, value in arguments.items():
            if value._version != versions[name] or not ref.same(value, entry[name]):
                _add(self.effects.inputs, name)
        self._note_state(before)
        return answer

    def _note_state(self, before: dict[str, tuple[Any, int, Any]]) -> None:
        buffers = {name for name, _ in self.network.named_buffers()}
        plain = []
        for name, value in _state(self.network):
            held, version, old = before.get(name, (None, 0, None))
            if not isinstance(value, Tensor):
                if name in before and (isinstance(old, Tensor) or old != value):
                    plain.append(name)
            elif (
                not isinstance(old, Tensor)
                or value._version != version
                or not ref.same(value.detach(), old)
            ):
                _add(self.effects.buffers if name in buffers else self.effects.attributes, name)
                if value is held:
                    _add(self.effects.overwritten, name)
        # a counter beside a cache says less than the cache
        if not self.effects.buffers and not self.effects.attributes:
            self.effects.attributes += plain

    def watch(self, entry: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Where one more call draws random numbers and reads values of its inputs."""
        args, kwargs = bind(entry, self.bundle)
        watch = Watch(self.network, [*args, *kwargs.values()])
        try:
            with torch.no_grad(), watch:
                self.network(*args, **kwargs)
        except Exception:  # a network that no operation of may be seen runs without being watched
            return [], []
        return watch.draws, watch.reads


def _state(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Name and value of each buffer, and of each tensor and plain value that an attribute holds."""
    yield from module.named_buffers()
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if not name.startswith("_") or isinstance(value, Tensor):
                yield from _held(f"{path}.{name}" if path else name, value, DEPTH)


def _held(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (Tensor, *PLAIN)):
        yield name, value
    elif isinstance(value, nn.Module) and depth > 0:
        for path, tensor in value.state_dict().items():  # in no ModuleList
            yield f"{name}.{path}", tensor
    elif isinstance(value, (list, tuple)) and depth > 0:
        for i, one in enumerate(value):
            yield from _held(f"{name}.{i}", one, depth - 1)
    elif isinstance(value, dict) and depth > 0:
        for key, one in value.items():
            yield from _held(f"{name}.{key}", one, depth - 1)
    elif depth > 0 and hasattr(value, "__dict__") and not callable(value):
        for key, one in vars(value).items():
            yield from _held(f"{name}.{key}", one, depth - 1)


def _add(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def _apart(first: Named, other: Named) -> bool:
    expected = {
        name: value.double() if value.is_floating_point() else value
        for name, value in first.items()
    }
    if list(other) != list(first) or any(other[n].shape != v.shape for n, v in first.items()):
        return True
    far = any(not error <= 1e-5 for error in ref.output_errors(other, expected).values())
    return far or any(
        not value.is_floating_point() and not ref.same(value, other[name])
        for name, value in first.items()
    )


def _few(places: list[str]) -> str:
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def _list(names: list[str], kind: str = "") -> str:
    if not names:
        return ""
    shown = _few([f"'{name}'" if kind else name for name in names])
    return f"its {kind or 'input'}{'s' if len(names) > 1 else ''} {shown}"
