# SPDX-License-Identifier: Apache-2.0
"""The one way from a case's `model` to a torch module with a bundle's weights, and from the
module's results to named tensors.

Every Python level, every `prepare` script and the capture use these functions, so that all run the
same network. Needs torch and safetensors; torchvision only for its models.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.util
import json
import os
import sys
import traceback
import types
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .zoo import install_hint

ROOT = Path(__file__).resolve().parents[3]
TARGET = "target"  # what a named loss is told by


class ModelError(Exception):
    """A network that cannot be had. `code` is one of the worker protocol's failure codes."""

    def __init__(self, code: str, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.code, self.what, self.hint = code, what, hint


@dataclasses.dataclass
class Built:
    """A freshly built network. `example_inputs` and `targets` (of the loss, by name) are what a
    user's build() returned beside the module, `kind` shipped, torchvision, package or user (or a
    file's, files.py), `loss` and `optimiser` what it is trained with. `note`: what was done to it
    beside building, `data`: files beside a model's file that hold weights."""

    module: nn.Module
    kind: str
    name: str
    source: str
    example_inputs: Any = None
    default_inputs: list[dict] | None = None
    loss: str = "cross_entropy"
    optimiser: dict | None = None  # None: that of docs/bundle.md
    note: str = ""
    data: list[str] = dataclasses.field(default_factory=list)
    targets: dict[str, Any] = dataclasses.field(default_factory=dict)


# --------------------------------------------------------------------------- finding and building


def shipped_models(root: Path = ROOT) -> dict[str, tuple[Path, dict]]:
    """Name -> (folder, its model.json) for every folder of models/."""
    found: dict[str, tuple[Path, dict]] = {}
    for path in sorted((root / "models").glob("*/model.json")):
        about = json.loads(path.read_text(encoding="utf-8"))
        for name in about.get("names", [path.parent.name]):
            found[name] = (path.parent, about)
    return found


def torchvision_models() -> types.ModuleType:
    """torchvision.models. Raises ModelError: there is none, or it does not fit the PyTorch."""
    try:
        from torchvision import models as zoo
    except Exception as error:
        # one that was built for another torch fails with RuntimeError, not ImportError
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torchvision"
        what = f"{sys.executable} has no torchvision"
        if not missing:
            what = f"torchvision cannot be imported beside PyTorch {torch.__version__} in {sys.executable}: {last_line(error)}"
        raise ModelError("unavailable", what, install_hint()) from error
    return zoo


def torchvision_names() -> list[str]:
    """The names of torchvision's classification models; empty when it cannot be imported."""
    try:
        zoo = torchvision_models()
    except ModelError:
        return []
    return zoo.list_models(module=zoo)


def build_model(model: str, seed: int = 0) -> Built:
    """Builds `model` (a shipped or torchvision name, PACKAGE:NAME, FILE.py:FUNCTION, or a file of
    files.py) after seeding torch. Weights are as the model's own code makes them."""
    from . import files, packages, python_models

    if files.is_file(model):
        return files.build(model)
    if packages.is_reference(model):
        return packages.build(model, seed)
    if ".py:" in model or model.endswith(".py") or os.sep in model:
        return python_models.build(model, seed)
    shipped = shipped_models()
    if model in shipped:
        folder, about = shipped[model]
        try:
            function = python_models.load_file(folder / "model.py").build
        except Exception:
            torchvision_models()  # says so where that is what the file lacks
            raise
        torch.manual_seed(seed)
        module = function(model) if "names" in about else function()
        return Built(
            module.eval(),
            "shipped",
            model,
            about["source"],
            default_inputs=about["inputs"],
            loss=about.get("loss", "cross_entropy"),
            optimiser=about.get("optimiser"),
        )
    zoo_names = torchvision_names()
    if model in zoo_names:
        zoo = torchvision_models()
        torch.manual_seed(seed)
        size = 299 if model == "inception_v3" else 224
        options = {"init_weights": True} if model in ("inception_v3", "googlenet") else {}
        return Built(
            zoo.get_model(model, weights=None, **options).eval(),
            "torchvision",
            model,
            f"torchvision.models.{model}",
            default_inputs=[{"name": "", "dtype": "float32", "shape": [1, 3, size, size]}],
        )
    if not zoo_names and importlib.util.find_spec("torchvision"):
        torchvision_models()
    near = difflib.get_close_matches(model, [*shipped, *zoo_names], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    hint += "`strata list models` shows all; a model of your own is given as path/to/file.py:build"
    if not zoo_names:
        hint += "; torchvision's models need torchvision, which this environment cannot import"
    raise ModelError("usage", f"no model is called '{model}'", hint)


def last_line(error: BaseException, *inside: str | Path) -> str:
    """`Type: message (file:line)`; the line is the deepest one in one of the files `inside` if any,
    else the deepest of all."""
    frames = traceback.extract_tb(error.__traceback__)
    files = {str(Path(f).resolve()) for f in inside}
    own = [f for f in frames if str(Path(f.filename).resolve()) in files]
    frame = next(reversed(own or frames), None)
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}"
    else:
        where = f"{frame.filename}:{frame.lineno}" if frame else "?"
    message = " ".join(str(error).split())
    return (
        f"{type(error).__name__}: {message[:400]} ({where})"
        if message
        else f"{type(error).__name__} ({where})"
    )


def source_files(module: nn.Module) -> set[str]:
    """The files that define the module and its parts, torch's own left out."""
    parts = [*module.modules()]
    while isinstance(module, View):
        module = module.inner
        parts.append(module)
    files = {getattr(sys.modules.get(type(m).__module__), "__file__", None) for m in parts}
    return {f for f in files if f and not f.startswith(f"{Path(torch.__file__).parent}/")}


# ---------------------------------------------------------------------------------------- weights


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Loads every parameter and persistent buffer by name; names and shapes must fit exactly.
    Raises ModelError."""
    own = {k: v for k, v in module.state_dict().items() if isinstance(v, Tensor)}
    missing = [k for k in own if k not in tensors]
    extra = [k for k in tensors if k not in own]
    if missing or extra:
        near = (
            difflib.get_close_matches(missing[0], extra, n=1, cutoff=0.6)
            if missing and extra
            else []
        )
        parts = (
            [f"lacks {len(missing)} tensor{'s' if len(missing) > 1 else ''} (first: {missing[0]})"]
            if missing
            else []
        ) + ([f"has {len(extra)} that the model has not (first: {extra[0]})"] if extra else [])
        raise ModelError(
            "usage",
            f"the weights {source} do not fit the model: the file " + " and ".join(parts),
            f"'{near[0]}' of the file looks like the model's '{missing[0]}'; rename the tensors"
            if near
            else "save model.state_dict() of the same model",
        )
    for name, value in own.items():
        if value.shape != tensors[name].shape:
            raise ModelError(
                "usage",
                f"the weights {source} do not fit the model: {name} has shape {list(tensors[name].shape)}, the model needs {list(value.shape)}",
                "save model.state_dict() of the same model",
            )
    # PyTorch's own kind of dictionary has versions of modules, without which some refuse
    # (torchvision's MNASNet)
    state: Any = OrderedDict(tensors)
    state._metadata = getattr(module.state_dict(), "_metadata", None)
    module.load_state_dict(state, strict=False)


def count_parameters(module: nn.Module) -> int:
    """Elements of the module's parameters; what has several names (tied weights) counts once."""
    return elements_once(module.parameters())


def elements_once(tensors: Iterable[Tensor]) -> int:
    """Elements of the tensors; of those that are one and the same memory only once."""
    return sum({(t.data_ptr(), tuple(t.shape), t.stride()): t.numel() for t in tensors}.values())


# ----------------------------------------------------------------------------- inputs and outputs


def flatten_outputs(obj: Any) -> dict[str, Tensor]:
    """Names a result's tensors, in order: a tensor `output`; a tuple `output0`, ...; mappings,
    dataclasses and named tuples by their keys, nested ones joined by `.`. What is not a tensor
    (None, numbers) is left out."""
    if isinstance(obj, Tensor):
        return {"output": obj}
    flat: dict[str, Tensor] = {}
    fields = _fields(obj)
    if fields is not None:
        for key, value in fields:
            _flatten(str(key), value, flat)
    elif isinstance(obj, (tuple, list)):
        for i, value in enumerate(obj):
            _flatten(f"output{i}", value, flat)
    return flat


def _fields(obj: Any) -> list[tuple[str, Any]] | None:
    if isinstance(obj, Mapping):
        return list(obj.items())
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return [(f.name, getattr(obj, f.name)) for f in dataclasses.fields(obj)]
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return list(zip(obj._fields, obj))
    return None


def _flatten(prefix: str, value: Any, flat: dict[str, Tensor]) -> None:
    if isinstance(value, Tensor):
        flat[prefix] = value
        return
    fields = _fields(value)
    if fields is None and isinstance(value, (tuple, list)):
        fields = [(str(i), v) for i, v in enumerate(value)]
    for key, inner in fields or []:
        _flatten(f"{prefix}.{key}", inner, flat)


def bind(
    ring_entry: Mapping[str, Tensor], bundle: dict
) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """The positional and keyword arguments of one ring entry, in the bundle's order: copies, since
    a network may write into its inputs."""
    positional = tuple(ring_entry[i["name"]].clone() for i in bundle["inputs"] if not i["keyword"])
    return positional, {
        i["name"]: ring_entry[i["name"]].clone() for i in bundle["inputs"] if i["keyword"]
    }


def call(module: nn.Module, ring_entry: Mapping[str, Tensor], bundle: dict) -> dict[str, Tensor]:
    """Runs the module (or its compiled form) on a copy of one ring entry; name -> tensor in the
    order of bundle["outputs"]. Sets no grad mode."""
    args, kwargs = bind(ring_entry, bundle)
    return flatten_outputs(module(*args, **kwargs))


# ------------------------------------------------------------------------------ views of a module


class View(nn.Module):
    """A module that runs another one and shares its parameters, buffers and children under their
    own names (a plain wrapper would prefix them)."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.__dict__["inner"] = inner  # not registered: no prefix, and no parameter counted twice
        self._parameters, self._buffers, self._modules = (
            inner._parameters,
            inner._buffers,
            inner._modules,
        )
        self._non_persistent_buffers_set = inner._non_persistent_buffers_set
        self.training = inner.training

    def train(self, mode: bool = True) -> View:
        self.inner.train(mode)
        self.training = mode
        return self


def _record(
    records: list[tuple[str, Tensor]], path: str, _module: nn.Module, _args: tuple, output: Any
) -> None:
    """A forward hook; a partial of it, unlike a closure, is copied together with its TapModule."""
    if isinstance(output, Tensor):
        records.append((f"tap:{path}", output.clone()))
    elif isinstance(output, (tuple, list)):
        for i, part in enumerate(output):
            if isinstance(part, Tensor):
                records.append((f"tap:{path}.{i}", part.clone()))


class TapModule(View):
    """Returns the module's named outputs, followed by the output of every leaf module in order of
    execution (`tap:<path>`, `tap:<path>#2`, ...). Taps are copies, since an in-place ReLU would
    overwrite them. Works under torch.compile, torch.export and torch.jit.trace."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self._records: list[tuple[str, Tensor]] = []
        paths: dict[nn.Module, str] = {}
        for path, module in inner.named_modules():
            # its projection is never called as a module
            is_leaf = not any(True for _ in module.children()) or isinstance(
                module, nn.MultiheadAttention
            )
            if is_leaf and module is not inner and module not in paths:
                paths[module] = path
                module.register_forward_hook(functools.partial(_record, self._records, path))

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        self._records.clear()
        outputs = dict(flatten_outputs(self.inner(*args, **kwargs)))
        seen: dict[str, int] = {}
        for name, value in self._records:
            seen[name] = seen.get(name, 0) + 1
            outputs[name if seen[name] == 1 else f"{name}#{seen[name]}"] = value
        self._records.clear()
        return outputs


class _Flat(View):
    def __init__(self, inner: nn.Module, keywords: list[str | None]) -> None:
        super().__init__(inner)
        self._keywords = keywords

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        args = [t for t, k in zip(tensors, self._keywords) if k is None]
        kwargs = {k: t for t, k in zip(tensors, self._keywords) if k is not None}
        return tuple(flatten_outputs(self.inner(*args, **kwargs)).values())


def graph_module(module: nn.Module, bundle: dict) -> nn.Module:
    """A view of `module` that takes the bundle's inputs as positional tensors and returns a flat
    tuple in the order of bundle["outputs"]; parameters keep their names. For torch.jit.trace,
    torch.export, ONNX, AOTInductor and OpenVINO."""
    return _Flat(module, [i["name"] if i["keyword"] else None for i in bundle["inputs"]]).eval()


# ---------------------------------------------------------------------------------- from a bundle


def read_bundle(bundle_dir: str | Path) -> dict:
    """bundle.json of a bundle's folder."""
    return json.loads((Path(bundle_dir) / "bundle.json").read_text(encoding="utf-8"))


def example_inputs(bundle_dir: str | Path, index: int = 0) -> dict[str, Tensor]:
    """One entry of the bundle's ring: input name -> tensor, in the bundle's order."""
    from safetensors import safe_open

    with safe_open(str(Path(bundle_dir) / "inputs.safetensors"), framework="pt") as file:
        return {
            i["name"]: file.get_tensor(f"{index}/{i['name']}")
            for i in read_bundle(bundle_dir)["inputs"]
        }


def build_case(bundle: dict) -> nn.Module:
    """The network of a bundle.json's case as it is built, in eval mode, with its loss where that is
    its output. Raises ModelError."""
    from .losses import is_output, with_loss

    case = bundle["case"]
    module = build_model(case["model"], int(case.get("seed") or 0)).module.eval()
    return with_loss(module, case["loss"]).eval() if is_output(bundle) else module


def build_module(
    bundle_dir: str | Path,
    weights: str = "timed",
    deep: bool | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[nn.Module, list[str]]:
    """The bundle's network, with its loss where that is its output, in eval mode with weight set
    `weights`, and its input names in order.
    `deep` (default: as the case says) wraps it in a TapModule,
    `dtype` converts its floating-point tensors. Raises ModelError."""
    from safetensors.torch import load_file

    bundle = read_bundle(bundle_dir)
    case = bundle["case"]
    module = build_case(bundle)
    path = Path(bundle_dir) / "weights" / f"{weights}.safetensors"
    if not path.is_file():
        raise ModelError(
            "failed",
            f"the bundle has no weight set '{weights}' ({path})",
            "remove the bundle's folder; it is made again",
        )
    load_weights(module, load_file(str(path)), str(path))
    module.eval().requires_grad_(False)
    if dtype is not None:
        module.to(dtype)
    if case.get("deep") if deep is None else deep:
        module = TapModule(module).eval()
    return module, [i["name"] for i in bundle["inputs"]]
