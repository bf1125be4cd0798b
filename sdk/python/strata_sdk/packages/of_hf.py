# SPDX-License-Identifier: Apache-2.0
"""Networks of transformers: `hf:BertForMaskedLM?num_hidden_layers=2`, a model's class and what its
configuration has other than by default."""

from __future__ import annotations

import copy
import inspect
import math
import re
from typing import Any

import transformers
from torch import nn

from ..models import ModelError, last_line
from . import Recipe
from .options import Option, Reference, check_name, check_options, options_in, takes_any

TOKENS = 128
IMAGE, CHANNELS = 224, 3
SAMPLES = 16000  # a second of sound
# how many tokens there may be, by what configurations call it
PLACES = ("max_position_embeddings", "max_target_positions", "n_positions")
MODEL_NAME = re.compile(
    r"(?!TF|Flax|Auto).*(Model|ModelWith\w+|LMHead\w*|For[A-Z]\w*|Encoder|Decoder)"
)


def recipe(reference: Reference) -> Recipe:
    """Raises ModelError."""
    made = _class_of(reference)
    configuration = _configuration_of(reference, made.config_class)
    return Recipe(
        make=lambda: made(copy.deepcopy(configuration)),
        inputs=lambda module: _inputs_of(module, configuration),
        source=f"transformers.{reference.name} of a {made.config_class.__name__}",
    )


def _class_of(reference: Reference) -> Any:
    names = [name for name in dir(transformers) if MODEL_NAME.fullmatch(name)]
    check_name(reference, names, "transformers has no model class")
    made = getattr(transformers, reference.name)
    is_model = isinstance(made, type) and issubclass(made, transformers.PreTrainedModel)
    if is_model and made.config_class is not None:
        return made
    raise ModelError(
        "usage",
        f"{reference.text}: {reference.name} is no class of a model with a configuration of its own",
        "name the class itself, as hf:BertForMaskedLM",
    )


def _configuration_of(reference: Reference, config_class: type) -> Any:
    check_options(reference, _options_of(config_class))
    values: dict[str, Any] = {}
    for key, value in reference.options.items():
        part, dot, inner = key.partition(".")
        if dot:
            values.setdefault(part, {})[inner] = value
        else:
            values[part] = value
    try:
        configuration = config_class(**values)
    except Exception as error:  # what a configuration finds wrong with itself
        raise ModelError(
            "usage",
            f"{reference.text}: {config_class.__name__} refuses this: {last_line(error)}",
            "other values may fit each other",
        ) from error
    # states that the next call would go on from are no answer, and would be made in vain
    if getattr(configuration, "use_cache", None) is True and "use_cache" not in values:
        configuration.use_cache = False
    if getattr(configuration, "use_pretrained_backbone", None):
        configuration.use_pretrained_backbone = False
    return configuration


def _options_of(config_class: type) -> dict[str, Option]:
    """Of the configuration, its parts (`text_config.hidden_size`) and those that all have."""
    known = options_in(config_class)
    for part, inner in _parts_of(config_class).items():
        known.pop(part, None)
        known |= {f"{part}.{name}": option for name, option in options_in(inner).items()}
    for name in getattr(config_class, "attribute_map", {}):
        known.setdefault(name, Option(None))
    known.setdefault("num_labels", Option(frozenset({"int"})))
    if takes_any(config_class):
        for base in config_class.__mro__[1:]:
            if issubclass(base, transformers.PretrainedConfig):
                known |= {k: v for k, v in options_in(base).items() if k not in known}
    return known


def _parts_of(config_class: type) -> dict[str, type]:
    parts = getattr(config_class, "sub_configs", None) or {}
    return {
        name: part
        for name, part in parts.items()
        if isinstance(part, type) and part.__name__ != "AutoConfig"
    }


# ------------------------------------------------------------------------------------------ inputs


def _inputs_of(module: nn.Module, configuration: Any) -> list[dict] | None:
    """What forward() takes, by name; None where it is not known."""
    takes = inspect.signature(module.forward).parameters
    main = getattr(module, "main_input_name", "input_ids")
    text = getattr(configuration, "text_config", None)
    vision = getattr(configuration, "vision_config", None)
    inputs: list[dict | None] = []
    if main == "pixel_values" or (vision is not None and "pixel_values" in takes):
        if text is not None and "input_ids" in takes:
            inputs.append(_tokens("input_ids", text))
        inputs.append(_pixels(vision or configuration))
    elif main == "input_ids":
        encoder = getattr(configuration, "encoder", None)
        inputs.append(_tokens("input_ids", text, configuration, encoder))
    elif main == "input_features":
        inputs.append(_numbers("input_features", _features_of(configuration)))
    elif main == "input_values":
        inputs.append(_numbers("input_values", _sound_of(configuration)))
    if getattr(configuration, "is_encoder_decoder", False) and "decoder_input_ids" in takes:
        decoder = getattr(configuration, "decoder", None)
        inputs.append(_tokens("decoder_input_ids", decoder, configuration))
    known = [entry for entry in inputs if entry]
    return known if known and len(known) == len(inputs) else None


def _tokens(name: str, *configurations: Any) -> dict | None:
    """`configurations`: the first that has a vocabulary counts; None: none has."""
    for configuration in configurations:
        words = getattr(configuration, "vocab_size", None)
        if isinstance(words, int):
            places = [getattr(configuration, field, None) for field in PLACES]
            length = min([TOKENS, *(n for n in places if isinstance(n, int) and n > 0)])
            entry = {"name": name, "dtype": "int64", "shape": [1, length]}
            return entry | {"low": 0, "high": words - 1}
    return None


def _numbers(name: str, shape: list[int]) -> dict:
    return {"name": name, "dtype": "float32", "shape": shape}


def _pixels(configuration: Any) -> dict:
    size = getattr(configuration, "image_size", None) or IMAGE
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    channels = getattr(configuration, "num_channels", None) or CHANNELS
    frames = getattr(configuration, "num_frames", None)  # of a video, in front of the channels
    middle = [frames, channels] if isinstance(frames, int) else [channels]
    return _numbers("pixel_values", [1, *middle, height, width])


def _features_of(configuration: Any) -> list[int]:
    """Of sound: bands by time where there is a number of bands (Whisper), else time by bands."""
    bands = getattr(configuration, "num_mel_bins", None)
    if bands and (places := getattr(configuration, "max_source_positions", None)):
        return [1, bands, 2 * places]  # the first layers halve the time
    bands = bands or getattr(configuration, "input_feat_per_channel", None)
    bands = bands or getattr(configuration, "feature_projection_input_dim", None)
    return [1, TOKENS, bands or 80]


def _sound_of(configuration: Any) -> list[int]:
    """Samples, or time by bands where a spectrogram's length is configured."""
    length = getattr(configuration, "max_length", None)
    bands = getattr(configuration, "num_mel_bins", None)
    if bands and isinstance(length, int):
        return [1, length, bands]
    strides = getattr(configuration, "conv_stride", None) or [1]
    return [1, max(SAMPLES, math.prod(strides))]
