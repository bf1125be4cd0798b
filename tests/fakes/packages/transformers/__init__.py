# SPDX-License-Identifier: Apache-2.0
"""Stands for transformers in tests: small networks of tokens and of images, with configurations and
results as that package's classes have them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn


class PretrainedConfig:
    attribute_map: dict[str, str] = {}

    def __init__(self, problem_type: str | None = None, **kwargs: Any) -> None:
        self.problem_type = problem_type
        self.num_labels = kwargs.pop("num_labels", 2)
        for name, value in kwargs.items():
            setattr(self, self.attribute_map.get(name, name), value)


class TinyConfig(PretrainedConfig):
    attribute_map = {"hidden_size": "width"}

    def __init__(
        self,
        vocab_size=50,
        width=8,
        num_hidden_layers=1,
        dropout=0.1,
        max_position_embeddings=512,
        use_cache=True,
        is_encoder_decoder=False,
        **kwargs,
    ) -> None:
        self.vocab_size, self.width, self.num_hidden_layers = vocab_size, width, num_hidden_layers
        self.dropout, self.use_cache = dropout, use_cache
        self.max_position_embeddings = max_position_embeddings
        self.is_encoder_decoder = is_encoder_decoder
        if num_hidden_layers < 1:
            raise ValueError("at least one layer is needed")
        super().__init__(**kwargs)


class TinyImageConfig(PretrainedConfig):
    def __init__(self, image_size=16, num_channels=3, **kwargs) -> None:
        self.image_size, self.num_channels = image_size, num_channels
        super().__init__(**kwargs)


class TinyPairConfig(PretrainedConfig):
    sub_configs = {"text_config": TinyConfig, "vision_config": TinyImageConfig}

    def __init__(self, text_config=None, vision_config=None, **kwargs) -> None:
        self.text_config = TinyConfig(**(text_config or {}))
        self.vision_config = TinyImageConfig(**(vision_config or {}))
        super().__init__(**kwargs)


class PreTrainedModel(nn.Module):
    config_class: Any = None
    main_input_name = "input_ids"

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config


class ModelOutput(OrderedDict):
    """Named results; what is None is left out."""


class TinyModel(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config: TinyConfig) -> None:
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.width)
        self.layers = nn.ModuleList(
            nn.Linear(config.width, config.width) for _ in range(config.num_hidden_layers)
        )

    def forward(self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None):
        x = self.words(input_ids)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return ModelOutput(
            last_hidden_state=x, past_key_values=object() if self.config.use_cache else None
        )


class TinyForConditionalGeneration(TinyModel):
    def forward(self, input_ids: Tensor | None = None, decoder_input_ids: Tensor | None = None):  # type: ignore[override]
        source = super().forward(input_ids)["last_hidden_state"]
        target = super().forward(decoder_input_ids)["last_hidden_state"]
        return ModelOutput(logits=target + source.mean(1, keepdim=True))


class TinyForImageClassification(PreTrainedModel):
    config_class = TinyImageConfig
    main_input_name = "pixel_values"

    def __init__(self, config: TinyImageConfig) -> None:
        super().__init__(config)
        self.body = nn.Conv2d(config.num_channels, 4, 3)
        self.head = nn.Linear(4, config.num_labels)

    def forward(self, pixel_values: Tensor | None = None):
        return ModelOutput(logits=self.head(self.body(pixel_values).mean((2, 3))))


class TinyPairModel(PreTrainedModel):
    config_class = TinyPairConfig
    main_input_name = "pixel_values"

    def __init__(self, config: TinyPairConfig) -> None:
        super().__init__(config)
        self.text = TinyModel(config.text_config)
        self.image = nn.Conv2d(config.vision_config.num_channels, config.text_config.width, 3)

    def forward(self, input_ids: Tensor | None = None, pixel_values: Tensor | None = None):
        words = self.text(input_ids)["last_hidden_state"].mean(1)
        return ModelOutput(logits=words @ self.image(pixel_values).mean((2, 3)).T)


class TinyForUnknownInputModel(TinyModel):
    main_input_name = "states"
