# SPDX-License-Identifier: Apache-2.0
"""What a network's forward() takes, by its signature, and how to hand it over."""

from __future__ import annotations

import inspect

from torch import nn

WRAP = "strata hands over tensors: return a module whose forward takes them one by one and makes of them what the network takes"


def parameters_of(module: nn.Module) -> list[inspect.Parameter]:
    """In order; empty where Python does not know."""
    try:
        return list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return []


def positional_names(module: nn.Module) -> list[str]:
    """Of what may be handed over by its place, in order."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters_of(module) if p.kind in places]


def advice(module: nn.Module, by_name: list[str]) -> str:
    """What to do about a call that hands over `by_name` under these names and does not fit; empty:
    its names are not why."""
    takes = parameters_of(module)
    names = [p.name for p in takes if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = [p.name for p in takes if p.name in names and p.default is p.empty]
    strange = [name for name in by_name if name not in names]
    if strange and not any(p.kind is p.VAR_KEYWORD for p in takes):
        dictionary = f"; if '{needed[0]}' is a dictionary, {WRAP}" if len(needed) == 1 else ""
        return f"forward takes {', '.join(names) or 'nothing'}, and no '{strange[0]}'{dictionary}"
    missing = [
        p.name
        for p in takes
        if p.kind is p.KEYWORD_ONLY and p.name in needed and p.name not in by_name
    ]
    if missing:
        return f"forward takes {', '.join(missing)} by name: return (module, {{'{missing[0]}': tensor}}) from build(), or write --input {missing[0]}=SHAPE"
    return ""
