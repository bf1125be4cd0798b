# SPDX-License-Identifier: Apache-2.0
"""Training on a data set (docs/protocol.md, data, steps, evaluate): every level is given the same
samples, changed alike, and both SDKs gather the same numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from client import Failed, Worker, prepare
from safetensors.numpy import load_file, save_file

LEVELS = ("eager", "torchscript", "libtorch", "onednn", "static")
BATCH, IMAGES, STEPS = 4, 22, 6
MEAN, DEVIATION = [0.1307], [0.3081]
OPTIMISER = {
    "name": "sgd",
    "lr": 0.01,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.0,
    "nesterov": False,
    "schedule": None,
}


def data_set(folder) -> dict[str, np.ndarray]:
    """Images and labels of two splits, an order with flips and shifts, and one without."""
    random = np.random.default_rng(3)
    data = {
        "images": random.integers(0, 256, (IMAGES, 1, 28, 28), np.uint8),
        "labels": random.integers(0, 10, IMAGES, np.int64),
    }
    save_file(data, folder / "train.safetensors")
    save_file(
        {name: value[:10].copy() for name, value in data.items()}, folder / "test.safetensors"
    )
    order = {
        "samples": random.integers(0, IMAGES, (STEPS, BATCH), np.int64),
        "flip": random.integers(0, 2, (STEPS, BATCH), np.uint8),
        "shift": random.integers(-4, 5, (STEPS, BATCH, 2), np.int8),
    }
    save_file(order, folder / "order.safetensors")
    return data | order


def by_formula(data: dict[str, np.ndarray], step: int) -> tuple[np.ndarray, np.ndarray]:
    """The batch of a step, pixel by pixel."""
    samples = data["samples"][step]
    out = np.empty((BATCH, 1, 28, 28), np.float32)
    for place, index in enumerate(samples):
        down, right = data["shift"][step, place]
        for y in range(28):
            for x in range(28):
                from_y, from_x = y - down, x - right
                inside = 0 <= from_y < 28 and 0 <= from_x < 28
                value = (
                    data["images"][
                        index, 0, from_y, 27 - from_x if data["flip"][step, place] else from_x
                    ]
                    if inside
                    else 0
                )
                out[place, 0, y, x] = np.float32((value / 255.0 - MEAN[0]) / DEVIATION[0])
    return out, data["labels"][samples]


@pytest.fixture(scope="module")
def mnist(bundles, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return bundles("train_mnist"), folder, data_set(folder)


@pytest.fixture(scope="module", params=LEVELS)
def worker(request, mnist, tmp_path_factory):
    bundle, folder, _ = mnist
    cache = tmp_path_factory.mktemp(request.param)
    assert prepare(request.param, bundle, cache)["ok"]
    with Worker(request.param, bundle, cache, threads=1) as started:
        started.load()
        started.ask("set_optimiser", optimiser=OPTIMISER)
        started.ask("set_mode", mode="train", dropout=False)
        started.ask(
            "data",
            splits={name: str(folder / f"{name}.safetensors") for name in ("train", "test")},
            mean=MEAN,
            deviation=DEVIATION,
        )
        yield started


def fresh(worker: Worker) -> None:
    worker.ask("weights", weights="timed")
    worker.ask("set_mode", mode="train", dropout=False)


def given_by_hand(worker: Worker, folder, data, step: int) -> None:
    """The batch of a step as the only entry of the ring."""
    images, labels = by_formula(data, step)
    save_file({"0/x": images}, folder / "inputs.safetensors")
    save_file({"0/labels": labels}, folder / "labels.safetensors")
    worker.ask("inputs", path=str(folder / "inputs.safetensors"))
    worker.ask("set_labels", path=str(folder / "labels.safetensors"))


def test_a_step_of_the_order_is_the_step_on_its_samples_given_by_hand(worker, mnist, tmp_path):
    _, folder, data = mnist
    for step in (0, STEPS - 1):
        fresh(worker)
        answer = worker.ask(
            "steps", split="train", order=str(folder / "order.safetensors"), first=step, count=1
        )
        assert all(
            len(answer[name]) == 1 for name in ("loss", "wall_ns", "waited_ns", "gathered_ns")
        )
        worker.ask("state", out=str(tmp_path / "one"))
        fresh(worker)
        given_by_hand(worker, tmp_path, data, step)
        assert worker.prove([0])["0/loss"] == np.float32(answer["loss"][0]), (
            "the loss is the same to the bit"
        )
        worker.ask("state", out=str(tmp_path / "two"))
        one, two = load_file(tmp_path / "one"), load_file(tmp_path / "two")
        assert set(one) == set(two) and all(np.array_equal(one[name], two[name]) for name in one)


def test_steps_go_on_where_the_last_ones_ended(worker, mnist, tmp_path):
    order = str(mnist[1] / "order.safetensors")
    fresh(worker)
    whole = worker.ask("steps", split="train", order=order, first=0, count=STEPS)
    assert (
        len(whole["loss"]) == STEPS
        and all(ns > 0 for ns in whole["wall_ns"])
        and worker.ask("state", out=str(tmp_path / "x"))["step"] == STEPS
    )
    fresh(worker)
    parts = [
        loss
        for first in (0, 2)
        for loss in worker.ask(
            "steps", split="train", order=order, first=first, count=2 if first == 0 else STEPS - 2
        )["loss"]
    ]
    assert parts == whole["loss"]


def test_the_score_of_a_split_is_that_of_its_outputs_given_by_hand(worker, mnist, tmp_path):
    _, _, data = mnist
    fresh(worker)
    worker.ask("set_mode", mode="eval", dropout=False)
    answer = worker.ask("evaluate", split="test", first=3, count=6)
    loss, correct = 0.0, 0
    for first in (3, 5):  # two batches of four that overlap: six images
        images = ((data["images"][first : first + 4] / 255.0 - MEAN[0]) / DEVIATION[0]).astype(
            np.float32
        )
        save_file({"0/x": images}, tmp_path / "inputs")
        worker.ask("inputs", path=str(tmp_path / "inputs"))
        rows = worker.prove([0])["0/output"].astype(np.float64)[0 if first == 3 else 2 :]
        labels = data["labels"][first : first + 4][0 if first == 3 else 2 :]
        loss += (
            float(-rows[np.arange(len(rows)), labels].sum())
            if case_loss(worker) == "nll"
            else float((np.log(np.exp(rows).sum(1)) - rows[np.arange(len(rows)), labels]).sum())
        )
        correct += int((rows.argmax(1) == labels).sum())
    assert (
        answer["samples"] == 6
        and answer["correct"] == correct
        and answer["loss_sum"] == pytest.approx(loss, rel=1e-6)
        and len(answer["wall_ns"]) == 2
    )


def case_loss(worker: Worker) -> str:
    return json.loads((worker.bundle / "bundle.json").read_text())["case"]["loss"]


def test_what_does_not_fit_is_refused_with_a_reason(worker, mnist, tmp_path):
    _, folder, data = mnist
    fresh(worker)

    def refused(op: str, words: str, **fields) -> None:
        with pytest.raises(Failed) as failure:
            worker.ask(op, **fields)
        assert failure.value.code == "bad_request" and words in failure.value.what, (
            failure.value.what
        )

    order = str(folder / "order.safetensors")
    refused("evaluate", "mode is train", split="test", first=0, count=1)
    refused("steps", "no split", split="other", order=order, first=0, count=1)
    refused("steps", f"steps {STEPS} to {STEPS}", split="train", order=order, first=STEPS, count=1)
    refused(
        "steps", "samples", split="train", order=str(folder / "train.safetensors"), first=0, count=1
    )
    wrong = {"samples": np.full((1, BATCH), IMAGES, np.int64)}
    save_file(wrong, tmp_path / "wrong")
    refused(
        "steps", f"holds {IMAGES}", split="train", order=str(tmp_path / "wrong"), first=0, count=1
    )
    save_file({"samples": np.zeros((1, BATCH + 1), np.int64)}, tmp_path / "wide")
    refused("steps", "batches of 5", split="train", order=str(tmp_path / "wide"), first=0, count=1)
    splits = {"train": str(tmp_path / "labels")}
    save_file(
        {"images": data["images"], "labels": np.full(IMAGES, 10, np.int64)}, tmp_path / "labels"
    )
    refused("data", "label 10", splits=splits, mean=MEAN, deviation=DEVIATION)
    save_file(
        {"images": data["images"][:, :, :27].copy(), "labels": data["labels"]}, tmp_path / "labels"
    )
    refused("data", "1x27x28", splits=splits, mean=MEAN, deviation=DEVIATION)
    refused("data", "deviation", splits=splits, mean=MEAN, deviation=[0.0])
    worker.ask("set_mode", mode="eval", dropout=False)
    refused("steps", "mode is eval", split="train", order=order, first=0, count=1)
    refused("evaluate", "images 0 to 10", split="test", first=0, count=11)


def test_the_sizes_of_a_step_by_layer_are_those_of_pytorch_and_nothing_is_moved(mnist, tmp_path):
    import torch

    bundle, folder, data = mnist
    order = str(folder / "order.safetensors")
    with Worker("eager", bundle, tmp_path, threads=1) as worker:
        worker.load()
        assert "norms" in worker.ask("hello")["ops"]
        worker.ask("set_mode", mode="train", dropout=False)
        worker.ask(
            "data",
            splits={"train": str(folder / "train.safetensors")},
            mean=MEAN,
            deviation=DEVIATION,
        )
        worker.ask("state", out=str(tmp_path / "before"))
        layers = worker.ask("norms", split="train", order=order, step=1)["layers"]
        worker.ask("state", out=str(tmp_path / "after"))
        with pytest.raises(Failed, match=f"step {STEPS} of an order"):
            worker.ask("norms", split="train", order=order, step=STEPS)
        by_hand = worker.ask("steps", split="train", order=order, first=1, count=1)["loss"][0]
    before, after = load_file(tmp_path / "before"), load_file(tmp_path / "after")
    assert set(before) == set(after) and all(
        np.array_equal(before[name], after[name]) for name in before
    )
    assert [layer["name"] for layer in layers] == ["conv1", "conv2", "fc1", "fc2"]
    weights = {
        name.removeprefix("weight:"): torch.from_numpy(value).requires_grad_()
        for name, value in before.items()
        if name.startswith("weight:")
    }
    images, labels = (torch.from_numpy(array) for array in by_formula(data, 1))
    one = torch.conv2d(images, weights["conv1.weight"], weights["conv1.bias"])
    two = torch.conv2d(one.relu(), weights["conv2.weight"], weights["conv2.bias"])
    three = torch.nn.functional.linear(
        torch.max_pool2d(two.relu(), 2).flatten(1), weights["fc1.weight"], weights["fc1.bias"]
    )
    four = torch.nn.functional.linear(three.relu(), weights["fc2.weight"], weights["fc2.bias"])
    loss = torch.nn.functional.nll_loss(four.log_softmax(1), labels)
    loss.backward()
    assert loss.item() == pytest.approx(by_hand, rel=1e-5)
    for layer, output in zip(layers, (one, two, three, four)):
        weight = weights[layer["name"] + ".weight"]
        for name, tensor in (("activation", output), ("weight", weight), ("gradient", weight.grad)):
            assert layer[name] == pytest.approx(
                tensor.detach().double().square().mean().sqrt().item(), rel=1e-4
            ), (layer, name)


def test_batches_of_a_dataloader_are_those_of_the_order(mnist, tmp_path):
    bundle, folder, _ = mnist
    losses = {}
    for variant in ("eager", "eager@dataloader"):
        (tmp_path / variant).mkdir()
        with Worker(variant, bundle, tmp_path / variant, threads=1) as worker:
            worker.load()
            worker.ask("set_mode", mode="train", dropout=False)
            worker.ask("set_optimiser", optimiser=OPTIMISER)
            worker.ask(
                "data",
                splits={"train": str(folder / "train.safetensors")},
                mean=MEAN,
                deviation=DEVIATION,
            )
            answer = worker.ask(
                "steps",
                split="train",
                order=str(folder / "order.safetensors"),
                first=0,
                count=STEPS,
            )
            losses[variant] = answer["loss"]
    assert losses["eager@dataloader"] == pytest.approx(losses["eager"], rel=1e-4), (
        "mirrored and moved alike; pixels are rounded otherwise"
    )
    assert all(
        waited == gathered > 0
        for waited, gathered in zip(answer["waited_ns"], answer["gathered_ns"])
    ), "nothing runs ahead"


def test_steps_end_at_a_loss_that_is_not_finite(mnist, tmp_path):
    bundle, folder, _ = mnist
    with Worker("eager", bundle, tmp_path, threads=1) as worker:
        worker.load()
        worker.ask("set_optimiser", optimiser=OPTIMISER | {"lr": 1e20})
        worker.ask(
            "data",
            splits={"train": str(folder / "train.safetensors")},
            mean=MEAN,
            deviation=DEVIATION,
        )
        answer = worker.ask(
            "steps", split="train", order=str(folder / "order.safetensors"), first=0, count=STEPS
        )
        assert (
            answer["loss"][-1] is None
            and len(answer["loss"]) < STEPS
            and None not in answer["loss"][:-1]
        )
