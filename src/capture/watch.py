# SPDX-License-Identifier: Apache-2.0
"""Sees every operation of one call of a network: which draw random numbers, which make a Python
value of what follows from the inputs, and where in the network's code they stand. Extremes draws
what a seed hardly ever draws."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from capture.state import generator_state
from strata_sdk.models import source_files

_OWN = (
    f"{Path(torch.__file__).parent}/",
    str(Path(__file__).parent),
    f"{Path(__file__).parents[2]}/sdk/",
)
# what gives Python a value of a tensor; of these only the last one is seen as an operation, too
_READERS = {
    Tensor.tolist: "tolist()",
    Tensor.numpy: "numpy()",
    Tensor.__array__: "numpy()",
    Tensor.__bool__: "bool()",
    Tensor.__int__: "int()",
    Tensor.__float__: "float()",
    Tensor.__index__: "int()",
    Tensor.__len__: "len()",
    Tensor.__contains__: "in",
    Tensor.item: "item()",
}
_SHAPED = "len()"  # reads no value, but of a tensor whose extents follow the inputs' values
# which give extents that a trace keeps as long as nothing makes a Python number of them
_EXTENTS = {
    Tensor.shape.__get__: "shape",
    Tensor.size: "size()",
    Tensor.numel: "numel()",
    Tensor.nelement: "nelement()",
}
_GLOBAL = {
    "Python's random": random._inst,
    "numpy.random": np.random.mtrand._rand,
}


class Watch:
    """`draws`, `reads` and `extents` after a call inside it: operation and place, as `dropout at
    net.py:14`, each once, in order. `inputs`: what the call is given, whose values are followed;
    `generators`: of random numbers, that the network holds."""

    def __init__(
        self, module: nn.Module, inputs: Iterable[Tensor], generators: Iterable[Any] = ()
    ) -> None:
        self.draws: list[str] = []
        self.reads: list[str] = []
        self.extents: list[str] = []
        self._files = source_files(module)
        self._function: Any = None
        self._modes = (_Functions(self), _Operations(self))
        self._held: list[
            Any
        ] = []  # storages that were written, so that their addresses stay theirs
        self._written: set[int] = set()
        self._lines = _Lines(self, generators)
        for value in inputs:
            self.follow(value)

    def __enter__(self) -> Watch:
        for mode in self._modes:
            mode.__enter__()
        self._lines.begin()
        return self

    def __exit__(self, *error: Any) -> None:
        self._lines.end()
        for mode in reversed(self._modes):
            mode.__exit__(*error)

    def place(self) -> str:
        """The deepest line of the network's own code that runs now; else the deepest that is
        neither PyTorch's nor strata's."""
        frame: FrameType | None = sys._getframe(1)
        other = ""
        while frame is not None:
            file = frame.f_code.co_filename
            here = f"{Path(file).name}:{frame.f_lineno}"
            if file in self._files:
                return here
            if not other and not file.startswith((*_OWN, "<")):
                other = here
            frame = frame.f_back
        return other

    def note(self, notes: list[str], what: str) -> None:
        place = self.place()
        words = f"{what} at {place}" if place else what
        if words not in notes:
            notes.append(words)

    # ------------------------------------------------------------- what follows from the inputs

    def follow(self, value: Tensor, extents: bool = False) -> None:
        value._strata_follows = max(1 + extents, getattr(value, "_strata_follows", 0))

    def follows(self, value: Tensor) -> int:
        """0: no; 1: its values follow those of the inputs; 2: its extents do as well."""
        known = getattr(value, "_strata_follows", 0)
        if known or not self._written:
            return known
        return int(
            value.layout == torch.strided and value.untyped_storage()._cdata in self._written
        )

    def write(self, value: Tensor) -> None:
        self.follow(value)
        if value.layout == torch.strided:
            storage = value.untyped_storage()
            self._held.append(storage)
            self._written.add(storage._cdata)


class _Functions(TorchFunctionMode):
    """PyTorch's functions as they are called: their names, and reads that are no operation."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func, types, args=(), kwargs=None):
        watch = self.watch
        words = _READERS.get(func, "")
        read = words and args and isinstance(args[0], Tensor)
        if read and watch.follows(args[0]) > (words == _SHAPED):
            watch.note(watch.reads, words)
        if func in _EXTENTS and watch.follows(args[0]) > 1:
            watch.note(watch.extents, _EXTENTS[func])
        watch._function = func
        try:
            return func(*args, **(kwargs or {}))
        finally:
            watch._function = None


class _Operations(TorchDispatchMode):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def _called(self, func: Any) -> str:
        called = getattr(self.watch._function, "__name__", "") or func._schema.name.split("::")[-1]
        return called.strip("_")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        watch, kwargs = self.watch, kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags:
            watch.note(watch.draws, self._called(func))
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
        follows = max((watch.follows(v) for v in given), default=0)
        result = func(*args, **kwargs)
        if not follows:
            return result
        if torch.Tag.data_dependent_output in func.tags and watch._function not in _READERS:
            watch.note(watch.reads, f"a Python value of {self._called(func)}")
        extents = follows > 1 or torch.Tag.dynamic_output_shape in func.tags
        for value in tree_leaves(result):
            if isinstance(value, Tensor):
                watch.follow(value, extents)
        if func._schema.is_mutable:
            for argument, value in zip(func._schema.arguments, args):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    for written in tree_leaves(value):
                        if isinstance(written, Tensor):
                            watch.write(written)
        return result


class _Lines:
    """Generators that are not PyTorch's: what they draw is seen by their states, which are looked
    at before each line of the network's code."""

    def __init__(self, watch: Watch, held: Iterable[Any]) -> None:
        own = [g for g in held if not isinstance(g, torch.Generator)]
        self.watch = watch
        self.generators = _GLOBAL | {f"a {type(g).__name__} of its own": g for g in own}
        self.states: dict[str, bytes] = {}
        self.place = ""
        self.before: Any = None

    def begin(self) -> None:
        self.states = {name: generator_state(g) for name, g in self.generators.items()}
        self.before = sys.gettrace()
        sys.settrace(self._see)

    def end(self) -> None:
        sys.settrace(self.before)
        self._look()

    def _see(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename not in self.watch._files:
            return None
        self._look()
        self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        return self._see

    def _look(self) -> None:
        for name, generator in self.generators.items():
            if (now := generator_state(generator)) != self.states[name]:
                self.states[name] = now
                words = f"{name} at {self.place}"
                if words not in self.watch.draws:
                    self.watch.draws.append(words)


class Extremes(TorchDispatchMode):
    """What is drawn evenly, or chosen by probabilities, lies at the low or the high end of what may
    be drawn: a layer that one call in a thousand skips is skipped. `high` None: draws as always.
    `from_states`: the generators' states in a call after another seed; what is drawn from the same
    one, as by a generator that forward() seeds, stays."""

    MOST = 1000  # draws, since a loop may go on until another number is drawn
    EDGE = 2.0**-20

    def __init__(self, high: bool | None, from_states: Sequence[bytes] = ()) -> None:
        super().__init__()
        self.high, self.other = high, from_states
        self.states: list[bytes] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or len(self.states) >= self.MOST:
            return func(*args, **kwargs)
        state = generator_state(kwargs.get("generator") or torch.default_generator)
        again = self.other[len(self.states) : len(self.states) + 1] == [state]
        self.states.append(state)
        result = func(*args, **kwargs)
        if self.high is not None and not again:
            given = {a.name: v for a, v in zip(func._schema.arguments, args)}
            self._move(func._schema.name.split("::")[-1].strip("_"), result, given)
        return result

    def _move(self, name: str, result: Any, given: dict[str, Any]) -> None:
        share = 1 - self.EDGE if self.high else self.EDGE
        if name in ("rand", "rand_like"):
            result.fill_(share)
        elif name == "uniform":
            low, high = given.get("from", 0.0), given.get("to", 1.0)
            result.fill_(low + (high - low) * share)
        elif name == "bernoulli":
            p = given.get("p", given["self"])
            p = p if isinstance(p, Tensor) else torch.tensor(p)
            result.copy_((p > 0 if self.high else p >= 1).expand_as(result))
        elif name == "multinomial" and self.high:
            p = given["self"]
            number = result.shape[-1]
            if bool(((p > 0).sum(-1) >= number).all()):
                result.copy_(p.where(p > 0, torch.inf).topk(number, largest=False).indices)
        elif name.startswith("randint") and not name.startswith("randint_like"):
            low, high = given.get("low", 0), given["high"]
            result.fill_(high - 1 if self.high else low)
