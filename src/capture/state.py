# SPDX-License-Identifier: Apache-2.0
"""What a network keeps from call to call: its buffers, what its attributes hold, and what all
copies of it share, since copying a module copies none of it: globals of its files, attributes of
its classes, variables that functions closed over."""

from __future__ import annotations

import contextlib
import copy
import itertools
import pickle
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from strata_sdk.models import source_files
from strata_sdk.sources import is_library

PLAIN = (bool, int, float, str, type(None))
GENERATORS = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState)
DEPTH = 4  # of lists, dicts and objects in an attribute
MANY = 4096  # entries of one list or dict: of more, their number alone is looked at
_MODULES_OWN = set(vars(nn.Module()))

Place = tuple[str, str, Any]  # buffer, attribute or global; its name; its value


def state(module: nn.Module) -> Iterator[Place]:
    """Each buffer, and each tensor, generator of random numbers and plain value that an attribute
    or what copies share holds."""
    for name, value in module.named_buffers():
        yield "buffer", name, value
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in _MODULES_OWN:
                for place in _held(f"{path}.{name}" if path else name, value, DEPTH):
                    yield "attribute", *place
    for name, holder, key in _shared(module):
        for place in _held(name, getattr(holder, key), DEPTH):
            yield "global" if isinstance(holder, ModuleType) else "attribute", *place


def generator_state(value: Any) -> bytes:
    """Equal where a generator of GENERATORS draws the same numbers next."""
    if isinstance(value, torch.Generator):
        return value.get_state().numpy().tobytes()
    if isinstance(value, random.Random):
        return pickle.dumps(value.getstate())
    generator = value.bit_generator if isinstance(value, np.random.Generator) else value
    return pickle.dumps(
        generator.state if hasattr(generator, "state") else generator.get_state(legacy=False)
    )


def _held(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (Tensor, *PLAIN, *GENERATORS)):
        yield name, value
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        yield name, torch.as_tensor(value)
    elif isinstance(value, itertools.count):
        yield name, repr(value)
    elif depth == 0 or isinstance(value, (type, ModuleType)):
        return
    elif isinstance(value, nn.Module):
        for path, tensor in value.state_dict().items():  # in no ModuleList
            yield f"{name}.{path}", tensor
    elif isinstance(value, (list, tuple, deque, dict)):
        if len(value) > MANY:
            yield f"{name}'s length", len(value)
            return
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _held(f"{name}.{key}", one, depth - 1)
    elif isinstance(value, FunctionType):
        for variable, cell in _cells(value):
            yield from _held(f"{name}.{variable}", cell.cell_contents, depth - 1)
    elif hasattr(value, "__dict__") and not callable(value):
        for key, one in vars(value).items():
            yield from _held(f"{name}.{key}", one, depth - 1)


# --------------------------------------------------------------------------- what all copies share


def _cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables that a function closed over: names and cells, of those that are bound."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            if name != "__class__" and cell.cell_contents is not function:
                yield name, cell


def _own_files(module: nn.Module) -> list[ModuleType]:
    """The files that the network's classes are written in, and what those import of the user's."""
    files = source_files(module)
    own = [m for m in list(sys.modules.values()) if getattr(m, "__file__", None) in files]
    for value in [value for file in own for value in vars(file).values()]:
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if (imported := sys.modules.get(str(name))) is not None and imported not in own:
            own.append(imported)
    return [
        m for m in own if not is_library(str(getattr(m, "__file__", None) or "/site-packages/"))
    ]


def _shared(module: nn.Module) -> Iterator[tuple[str, Any, str]]:
    """Name of each, the file or class that holds it, and its name there."""
    own = _own_files(module)
    names = {file.__name__ for file in own}
    classes = dict.fromkeys(c for part in module.modules() for c in type(part).__mro__)
    holders: list[ModuleType | type] = [*own, *(c for c in classes if c.__module__ in names)]
    for holder in holders:
        for key, value in list(vars(holder).items()):
            object_of_others = hasattr(value, "__dict__") and type(value).__module__ not in names
            known = isinstance(value, (Tensor, nn.Module, FunctionType)) or callable(value)
            if key.startswith("__") or isinstance(value, (type, ModuleType, property)):
                continue
            if known or not object_of_others:
                yield key if holder in own else f"{holder.__name__}.{key}", holder, key


class Shared:
    """What copies of a network share, as it is now; restore() makes it so again, so that a copy
    that never ran begins as the network did."""

    def __init__(self, module: nn.Module) -> None:
        self._kept: list[tuple[Any, str, Any, Any]] = []
        self._clears: list[Callable[[], None]] = []
        holders = [(holder, key) for _, holder, key in _shared(module)]
        functions = [getattr(holder, key) for holder, key in holders]
        functions += [v for part in module.modules() for v in vars(part).values()]
        for function in functions:
            if isinstance(function, FunctionType):
                holders += [(cell, "cell_contents") for _, cell in _cells(function)]
            if callable(clear := getattr(function, "cache_clear", None)):
                self._clears.append(clear)
        for holder, key in holders:
            value = getattr(holder, key)
            if callable(value) or isinstance(value, (ModuleType, nn.Module)):
                continue
            try:
                self._kept.append((holder, key, value, copy.deepcopy(value)))
            except Exception:  # what cannot be copied stays what it becomes
                continue

    def restore(self) -> None:
        for clear in self._clears:
            clear()
        for holder, key, value, before in self._kept:
            before = copy.deepcopy(before)
            if isinstance(value, (list, deque)):
                value.clear()
                value.extend(before)
            elif isinstance(value, (dict, set)):
                value.clear()
                value.update(before)
            else:
                value = before
            if getattr(holder, key) is not value:
                setattr(holder, key, value)
