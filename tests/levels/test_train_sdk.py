# SPDX-License-Identifier: Apache-2.0
"""The training operations of the Python SDK against docs/protocol.md, on a level of a few lines of
NumPy: answers, bad requests, order, schedules."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import scale_level
from client import ROOT, Failed, Worker
from safetensors.numpy import load_file, save_file

sys.path.insert(0, str(ROOT / "sdk" / "python"))
from strata_sdk.optimiser import DEFAULT, OptimiserError, check_optimiser, learning_rate

ABOUT = scale_level.ABOUT | {
    "modes": ["infer", "train"],
    "variants": {"quick": {"title": "only infers", "modes": ["infer"]}},
}

# The loss is w times the mean of the inputs plus that of the labels; its gradient is the mean of
# the inputs.
SAMPLE = """
import numpy as np
from strata_sdk import *

class Sample(Level, Trains, Profiles):
    def load(self, job): self.w = 0.0
    def load_weights(self, weights): self.w = 2.0
    def set_input(self, inputs): self.x = inputs[0]
    def run(self): self.y = self.x * self.w
    def outputs(self): return [self.y.astype(np.float32)]
    def set_mode(self, mode, dropout): self.dropout = dropout
    def set_optimiser(self, optimiser): self.optimiser, self.v = dict(optimiser), None
    def set_learning_rate(self, rate): self.optimiser["lr"] = rate
    def set_batch(self, inputs, labels): self.x, self.labels = inputs[0], labels
    def step(self):
        self.l = self.w * float(self.x.mean()) + float(self.labels.mean())
        self.v = float(self.x.mean())
        self.w -= self.optimiser["lr"] * self.v
    def loss(self): return self.l
    def step_in_phases(self, inputs, labels, mark):
        self.set_batch(inputs, labels); mark("input"); self.step(); mark("forward")
    joined_phases = {"forward": ["forward", "loss", "backward", "update"]}
    def state(self):
        return {"weight:w": np.array([self.w], np.float32)} | ({} if self.v is None else {"momentum:w": np.array([self.v], np.float32)})
    def load_state(self, tensors, step):
        if "weight:w" not in tensors:
            raise LevelError("no weight:w")
        self.w, self.v = float(tensors["weight:w"][0]), tensors.get("momentum:w")
"""
OPERATIONS = {
    "set_labels": {"path": "x"},
    "set_mode": {"mode": "train"},
    "set_optimiser": {"optimiser": {}},
    "state": {"out": "x"},
    "load_state": {"path": "x", "step": 0},
    "profile": {"iterations": 0, "indices": []},
    "data": {"splits": {}, "mean": [0], "deviation": [1]},
    "steps": {"split": "train", "order": "x", "first": 0, "count": 1},
    "evaluate": {"split": "test", "first": 0, "count": 1},
}


@pytest.fixture
def bundle(tmp_path):
    """By hand: a batch of 2 rows of 3; the ring holds 1, 2, 3, 4 times ones, labels 0, 1, 2, 0."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    case = {
        "model": "sample",
        "mode": "train",
        "batch": 2,
        "precision": "fp32",
        "device": "cpu",
        "threads": 1,
        "seed": 0,
        "deep": False,
        "loss": "cross_entropy",
        "optimiser": DEFAULT | {"lr": 0.5, "schedule": {"name": "step", "every": 2, "gamma": 0.5}},
    }
    about = {
        "bundle": 2,
        "case": case,
        "inputs": [{"name": "arg0", "keyword": False, "dtype": "float32", "shape": [2, 3]}],
        "outputs": [{"name": "output", "dtype": "float32", "shape": [2, 3]}],
        "ring": 4,
    }
    (folder / "bundle.json").write_text(json.dumps(about))
    save_file(
        {f"{i}/arg0": np.full((2, 3), i + 1, np.float32) for i in range(4)},
        folder / "inputs.safetensors",
    )
    save_file(
        {f"{i}/labels": np.full(2, i % 3, np.int64) for i in range(4)},
        folder / "labels.safetensors",
    )
    return folder


@pytest.fixture
def sample(tmp_path, bundle):
    started = []

    def start(source: str = SAMPLE, variant: str = "default", **about) -> Worker:
        folder = tmp_path / f"level{len(started)}"
        folder.mkdir()
        (folder / "level.json").write_text(json.dumps(ABOUT | about))
        (folder / "level.py").write_text(source)
        started.append(Worker(folder, bundle, threads=1, variant=variant))
        return started[-1]

    yield start
    for worker in started:
        worker.__exit__()


@pytest.fixture
def loaded(sample) -> Worker:
    worker = sample()
    worker.load()
    return worker


def refused(worker: Worker, op: str, **fields) -> Failed:
    with pytest.raises(Failed) as failure:
        worker.ask(op, **fields)
    return failure.value


def weight(worker: Worker, tmp_path) -> tuple[float, dict]:
    answer = worker.ask("state", out=str(tmp_path / "state"))
    return float(load_file(tmp_path / "state")["weight:w"][0]), answer


def test_an_iteration_is_a_step_on_inputs_and_labels_and_gives_the_loss(loaded, tmp_path):
    assert loaded.prove([1]) == {"1/loss": np.float32(2 * 2 + 1)}
    assert weight(loaded, tmp_path) == (
        1.0,
        {"id": loaded.number, "ok": True, "step": 1, "lr": 0.5},
    )
    answer, losses = loaded.measure([0, 2], check=1, head=0)
    assert losses == {"2/loss": np.float32(0.5 * 3 + 2)} and len(answer["wall_ns"]) == 2
    assert weight(loaded, tmp_path)[0] == 0.5 - 0.25 * 3, "the third step has half the rate"


def test_a_schedule_goes_on_in_warm_up_and_profile_and_from_a_loaded_step(loaded, tmp_path):
    loaded.ask("warm_up", iterations=3, min_ns=0)
    assert weight(loaded, tmp_path)[1]["lr"] == 0.25
    answer = loaded.ask("profile", iterations=2, indices=[0, 1])
    assert set(answer["phases"]) == {"input", "forward"} and answer["joined"]["forward"] == [
        "forward",
        "loss",
        "backward",
        "update",
    ]
    assert all(len(times) == 2 for times in answer["phases"].values())
    assert weight(loaded, tmp_path)[1] | {"id": 0} == {"id": 0, "ok": True, "step": 5, "lr": 0.125}
    save_file({"weight:w": np.array([9], np.float32)}, tmp_path / "given")
    loaded.ask("load_state", path=str(tmp_path / "given"), step=2)
    loaded.prove([0])
    assert weight(loaded, tmp_path)[0] == 9 - 0.25


def test_weights_and_set_optimiser_begin_at_step_zero(loaded, tmp_path):
    loaded.prove([0, 1, 2])
    loaded.ask("weights", weights="timed")
    assert weight(loaded, tmp_path) == (
        2.0,
        {"id": loaded.number, "ok": True, "step": 0, "lr": 0.5},
    )
    loaded.prove([0])
    loaded.ask("set_optimiser", optimiser={"lr": 3})
    assert weight(loaded, tmp_path)[1]["step"] == 0 and weight(loaded, tmp_path)[1]["lr"] == 3
    assert "momentum:w" not in load_file(tmp_path / "state")


def test_eval_mode_is_inference(loaded):
    loaded.ask("set_mode", mode="eval")
    assert loaded.prove([1])["1/output"].tolist() == [[4.0] * 3] * 2
    assert refused(loaded, "profile", iterations=1, indices=[0]).code == "bad_request"
    loaded.ask("set_mode", mode="train", dropout=False)
    assert list(loaded.prove([1])) == ["1/loss"]


def test_labels_follow_inputs_and_come_before_iterations(sample, bundle):
    worker = sample()
    case = json.loads((bundle / "bundle.json").read_text())["case"]
    worker.ask("load", case=case, bundle=str(bundle), weights="timed", cache=str(bundle))
    assert (
        refused(worker, "set_labels", path=str(bundle / "labels.safetensors")).code == "bad_request"
    )
    worker.ask("inputs", path=str(bundle / "inputs.safetensors"))
    for op, fields in (
        ("prove", {"indices": [0], "out": "x"}),
        ("warm_up", {"iterations": 1, "min_ns": 0}),
        ("profile", {"iterations": 1, "indices": [0]}),
        ("measure", {"iterations": 1, "head": 0, "indices": [0]}),
    ):
        assert "no labels" in refused(worker, op, **fields).what, op
    assert worker.ask("set_labels", path=str(bundle / "labels.safetensors"))["count"] == 4
    worker.ask("inputs", path=str(bundle / "inputs.safetensors"))
    assert "no labels" in refused(worker, "prove", indices=[0], out="x").what, (
        "labels belong to the inputs before"
    )


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({i: np.zeros(2, np.int32) for i in range(4)}, "int32"),
        ({i: np.zeros(3, np.int64) for i in range(4)}, r"\[3\]"),
        ({i: np.zeros(2, np.int64) for i in range(3)}, "3/labels"),
        ({i: np.zeros(2, np.int64) for i in range(5)}, "5 tensors"),
        ({i: np.full(2, 3, np.int64) for i in range(4)}, "label 3"),
        ({i: np.full(2, -1, np.int64) for i in range(4)}, "label -1"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, named, loaded, tmp_path):
    save_file({f"{i}/labels": v for i, v in labels.items()}, tmp_path / "labels")
    with pytest.raises(Failed, match=named) as failure:
        loaded.ask("set_labels", path=str(tmp_path / "labels"))
    assert failure.value.code == "bad_request" and failure.value.hint
    assert loaded.prove([0]), "the labels before still hold"


@pytest.mark.parametrize(
    ("op", "fields"),
    [
        ("set_mode", {"mode": "test"}),
        ("set_mode", {}),
        ("set_mode", {"mode": "train", "dropout": 1}),
        ("set_optimiser", {}),
        ("set_optimiser", {"optimiser": {"lr": -1}}),
        ("state", {}),
        ("state", {"out": 3}),
        ("load_state", {"path": "x"}),
        ("load_state", {"path": "x", "step": -1}),
        ("load_state", {"path": "x", "step": True}),
        ("profile", {"iterations": 2, "indices": [0]}),
        ("profile", {"iterations": 1, "indices": [9]}),
    ],
)
def test_wrong_fields_are_bad_requests(op, fields, loaded):
    assert refused(loaded, op, **fields).code == "bad_request"
    assert loaded.prove([0])


@pytest.mark.parametrize("op", OPERATIONS)
def test_training_operations_need_a_level_a_network_and_a_case_of_mode_train(op, sample, bundle):
    worker = sample()
    assert (
        op in worker.ask("hello")["ops"]
        and refused(worker, op, **OPERATIONS[op]).code == "bad_request"
    )
    worker.ask(
        "load",
        case=json.loads((bundle / "bundle.json").read_text())["case"] | {"mode": "infer"},
        bundle=str(bundle),
        weights="timed",
        cache=str(bundle),
    )
    failure = refused(worker, op, **OPERATIONS[op])
    assert failure.code == "bad_request" and "mode infer" in failure.what
    only_infers = SAMPLE.replace("(Level, Trains, Profiles)", "(Level)")
    for other in (sample(modes=["infer"]), sample(only_infers)):
        hello = other.ask("hello")
        assert (
            op not in hello["ops"]
            and hello["modes"] == ["infer"]
            and refused(other, op, **OPERATIONS[op]).code == "unsupported"
        )


def test_a_level_that_does_not_train_refuses_a_case_of_mode_train_whatever_its_level_json_says(
    sample,
):
    with pytest.raises(Failed, match="sample does not train") as failure:
        sample(SAMPLE.replace("(Level, Trains, Profiles)", "(Level)")).load()
    assert failure.value.code == "unsupported"


def test_a_level_whose_phases_cannot_be_told_apart_trains_without_profile(sample):
    worker = sample(SAMPLE.replace(", Profiles)", ")"))
    ops = worker.ask("hello")["ops"]
    assert "steps" in ops and "profile" not in ops and "norms" not in ops
    worker.load()
    assert refused(worker, "profile", iterations=1, indices=[0]).code == "unsupported"


def test_a_variant_has_its_own_modes_and_an_unknown_one_is_unsupported(sample):
    with pytest.raises(Failed, match="sample@quick has no mode train") as failure:
        sample(variant="quick").load()
    assert failure.value.code == "unsupported"
    with pytest.raises(Failed, match="no variant quicker") as failure:
        sample(variant="quicker").load()
    assert failure.value.code == "unsupported" and "default, quick" in failure.value.hint


def test_a_level_is_told_which_variant_it_is(sample):
    worker = sample(
        SAMPLE.replace(
            "def load(self, job): self.w = 0.0",
            "def load(self, job):\n        if job.variant != 'default': raise LevelError(job.variant)",
        ),
        "quick",
    )
    with pytest.raises(Failed, match="failed: quick"):
        worker.load(mode="infer")


def test_a_state_that_cannot_be_written_fails_and_the_worker_goes_on(loaded):
    assert refused(loaded, "state", out="/nonexistent/state").code == "failed"
    assert loaded.prove([0])


def test_a_wrong_optimiser_of_the_case_is_a_bad_request(sample):
    worker = sample()
    with pytest.raises(Failed, match="momentun") as failure:
        worker.load(optimiser={"momentun": 0.9})
    assert failure.value.code == "bad_request" and "momentum" in failure.value.hint


# ------------------------------------------------------------------------------------- optimisers


@pytest.mark.parametrize(
    ("optimiser", "named"),
    [
        (3, "not an object"),
        ({"name": "adan"}, "'adan'"),
        ({"name": "adam", "amsgrad": True}, "amsgrad"),
        ({"name": "adamw", "maximize": True}, "maximize"),
        ({"name": "adam", "momentum": 0.9}, "momentum"),
        ({"name": "adam", "beta2": 1.0}, "beta2"),
        ({"name": "adam", "eps": -1}, "eps"),
        ({"lr": "x"}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"momentum": True}, "momentum"),
        ({"nesterov": 1}, "nesterov"),
        ({"nesterov": True, "momentum": 0}, "nesterov"),
        ({"nesterov": True, "dampening": 0.1}, "dampening"),
        ({"schedule": "step"}, "schedule"),
        ({"schedule": {"name": "step", "every": 0, "gamma": 1}}, "every"),
        ({"schedule": {"name": "step", "every": 2}}, "gamma"),
        ({"schedule": {"name": "cosine", "steps": 2.5}}, "steps"),
        ({"schedule": {"name": "cosine", "steps": 2, "every": 3}}, "every"),
    ],
)
def test_an_optimiser_that_cannot_be_is_refused_by_name(optimiser, named):
    with pytest.raises(OptimiserError, match=named) as caught:
        check_optimiser(optimiser)
    assert caught.value.hint


def test_an_optimiser_is_filled_with_the_defaults():
    assert check_optimiser(None) == check_optimiser({}) == DEFAULT
    assert check_optimiser({"lr": 1})["momentum"] == 0.9


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_adam_is_filled_with_pytorchs_defaults(name):
    import inspect

    import torch

    usual = {
        key: one.default
        for key, one in inspect.signature(
            {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
        ).parameters.items()
    }
    expected = {
        "name": name,
        "lr": usual["lr"],
        "beta1": usual["betas"][0],
        "beta2": usual["betas"][1],
        "eps": usual["eps"],
        "weight_decay": usual["weight_decay"],
        "clip_norm": 0.0,
        "schedule": None,
    }
    assert check_optimiser({"name": name}) == expected


def test_schedules_are_those_of_pytorch():
    import torch

    for schedule, make in (
        (
            {"name": "step", "every": 3, "gamma": 0.1},
            lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.1),
        ),
        (
            {"name": "cosine", "steps": 5},
            lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5),
        ),
    ):
        ours = check_optimiser({"lr": 0.3, "schedule": schedule})
        theirs = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.3)
        scheduler = make(theirs)
        for step in range(12):
            assert learning_rate(ours, step) == pytest.approx(
                theirs.param_groups[0]["lr"], abs=1e-12
            )
            theirs.step()
            scheduler.step()
