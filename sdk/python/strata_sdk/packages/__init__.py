# SPDX-License-Identifier: Apache-2.0
"""Networks of Python packages by name: `timm:convnext_tiny?in_chans=1`, with random weights.

models/packages.json lists the packages; of each, the file of_SCHEME.py here says which names and
options there are, how a network is made, and what it takes. Nothing is ever downloaded: a network
that would need it is refused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib import metadata

import torch
from torch import nn

from ..models import Built, ModelError, last_line
from .options import Reference, is_reference, reference_of

__all__ = ["Recipe", "Size", "build", "is_reference", "size_of"]

# read by huggingface_hub, which timm and transformers load weights with, when it is imported
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
NETWORK_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg")

_refusing = False  # whether the hook lets nothing through
_attempted = False  # whether there was something since


@dataclasses.dataclass
class Recipe:
    """How a named network is made. `make` draws its weights by torch's generator on torch's default
    device, `inputs` gives what the made network takes, as bundle.json lists inputs, with `low` and
    `high` of whole numbers; None: that is not known. `source`: a sentence for the report."""

    make: Callable[[], nn.Module]
    inputs: Callable[[nn.Module], list[dict] | None]
    source: str


@dataclasses.dataclass
class Size:
    """Of a network that is not made yet: its parameters, and the bytes of these and its buffers."""

    parameters: int
    bytes: int


def build(model: str, seed: int) -> Built:
    """The network that PACKAGE:NAME?OPTION=VALUE&... names, after seeding torch, in eval mode.
    Raises ModelError."""
    reference = reference_of(model)
    recipe = _recipe_of(reference)
    torch.manual_seed(seed)
    module = _made(reference, recipe).eval()
    return Built(module, "package", model, recipe.source, default_inputs=recipe.inputs(module))


def size_of(model: str) -> Size | None:
    """What the network of that name will hold, counted without memory for it; None where it cannot
    be made without. Raises ModelError for a name or an option that is none."""
    reference = reference_of(model)
    recipe = _recipe_of(reference)
    try:
        with torch.device("meta"):
            module = _made(reference, recipe)
    except ModelError:
        return None  # it may need numbers while it is made; what is wrong with it, making it says
    tensors = [*module.parameters(), *module.buffers()]
    return Size(
        sum(parameter.numel() for parameter in module.parameters()),
        sum(tensor.numel() * tensor.element_size() for tensor in tensors),
    )


def _recipe_of(reference: Reference) -> Recipe:
    """Raises ModelError where the package is missing, or has no such network or option."""
    package = reference.package
    os.environ.update(OFFLINE)
    if importlib.util.find_spec(package) is None:
        raise ModelError(
            "unavailable",
            f"{reference.text}: the package {package} is not installed",
            f"pip install {package}, for the interpreter that is measured ({sys.executable})",
        )
    try:
        importlib.import_module(package)
        reader = importlib.import_module(f"{__name__}.of_{reference.scheme}")
    except Exception as error:  # a package that was built for another torch raises anything
        raise ModelError(
            "unavailable",
            f"{reference.text}: the package {package} cannot be imported: {last_line(error)}",
            "install a version of it that fits the installed torch",
        ) from error
    with _without_network(reference):
        recipe: Recipe = reader.recipe(reference)
    with contextlib.suppress(metadata.PackageNotFoundError):
        recipe.source += f", {package} {metadata.version(package)}"
    return recipe


def _made(reference: Reference, recipe: Recipe) -> nn.Module:
    try:
        with _without_network(reference):
            return recipe.make()
    except ModelError:
        raise
    except BaseException as error:  # whatever the package's code raises
        raise _explained(reference, error) from error


def _explained(reference: Reference, error: BaseException) -> ModelError:
    text = str(error)
    for pattern, what in (
        (r"multiple values for (?:keyword )?argument '(\w+)'", "is set by the model itself"),
        (r"unexpected keyword argument '(\w+)'", "is none that the model takes"),
    ):
        if (match := re.search(pattern, text)) and match[1] in reference.options:
            return ModelError(
                "usage", f"{reference.text}: the option '{match[1]}' {what}", "leave it out"
            )
    return ModelError(
        "usage",
        f"{reference.text}: building it raised {last_line(error)}",
        "other options may fit each other" if reference.options else "",
    )


@contextlib.contextmanager
def _without_network(reference: Reference) -> Iterator[None]:
    """Lets Python reach no network; what fails since it tried to is a ModelError."""
    global _refusing, _attempted
    _watch_the_network()
    _refusing, _attempted = True, False
    try:
        yield
    except BaseException as error:
        if _attempted:
            raise ModelError(
                "unsupported",
                f"{reference.text}: to build it, weights or a configuration would be downloaded",
                "strata downloads nothing: save the network's weights yourself and give a function"
                " that builds it, as path/to/file.py:build",
            ) from error
        raise
    finally:
        _refusing = False


@functools.cache
def _watch_the_network() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, _arguments: tuple) -> None:
    global _attempted
    if _refusing and event in NETWORK_EVENTS:
        _attempted = True
        raise OSError("strata builds networks of packages without the network")
