# SPDX-License-Identifier: Apache-2.0
"""A bundle of mode train without its references (docs/bundle.md), and eager's own training in this
process as the oracle of the C++ levels."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from client import ROOT, Worker
from safetensors.numpy import load_file, save_file

sys.path.append(str(ROOT / "sdk" / "python"))

RING = 4
NETWORKS = str(ROOT / "tests" / "levels" / "train_networks.py")
SPECS = {  # model, inputs (name, shape, is a keyword), classes, loss
    "mnist": ("mnist_convnet", [("arg0", (4, 1, 28, 28), False)], 10, "nll"),
    "resnet18": ("resnet18", [("arg0", (2, 3, 48, 48), False)], 1000, "cross_entropy"),
    "small": (
        f"{NETWORKS}:small",
        [("arg0", (6, 3, 8, 8), False), ("scale", (6, 1), True)],
        5,
        "cross_entropy",
    ),
    "in_place": (
        f"{ROOT / 'tests' / 'levels' / 'networks.py'}:in_place_network",
        [("arg0", (2, 3, 8, 8), False)],
        10,
        "cross_entropy",
    ),
    "unscriptable": (f"{NETWORKS}:unscriptable", [("arg0", (2, 4), False)], 3, "cross_entropy"),
    "masks": (f"{NETWORKS}:two_masks", [("arg0", (16, 3, 8, 8), False)], 10, "cross_entropy"),
    "alpha_dropout": (f"{NETWORKS}:alpha_dropout", [("arg0", (6, 4), False)], 3, "cross_entropy"),
    "classic": ("mnist_classic", [("arg0", (4, 1, 28, 28), False)], 10, "nll"),
    "whole_channels": (
        f"{NETWORKS}:whole_channels",
        [("arg0", (16, 3), False)],
        10,
        "cross_entropy",
    ),
    "called_dropouts": (
        f"{NETWORKS}:called_dropouts",
        [("arg0", (6, 4), False)],
        4,
        "cross_entropy",
    ),
}
SGD = {
    "name": "sgd",
    "lr": 0.05,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.01,
    "nesterov": False,
    "schedule": None,
}
# With an eps beside which a gradient that is nothing but rounding moves nothing: Adam's usual one
# makes whole steps of it.
ADAM = {
    "name": "adam",
    "lr": 0.01,
    "beta1": 0.8,
    "beta2": 0.99,
    "eps": 0.1,
    "weight_decay": 0.1,
    "schedule": None,
}
ADAMW = ADAM | {"name": "adamw"}


def make(folder: Path, name: str) -> Path:
    """Writes the bundle `name` of SPECS; weight set `other` has other values than `timed`."""
    import torch

    from strata_sdk import models

    model, inputs, classes, loss = SPECS[name]
    draw = np.random.default_rng(1)
    (folder / "weights").mkdir(parents=True)
    for seed, weight_set in ((0, "timed"), (1, "other")):
        module = models.build_model(model, seed).module
        for key, value in module.state_dict().items():  # statistics of a network that has seen data
            if "running" in key:
                value.copy_(torch.from_numpy(draw.uniform(0.5, 1.5, value.shape)).float())
        save_file(
            {key: value.numpy() for key, value in module.state_dict().items()},
            folder / "weights" / f"{weight_set}.safetensors",
        )
    batch = inputs[0][1][0]
    save_file(
        {
            f"{i}/{name}": draw.standard_normal(shape).astype(np.float32)
            for i in range(RING)
            for name, shape, _ in inputs
        },
        folder / "inputs.safetensors",
    )
    save_file(
        {f"{i}/labels": draw.integers(0, classes, batch) for i in range(RING)},
        folder / "labels.safetensors",
    )
    outputs = (
        [("output", (batch, classes))]
        if name != "small"
        else [("output0", (batch, classes)), ("output1", (batch, 8))]
    )
    case = {
        "model": model,
        "mode": "train",
        "batch": batch,
        "precision": "fp32",
        "device": "cpu",
        "threads": 1,
        "seed": 0,
        "deep": False,
        "optimiser": SGD,
        "loss": loss,
    }
    about = {
        "bundle": 2,
        "case": case,
        "model": {
            "name": name if ":" in model else model,
            "kind": "user" if ":" in model else "shipped",
            "source": "",
        },
        "ring": RING,
        "export": {"ok": True, "what": "", "where": ""},
        "inputs": [
            {"name": name, "keyword": keyword, "dtype": "float32", "shape": list(shape)}
            for name, shape, keyword in inputs
        ],
        "outputs": [
            {"name": name, "dtype": "float32", "shape": list(shape)} for name, shape in outputs
        ],
    }
    (folder / "bundle.json").write_text(json.dumps(about))
    return folder


MOMENTS = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}


def moments(tensors: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
    """Adam's buffers of these parameters as a proof chooses them: means of any sign, squares of
    0.01 and more."""
    draw = np.random.default_rng(2)
    means = {
        f"exp_avg:{name}": draw.uniform(-0.1, 0.1, tensors[f"weight:{name}"].shape).astype(
            np.float32
        )
        for name in names
    }
    return means | {
        f"exp_avg_sq:{name}": draw.uniform(0.01, 0.04, tensors[f"weight:{name}"].shape).astype(
            np.float32
        )
        for name in names
    }


class Eager:
    """The bundle's network, trained by PyTorch in this process, one thread, dropout off."""

    def __init__(self, bundle: Path, optimiser: dict = SGD, weights: str = "timed") -> None:
        import torch

        from strata_sdk import models
        from strata_sdk.torch_training import Dropouts

        torch.set_num_threads(1)
        self.bundle = bundle
        self.about = json.loads((bundle / "bundle.json").read_text())
        self.module = models.build_model(self.about["case"]["model"]).module.train()
        self.module.load_state_dict(
            {
                k: torch.from_numpy(v.copy())
                for k, v in load_file(bundle / "weights" / f"{weights}.safetensors").items()
            }
        )
        Dropouts(self.module).switch(False)
        self.inputs = {
            k: torch.from_numpy(v.copy())
            for k, v in load_file(bundle / "inputs.safetensors").items()
        }
        self.labels = {
            k: torch.from_numpy(v.copy())
            for k, v in load_file(bundle / "labels.safetensors").items()
        }
        settings = {
            k: v
            for k, v in optimiser.items()
            if k not in ("name", "schedule", "beta1", "beta2", "clip_norm")
        }
        self.clip_norm = optimiser.get("clip_norm", 0.0)
        if "beta1" in optimiser:
            settings["betas"] = (optimiser["beta1"], optimiser["beta2"])
        kind, self.held = {
            "sgd": (torch.optim.SGD, {"momentum": "momentum_buffer"}),
            "adam": (torch.optim.Adam, MOMENTS),
            "adamw": (torch.optim.AdamW, MOMENTS),
        }[optimiser["name"]]
        self.optimiser = kind([p for p in self.module.parameters() if p.requires_grad], **settings)
        schedule = optimiser["schedule"] or {"name": ""}
        kinds = torch.optim.lr_scheduler
        self.schedule = None
        if schedule["name"] == "step":
            self.schedule = kinds.StepLR(self.optimiser, schedule["every"], schedule["gamma"])
        if schedule["name"] == "cosine":
            self.schedule = kinds.CosineAnnealingLR(self.optimiser, schedule["steps"])

    def forward(self, index: int):
        """The outputs as a tuple."""
        from strata_sdk.dropout_calls import NoDropoutCalls

        positional = [
            self.inputs[f"{index}/{i['name']}"].clone()
            for i in self.about["inputs"]
            if not i["keyword"]
        ]
        named = {
            i["name"]: self.inputs[f"{index}/{i['name']}"]
            for i in self.about["inputs"]
            if i["keyword"]
        }
        with NoDropoutCalls():
            result = self.module(*positional, **named)
        return result if isinstance(result, tuple) else (result,)

    def step(self, index: int) -> float:
        """One optimiser step; its loss."""
        import torch.nn.functional as F

        scores = self.forward(index)[0]
        loss = (F.nll_loss if self.about["case"]["loss"] == "nll" else F.cross_entropy)(
            scores, self.labels[f"{index}/labels"]
        )
        self.optimiser.zero_grad()
        loss.backward()
        if self.clip_norm:
            from torch.nn.utils import clip_grad_norm_

            clip_grad_norm_(self.module.parameters(), self.clip_norm)
        self.optimiser.step()
        if self.schedule:
            self.schedule.step()
        return loss.item()

    def state(self) -> dict[str, np.ndarray]:
        """Named as the protocol's `state`."""
        found = {
            f"weight:{k}": v.detach().numpy().copy()
            for k, v in self.module.state_dict().items()
            if v.is_floating_point()
        }
        for name, parameter in self.module.named_parameters():
            held = self.optimiser.state.get(parameter, {})
            found |= {
                f"{prefix}:{name}": held[key].numpy().copy()
                for prefix, key in self.held.items()
                if held.get(key) is not None
            }
        return found

    def load_moments(self, tensors: dict[str, np.ndarray], step: int) -> None:
        """Adam's buffers, zero where `tensors` lacks them, after `step` steps."""
        import torch

        for name, parameter in self.module.named_parameters():
            own_moments = {prefix: tensors.get(f"{prefix}:{name}") for prefix in MOMENTS}
            self.optimiser.state[parameter] = {
                key: torch.zeros_like(parameter)
                if value is None
                else torch.from_numpy(value.copy())
                for key, value in own_moments.items()
            } | {"step": torch.tensor(float(step))}


def start(worker: Worker, optimiser: dict | None = None, dropout: bool = False, **changed) -> dict:
    """Loads the bundle with its labels, dropout off; the answer to `load`."""
    answer = worker.load(**({"optimiser": optimiser} if optimiser else {}), **changed)
    worker.ask("set_labels", path=str(worker.bundle / "labels.safetensors"))
    worker.ask("set_mode", mode="train", dropout=dropout)
    return answer


def losses(worker: Worker, indices: list[int]) -> list[float]:
    """One step for each index."""
    return [float(worker.prove([i])[f"{i}/loss"]) for i in indices]


def state(worker: Worker) -> tuple[dict[str, np.ndarray], int, float]:
    """Weights, statistics and the optimiser's buffers; the steps done, the rate of the next."""
    tensors, step, rate = whole_state(worker)
    return (
        {
            name: value
            for name, value in tensors.items()
            if name.startswith(("weight:", "momentum:", "exp_avg:", "exp_avg_sq:"))
        },
        step,
        rate,
    )


def whole_state(worker: Worker) -> tuple[dict[str, np.ndarray], int, float]:
    """Counts and generators too."""
    path = Path(worker.scratch.name) / "state.safetensors"
    answer = worker.ask("state", out=str(path))
    return load_file(path), answer["step"], answer["lr"]


def load_state(worker: Worker, tensors: dict[str, np.ndarray], step: int, **more: int) -> None:
    path = Path(worker.scratch.name) / "wanted.safetensors"
    save_file({k: np.asarray(v, order="C") for k, v in tensors.items()}, path)
    worker.ask("load_state", path=str(path), step=step, **more)


def worst(got: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> float:
    """The greatest relative error of a tensor; names and shapes must agree."""
    assert set(got) == set(expected), set(got) ^ set(expected)
    assert all(got[name].shape == expected[name].shape for name in got)
    return max(
        float(
            np.linalg.norm(got[name] - expected[name]) / max(np.linalg.norm(expected[name]), 1e-6)
        )
        for name in got
    )


def expect_four_steps_of_eager(
    worker: Worker, optimiser: dict, near: float, error: Callable = worst
) -> None:
    """`error`: of two states, by name."""
    worker.ask("set_optimiser", optimiser=optimiser)
    eager = Eager(worker.bundle, optimiser)
    assert losses(worker, [0, 1, 2, 3]) == pytest.approx(
        [eager.step(i) for i in range(4)], rel=near
    )
    tensors, step, rate = state(worker)
    assert error(tensors, eager.state()) < near and step == 4
    assert any(not name.startswith("weight:") for name in tensors) == (
        optimiser.get("momentum") != 0
    )
    assert rate == pytest.approx(eager.optimiser.param_groups[0]["lr"], rel=1e-12, abs=1e-17)


def expect_adam_to_count_steps(
    worker: Worker,
    done: int,
    has_moments: bool,
    optimiser: dict,
    near: float,
    error: Callable = worst,
) -> None:
    """A step from given buffers, or none, after `done` steps is eager's."""
    worker.ask("set_optimiser", optimiser=optimiser | ({} if has_moments else {"eps": 0.1}))
    eager = Eager(worker.bundle, optimiser | ({} if has_moments else {"eps": 0.1}))
    weights, _, _ = state(worker)
    chosen = (
        moments(weights, [name for name, _ in eager.module.named_parameters()])
        if has_moments
        else {}
    )
    load_state(worker, weights | chosen, done)
    eager.load_moments(chosen, done)
    assert losses(worker, [1]) == pytest.approx([eager.step(1)], rel=near)
    tensors, step, _ = state(worker)
    assert step == done + 1 and error(tensors, eager.state()) < near
    worker.ask("set_optimiser", optimiser=SGD)  # and no buffer is left of it
    load_state(worker, weights, 0)
    other = Eager(worker.bundle)
    assert losses(worker, [0, 2]) == pytest.approx([other.step(0), other.step(2)], rel=near)
    assert error(state(worker)[0], other.state()) < near
