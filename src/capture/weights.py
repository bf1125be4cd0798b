# SPDX-License-Identifier: Apache-2.0
"""Weight sets: the one that is timed (seeded or the user's) and the generic ones, in which no bias,
statistic or scale is 0 or 1.

Statistics and scales are set layer by layer from the activations of a few real inputs
("calibration"), so that activations stay of order 1 at any depth and outputs follow the inputs; a
proof on saturated or constant outputs would see nothing.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from capture.errors import Problem
from capture.faults import PRODUCTS
from capture.opened import sha256_of
from strata_sdk.archive_checks import Refused, open_archive
from strata_sdk.files import KINDS
from strata_sdk.models import bind, elements_once, load_weights

CALIBRATION_SAMPLES = 8
BEFORE_BATCH_NORM = 0.05  # deviation of what enters a BatchNorm in generic sets, roughly
NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm, nn.RMSNorm)


def state_of(module: nn.Module) -> dict[str, Tensor]:
    """A copy of every parameter and persistent buffer, contiguous and unshared."""
    return {
        k: v.detach().clone().contiguous()
        for k, v in module.state_dict().items()
        if isinstance(v, Tensor)
    }


# -------------------------------------------------------------------------------- the user's file

# PyTorch's, to run what a pickle holds
_ADVICE = re.compile(r"In PyTorch 2\.6|Re-running|This file can still be loaded")


def _program_in(path: Path) -> str:
    """What a zip file of PyTorch's holds beside tensors: a program; empty: it holds tensors alone,
    or is no zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {name.partition("/")[2] for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError):
        return ""
    if any(part.startswith("code/") for part in parts):
        return "a TorchScript program"
    return (
        "an exported program"
        if any(
            part.startswith("models/") or part == "serialized_exported_program.json"
            for part in parts
        )
        else ""
    )


def read_user_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a .safetensors, .pt or .pth file; never runs what a pickle holds. Raises
    Problem."""
    if not path.is_file():
        raise Problem("usage", f"the weights file {path} does not exist", "check the path")
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(str(path))
        except SafetensorError as error:
            raise Problem(
                "usage",
                f"the weights file {path} is not a readable safetensors file: {error}",
                "save or download it again",
            ) from error
    if path.suffix not in (".pt", ".pth"):
        raise Problem(
            "usage",
            f"the weights file {path} ends in '{path.suffix}'",
            "allowed: .safetensors, .pt, .pth",
        )
    _refuse_program(path)
    loaded = _unpickled(path)
    for wrapper in ("state_dict", "model_state_dict", "model"):
        if isinstance(loaded, Mapping) and isinstance(loaded.get(wrapper), Mapping):
            loaded = loaded[wrapper]
    if not isinstance(loaded, Mapping) or not all(isinstance(v, Tensor) for v in loaded.values()):
        raise Problem(
            "usage",
            f"the weights file {path} holds no name-to-tensor mapping",
            "save model.state_dict() with torch.save",
        )
    if loaded and all(k.startswith("module.") for k in loaded):
        loaded = {k.removeprefix("module."): v for k, v in loaded.items()}
    return dict(loaded)


def _refuse_program(path: Path) -> None:
    """Raises Problem where the archive is refused, or holds a network and no weights alone."""
    if zipfile.is_zipfile(path):
        try:
            open_archive(path)
        except Refused as refusal:
            raise Problem(
                "usage",
                f"the weights file {path} is refused: {refusal}",
                "save model.state_dict() again",
            ) from refusal
        except RuntimeError:
            pass  # damaged: torch.load says how
    if program := _program_in(path):
        raise Problem(
            "usage",
            f"the weights file {path} is {program}, not a file of weights",
            f"give it as the model itself ({path.name} in the place of MODEL), or save model.state_dict() with torch.save",
        )


def _unpickled(path: Path) -> object:
    """What torch.load reads of it without running anything. Raises Problem."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error)
        if "Unsupported global" in reason or "Unsupported class" in reason or "GLOBAL" in reason:
            raise Problem(
                "usage",
                f"the weights file {path} is a pickle that holds more than tensors; strata does not run such files",
                "save model.state_dict() instead of the model",
            ) from error
        raise Problem(
            "usage",
            f"the weights file {path} cannot be read: {' '.join(_ADVICE.split(reason)[0].split())[:300]}",
            "save model.state_dict() with torch.save",
        ) from error
    except Exception as error:
        # torch.load raises RuntimeError, EOFError, ValueError and more on damaged files
        raise Problem(
            "usage",
            f"the weights file {path} cannot be read: {type(error).__name__}: {' '.join(_ADVICE.split(str(error))[0].split())[:300]}",
            "save or download it again",
        ) from error


# ---------------------------------------------------------------------------------- the timed set


def prepare_timed(
    module: nn.Module, spec: dict, ring: list[dict[str, Tensor]], bundle: dict
) -> tuple[str, str]:
    """Puts the timed weights into the module; returns (a sentence for the report, a label for the
    case)."""
    kind = bundle["model"]["kind"]
    if spec["weights"] and kind in ("torchscript", "onnx"):
        raise Problem(
            "usage",
            f"--weights: the weights of {Path(spec['model']).name} are in it",
            "leave --weights out",
        )
    if spec["weights"]:
        path = Path(spec["weights"])
        load_weights(module, read_user_weights(path), str(path))
        digest = sha256_of(path)[0][:12]
        return f"the user's file {path.name} (SHA-256 {digest})", f"{path.name}:{digest}"
    # what a person saved is what is measured and exported, zeros and ones included
    if kind in KINDS.values():
        path, data = Path(spec["model"]), [Path(file) for file in bundle["model"].get("data", [])]
        digest = sha256_of(path)[0]
        if data:  # ONNX: weights that lie in files beside it
            digest = hashlib.sha256(
                "".join([digest, *(sha256_of(file)[0] for file in data)]).encode()
            ).hexdigest()
        names = " and ".join([path.name, *(file.name for file in data)])
        return f"the file's own ({names}, SHA-256 {digest[:12]})", f"{path.name}:{digest[:12]}"
    # as much a person's own as a file: what is measured and exported computes what build() gives
    if kind == "user":
        digest = bundle["network"]["sha256"][:12]
        return (
            f"those that build() gave after torch.manual_seed({spec['seed']}), SHA-256 {digest}",
            f"build:{digest}",
        )
    notes = [f"seeded {spec['seed']}"]
    generator = torch.Generator().manual_seed(spec["seed"])
    redrawn = _redraw_constant_products(module, generator)
    if redrawn:
        notes.append(
            f"{redrawn} constant weight matrices drawn at random, since outputs would not follow the inputs"
        )
    norms = [
        m for m in module.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None
    ]
    if norms and all(
        bool((m.running_mean == 0).all()) and bool((m.running_var == 1).all()) for m in norms
    ):
        with _hooks([m.register_forward_pre_hook(_set_statistics) for m in norms]):
            _run_calibration(module, ring, bundle)
        notes.append("calibrated BatchNorm statistics")
    return ", ".join(notes), f"seed{spec['seed']}"


def _redraw_constant_products(module: nn.Module, generator: torch.Generator) -> int:
    """Linear and convolution weights that are one constant (zero-initialised heads) get a seeded
    draw; returns how many."""
    count = 0
    for layer in module.modules():
        if isinstance(layer, PRODUCTS) and layer.weight.numel() > 1 and _is_constant(layer.weight):
            _draw_product(layer.weight, generator)
            count += 1
    return count


# ------------------------------------------------------------------------------- the generic sets


def make_generic(
    module: nn.Module,
    timed: Mapping[str, Tensor],
    seed: int,
    ring: list[dict[str, Tensor]],
    bundle: dict,
) -> None:
    """Changes the module's weights into a generic set: every floating-point parameter differs from
    the timed set, none is left at 0 or 1."""
    load_weights(module, timed, "timed")
    generator = torch.Generator().manual_seed(seed)
    draw_parameters(module, generator)
    shared = _shared_weights(module)
    hooks = []
    producers: dict[int, tuple[Tensor, nn.Module]] = {}
    for layer in module.modules():
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None:
            hooks.append(layer.register_forward_pre_hook(_shifted_statistics(generator, producers)))
        elif isinstance(layer, PRODUCTS) and id(layer.weight) not in shared:
            hooks.append(layer.register_forward_hook(_scaled_product(generator, producers)))
    with _hooks(hooks):
        _run_calibration(module, ring, bundle)


def draw_parameters(module: nn.Module, generator: torch.Generator) -> None:
    """Draws every floating-point parameter anew, away from 0 and 1; running statistics stay."""
    norm_parameters = {
        id(p) for m in module.modules() if isinstance(m, NORMS) for p in m.parameters(recurse=False)
    }
    product_weights = {id(m.weight) for m in module.modules() if isinstance(m, PRODUCTS)}
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.is_floating_point():
                _draw(
                    name.rpartition(".")[2],
                    parameter,
                    id(parameter) in norm_parameters,
                    id(parameter) in product_weights,
                    generator,
                )


def _draw(
    name: str, parameter: Tensor, of_norm: bool, of_product: bool, generator: torch.Generator
) -> None:
    drawn = away(parameter.shape, 0.1, 0.5, generator).to(parameter)
    if "bias" in name and parameter.dim() == 1:
        parameter.copy_(drawn)
    elif of_norm:
        parameter.copy_(1 + drawn)
    elif _is_constant(parameter):
        if of_product:
            _draw_product(parameter, generator)
        else:
            parameter.add_(drawn)
    else:
        finite = parameter[parameter.isfinite()].double()
        spread = (finite.std().item() if finite.numel() > 1 else 0.0) or 1.0
        parameter.nan_to_num_(0.0, 0.0, 0.0)  # one NaN would leave nothing of a proof to see
        noise = torch.randn(parameter.shape, generator=generator).to(parameter) * spread
        parameter.add_(noise).mul_(0.5**0.5)


def _draw_product(weight: Tensor, generator: torch.Generator) -> None:
    fan_in = max(1, weight[0].numel())
    with torch.no_grad():
        weight.copy_(torch.randn(weight.shape, generator=generator) / fan_in**0.5)


def away(shape: Sequence[int], low: float, high: float, generator: torch.Generator) -> Tensor:
    """Numbers in [-high, -low] and [low, high]."""
    sign = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return sign * (low + (high - low) * torch.rand(shape, generator=generator))


def _is_constant(tensor: Tensor) -> bool:
    return tensor.numel() > 0 and bool((tensor == tensor.reshape(-1)[0]).all())


def _shared_weights(module: nn.Module) -> set[int]:
    """Weights that more than one module owns (a tied output layer): scaling one would change the
    other behind its back."""
    owners: dict[int, int] = {}
    for layer in module.modules():
        for parameter in layer.parameters(recurse=False):
            owners[id(parameter)] = owners.get(id(parameter), 0) + 1
    return {k for k, n in owners.items() if n > 1}


# ------------------------------------------------------------------------------------ calibration


class _hooks:
    """Removes hooks at the end of a with block."""

    def __init__(self, handles: list) -> None:
        self.handles = handles

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error: object) -> None:
        for handle in self.handles:
            handle.remove()


def _run_calibration(module: nn.Module, ring: list[dict[str, Tensor]], bundle: dict) -> None:
    """One eval-mode pass over a few samples of all ring entries; over entry 0 alone where the model
    refuses another batch."""
    batch = bundle["inputs"][0]["shape"][0] if bundle["inputs"][0]["shape"] else None
    mixed = None
    if batch is not None:
        rows = max(1, min(batch, CALIBRATION_SAMPLES // len(ring)))
        mixed = {
            i["name"]: torch.cat([e[i["name"]][:rows] for e in ring])
            if i["shape"] and i["shape"][0] == batch
            else ring[0][i["name"]]
            for i in bundle["inputs"]
        }
    for entry in (mixed, ring[0]):
        if entry is None:
            continue
        args, kwargs = bind(entry, bundle)
        try:
            with torch.no_grad():
                module(*args, **kwargs)
            return
        except Exception:
            if entry is not mixed:
                raise


def _channel_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.transpose(0, 1).reshape(x.shape[1], -1).double()
    known = x.isfinite()
    if not bool(known.all()):  # the rest of the channel says what it is like
        x = torch.where(known, x, (x.where(known, 0.0).sum(1) / known.sum(1).clamp(min=1))[:, None])
    mean, var = x.mean(1), x.var(1, unbiased=False)
    # A channel with one value, or a dead one, has no variance: it gets a share of the layer's, so
    # that it is not blown up.
    floor = max(0.05 * var.mean().item(), 0.05 * x.var(unbiased=False).item(), 1e-5)
    return mean, var.clamp(min=floor)


def _set_statistics(norm: _BatchNorm, args: tuple) -> None:
    mean, var = _channel_moments(args[0])
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(var)


def _shifted_statistics(
    generator: torch.Generator, producers: dict[int, tuple[Tensor, nn.Module]]
) -> Callable[[Any, tuple], tuple | None]:
    """Sets the statistics at a BatchNorm's first call; shrinks the layer right before it, since
    only beside a small variance a wrong epsilon shows."""
    done: set[nn.Module] = set()

    def hook(norm: Any, args: tuple) -> tuple | None:
        if norm in done:
            return None
        done.add(norm)
        x = args[0]
        layer = producers.get(id(x), (None, None))[1]
        if layer is not None:
            layer.weight.mul_(BEFORE_BATCH_NORM)
            if layer.bias is not None:
                layer.bias.mul_(BEFORE_BATCH_NORM)
            x = x * BEFORE_BATCH_NORM
        mean, var = _channel_moments(x)
        norm.running_mean.copy_(mean + away(mean.shape, 0.1, 0.5, generator) * var.sqrt())
        norm.running_var.copy_(var)
        return (x, *args[1:])

    return hook


def _scaled_product(
    generator: torch.Generator, producers: dict[int, tuple[Tensor, nn.Module]]
) -> Callable[[Any, tuple, Any], Tensor | None]:
    """Scales a linear or convolution layer so that its result has a deviation drawn away from 1,
    and centres its channels before the bias."""
    done: set[nn.Module] = set()

    def hook(layer: Any, _args: tuple, output: Any) -> Tensor | None:
        if layer in done or not isinstance(output, Tensor):
            return None
        done.add(layer)
        channel = (
            output.dim() - 1
            if isinstance(layer, nn.Linear)
            else output.dim() - (layer.weight.dim() - 1)
        )
        shape = [1] * output.dim()
        shape[channel] = -1
        bare = output if layer.bias is None else output - layer.bias.view(shape)
        means = bare.transpose(0, channel).reshape(bare.shape[channel], -1).double().mean(1)
        deviation = (bare.double() - means.view(shape)).std().item()
        whole = bare.double().std().item()
        if not deviation > 1e-3 * whole or not whole < float("inf") or whole < 1e-12:
            return None  # does not depend on the input here (one sample, a token): left as drawn
        target = float(torch.exp(away((), 0.3, 0.7, generator)))
        layer.weight.mul_(target / deviation)
        scaled = bare * (target / deviation)
        if layer.bias is not None:
            layer.bias.copy_(
                target * away(means.shape, 0.1, 0.5, generator) - means * (target / deviation)
            )
            scaled = scaled + layer.bias.view(shape)
        producers[id(scaled)] = (scaled, layer)  # kept alive, so that the id stays its own
        return scaled

    return hook


def bytes_once(module: nn.Module) -> int:
    """Bytes of parameters and persistent buffers; tied ones count once."""
    by_size: dict[int, list[Tensor]] = {}
    for value in module.state_dict().values():
        if isinstance(value, Tensor):
            by_size.setdefault(value.element_size(), []).append(value)
    return sum(size * elements_once(values) for size, values in by_size.items())
