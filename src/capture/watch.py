# SPDX-License-Identifier: Apache-2.0
"""Sees every operation of one call of a network: which draw random numbers, which make a Python
value of what follows from the inputs, and where in the network's code they stand."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


class Watch:
    """`draws` and `reads` after a call inside it: operation and place, as `dropout at net.py:14`,
    each once, in order. `inputs`: what the call is given, whose values are followed."""

    def __init__(self, module: nn.Module, inputs: Iterable[Tensor]) -> None:
        self.draws: list[str] = []
        self.reads: list[str] = []
        self._files = source_files(module)
        self._function: Any = None
        self._modes = (_Functions(self), _Operations(self))
        self._held: list[
            Any
        ] = []  # storages that were written, so that their addresses stay theirs
        self._written: set[int] = set()
        for value in inputs:
            self.follow(value)

    def __enter__(self) -> Watch:
        for mode in self._modes:
            mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
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
        watch._function = func
        try:
            return func(*args, **(kwargs or {}))
        finally:
            watch._function = None


class _Operations(TorchDispatchMode):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        watch, kwargs = self.watch, kwargs or {}
        if torch.Tag.nondeterministic_seeded in func.tags:
            called = getattr(watch._function, "__name__", "") or func._schema.name.split("::")[-1]
            watch.note(watch.draws, called.strip("_"))
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
        follows = max((watch.follows(v) for v in given), default=0)
        result = func(*args, **kwargs)
        if not follows:
            return result
        if func is torch.ops.aten._local_scalar_dense.default and watch._function not in _READERS:
            watch.note(watch.reads, "a Python value")
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
