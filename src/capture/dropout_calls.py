# SPDX-License-Identifier: Apache-2.0
"""Finds the dropouts that a network calls as functions (strata_sdk/dropout_calls.py), and gives
each a probability of its own: the first call of a forward pass, the second, ..."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from strata_sdk.dropout_calls import ATTENTION, DROPOUTS, with_argument
from strata_sdk.torch_training import Dropout

_LAYERS = str(Path(torch.__file__).parent / "nn")
_WRAPPERS = {str(Path(torch.__file__).parent / "overrides.py"), __file__}


class DropoutCalls(TorchFunctionMode):
    """While it is entered: `found` after a forward pass; then probabilities as `shifted` says, by
    the number of the call, or 0 when not `on`. Call begin() before each forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.sites: list[tuple[str, float]] = []
        self.shifted: dict[int, float] = {}
        self.on, self.number = True, 0

    def begin(self) -> None:
        self.number = 0

    def places(self) -> list[Dropout]:
        return [
            Dropout(name, p, functools.partial(self.shifted.__setitem__, number))
            for number, (name, p) in enumerate(self.sites)
        ]

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in DROPOUTS or func is ATTENTION:
            place, name, p = probability(func, args, kwargs)
            caller = _caller(func) if p else None
            if caller is not None:
                number = self.number
                self.number += 1
                if number == len(self.sites):
                    self.sites.append(
                        (
                            f"{func.__name__} ({Path(caller.f_code.co_filename).name}:{caller.f_lineno})",
                            p,
                        )
                    )
                args, kwargs = with_argument(
                    args, kwargs, place, name, self.shifted.get(number, p) if self.on else 0.0
                )
        return func(*args, **kwargs)


def probability(func: Any, args: tuple, kwargs: dict) -> tuple[int, str, float]:
    """Where the call has its probability, and what it is; 0 where it is switched off by its
    `training`."""
    if func is ATTENTION:
        return 4, "dropout_p", float(kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0))
    drops = next(
        (kwargs[name] for name in ("training", "train") if name in kwargs),
        args[2]
        if len(args) > 2
        else func not in (functional.alpha_dropout, functional.feature_alpha_dropout),
    )
    return 1, "p", float(kwargs.get("p", args[1] if len(args) > 1 else 0.5)) if drops else 0.0


def _caller(func: Any) -> FrameType | None:
    """Who called it; None: one of PyTorch's layers, whose probability is an attribute."""
    frame: FrameType | None = sys._getframe(2)
    own = getattr(func, "__code__", None)
    while frame is not None and (frame.f_code.co_filename in _WRAPPERS or frame.f_code is own):
        frame = frame.f_back
    return None if frame is None or frame.f_code.co_filename.startswith(_LAYERS) else frame
