# SPDX-License-Identifier: Apache-2.0
"""Random networks for the levels below PyTorch: drawn from a seed, odd in shape (one image, one
pixel, channels that fill no block), made smaller where they fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from network_moves import LARGEST, Draw
from network_recipes import Network, Recipe, without_dead
from torch import Tensor


def drawn(seed: int, trains: bool) -> Recipe | None:
    """A network of that seed; none where what was drawn says nothing."""
    try:
        recipe = Draw(seed, trains).network()
        network = Network(recipe)
        with torch.no_grad():
            outputs = network(*recipe.inputs().values())
    except (ValueError, RuntimeError, KeyError):
        # the drawn weights are others than the network's own
        return None
    results = [outputs] if trains else list(outputs.values())
    useful = (
        all(result.abs().max() <= LARGEST for result in results)
        and any(operation == "input" for operation, _, _ in recipe.steps.values())
        and len(recipe.steps) > 2
    )
    return (
        recipe
        if useful
        and (not trains or any(parameter.requires_grad for parameter in network.parameters()))
        else None
    )


def computed(recipe: Recipe) -> int:
    """How many of its steps are no input."""
    return sum(step[0] != "input" for step in recipe.steps.values())


def smaller(recipe: Recipe) -> list[Recipe]:
    """Networks with one output less, or with one step less, whose result is an input instead; the
    smallest first."""
    candidates = [
        dataclasses.replace(recipe, outputs=[other for other in recipe.outputs if other != output])
        for output in recipe.outputs
        if len(recipe.outputs) > 1
    ]
    shapes = {}
    values = recipe.inputs()
    network = Network(recipe)
    for name, (operation, _, _) in recipe.steps.items():
        network._compute(name, values)
        if operation != "input" and isinstance(values[name], Tensor):
            shapes[name] = list(values[name].shape)
    for name, shape in shapes.items():
        candidates.append(
            dataclasses.replace(recipe, steps=recipe.steps | {name: ["input", [], shape]})
        )
    if not recipe.trains:  # a network may end earlier
        candidates += [
            dataclasses.replace(recipe, outputs=[name])
            for name in shapes
            if [name] != recipe.outputs
        ]
    alive = [without_dead(candidate) for candidate in candidates]
    useful = [
        candidate
        for candidate in alive
        if 0 < computed(candidate) < len(candidate.steps)
        and all(candidate.steps[output][0] != "input" for output in candidate.outputs)
    ]
    return sorted(useful, key=lambda candidate: (computed(candidate), len(candidate.steps)))


def shrunk(
    recipe: Recipe, failing: Callable[[list[Recipe]], list[bool]], rounds: int = 12
) -> Recipe:
    """The smallest network found, a step at a time, that still fails; `failing` is asked of all
    that are one step smaller at once."""
    for _ in range(rounds):
        candidates = smaller(recipe)
        fails = failing(candidates) if candidates else []
        if not any(fails):
            break
        recipe = next(candidate for candidate, failed in zip(candidates, fails) if failed)
    return recipe
