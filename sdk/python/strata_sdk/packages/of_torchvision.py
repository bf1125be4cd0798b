# SPDX-License-Identifier: Apache-2.0
"""torchvision's networks: `torchvision:vit_b_16?image_size=384`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from torchvision import models as zoo

from ..models import ModelError
from . import Recipe
from .options import Option, Reference, check_name, check_options, options_in, returned_class

IMAGE, INCEPTION = 224, 299  # pixels along an edge
# frames, height and width that a network for videos was trained on; others as the first
VIDEO, VIDEOS = (
    (16, 112, 112),
    {"mvit": (16, 224, 224), "s3d": (16, 224, 224), "swin3d": (16, 224, 224)},
)
FLOW = (128, 128)  # the smallest images of which an optical flow can be found
REFUSED = {
    "detection": (
        "it takes a list of images and answers with as many boxes as it finds",
        "give a function that returns its backbone, or a module of tensors, as path/to/file.py:build",
    ),
    "quantization": (
        "its weights are int8, which strata does not run",
        "name it without quantized_",
    ),
}


def recipe(reference: Reference) -> Recipe:
    """Raises ModelError."""
    names = zoo.list_models()
    check_name(reference, names, "torchvision has no model")
    builder = zoo.get_model_builder(reference.name)
    family = builder.__module__.removeprefix("torchvision.models.").partition(".")[0]
    if family in REFUSED:
        why, hint = REFUSED[family]
        raise ModelError("unsupported", f"{reference.text}: {why}", hint)
    check_options(reference, _options_of(builder))
    options = dict(reference.options)
    own = inspect.signature(builder).parameters
    if "weights_backbone" in own:
        options["weights_backbone"] = None  # the default would be downloaded
    if reference.name in ("inception_v3", "googlenet"):
        options.setdefault("init_weights", True)
    return Recipe(
        make=functools.partial(zoo.get_model, reference.name, weights=None, **options),
        inputs=lambda _module: _inputs_of(reference, family),
        source=f"torchvision.models.{reference.name}",
    )


def _options_of(builder: Callable) -> dict[str, Option]:
    made = returned_class(builder)
    own = options_in(builder, ["progress"])
    return own | {k: v for k, v in (options_in(made) if made else {}).items() if k not in own}


def _inputs_of(reference: Reference, family: str) -> list[dict]:
    if family == "optical_flow":
        return [_tensor([1, 3, *FLOW]), _tensor([1, 3, *FLOW])]
    if family == "video":
        begins = [shape for name, shape in VIDEOS.items() if reference.name.startswith(name)]
        return [_tensor([1, 3, *(begins[0] if begins else VIDEO)])]
    size = reference.options.get("image_size") or (
        INCEPTION if reference.name == "inception_v3" else IMAGE
    )
    return [_tensor([1, 3, size, size])]


def _tensor(shape: list[int]) -> dict:
    return {"name": "", "dtype": "float32", "shape": shape}
