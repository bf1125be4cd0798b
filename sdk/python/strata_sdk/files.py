# SPDX-License-Identifier: Apache-2.0
"""Networks that come as a file: torch.export programs (.pt2) and TorchScript archives (.pt), as
modules that the capture and the levels run. ONNX files are in onnx_file.py. Code that a pickle in a
file holds is never run."""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

from . import exported_checks, models, script_checks
from .archive_checks import Refused

OPERATOR_PACKAGES = ("torchvision", "torchao")  # register operators when they are imported
KINDS = {".pt2": "pt2", ".pt": "torchscript", ".onnx": "onnx"}


def is_file(model: str) -> bool:
    """Whether a case's `model` names a file by its ending."""
    return Path(model).suffix in KINDS


def build(model: str) -> models.Built:
    """The network in the file, its `kind` one of KINDS; its weights are the file's own. Raises
    ModelError."""
    path = Path(model)
    if not path.is_file():
        raise models.ModelError(
            "usage", f"the model's file {path} does not exist", "check the path"
        )
    sys.audit("strata.reads", path)  # PyTorch's and ONNX's own readers are not seen by Python
    if path.suffix == ".onnx":
        from .onnx_file import build as build_onnx

        return build_onnx(path)
    return _exported(path) if path.suffix == ".pt2" else _scripted(path)


# -------------------------------------------------------------------------- torch.export programs


class ExportedNetwork(models.View):
    """An exported program as a module, parameters under their own names. It has no mode: the one
    that it was exported in is in its graph."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner(*args, **kwargs)

    def train(self, mode: bool = True) -> ExportedNetwork:
        self.training = mode
        return self

    def __deepcopy__(self, memo: dict) -> ExportedNetwork:
        # a copied graph makes dictionaries of its own, which the view must share
        return ExportedNetwork(copy.deepcopy(self.inner, memo))


def _exported(path: Path) -> models.Built:
    program = _load_exported(path)
    graph = program.module()
    for node in list(graph.graph.nodes):
        # they check that types are those of the export: float64 is not
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            graph.graph.erase_node(node)
    graph.recompile()
    args, kwargs = program.example_inputs or ((), {})
    if args and kwargs:
        raise models.ModelError(
            "unsupported",
            f"{path.name} takes positional and keyword inputs together",
            "export it with one kind: torch.export.export(module, args) or kwargs=",
        )
    return models.Built(
        ExportedNetwork(graph),
        "pt2",
        path.name,
        f"the exported program {path.name}",
        example_inputs=tuple(args) or dict(kwargs) or None,
    )


def _load_exported(path: Path) -> torch.export.ExportedProgram:
    how = "torch.export.save(program, path) writes one"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            described = next(
                (name for name in names if "/models/" in name and name.endswith(".json")), None
            )
            written_by = (
                json.loads(archive.read(described)).get("torch_version", "") if described else ""
            )
    except (zipfile.BadZipFile, OSError, ValueError, AttributeError) as error:
        raise models.ModelError(
            "usage", f"{path} is no torch.export file, or not all of it is there: {error}", how
        ) from error
    if any("/data/aotinductor/" in name for name in names):
        raise models.ModelError(
            "usage",
            f"{path} is an AOTInductor package: machine code, from which no other level can be made",
            "give the file that torch.export.save wrote",
        )
    if described is None:
        raise models.ModelError(
            "usage",
            f"{path} is an archive that holds no exported program of this kind",
            f"{how}; one of before PyTorch 2.8 must be exported again",
        )
    _checked(path, exported_checks.check)
    try:
        with _no_pickled_code():
            return _without_odd_comments(_with_operators(lambda: torch.export.load(path)))
    except Exception as error:
        # torch raises what its readers raise: RuntimeError, KeyError, ValueError, AssertionError,
        # SerializeError
        if written_by and written_by.split("+")[0] != torch.__version__.split("+")[0]:
            raise models.ModelError(
                "usage",
                f"{path} was written by PyTorch {written_by}, and PyTorch {torch.__version__} cannot read it: {models.last_line(error)}",
                "export it again with this PyTorch, or name an interpreter that has the other one with --python",
            ) from error
        raise models.ModelError(
            "usage", f"{path} cannot be read as an exported program: {models.last_line(error)}", how
        ) from error


def _with_operators(load: Callable[[], Any]) -> Any:
    """What load() reads; where it fails, once more after importing the packages that register
    operators which a file may hold."""
    try:
        return load()
    except Exception:
        if not [name for name in OPERATOR_PACKAGES if _imported_now(name)]:
            raise
        return load()


def _imported_now(package: str) -> bool:
    if package in sys.modules:
        return False
    with contextlib.suppress(Exception):  # one that fits another torch raises anything
        importlib.import_module(package)
        return True
    return False


def _checked(path: Path, check: Callable[[Path], None]) -> None:
    """Runs a check of what the file could do when it is loaded; ModelError says what is refused."""
    try:
        check(path)
    except Refused as refusal:
        raise models.ModelError(
            "usage",
            f"{path.name} is refused, since it holds what a network does not need: {refusal}",
            "a file of your own: give its source as path/to/file.py:build; a file of somebody else's: do not load it",
        ) from refusal
    except RuntimeError as error:
        raise models.ModelError(
            "usage",
            f"{path} cannot be read by PyTorch {torch.__version__}: {models.last_line(error)}",
            "save it again with this PyTorch",
        ) from error


def _without_odd_comments(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Where a node comes from is a comment in what PyTorch generates, in C++ a raw string that `)"`
    would end."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if trace := node.meta.get("stack_trace"):
                node.meta["stack_trace"] = trace.replace(')"', ') "')
    return program


@contextlib.contextmanager
def _no_pickled_code():
    """While torch.export.load runs, torch.load takes tensors alone and nothing else is
    unpickled."""
    load = torch.load

    def careful(file, *args, **keywords):
        return load(file, *args, **(keywords | {"weights_only": True}))

    def refuse(*_args, **_keywords):
        raise pickle.UnpicklingError("the file holds pickled objects, which strata does not run")

    with mock.patch.object(torch, "load", careful), mock.patch.object(pickle, "loads", refuse):
        yield


# --------------------------------------------------------------------------- TorchScript archives


class ScriptedNetwork(nn.Module):
    """A TorchScript archive as a module; its tensors are named `script.<name>`."""

    cannot_export = "torch.export does not take TorchScript"

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.script = script

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.script(*args, **kwargs)

    def train(self, mode: bool = True) -> ScriptedNetwork:
        self.training = mode
        if hasattr(self.script, "training"):  # a frozen archive has no mode any more
            self.script.train(mode)
        return self


def _scripted(path: Path) -> models.Built:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError) as error:
        raise models.ModelError(
            "usage",
            f"{path} is no TorchScript archive, or not all of it is there: {error}",
            "torch.jit.save(script, path) writes one",
        ) from error
    if not any(name.endswith("/constants.pkl") for name in names):
        is_pickle = any(name.endswith("/data.pkl") for name in names)
        raise models.ModelError(
            "usage",
            f"{path} is {'a pickle of torch.save' if is_pickle else 'an archive'}, no TorchScript archive",
            "strata does not run pickles; weights are given with --weights, the network as path/to/file.py:build"
            if is_pickle
            else "torch.jit.save(script, path) writes one",
        )
    _checked(path, script_checks.check)
    try:
        script = _with_operators(lambda: torch.jit.load(str(path), map_location="cpu"))
    except Exception as error:
        # RuntimeError of several kinds, and what a damaged archive makes of its reader
        raise models.ModelError(
            "usage",
            f"{path} cannot be read by PyTorch {torch.__version__}: {models.last_line(error)}",
            "save it again with this PyTorch: torch.jit.save(script, path)",
        ) from error
    return models.Built(
        ScriptedNetwork(script).eval(),
        "torchscript",
        path.name,
        f"the TorchScript archive {path.name}",
    )
