# SPDX-License-Identifier: Apache-2.0
"""The weights that trainings begin with, `python -m capture.initial --model M --seeds 0,1 --scheme
torch --out DIR`: DIR/<seed>.safetensors holds `weight:<name>` of every parameter and floating-point
buffer and `count:<name>` of every buffer that is one int64, as `load_state` takes it
(docs/protocol.md). `--file F` takes them from a safetensors file under PyTorch's names, the same
for every seed. Without seeds schemes are checked alone, as `--init` takes several, and PyTorch is
not loaded. The last line of standard output is {"ok": true} or what is wrong."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

ALLOWED = "allowed: torch, kaiming[:fan_in|fan_out[,NONLINEARITY[,A]]], xavier[:NONLINEARITY], normal:DEVIATION"
NONLINEARITIES = ("relu", "leaky_relu", "tanh", "sigmoid", "selu", "linear")


class WrongScheme(ValueError):
    """A scheme that no initialisation has: what is wrong, and what is allowed."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.code, self.what, self.hint = "usage", what, hint


def parse(scheme: str) -> tuple[str, dict[str, Any]]:
    """Its name and what it sets, without PyTorch. kaiming[:MODE[,NONLINEARITY[,A]]]: He et al.
    2015, normal, standard deviation gain / sqrt(fan), with mode fan_in (default) or fan_out;
    xavier[:NONLINEARITY]: Glorot and Bengio 2010, normal; normal:DEVIATION: normal with this
    standard deviation, whatever the layer; torch: what the constructors made. Raises
    WrongScheme."""
    name, _, rest = scheme.partition(":")
    words = [word for word in rest.split(",") if word]
    settings: dict[str, Any] = {}
    if name == "kaiming":
        settings["mode"] = words.pop(0) if words else "fan_in"
        if settings["mode"] not in ("fan_in", "fan_out"):
            raise WrongScheme(
                f"--init {scheme}: the mode is {settings['mode']!r}", "allowed: fan_in, fan_out"
            )
        settings["nonlinearity"] = _nonlinearity(scheme, words, "relu")
        if words:
            settings["a"] = _number(scheme, words.pop(0), "the slope of a leaky ReLU, as 0.01")
    elif name == "xavier":
        settings["nonlinearity"] = _nonlinearity(scheme, words, "linear")
    elif name == "normal" and words:
        deviation = _number(scheme, words.pop(0), "a standard deviation above 0, as 0.01")
        if not 0 < deviation < math.inf:
            raise WrongScheme(
                f"--init {scheme}: {deviation:g} is no standard deviation",
                "a number above 0, as 0.01",
            )
        settings["std"] = deviation
    elif name != "torch" or words:
        raise WrongScheme(f"--init {scheme}: no such scheme", ALLOWED)
    if words:
        raise WrongScheme(f"--init {scheme}: {', '.join(words)} is too much", ALLOWED)
    return name, settings


def initialise(module: nn.Module, scheme: str) -> None:
    """Draws the weights of every convolution and linear layer anew, with PyTorch's generator as it
    stands; their biases become 0. `torch` leaves what the constructors made. Raises
    WrongScheme."""
    from torch import nn

    name, settings = parse(scheme)
    if name == "torch":
        return
    if name == "xavier":
        settings = {"gain": nn.init.calculate_gain(settings["nonlinearity"])}
    draw: Callable[..., Tensor] = {
        "kaiming": nn.init.kaiming_normal_,
        "xavier": nn.init.xavier_normal_,
        "normal": nn.init.normal_,
    }[name]
    for layer in module.modules():
        if isinstance(layer, (nn.modules.conv._ConvNd, nn.Linear)):
            draw(layer.weight, **settings)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def _nonlinearity(scheme: str, words: list[str], otherwise: str) -> str:
    name = words.pop(0) if words else otherwise
    if name not in NONLINEARITIES:
        raise WrongScheme(
            f"--init {scheme}: the nonlinearity is {name!r}",
            f"allowed: {', '.join(NONLINEARITIES)}",
        )
    return name


def _number(scheme: str, text: str, allowed: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise WrongScheme(f"--init {scheme}: {text!r} is no number", allowed) from None


def load(module: nn.Module, file: str) -> None:
    """The weights of a file; counts of batches, which no level needs, may be missing in it. Raises
    ModelError."""
    from safetensors.torch import load_file

    from strata_sdk.models import load_weights

    counts = {
        name: value for name, value in module.state_dict().items() if not value.is_floating_point()
    }
    load_weights(module, counts | load_file(file), file)


def write(model: str, seed: int, scheme: str, file: str, path: Path) -> None:
    """The weights of one seed. Raises WrongScheme, ModelError."""
    import torch
    from safetensors.torch import save_file

    from strata_sdk.models import build_model
    from strata_sdk.torch_training import weights_and_counts

    module = build_model(model, seed).module
    torch.manual_seed(seed)
    if file:
        load(module, file)
    else:
        initialise(module, scheme)
    weights, counts = weights_and_counts(module)
    part = path.with_suffix(".part")
    save_file(
        {name: v.detach().clone().contiguous() for name, v in (weights | counts).items()}, str(part)
    )
    part.rename(path)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    for name in ("--model", "--scheme", "--out", "--file"):
        parser.add_argument(name, default="")
    parser.add_argument("--seeds", default="", help="none: the scheme is read and nothing made")
    options = parser.parse_args(arguments)
    answers = sys.stdout
    sys.stdout = sys.stderr  # a user's file may print
    try:
        for scheme in options.scheme.split(";"):
            if not scheme.endswith(".safetensors"):
                parse(scheme.strip())
        for seed in map(int, filter(None, options.seeds.split(","))):
            write(
                options.model,
                seed,
                options.scheme,
                options.file,
                Path(options.out) / f"{seed}.safetensors",
            )
        answer: dict[str, Any] = {"ok": True}
    except WrongScheme as error:
        answer = {"ok": False, "code": error.code, "what": error.what, "hint": error.hint}
    except Exception as error:
        from strata_sdk.errors import describe

        answer = {"ok": False} | describe(error)
    print(json.dumps(answer), file=answers, flush=True)
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
