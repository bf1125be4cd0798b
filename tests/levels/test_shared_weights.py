# SPDX-License-Identifier: Apache-2.0
"""Weight sets belong to the network: cases of other batches, sizes, modes and threads share one
file of each, and whatever decides the weights makes another network."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from specs import capture, whole  # noqa: E402

from capture.case import resolve_inputs  # noqa: E402
from capture.network import NetworkWeights, own_ring  # noqa: E402
from strata_sdk.models import build_model  # noqa: E402

NETWORK = """
import pathlib
import torch
from torch import nn
HERE = pathlib.Path(__file__).parent
def build():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    if (HERE / "w.pt").exists():
        net.load_state_dict(torch.load(HERE / "w.pt"))
    return net, torch.linspace(-1, 1, 2 * 3 * 12 * 12).reshape(2, 3, 12, 12)
"""
SETS = ("timed", "generic1", "generic2")


@pytest.fixture
def model(tmp_path) -> str:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "net.py").write_text(NETWORK, encoding="utf-8")
    return f"{tmp_path / 'net' / 'net.py'}:build"


@pytest.fixture
def captured(tmp_path):
    """captured(spec, name) -> the bundle's folder; all share <tmp_path>/networks."""

    def get(spec: dict, name: str, **how) -> Path:
        capture(
            {"threads": 1} | spec,
            tmp_path / "bundles" / name,
            lambda _text: None,
            networks=tmp_path / "networks",
            **how,
        )
        return tmp_path / "bundles" / name

    return get


def image(batch: int, size: int) -> list[dict]:
    return [{"name": "", "dtype": "float32", "shape": [batch, 3, size, size]}]


def weights(folder: Path) -> dict[str, int]:
    """The inode of each set."""
    return {path.stem: path.stat().st_ino for path in (folder / "weights").iterdir()}


def networks(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "networks").iterdir())


def test_cases_of_other_batches_sizes_threads_and_modes_have_one_file_of_each_set(
    model, captured, tmp_path
):
    first = captured({"model": model}, "first")
    written = {path: path.stat().st_mtime_ns for path in networks(tmp_path)[0].glob("weights/*")}
    for name, more in (
        ("larger", {"inputs": image(4, 20), "batch": 4}),
        ("one", {"batch": 1}),
        ("threads", {"threads": 2, "ring": 3}),
        ("bf16", {"precision": "bf16"}),
        ("deep", {"deep": True}),
    ):
        assert weights(captured({"model": model} | more, name)) == weights(first), name
    trained = captured({"model": model, "mode": "train"}, "train")
    assert (
        set(weights(trained)) == {"timed", "probe1", "probe2"}
        and weights(trained)["timed"] == weights(first)["timed"]
    )
    [network] = networks(tmp_path)
    assert set(weights(first)) == set(SETS) and written == {
        path: path.stat().st_mtime_ns for path in network.glob("weights/*")
    }, "a set was made again"
    assert json.loads((first / "bundle.json").read_text())["network"]["key"] == network.name
    assert (
        json.loads((first / "manifest.json").read_text())["files"]["weights/timed.safetensors"][
            "bytes"
        ]
        > 0
    )


def test_a_network_that_strata_ships_is_calibrated_at_its_own_shape(tmp_path):
    """So that what is captured alone has the same weights, too: batch 1 and 8 had other BatchNorm
    statistics."""
    found = []
    for name, batch, size in (("a", 1, 64), ("b", 2, 96)):
        built = build_model("resnet18")
        spec = whole({"model": "resnet18", "inputs": image(batch, size)})
        inputs = resolve_inputs(spec, built)
        (tmp_path / name / "weights").mkdir(parents=True)
        info = {"model": {"kind": "shipped", "name": "resnet18"}, "network": {}}
        prepared = NetworkWeights(
            built.module.requires_grad_(False),
            spec,
            info,
            [own_ring(spec, built, inputs)],
            None,
            [],
            tmp_path / name,
        )
        assert prepared.prepare(lambda _sets: None, lambda _text: None) == (
            "seeded 0, calibrated BatchNorm statistics",
            "seed0",
        )
        found.append(prepared)
    for each in SETS:
        a, b = (prepared.tensors(each) for prepared in found)
        assert all(torch.equal(a[key], b[key]) for key in a) and not torch.equal(
            a["bn1.running_mean"], torch.zeros(64)
        ), each


def test_inputs_that_are_not_of_the_networks_own_form_calibrate_by_themselves(model, tmp_path):
    built = build_model(model)

    def own(**spec):
        full = whole({"model": model} | spec)
        return own_ring(full, built, resolve_inputs(full, built))

    assert (
        own()[1]
        == own(inputs=image(7, 30))[1]
        == [{"name": "input", "keyword": False, "dtype": "float32", "shape": [2, 3, 12, 12]}]
    )
    assert own(inputs=[image(2, 12)[0] | {"low": 0, "high": 255}]) is None
    assert own(inputs=[image(2, 12)[0] | {"dtype": "float64"}]) is None
    save_file({"arg0": torch.zeros(2, 3, 12, 12)}, tmp_path / "own.safetensors")
    assert own(input_file=str(tmp_path / "own.safetensors")) is None


@pytest.mark.parametrize("lock", ["held", "none"])
def test_a_capture_waits_with_a_sentence_for_another_but_not_where_nothing_can_be_locked(
    lock, model, captured, tmp_path, monkeypatch
):
    asked, said = [], []

    def flock(_file, how: int) -> None:
        asked.append(how)
        if lock == "none":
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        if how & fcntl.LOCK_NB:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    how = {"threads": 1, "model": model}
    capture(how, tmp_path / "bundles/b", said.append, networks=tmp_path / "networks")
    waits = [text for text in said if "waiting for another strata that captures" in text]
    assert len(waits) == (1 if lock == "held" else 0)
    assert len(asked) == (2 if lock == "held" else 1)
    assert (tmp_path / "bundles/b/weights/timed.safetensors").exists()


def test_what_decides_the_weights_makes_another_network(model, captured, tmp_path):
    source = Path(model.partition(":")[0])
    first = captured({"model": model}, "first")
    captured({"model": model, "seed": 1}, "seed")
    save_file(load_file(first / "weights" / "generic1.safetensors"), tmp_path / "own.safetensors")
    captured({"model": model, "weights": str(tmp_path / "own.safetensors")}, "own")
    assert len(networks(tmp_path)) == 3
    module = build_model(model, 3).module
    torch.save(module.state_dict(), source.parent / "w.pt")
    other = captured({"model": model}, "checkpoint")
    assert len(networks(tmp_path)) == 4 and torch.equal(
        load_file(other / "weights" / "timed.safetensors")["0.weight"], module[0].weight
    )
    assert not torch.equal(
        load_file(first / "weights" / "timed.safetensors")["0.weight"], module[0].weight
    ), "the earlier bundle keeps its own"
    source.write_text(NETWORK.replace("nn.ReLU()", "nn.GELU()"), encoding="utf-8")
    captured({"model": model}, "code")
    assert len(networks(tmp_path)) == 5


def test_a_network_that_was_removed_is_made_again_and_bundles_stay_whole(model, captured, tmp_path):
    first = captured({"model": model}, "first")
    stored = {name: (first / "weights" / f"{name}.safetensors").read_bytes() for name in SETS}
    shutil.rmtree(tmp_path / "networks")
    second = captured({"model": model, "batch": 3}, "second")
    for name in SETS:
        assert (
            (first / "weights" / f"{name}.safetensors").read_bytes()
            == stored[name]
            == (second / "weights" / f"{name}.safetensors").read_bytes()
        )


@pytest.mark.parametrize("damage", ["cut", "changed", "without its hash", "a link"])
def test_a_set_that_is_not_whole_is_made_again(damage, model, captured, tmp_path):
    first = captured({"model": model}, "first")
    path = networks(tmp_path)[0] / "weights" / "generic1.safetensors"
    stored = path.read_bytes()
    if damage == "without its hash":
        path.with_suffix(".json").unlink()
    elif damage == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_bytes(stored[:-4] + (b"" if damage == "cut" else b"abcd"))
    second = captured({"model": model, "batch": 3}, "second")
    assert (second / "weights" / "generic1.safetensors").read_bytes() == stored and weights(second)[
        "generic1"
    ] != weights(first)["generic1"]
    assert weights(second)["timed"] == weights(first)["timed"]


def test_a_capture_that_is_killed_while_it_makes_weights_leaves_nothing_half(
    model, captured, tmp_path
):
    hook = "    net[2].register_forward_hook(lambda _m, args, _out: __import__('time').sleep(60) if len(args[0]) == 8 and 'HANGS' in __import__('os').environ else None)\n"
    Path(model.partition(":")[0]).write_text(
        NETWORK.replace("    return net,", f"{hook}    return net,"), encoding="utf-8"
    )
    command = [
        sys.executable,
        "-m",
        "capture",
        "--spec",
        json.dumps(whole({"model": model})),
        "--networks",
        str(tmp_path / "networks"),
        "--out",
    ]
    place = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'sdk' / 'python'}"}
    process = subprocess.Popen(
        [*command, str(tmp_path / "killed")],
        env=place | {"HANGS": "in the calibration, of 8 samples"},
    )
    deadline = time.monotonic() + 60
    while (
        not list((tmp_path / "networks").glob("*/weights/timed.json"))
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    [half] = networks(tmp_path)
    assert not (tmp_path / "killed").exists() and not (half / "weights" / "generic1.json").exists()
    (half / "weights" / ".generic1.safetensors").write_bytes(b"half of it")
    assert (
        subprocess.run([*command, str(tmp_path / "after")], env=place, check=False).returncode == 0
    )
    assert networks(tmp_path) == [half] and not list(half.glob("weights/.*"))
    assert sorted(load_file(tmp_path / "after" / "weights" / "generic1.safetensors")) == sorted(
        build_model(model).module.state_dict()
    )
