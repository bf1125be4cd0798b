# SPDX-License-Identifier: Apache-2.0
"""Random networks through the generator and through oneDNN call by call, against float64: 40 that
infer and 10 that train, and those that once failed. What fails is made smaller and printed, to be
kept below. Others by hand: STRATA_RANDOM_NETWORKS=FIRST:COUNT has the first seed and how many
infer."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import several_programs
import torch
from captured import captured
from client import Failed, Worker
from conftest import once
from envelopes import FLOOR
from level_builds import PRIMITIVES, STATIC
from network_recipes import Network, Recipe
from random_networks import drawn, shrunk
from safetensors.torch import load_file, save_file
from torch import Tensor

from capture.training_step import Exact, Stepper
from training import probe

FIRST, COUNT = (int(part) for part in os.environ.get("STRATA_RANDOM_NETWORKS", "0:40").split(":"))
NOISE, NOISY_RUNS = 2.0**-23, 6
LEVELS = [*STATIC, *PRIMITIVES]

# What failed once, by what was wrong.
KEPT: dict[str, Recipe] = {
    "a batch norm of several images of one pixel, which no layer takes up: the first channel's shift was added to all": Recipe(
        {"v0": ["input", [], [2, 3, 1]], "v1": ["batch_norm", ["v0"], {}]}, ["v1"]
    ),
    "the only window of a pooling, dilated, reaches over the end of the image: the graph was refused": Recipe(
        {
            "v0": ["input", [], [2, 16, 2, 4]],
            "v1": [
                "max_pool2d",
                ["v0"],
                {
                    "kernel_size": [1, 3],
                    "stride": 3,
                    "padding": 0,
                    "ceil_mode": True,
                    "dilation": 2,
                },
            ],
        },
        ["v1"],
    ),
    "a batch norm behind a linear layer of images, whose outputs are no channels: it was folded into the weights": Recipe(
        {
            "v0": ["input", [], [2, 3, 1, 1]],
            "v1": ["linear", ["v0"], {"out": 3, "bias": True}],
            "v2": ["batch_norm", ["v1"], {}],
        },
        ["v2"],
    ),
    "the gradient of a product is a part of another's, so that strides of extents of 1 differ: onednn multiplied other elements": Recipe(
        {
            "v0": ["input", [], [1, 5, 1, 3]],
            "v1": ["input", [], [1, 5, 1, 3]],
            "v2": ["parameter", [], {"shape": [1, 1, 3]}],
            "v3": ["mul", ["v1", "v2"], {}],
            "v4": ["cat", ["v0", "v3"], {"dim": 1}],
            "v5": ["mean", ["v4"], {"dim": [2, 3]}],
            "v6": ["linear", ["v5"], {"out": 10, "bias": True}],
        },
        ["v6"],
        2011,
        True,
    ),
    "a batch norm without running statistics: onednn lacked it in inference": Recipe(
        {
            "v0": ["input", [], [3, 2, 3, 3]],
            "v1": ["batch_norm", ["v0"], {"eps": 1e-3, "track_running_stats": False}],
        },
        ["v1"],
    ),
    "an image of one pixel goes from the input into an activation: its layout was that of the input in one place only, and static was refused": Recipe(
        {"v0": ["input", [], [3, 32, 1, 1]], "v1": ["clamp", ["v0"], {"min": -0.2, "max": 0.6}]},
        ["v1"],
    ),
    "every second row of an odd number: oneDNN refuses such strides, and both levels the network": Recipe(
        {
            "v0": ["input", [], [2, 5, 12]],
            "v1": ["slice", ["v0"], {"dim": 1, "start": 0, "stop": 5, "step": 2}],
        },
        ["v1"],
    ),
    "the gradient of every second row of an odd number": Recipe(
        {
            "v0": ["input", [], [2, 5, 12]],
            "v1": ["linear", ["v0"], {"out": 7, "bias": True}],
            "v2": ["slice", ["v1"], {"dim": 1, "start": 0, "stop": 5, "step": 2}],
            "v3": ["flatten", ["v2"], {"start_dim": 1}],
        },
        ["v3"],
        124,
        True,
    ),
    "the only channel of an image in blocks becomes rows: onednn read the padding": Recipe(
        {
            "v0": ["input", [], [3, 1, 2, 3]],
            "v1": [
                "conv",
                ["v0"],
                {"out": 1, "kernel": 3, "padding": 1, "groups": 1, "bias": False},
            ],
            "v2": ["layer_norm", ["v1"], {"dims": 1, "elementwise_affine": True, "eps": 1e-5}],
        },
        ["v2"],
    ),
    "a batch norm of channels that are constant: their mean was off by a rounding, which its gradient magnifies": Recipe(
        {
            "v0": ["input", [], [1, 17, 2, 1]],
            "v1": ["adaptive_avg_pool2d", ["v0"], {"output_size": 1}],
            "v2": ["sub", ["v0", "v1"], {}],
            "v3": [
                "conv",
                ["v2"],
                {
                    "out": 3,
                    "kernel": 2,
                    "stride": 1,
                    "padding": "same",
                    "dilation": 2,
                    "groups": 1,
                    "bias": False,
                },
            ],
            "v4": [
                "conv",
                ["v3"],
                {
                    "out": 8,
                    "kernel": 2,
                    "stride": 1,
                    "padding": 2,
                    "dilation": [1, 3],
                    "groups": 1,
                    "bias": True,
                },
            ],
            "v5": ["batch_norm", ["v4"], {"affine": True, "eps": 1e-5}],
            "v6": ["flatten", ["v5"], {"start_dim": 1}],
            "v7": ["linear", ["v6"], {"out": 5, "bias": True}],
        },
        ["v7"],
        6,
        True,
    ),
    "one pixel in blocks less an image: static could not write the pixel out": Recipe(
        {
            "v0": ["input", [], [1, 32, 5, 3]],
            "v1": [
                "conv",
                ["v0"],
                {"out": 32, "kernel": 3, "padding": 1, "groups": 1, "bias": True},
            ],
            "v2": ["adaptive_avg_pool2d", ["v1"], {"output_size": 1}],
            "v3": ["sub", ["v2", "v1"], {}],
            "v4": [
                "conv",
                ["v3"],
                {"out": 32, "kernel": 3, "padding": 1, "groups": 1, "bias": True},
            ],
        },
        ["v4"],
    ),
    "a quotient of images in blocks that are not full: their padding was 0 / 0, and a convolution read it": Recipe(
        {
            "v0": ["input", [], [1, 5, 1, 3]],
            "v1": [
                "conv",
                ["v0"],
                {"out": 5, "kernel": 3, "padding": 1, "groups": 1, "bias": False},
            ],
            "v2": ["divide", ["v1", "v1"], {}],
            "v3": [
                "conv",
                ["v2"],
                {"out": 5, "kernel": 3, "padding": 1, "groups": 1, "bias": False},
            ],
        },
        ["v3"],
    ),
    "a parameter is an output as it is: onednn crashed": Recipe(
        {
            "v0": ["input", [], [1, 16, 6, 2]],
            "v1": ["number", ["v0"], {"name": "sub", "number": 0.5}],
            "v2": ["parameter", [], {"shape": [1, 16, 1]}],
            "v3": ["dropout", ["v2"], {"training": False}],
        },
        ["v1", "v3"],
    ),
}

if not LEVELS:
    pytest.skip("neither static nor onednn is built", allow_module_level=True)


def networks() -> dict[str, Recipe]:
    found = dict(KEPT)
    for trains, count in ((False, COUNT), (True, COUNT // 4)):
        seed = FIRST
        while (
            sum(recipe.trains == trains and name not in KEPT for name, recipe in found.items())
            < count
        ):
            if recipe := drawn(seed, trains):
                found[f"{'train' if trains else 'infer'}{seed}"] = recipe
            seed += 1
    return found


def computed(
    network: Network, inputs: dict[str, Tensor], labels: Tensor | None, info: dict
) -> dict[str, Tensor]:
    """Outputs; of one that trains loss, gradients and statistics of a step."""
    if labels is not None:
        return Stepper(info, "cpu", labels).run(network, inputs)
    with torch.no_grad():
        return network(*(value.clone() for value in inputs.values()))


def truth_and_bounds(
    recipe: Recipe, inputs: dict[str, Tensor], labels: Tensor | None, info: dict
) -> dict[str, Tensor]:
    """`truth/<name>` in float64, and `bound/<name>`: 8 times the worst error of eager, also on
    inputs and weights that are off by a rounding."""
    network = Network(recipe)
    truth = computed(
        copy.deepcopy(network).double(),
        {name: value.double() for name, value in inputs.items()},
        labels,
        info,
    )
    generator = torch.Generator().manual_seed(recipe.seed)

    def moved(value: Tensor) -> Tensor:
        return value * (1 + NOISE * torch.randn(value.shape, generator=generator))

    runs = [computed(copy.deepcopy(network), inputs, labels, info)]
    for _ in range(NOISY_RUNS):
        other = copy.deepcopy(network)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.copy_(moved(parameter))
        runs.append(
            computed(other, {name: moved(value) for name, value in inputs.items()}, labels, info)
        )
    errors_of = [relative(run, truth, recipe.trains) for run in runs]
    bounds = {name: 8 * max([FLOOR, *(found[name] for found in errors_of)]) for name in truth}
    return {f"truth/{name}": value.clone() for name, value in truth.items()} | {
        f"bound/{name}": torch.tensor(value, dtype=torch.float64) for name, value in bounds.items()
    }


def relative(found: dict[str, Tensor], truth: dict[str, Tensor], trains: bool) -> dict[str, float]:
    """Errors in units of the result's size, or of what the others have where it is near 0."""
    if trains:
        return Exact(truth).errors(found)
    size = {
        name: max(value.norm().item(), 0.01 * value.numel() ** 0.5) for name, value in truth.items()
    }
    distance = {
        name: (found[name].double() - value).norm().item()
        if name in found and found[name].shape == value.shape
        else float("nan")
        for name, value in truth.items()
    }
    return {
        name: distance[name] / size[name] if np.isfinite(distance[name]) else float("inf")
        for name in truth
    }


def capture_recipe(recipe: Recipe, folder: Path) -> Path:
    """A bundle with the truth beside it."""
    network, inputs = Network(recipe), recipe.inputs()
    labels = None
    if recipe.trains:
        scores = copy.deepcopy(network)(*inputs.values())
        labels = torch.randint(
            0,
            scores.shape[1],
            (scores.shape[0],),
            generator=torch.Generator().manual_seed(recipe.seed),
        )
    captured(network, inputs, folder, labels)
    info = json.loads((folder / "bundle.json").read_text())
    save_file(
        {
            name: value.contiguous()
            for name, value in truth_and_bounds(recipe, inputs, labels, info).items()
        },
        folder / "truth.safetensors",
    )
    return folder


def what_is_wrong(bundle: Path, found: dict[str, np.ndarray] | str) -> str:
    if isinstance(found, str):
        return found
    stored = load_file(bundle / "truth.safetensors")
    truth = {
        name.removeprefix("truth/"): value
        for name, value in stored.items()
        if name.startswith("truth/")
    }
    trains = json.loads((bundle / "bundle.json").read_text())["case"]["mode"] == "train"
    off = {
        name: error / stored[f"bound/{name}"].item()
        for name, error in relative(
            {name: torch.from_numpy(np.array(value)) for name, value in found.items()},
            truth,
            trains,
        ).items()
    }
    return "; ".join(
        f"{name} is off by {times:.3g} times the bound of {stored[f'bound/{name}'].item():.2g}"
        for name, times in off.items()
        if not times <= 1
    )


def by_primitives(bundles: list[Path], _: Path) -> dict[Path, dict | str]:
    found: dict[Path, dict | str] = {}
    left = list(bundles)
    while left:
        with Worker("onednn", left[0]) as worker:
            try:
                while left:
                    worker.bundle = left[0]
                    found[left[0]] = computed_by(worker)
                    left.pop(0)
            except AssertionError as error:  # it crashed
                found[left.pop(0)] = str(error)
    return found


def computed_by(worker: Worker) -> dict[str, np.ndarray] | str:
    try:
        trains = worker.load()["settings"]["inference_mode"] is False
        if not trains:
            worker.prove([0])  # the second run finds what the first left in memory
        found = (
            probe(worker, "timed")
            if trains
            else {name.removeprefix("0/"): value for name, value in worker.prove([0]).items()}
        )
    except Failed as failed:
        found = f"{failed.code}: {failed.what}"
    with contextlib.suppress(Failed):  # nothing was loaded
        worker.ask("unload")
    return found


RUN: dict[str, Callable[[list[Path], Path], dict[Path, dict | str]]] = {
    "static": several_programs.run,
    "onednn": by_primitives,
}


def faults(level: str, recipes: list[Recipe], folder: Path) -> list[str]:
    """What is wrong with each; empty: nothing."""
    folder.mkdir()
    bundles = [capture_recipe(recipe, folder / f"net{i}") for i, recipe in enumerate(recipes)]
    found = RUN[level](bundles, folder)
    return [what_is_wrong(bundle, found[bundle]) for bundle in bundles]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Networks are so small that threads cost more than they compute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def bundles(shared, one_thread) -> dict[str, Path]:
    """The networks' bundles by name, captured by one process for all."""
    folder, recipes = shared / "random", networks()
    by_name = {name: folder / f"net{i}" for i, name in enumerate(recipes)}
    once(
        folder, lambda: [capture_recipe(recipe, by_name[name]) for name, recipe in recipes.items()]
    )
    return by_name


@pytest.mark.parametrize("level", LEVELS)
def test_random_networks_and_those_that_once_failed_compute_what_float64_computes(
    level, bundles, tmp_path
):
    found = RUN[level](list(bundles.values()), tmp_path)
    wrong = {
        name: what
        for name, bundle in bundles.items()
        if (what := what_is_wrong(bundle, found[bundle]))
    }
    lines, recipes = [], networks()
    for number, (name, what) in enumerate(wrong.items()):
        lines.append(f"{name}: {what}")
        if number < 3 and name not in KEPT:
            rounds = iter(range(1000))
            small = shrunk(
                recipes[name],
                lambda tried, name=name, rounds=rounds: [
                    bool(fault)
                    for fault in faults(level, tried, tmp_path / f"{name}-{next(rounds)}")
                ],
            )
            lines.append(f"smallest: {small.text()}")
    assert not wrong, "\n".join(lines)


def test_the_random_networks_have_what_the_levels_must_get_right():
    recipes = [recipe for name, recipe in networks().items() if name not in KEPT]
    steps = [step for recipe in recipes for step in recipe.steps.values()]
    used = {operation for operation, _, _ in steps}
    assert {
        "conv",
        "batch_norm",
        "layer_norm",
        "linear",
        "cat",
        "chunk",
        "softmax",
        "attention",
        "matmul",
        "max_pool2d",
        "avg_pool2d",
        "adaptive_avg_pool2d",
        "add",
        "mul",
        "parameter",
        "mean",
    } <= used
    images = [how for operation, _, how in steps if operation == "input" and len(how) == 4]
    assert (
        any(shape[0] == 1 for shape in images)
        and any(shape[2:] == [1, 1] for shape in images)
        and any(shape[1] % 8 for shape in images)
    )
    convolutions = [how for operation, _, how in steps if operation == "conv"]
    assert (
        any(how["groups"] > 1 for how in convolutions)
        and any(how.get("dilation", 1) != 1 for how in convolutions)
        and any(how.get("stride", 1) != 1 for how in convolutions)
    )
    assert sum(recipe.trains for recipe in recipes) == COUNT // 4 and any(
        len(recipe.outputs) > 1 for recipe in recipes
    )


def test_a_failing_network_is_made_smaller_until_only_what_fails_is_left():
    recipe = next(
        found
        for seed in range(1000)
        if (found := drawn(seed, False))
        and len(found.steps) > 8
        and any(step[0] == "gelu" for step in found.steps.values())
    )
    small = shrunk(
        recipe,
        lambda tried: [any(step[0] == "gelu" for step in one.steps.values()) for one in tried],
    )
    assert (
        sorted(step[0] for step in small.steps.values()) == ["gelu", "input"]
        and len(small.outputs) == 1
    )
    assert set(Network(small)(*small.inputs().values())) == set(small.outputs)
    assert eval(small.text(), {"Recipe": Recipe}) == small  # what is printed can be kept
