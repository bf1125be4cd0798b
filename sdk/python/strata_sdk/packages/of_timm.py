# SPDX-License-Identifier: Apache-2.0
"""timm's networks: `timm:convnext_tiny?in_chans=1`, also with the tag of a configuration, as
`timm:vit_base_patch16_384.augreg_in1k`."""

from __future__ import annotations

import functools

import timm
from torch import nn

from . import Recipe
from .options import (
    Option,
    Reference,
    check_name,
    check_options,
    options_in,
    returned_class,
    takes_any,
)

IMAGE = (3, 224, 224)
# of timm's own function that makes every network, beside those of the network's class
OF_ALL = {"features_only": Option(frozenset({"bool"})), "out_indices": Option(frozenset({"list"}))}


def recipe(reference: Reference) -> Recipe:
    """Raises ModelError."""
    names = {*timm.list_models(), *timm.list_models(pretrained=True)}
    check_name(reference, names, "timm has no model")
    builder = timm.model_entrypoint(reference.name)
    made = returned_class(builder)
    # a class that hands keywords on says by itself what it does not take
    if made is not None and not takes_any(made):
        check_options(reference, options_in(made, ["device", "dtype"]) | OF_ALL)
    return Recipe(
        make=functools.partial(
            timm.create_model, reference.name, pretrained=False, **reference.options
        ),
        inputs=lambda module: [_image_of(module, reference.options)],
        source=f"timm.create_model('{reference.name}')",
    )


def _image_of(module: nn.Module, options: dict) -> dict:
    configuration = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", {})
    channels, height, width = configuration.get("input_size") or IMAGE
    size = options.get("img_size")
    if isinstance(size, int):
        height = width = size
    elif size:
        height, width = size
    channels = options.get("in_chans") or channels
    return {"name": "", "dtype": "float32", "shape": [1, channels, height, width]}
