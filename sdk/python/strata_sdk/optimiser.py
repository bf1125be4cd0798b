# SPDX-License-Identifier: Apache-2.0
"""A case's optimiser and loss, checked and filled (docs/bundle.md, "Mode train"), and the learning
rate of a step. Needs neither torch nor numpy."""

from __future__ import annotations

import math
from typing import Any

# By name, with the defaults of docs/bundle.md: PyTorch's, but for SGD.
DEFAULTS: dict[str, dict[str, Any]] = {
    "sgd": {
        "name": "sgd",
        "lr": 0.01,
        "momentum": 0.9,
        "dampening": 0.0,
        "weight_decay": 0.0001,
        "clip_norm": 0.0,
        "nesterov": False,
        "schedule": None,
    },
    "adam": {
        "name": "adam",
        "lr": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "weight_decay": 0.0,
        "clip_norm": 0.0,
        "schedule": None,
    },
}
DEFAULTS["adamw"] = DEFAULTS["adam"] | {"name": "adamw", "weight_decay": 0.01}
DEFAULT = DEFAULTS["sgd"]
# What precedes a parameter's name in a state, of each buffer that the rule has beside it.
BUFFERS = {
    "sgd": ("momentum:",),
    "adam": ("exp_avg:", "exp_avg_sq:"),
    "adamw": ("exp_avg:", "exp_avg_sq:"),
}
BELOW_ONE = ("beta1", "beta2")
SCHEDULES = {"step": ("every", "gamma"), "cosine": ("steps",)}


class OptimiserError(ValueError):
    """An optimiser or a schedule that no level can have: `what` is wrong, and what is allowed
    (`hint`)."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


def check_optimiser(settings: Any) -> dict[str, Any]:
    """The optimiser with every field, numbers as floats; None is the default one. Raises
    OptimiserError."""
    if settings is None:
        return dict(DEFAULT)
    if not isinstance(settings, dict):
        raise OptimiserError(
            f"the optimiser is {settings!r}, not an object", f"allowed fields: {', '.join(DEFAULT)}"
        )
    name = settings.get("name", "sgd")
    if not isinstance(name, str) or name not in DEFAULTS:
        raise OptimiserError(f"the optimiser is called {name!r}", f"allowed: {', '.join(DEFAULTS)}")
    usual = DEFAULTS[name]
    for field in ("amsgrad", "maximize"):
        if name != "sgd" and settings.get(field):
            raise OptimiserError(f"the optimiser has {field}", "no level runs it: leave it out")
    _only(settings, usual, "the optimiser" if name == "sgd" else f"the optimiser {name}")
    full = usual | settings
    for field, otherwise in usual.items():
        if isinstance(otherwise, float):
            full[field] = _number(full[field], f"the optimiser's {field}")
        if field in BELOW_ONE and full[field] >= 1:
            raise OptimiserError(
                f"the optimiser's {field} is {full[field]:g}", "allowed: numbers from 0 to below 1"
            )
    if name == "sgd" and not isinstance(full["nesterov"], bool):
        raise OptimiserError(
            f"the optimiser's nesterov is {full['nesterov']!r}", "allowed: true, false"
        )
    if name == "sgd" and full["nesterov"] and (full["momentum"] == 0 or full["dampening"] != 0):
        raise OptimiserError(
            f"nesterov with momentum {full['momentum']:g} and dampening {full['dampening']:g}",
            "Nesterov's step needs a momentum above 0 and dampening 0",
        )
    full["schedule"] = _schedule(full["schedule"])
    return full


def _schedule(settings: Any) -> dict[str, Any] | None:
    if settings is None:
        return None
    if not isinstance(settings, dict) or settings.get("name") not in SCHEDULES:
        raise OptimiserError(
            f"the schedule is {settings!r}",
            'allowed: null, {"name":"step","every":30,"gamma":0.1}, {"name":"cosine","steps":100}',
        )
    fields = SCHEDULES[settings["name"]]
    what = f"the schedule {settings['name']}"
    _only(settings, ("name", *fields), what)
    checked: dict[str, Any] = {"name": settings["name"]}
    for field in fields:
        if field not in settings:
            raise OptimiserError(f"{what} lacks `{field}`", f"it has: {', '.join(fields)}")
        if field == "gamma":
            checked[field] = _number(settings[field], f"{what}'s gamma")
        elif (
            isinstance(settings[field], bool)
            or not isinstance(settings[field], int)
            or settings[field] < 1
        ):
            raise OptimiserError(
                f"{what}'s {field} is {settings[field]!r}",
                "allowed: whole numbers of optimiser steps from 1",
            )
        else:
            checked[field] = settings[field]
    return checked


def _only(settings: dict, known: Any, what: str) -> None:
    for field in settings:
        if field not in known:
            import difflib

            near = difflib.get_close_matches(str(field), list(known), n=1)
            raise OptimiserError(
                f"{what} has no field `{field}`",
                f"did you mean {near[0]}?" if near else f"it has: {', '.join(known)}",
            )


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise OptimiserError(f"{what} is {value!r}", "allowed: numbers from 0")
    return float(value)


def learning_rate(optimiser: dict[str, Any], step: int) -> float:
    """The rate of step number `step`, counted from 0. step: lr gamma^(n // every); cosine, which
    rises again after `steps`: lr (1 + cos(pi n / steps)) / 2."""
    lr, schedule = optimiser["lr"], optimiser["schedule"]
    if schedule is None:
        return lr
    if schedule["name"] == "step":
        return lr * schedule["gamma"] ** (step // schedule["every"])
    return lr * (1 + math.cos(math.pi * step / schedule["steps"])) / 2
