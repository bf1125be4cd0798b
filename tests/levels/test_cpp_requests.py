# SPDX-License-Identifier: Apache-2.0
"""C++ levels and requests that make no sense, what they print, and how they end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from client import Failed, Worker, level_folder
from level_builds import PRIMITIVES, STATIC, TORCH
from safetensors.numpy import load_file, save_file

ALL = ("null_cpp", *TORCH, *PRIMITIVES, *STATIC)


def load_fields(worker: Worker, **changed) -> dict:
    case = json.loads((worker.bundle / "bundle.json").read_text())["case"] | changed
    return {
        "case": case,
        "bundle": str(worker.bundle),
        "weights": "timed",
        "cache": str(worker.cache),
    }


@pytest.mark.parametrize("level", ALL)
def test_answers_every_bad_request_and_goes_on(level, fresh):
    worker = fresh(level)
    for line in (b"nonsense", b"[1, 2]", b'{"op":"hello"}', b'{"id":"x","op":"hello"}'):
        answer = worker.send(line)
        assert answer["ok"] is False and answer["code"] == "bad_request" and answer["id"] is None
    answer = worker.send(b'{"id":-4}')
    assert answer["code"] == "bad_request" and answer["id"] == -4
    for op, code in (
        ("fly", "unsupported"),
        ("epoch", "unsupported"),
        ("measure", "bad_request"),
        ("prove", "bad_request"),
        ("inputs", "bad_request"),
        ("weights", "bad_request"),
        ("unload", "bad_request"),
        ("load", "bad_request"),
    ):
        with pytest.raises(Failed) as failed:
            worker.ask(op)
        assert failed.value.code == code and failed.value.what, op
    for changed in ({"mode": "dream"}, {"precision": "int3"}, {"device": "abacus"}):
        with pytest.raises(Failed) as failed:
            worker.ask("load", **load_fields(worker, **changed))
        assert (
            failed.value.code == "unsupported" and next(iter(changed.values())) in failed.value.what
        )
    assert worker.ask("hello", api=2, unknown_field=[1])["api"] == 2


@pytest.mark.parametrize("level", ["null_cpp", "libtorch", *PRIMITIVES])
def test_refuses_a_block_that_makes_no_sense(level, fresh, tmp_path):
    worker = fresh(level)
    worker.load()
    good = {
        "iterations": 2,
        "head": 0,
        "indices": [0, 1],
        "retain": [0],
        "region": "end_to_end",
    }
    for changed in (
        {"iterations": 3},
        {"iterations": 0},
        {"iterations": "two"},
        {"head": -1},
        {"indices": [0, 4]},
        {"indices": [0, -1]},
        {"indices": 0},
        {"retain": [2]},
        {"retain": [-1]},
        {"retain": 0},
    ):
        with pytest.raises(Failed) as failed:
            worker.ask("measure", **good | changed)
        assert failed.value.code == "bad_request", changed
    with pytest.raises(Failed) as failed:
        worker.ask("measure", **good | {"region": "throughput"})
    assert failed.value.code == "unsupported"
    with pytest.raises(Failed):
        worker.ask("weights", weights="../timed")
    with pytest.raises(Failed):
        worker.ask("load", **load_fields(worker))
    assert len(worker.ask("measure", **good)["wall_ns"]) == 2
    out = {"iteration": 0, "out": str(tmp_path / "no" / "such" / "folder")}
    with pytest.raises(Failed) as failed:
        worker.ask("result", **out)
    assert failed.value.code == "failed" and str(tmp_path) in failed.value.what
    for changed in ({"iteration": 1}, {"iteration": "0"}, {"out": 7}):
        with pytest.raises(Failed) as failed:
            worker.ask("result", **out | changed)
        assert failed.value.code == "bad_request", changed


@pytest.mark.parametrize("level", ["libtorch", *PRIMITIVES])
def test_every_timed_input_has_a_number_in_its_last_bits_and_one_is_of_another_entry(
    level, fresh, tmp_path
):
    worker = fresh(level)
    worker.load()
    # so large that a softmax does not hide its last bits
    ring = {
        name: 1e4 * value for name, value in load_file(worker.bundle / "inputs.safetensors").items()
    }
    save_file(ring, tmp_path / "ring.safetensors")
    worker.ask("inputs", path=str(tmp_path / "ring.safetensors"))
    before = worker.prove([0, 1, 2, 3])
    size = next(iter(ring.values())).size
    block = {
        "iterations": 4,
        "head": 1,
        "indices": [0, 1, 2, 3],
        "retain": [0, 1, 2, 3],
        "region": "end_to_end",
    }
    changes = {"first": 8**8 - 5, "places": list(range(size))}  # so many that they show
    for at in range(4):
        for more, index in (
            ({}, at),
            ({"exchange": (at + 1) % 4, "at": at}, (at + 1) % 4),
            ({"exchange": at, "at": at}, at),
        ):
            answer = worker.ask("measure", **block, fresh=changes | more)
            assert answer["fresh"] == {"places": size}
            for iteration in range(4):
                outputs = worker.result(iteration)
                input_of = index if iteration == at else iteration
                assert outputs and all(name.startswith(f"{input_of}/") for name in outputs)
                for name, value in outputs.items():
                    assert (value != before[name]).any(), "another input"
                    assert np.allclose(
                        value, before[name], rtol=1e-4, atol=1e-4 * np.abs(before[name]).max()
                    )
    first = {name[2:]: value for name, value in ring.items() if name.startswith("1/")}
    for entry, count in (("unseen", 1), ("two", 2)):
        save_file(
            {f"{k}/{name}": -value for k in range(count) for name, value in first.items()},
            tmp_path / entry,
        )
    unseen = {"exchange": 7, "at": 2, "entry": str(tmp_path / "unseen")}
    worker.ask("measure", **block, fresh=changes | unseen)
    outputs = worker.result(2)
    assert outputs and all(
        name.startswith("7/") and not np.allclose(value, before["1/" + name[2:]])
        for name, value in outputs.items()
    )
    after = worker.prove([0, 1, 2, 3])
    assert all((after[name] == before[name]).all() for name in before), "the ring is as it was"
    for changed in (
        changes | unseen | {"entry": str(tmp_path / "two")},
        3,
        {"first": 1},
        {"first": "x", "places": []},
        {"first": 1, "places": 2},
        changes | {"exchange": 4, "at": 0},
        changes | {"exchange": -1, "at": 0},
        changes | {"exchange": 1, "at": 4},
        changes | {"exchange": 1},
    ):
        with pytest.raises(Failed) as failed:
            worker.ask("measure", **block, fresh=changed)
        assert failed.value.code == "bad_request", changed


def test_a_level_says_what_its_level_json_declares_and_no_more_than_it_can(tmp_path):
    about = json.loads((level_folder("libtorch") / "level.json").read_text(encoding="utf-8"))
    for modes, reported in ((["infer"], ["infer"]), (["infer", "train"], ["infer", "train"])):
        (tmp_path / "level.json").write_text(
            json.dumps(about | {"id": "other", "modes": modes, "precisions": ["fp32"]}),
            encoding="utf-8",
        )
        with Worker(tmp_path) as worker:
            hello = worker.ask("hello")
        assert (hello["level"], hello["modes"], hello["precisions"]) == (
            "other",
            reported,
            ["fp32"],
        )
        assert (
            ("steps" in hello["ops"]) == ("profile" in hello["ops"]) == ("train" in modes)
            and "serve" in hello["ops"]
            and "report" not in hello["ops"]
        )
    null = json.loads((level_folder("null_cpp") / "level.json").read_text(encoding="utf-8")) | {
        "modes": ["infer", "train"]
    }
    (tmp_path / "level.json").write_text(json.dumps(null), encoding="utf-8")
    with Worker(tmp_path) as worker:
        hello = worker.ask("hello")
    assert hello["modes"] == ["infer"] and not {"steps", "serve", "report", "read_weights"} & set(
        hello["ops"]
    )


def test_a_level_without_its_level_json_says_so(tmp_path):
    with (
        Worker("null_cpp", STRATA_LEVEL_DIR=str(tmp_path)) as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.ask("hello")
    assert failed.value.code == "failed" and str(tmp_path / "level.json") in failed.value.what


def test_an_unknown_variant_is_unsupported(bundles):
    with (
        Worker("libtorch", bundles("mnist"), variant="channels_first_and_last") as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load()
    assert failed.value.code == "unsupported" and "channels_first_and_last" in failed.value.what


@pytest.mark.parametrize("level", ALL)
def test_what_a_library_prints_goes_to_the_log(level, fresh):
    worker = fresh(level)
    worker.ask("hello")
    descriptors = Path(f"/proc/{worker.process.pid}/fd")
    assert os.readlink(descriptors / "1") == os.readlink(descriptors / "2") == worker.log.name


@pytest.mark.parametrize("level", ALL)
def test_ends_when_its_input_closes(level, fresh):
    worker = fresh(level)
    worker.ask("hello")
    worker.process.stdin.close()
    assert worker.process.wait(5) == 0


@pytest.mark.parametrize("level", ["null_cpp", "libtorch", *PRIMITIVES])
def test_loads_again_after_unload_and_says_bye(level, fresh):
    worker = fresh(level)
    worker.load()
    worker.prove([0])
    worker.ask("unload")
    with pytest.raises(Failed):
        worker.prove([0])
    worker.load()
    worker.prove([0])
    worker.ask("bye")
    assert worker.process.wait(5) == 0


def test_the_null_level_takes_the_inputs_and_gives_zeros_of_the_declared_shape(bundles, fresh):
    worker = fresh("null_cpp")
    worker.load()
    outputs = worker.prove([0, 1])
    assert set(outputs) == {"0/output", "1/output"} and all(
        value.shape == (4, 10) and not value.any() for value in outputs.values()
    )
    warm = worker.ask("warm_up", iterations=6000, min_ns=0)
    assert warm["iterations"] == 6000 and len(warm["wall_ns"]) == 4096
