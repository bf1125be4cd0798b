# SPDX-License-Identifier: Apache-2.0
"""The precisions of a case in PyTorch (docs/proof.md): what each sets, and a view of a module
that runs in one. Levels, prepare scripts and the capture share it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import models

# the largest relative error of one rounding
UNIT = {
    "fp32": 2.0**-24,
    "tf32": 2.0**-11,
    "bf16": 2.0**-9,
    "amp-bf16": 2.0**-9,
}


def settle(precision: str) -> None:
    """Float32 operations as the mode wants them: TF32 on CUDA in tf32, IEEE float32 in every other.
    Set by the older flags, since torch 2.15 refuses to read those after the newer `fp32_precision`
    ones were set, and Inductor reads both."""
    allowed = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.set_float32_matmul_precision("high" if allowed else "highest")


def storage(precision: str) -> torch.dtype | None:
    """The type of parameters and floating-point buffers where it is not the module's own."""
    return torch.bfloat16 if precision == "bf16" else None


def found_in(module: nn.Module, precision: str) -> str:
    """The mode to report: `precision`, or the parameters' types where the mode fixes another."""
    types = {p.dtype for p in module.parameters() if p.is_floating_point()}
    return (
        precision
        if storage(precision) is None or types <= {storage(precision)}
        else "parameters " + ", ".join(sorted(str(t).removeprefix("torch.") for t in types))
    )


class InMode(models.View):
    """Runs a module in bf16 or amp-bf16: takes and returns what the module itself would, its
    conversions included. Returns its outputs by name."""

    def __init__(
        self, inner: nn.Module, precision: str, device: str, dtypes: Sequence[torch.dtype]
    ) -> None:
        super().__init__(inner)
        self._dtype, self._amp, self._device_type, self._dtypes = (
            storage(precision),
            precision == "amp-bf16",
            torch.device(device).type,
            list(dtypes),
        )

    def _converted(self, value: Tensor) -> Tensor:
        return (
            value.to(self._dtype)
            if self._dtype is not None and value.is_floating_point()
            else value
        )

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        with (
            torch.autocast(self._device_type, torch.bfloat16)
            if self._amp
            else contextlib.nullcontext()
        ):
            result = self.inner(
                *[self._converted(a) for a in args],
                **{k: self._converted(v) for k, v in kwargs.items()},
            )
        return {
            name: value.to(dtype)
            for (name, value), dtype in zip(models.flatten_outputs(result).items(), self._dtypes)
        }


def in_mode(module: nn.Module, case: dict, outputs: Sequence[dict]) -> nn.Module:
    """The module, its parameters brought into the case's mode in place, or a view that converts
    around it. `outputs` as in bundle.json."""
    precision = case["precision"]
    if precision not in ("bf16", "amp-bf16"):
        return module
    if storage(precision) is not None:
        module.to(storage(precision))
    return InMode(module, precision, case["device"], [getattr(torch, o["dtype"]) for o in outputs])
