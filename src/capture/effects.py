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
from typing import Any

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.errors import is_out_of_memory
from capture.state import GENERATORS, Shared, generator_state, state
from capture.watch import Extremes, Watch
from strata_sdk.models import bind, call, flatten_outputs

Named = dict[str, Tensor]
RANDOM = "this network draws random numbers in eval mode: "
SEEDS = 4  # that are tried where a network draws, though two runs were equal
STATE_HINT = "let forward() begin from the same state in every call, or take the state as an input and return it; equal work of such a network cannot be shown"


@dataclasses.dataclass
class Effects:
    """Names of the inputs that a call writes into, of the state that it leaves changed, by kind
    (state.py), and the places where it reads values of its inputs, or extents that follow them.
    `unproven`: why no two calls could be compared, `keeps_state`: since they follow the calls
    before."""

    inputs: list[str] = dataclasses.field(default_factory=list)
    changed: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    generators: list[str] = dataclasses.field(default_factory=list)  # of random numbers
    overwritten: list[str] = dataclasses.field(default_factory=list)  # of those, in place
    reads: list[str] = dataclasses.field(default_factory=list)
    extents: list[str] = dataclasses.field(default_factory=list)
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
        parts = [_list(names, kind) for kind, names in self.changed.items()]
        parts.append(_list(self.generators, "generator"))
        return f"every call changes {' and '.join(filter(None, parts))}" if any(parts) else ""


def find_effects(
    module: nn.Module, ring: list[Named], bundle: dict, training: bool, shared: Shared
) -> Effects:
    """What calls of copies that never ran do, two inputs in turn; `module` itself does not run, so
    that its state stays as it was built, and `shared` is put back. `training`: in train mode, where
    buffers may change (BatchNorm's do) and answers may be random."""
    try:
        return _find_effects(module, ring, bundle, training, shared)
    finally:
        shared.restore()


def _find_effects(
    module: nn.Module, ring: list[Named], bundle: dict, training: bool, shared: Shared
) -> Effects:
    effects = Effects()

    def copy_asked(effects: Effects) -> _Asked:
        shared.restore()
        return _Asked(module, bundle, effects)

    fresh = copy_asked(effects)
    if training:
        fresh.network.train()
        fresh.ask(ring[0])
        return Effects(inputs=effects.inputs)
    other = ring[1]
    first, second, again = fresh.ask(ring[0]), fresh.ask(other), fresh.ask(ring[0])
    del fresh
    asked = copy_asked(Effects())
    apart = _apart(first, again) or _apart(second, asked.ask(other, seed=1))
    watch = asked.watch(ring[0])
    effects.reads, effects.extents = watch.reads, watch.extents
    draws = _few(watch.draws) or _list(effects.generators, "generator")
    for seed in range(2, 2 + SEEDS) if draws and not apart else ():
        apart = apart or _apart(first, asked.ask(ring[0], seed))
    if draws and not apart and asked.differs_at_the_ends(ring[0]):
        effects.unproven = RANDOM + draws
    if not apart:
        return effects
    answers = [copy_asked(Effects()).ask(ring[0], seed) for seed in range(SEEDS)]
    if any(_apart(answers[0], answer) for answer in answers[1:]):
        effects.unproven = (
            RANDOM + draws
            if draws
            else "this network answers one input in two ways in eval mode, though neither PyTorch nor a generator that it holds draws random numbers (a clock, or the system's own?)"
        )
    elif draws and not effects.changed:  # a generator of its own goes on from call to call
        effects.unproven = RANDOM + draws
    else:
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

    def __call__(self, entry: ref.Entry) -> Named | None:
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

    def ask(self, entry: ref.Entry, seed: int = 0) -> Named:
        torch.manual_seed(seed)
        args, kwargs = bind(entry, self.bundle)
        inputs = self.bundle["inputs"]
        arguments = dict(zip((i["name"] for i in inputs if not i["keyword"]), args)) | kwargs
        versions = {name: value._version for name, value in arguments.items()}
        before = {
            (kind, name): (value, *_as_it_is(value)) for kind, name, value in state(self.network)
        }
        with torch.no_grad():
            outputs = flatten_outputs(self.network(*args, **kwargs))
        answer = {name: value.detach().clone() for name, value in outputs.items()}
        for name, value in arguments.items():
            if value._version != versions[name] or not ref.same(value, entry[name]):
                _add(self.effects.inputs, name)
        self._note_state(before)
        return answer

    def _note_state(self, before: dict[tuple[str, str], tuple[Any, int, Any]]) -> None:
        effects, plain = self.effects, []
        for kind, name, value in state(self.network):
            held, version, old = before.get((kind, name), (None, 0, self))
            if isinstance(value, GENERATORS):
                if old != generator_state(value):
                    _add(effects.generators, name)
            elif not isinstance(value, Tensor):
                if type(old) is not type(value) or old != value:
                    plain.append((kind, name))
            elif (
                not isinstance(old, Tensor)
                or value._version != version
                or not ref.same(value.detach(), old)
            ):
                _add(effects.changed.setdefault(kind, []), name)
                if value is held:
                    _add(effects.overwritten, name)
        # a counter beside a cache says less than the cache
        if not effects.changed:
            for kind, name in plain:
                _add(effects.changed.setdefault(kind, []), name)

    def watch(self, entry: ref.Entry) -> Watch:
        """What one more call draws, and reads of its inputs."""
        args, kwargs = bind(entry, self.bundle)
        held = [value for _, _, value in state(self.network) if isinstance(value, GENERATORS)]
        watch = Watch(self.network, [*args, *kwargs.values()], held)
        try:
            with torch.no_grad(), watch:
                self.network(*args, **kwargs)
        except Exception:  # a network that no operation of may be seen runs without being watched
            return Watch(self.network, [])
        return watch

    def differs_at_the_ends(self, entry: ref.Entry) -> bool:
        """Whether the answer follows what is drawn, where two seeds show it once in a thousand."""
        try:
            with Extremes(high=None) as usual:
                self.ask(entry, seed=1)
            with Extremes(False, usual.states):
                low = self.ask(entry)
            with Extremes(True, usual.states):
                return _apart(low, self.ask(entry))
        except Exception:  # neither is sure to be a number that the network can take
            return False


def _as_it_is(value: Any) -> tuple[int, Any]:
    """Version and a copy of a tensor, a generator's state, or a plain value."""
    if isinstance(value, Tensor):
        return value._version, value.detach().clone()
    return 0, generator_state(value) if isinstance(value, GENERATORS) else value


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
