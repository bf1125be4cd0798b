# SPDX-License-Identifier: Apache-2.0
"""Networks that come as a function of a Python file, of a user's own or of models/."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from . import sources
from .models import TARGET, Built, ModelError, last_line


def build(model: str, seed: int) -> Built:
    """The network that FILE.py:FUNCTION makes, after seeding torch, in eval mode. Raises
    ModelError."""
    path, function_name = place_of(model)
    function = function_in(path, function_name)
    torch.manual_seed(seed)
    try:
        result = function()
    except BaseException as error:
        raise ModelError(
            "usage",
            f"{path}:{function_name}() raised {last_line(error, path)}",
            "build() takes no arguments and returns the module",
        ) from error
    is_several = isinstance(result, tuple) and len(result) in (2, 3)
    module, example, targets = (*result, None, None)[:3] if is_several else (result, None, None)
    if targets is not None and not isinstance(targets, dict):
        targets = {TARGET: targets}
    _check_module(module, result, f"{path}:{function_name}()")
    _unmap(module)
    _keep_hooks(module)
    notes = [
        f"{function_name}() left it in train mode; it runs in eval mode" if module.training else "",
        _in_no_list(module),
    ]
    if half := [p for p in module.parameters() if p.dtype in (torch.float16, torch.bfloat16)]:
        notes.append(
            f"{len(half)} of its {len([*module.parameters()])} parameters are {str(half[0].dtype).removeprefix('torch.')}, which fp32 leaves as they are"
        )
    return Built(
        module.eval(),
        "user",
        f"{path.stem}:{function_name}",
        f"{function_name}() of {path.name}",
        example_inputs=example,
        targets=targets or {},
        note="; ".join(filter(None, notes)),
    )


def place_of(model: str, kind: str = "the model") -> tuple[Path, str]:
    """File and function that a name gives; the file is there. `kind`: of what it is the name."""
    path_text, colon, function_name = model.rpartition(":")
    if not colon:
        path_text, function_name = model, ""
    path = Path(path_text)
    if not (path_text if colon else model).endswith(".py"):
        raise ModelError(
            "usage",
            f"{model} is no kind of network that strata knows by its name",
            "give path/to/file.py:build, or a file that ends in .pt2 (torch.export), .pt (TorchScript) or .onnx",
        )
    if not function_name:
        raise ModelError(
            "usage",
            f"'{model}' names no function",
            f"write {model.rstrip(':')}:build, where build() returns the module",
        )
    if not path.is_file():
        near = (
            difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.py")], n=1)
            if path.parent.is_dir()
            else []
        )
        raise ModelError(
            "usage",
            f"{kind}'s file {path} does not exist",
            f"did you mean {path.parent / near[0]}?" if near else "check the path",
        )
    return path, function_name


def function_in(path: Path, name: str) -> Callable:
    """What the file, which is run, has under the name."""
    try:
        file_module = load_file(path)
    except BaseException as error:  # a user's file may call exit()
        raise ModelError(
            "usage",
            f"{path} cannot be imported: {last_line(error, path)}",
            "fix the file, or run it with python to see the whole trace",
        ) from error
    function = getattr(file_module, name, None)
    if callable(function):
        return function
    own = [
        n
        for n, v in vars(file_module).items()
        if callable(v) and getattr(v, "__module__", None) == file_module.__name__
    ]
    near = difflib.get_close_matches(name, own, n=1)
    what = (
        f"{path} has no function '{name}'"
        if function is None
        else f"'{name}' in {path} is of type {type(function).__name__}, not a function"
    )
    raise ModelError(
        "usage",
        what,
        f"did you mean {path}:{near[0]}?"
        if near
        else f"it has: {', '.join(own) or 'no functions'}",
    )


def _check_module(module: object, result: object, call: str) -> None:
    """`call`: what returned `result`, the network or the network with an example."""
    if isinstance(module, type) and issubclass(module, nn.Module):
        raise ModelError(
            "usage",
            f"{call} returned the class {module.__name__}, not a module made from it",
            f"return {module.__name__}(...)",
        )
    if not isinstance(module, nn.Module):
        raise ModelError(
            "usage",
            f"{call} returned an object of type {type(result).__name__}",
            "it must return a torch.nn.Module, (module, example_inputs) or (module, example_inputs, targets)",
        )
    lazy = [name for name, part in module.named_modules() if _is_lazy(part)]
    if lazy:
        raise ModelError(
            "usage",
            f"{len(lazy)} modules of {call} have no shape yet (the first: {lazy[0] or 'itself'})",
            "call the network once in build(), on an example, before it is returned",
        )


def _keep_hooks(module: nn.Module) -> None:
    """PyTorch numbers hooks from 0 in each process, and a module that was unpickled brings numbers
    of another: the next hook that anybody registers would replace the user's."""
    known = [
        number
        for part in module.modules()
        for name, hooks in vars(part).items()
        if name.endswith("_hooks") and isinstance(hooks, dict)
        for number in hooks
        if isinstance(number, int)
    ]
    handle = torch.utils.hooks.RemovableHandle
    handle.next_id = max([handle.next_id, *(number + 1 for number in known)])


def _in_no_list(module: nn.Module) -> str:
    """Names modules that PyTorch does not see, since an attribute holds them in a plain list, tuple
    or dict; empty: there are none."""
    known = set(module.modules())
    words = []
    for part in known:
        for name, value in vars(part).items():
            held = value.values() if isinstance(value, dict) else value
            if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            if count := sum(isinstance(one, nn.Module) and one not in known for one in held):
                several = "modules" if count > 1 else "module"
                are = "are" if count > 1 else "is"
                words.append(
                    f"{count} {several} in {type(part).__name__}.{name} {are} in no ModuleList"
                )
    return (
        f"{', '.join(sorted(words))}: PyTorch neither counts their parameters nor sets them to eval mode"
        if words
        else ""
    )


def _is_lazy(module: nn.Module) -> bool:
    own = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return any(isinstance(t, nn.parameter.UninitializedTensorMixin) for t in own)


def _unmap(module: nn.Module) -> None:
    """Copies tensors that lie in a file mapped for writing (np.memmap's default, torch.from_file
    with shared=True) into memory: weight sets are written over parameters in place, and would be
    written over the user's file. Tensors that share a storage go on sharing it."""
    shared = []
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            place, access = line.split(maxsplit=2)[:2]
            if access == "rw-s":
                shared.append([int(end, 16) for end in place.split("-")])
    copies: dict[int, torch.UntypedStorage] = {}
    for tensor in (*module.parameters(), *module.buffers()) if shared else ():
        if (
            tensor.layout != torch.strided
            or tensor.device.type != "cpu"
            or not tensor.numel()
            or isinstance(tensor, nn.parameter.UninitializedTensorMixin)
        ):
            continue
        storage = tensor.untyped_storage()
        begin = storage.data_ptr()
        if any(low <= begin < high for low, high in shared):
            copy = copies.setdefault(begin, storage.clone())
            tensor.data = torch.empty(0, dtype=tensor.dtype).set_(
                copy, tensor.storage_offset(), tensor.shape, tensor.stride()
            )


def load_file(path: Path) -> types.ModuleType:
    """Imports a file under a name of its own; its folder joins sys.path, as `python file.py` would
    do it."""
    sources.compile_from_source()
    path = path.resolve()
    folder = str(path.parent)
    name = f"strata_model_{path.parent.name}_{path.stem}".replace("-", "_").replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    file_module = importlib.util.module_from_spec(spec)
    sys.modules[name] = file_module  # dataclasses and pickles look their module up
    if folder not in sys.path:
        sys.path.append(folder)
    spec.loader.exec_module(file_module)
    return file_module
