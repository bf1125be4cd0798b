# SPDX-License-Identifier: Apache-2.0
"""A user's network is taken from the cache only while every file that its capture read is as it
was, and nothing else counts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from preloaded import PYTHON
from shipping_level import shipping_level

HEAD = """
import glob, json, os, pathlib
import numpy as np
import torch
from torch import nn
HERE = pathlib.Path(__file__).parent
def numbers(n, start):
    return torch.arange(start, start + n, dtype=torch.float32) / 40
def build():
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
"""
TAIL = "\n    return net.eval(), torch.linspace(-1, 1, 12).reshape(2, 6)\n"
ARRAY = "    net[0].weight.data = torch.as_tensor(w, dtype=torch.float32).reshape(5, 6)"
# what build() does, the file that it reads, and how that is written with a number in it
READERS = {
    "torch.load": ("    net[0].weight.data = torch.load(HERE / 'w.pt')", "w.pt", "torch"),
    "torch.load mapped": (
        "    net[0].weight.data = torch.load(HERE / 'w.pt', mmap=True)",
        "w.pt",
        "torch",
    ),
    "safetensors load_file": (
        "    from safetensors.torch import load_file\n    net[0].weight.data = load_file(HERE / 'w.safetensors')['w']",
        "w.safetensors",
        "safetensors",
    ),
    "safetensors safe_open": (
        "    from safetensors import safe_open\n    with safe_open(str(HERE / 'w.safetensors'), 'pt') as f:\n        net[0].weight.data = f.get_tensor('w')",
        "w.safetensors",
        "safetensors",
    ),
    "np.load": (f"    w = np.load(HERE / 'w.npy')\n{ARRAY}", "w.npy", "numpy"),
    "np.memmap": (f"    w = np.memmap(HERE / 'w.raw', np.float32)\n{ARRAY}", "w.raw", "raw"),
    "torch.from_file": (
        f"    w = torch.from_file(str(HERE / 'w.raw'), size=30, dtype=torch.float32).clone()\n{ARRAY}",
        "w.raw",
        "raw",
    ),
    "torch.jit.load": (
        "    net[0].weight.data = torch.jit.load(str(HERE / 'w.ts')).w",
        "w.ts",
        "script",
    ),
    "a json file": (
        "    net[1] = getattr(nn, json.loads((HERE / 'net.json').read_text())['act'])()",
        "net.json",
        "json",
    ),
    "a module of a sub-package": (
        "    from parts.layers import Act\n    net[1] = Act()",
        "parts/layers.py",
        "module",
    ),
    "a relative path": ("    os.chdir(HERE)\n    w = np.load('w.npy')\n" + ARRAY, "w.npy", "numpy"),
    "read in forward": (
        "    class Late(nn.Module):\n        def forward(self, x):\n            return x * float((HERE / 'scale.txt').read_text())\n    net.append(Late())",
        "scale.txt",
        "text",
    ),
}


def write(path: Path, kind: str, number: int) -> None:
    import numpy
    import torch
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    values = torch.linspace(-1, number, 30).reshape(5, 6)
    if kind == "torch":
        torch.save(values, path)
    elif kind == "safetensors":
        save_file({"w": values}, path)
    elif kind == "numpy":
        numpy.save(path, values.numpy())
    elif kind == "raw":
        values.numpy().tofile(path)
    elif kind == "script":

        class Holder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = torch.nn.Parameter(values)

            def forward(self, x):
                return x

        torch.jit.save(torch.jit.trace(Holder(), torch.ones(1)), str(path))
    elif kind == "json":
        path.write_text(json.dumps({"act": ["ReLU", "Tanh", "GELU"][number]}))
    elif kind == "module":
        path.write_text(f"from torch.nn import {['ReLU', 'Tanh', 'GELU'][number]} as Act\n")
    else:
        path.write_text(f"{number}\n")


def put_model(strata, reading: str) -> str:
    model = strata.folder / "net" / "model.py"
    model.parent.mkdir(exist_ok=True)
    model.write_text(HEAD + reading + TAIL, encoding="utf-8")
    return f"{model}:build"


def graph(strata, model: str, *more: str):
    done = strata.run("graph", model, "--threads", "1", "--format", "json", *more)
    assert done.returncode == 0, done.stderr
    return done


def captured(done) -> bool:
    return ": building" in done.stderr


@pytest.mark.parametrize("reading", READERS)
def test_what_a_network_was_read_from_decides_whether_its_capture_is_taken_again(strata, reading):
    text, name, kind = READERS[reading]
    model = put_model(strata, text)
    write(strata.folder / "net" / name, kind, 1)
    before = (strata.folder / "net" / name).read_bytes()
    assert captured(graph(strata, model))
    # even where the network's weights are mapped for writing
    assert (strata.folder / "net" / name).read_bytes() == before
    assert not captured(graph(strata, model))
    write(strata.folder / "net" / name, kind, 2)
    changed = graph(strata, model)
    assert captured(changed) and f"capturing again: {name} changed" in changed.stderr
    write(strata.folder / "net" / name, kind, 1)
    back = graph(strata, model)
    # whose files differ each time they are written
    assert kind in ("torch", "script") or not captured(back), back.stderr


def test_an_edit_within_a_second_that_keeps_the_size_is_seen(strata):
    text, name, kind = READERS["a module of a sub-package"]
    model = put_model(strata, text)
    layers = strata.folder / "net" / name
    write(layers, kind, 1)
    # a __pycache__ of the user's
    subprocess.run(
        ["python3", "-c", "import parts.layers"], cwd=strata.folder / "net", capture_output=True
    )
    when = layers.stat()
    assert "tanh" in graph(strata, model).stdout
    write(layers, kind, 2)
    os.utime(layers, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert "gelu" in graph(strata, model).stdout


def test_the_eight_states_used_last_stay_in_the_cache(strata):
    text, name, kind = READERS["a json file"]
    model = put_model(strata, text)
    # where no other test captures meanwhile
    strata.environment |= {"STRATA_CACHE": str(strata.folder / "cache")}
    cache = strata.folder / "cache" / "bundles"
    write(strata.folder / "net" / name, kind, 0)
    assert captured(graph(strata, model))
    (first,) = cache.iterdir()
    for number in range(9):  # of other states, as edits would leave them
        other = shutil.copytree(first, first.with_name(f"{first.name[:-16]}{number:016x}"))
        os.utime(other / "bundle.json", (1e9 + number, 1e9 + number))
    write(strata.folder / "net" / name, kind, 1)
    assert captured(graph(strata, model))
    states = {path.name for path in cache.iterdir() if path.name.startswith(first.name[:-16])}
    assert len(states) == 8 and first.name in states
    write(strata.folder / "net" / name, kind, 0)
    assert not captured(graph(strata, model))


def test_an_unrelated_file_beside_the_model_changes_nothing(strata):
    model = put_model(strata, "")
    assert captured(graph(strata, model))
    (strata.folder / "net" / "notes.py").write_text("x = 1\n")
    (strata.folder / "net" / "result.json").write_text("{}")
    (strata.folder / "net" / "parts").mkdir()
    assert not captured(graph(strata, model))


def test_a_file_that_build_looked_for_in_vain_counts_when_it_appears(strata):
    model = put_model(
        strata,
        "    try:\n        scale = float(open(HERE / 'scale.txt').read())\n    except FileNotFoundError:\n        scale = 1\n    net[0].weight.data *= scale",
    )
    assert captured(graph(strata, model))
    (strata.folder / "net" / "scale.txt").write_text("2")
    done = graph(strata, model)
    assert captured(done) and "scale.txt is there now" in done.stderr


def test_a_folder_that_build_lists_counts(strata):
    model = put_model(
        strata,
        "    for path in sorted(glob.glob(str(HERE / 'shards' / '*.npy'))):\n        net[0].weight.data *= float(np.load(path).sum())",
    )
    shards = strata.folder / "net" / "shards"
    write(shards / "a.npy", "numpy", 1)
    assert captured(graph(strata, model)) and not captured(graph(strata, model))
    write(shards / "b.npy", "numpy", 2)
    done = graph(strata, model)
    assert captured(done) and "shards has other files in it" in done.stderr


def test_onnx_files_with_external_data_follow_their_data(strata):
    onnx = pytest.importorskip("onnx")
    import numpy

    strata.level("one", rank=1)

    def save(scale: float) -> None:
        weight = onnx.numpy_helper.from_array(
            numpy.linspace(-scale, scale, 18, dtype=numpy.float32).reshape(6, 3), "w"
        )
        node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
        float32 = onnx.TensorProto.FLOAT
        graph = onnx.helper.make_graph(
            [node],
            "net",
            [onnx.helper.make_tensor_value_info("x", float32, [2, 6])],
            [onnx.helper.make_tensor_value_info("y", float32, [2, 3])],
            [weight],
        )
        (strata.folder / "net.onnx.data").unlink(missing_ok=True)
        onnx.save(
            onnx.helper.make_model(
                graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10
            ),
            strata.folder / "net.onnx",
            save_as_external_data=True,
            location="net.onnx.data",
            size_threshold=0,
        )

    cases = []
    for scale in (1.0, 3.0):
        save(scale)
        done = strata.run(
            "compare",
            "net.onnx",
            "--levels",
            "one",
            "--threads",
            "1",
            "--restarts",
            "1",
            "--budget",
            "1s",
            "--store",
            str(strata.store),
            "--format",
            "json",
        )
        assert done.returncode == 0, done.stderr
        cases.append(json.loads(done.stdout)["cases"][0])
    assert (
        cases[0]["key"] == cases[1]["key"]
        and cases[0]["network_hash"] != cases[1]["network_hash"]
        and cases[0]["network"]["sha256"] != cases[1]["network"]["sha256"]
    )
    assert "net.onnx and net.onnx.data, SHA-256" in cases[1]["weight_source"]


def test_fresh_captures_anew_and_the_same_network_keeps_its_case(strata):
    model = put_model(strata, "    net[0].weight.data[0, 0] += int(os.environ.get('EXTRA', 0))")
    strata.level("one", rank=1)

    def case(*more: str, **environment: str) -> dict:
        done = strata.run(
            "compare",
            model,
            "--levels",
            "one",
            "--threads",
            "1",
            "--restarts",
            "1",
            "--budget",
            "1s",
            "--store",
            str(strata.store),
            "--format",
            "json",
            *more,
            **environment,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["cases"][0] | {"captured": captured(done)}

    first, unseen = case(), case(EXTRA="1")
    assert not unseen["captured"]  # an environment variable is not seen
    again, other = case("--fresh"), case("--fresh", EXTRA="1")
    assert again["captured"] and other["captured"]
    assert (
        first["key"] == again["key"] == other["key"]
        and first["network_hash"] == again["network_hash"] != other["network_hash"]
        and first["network"] == again["network"] != other["network"]
    )
    assert captured(graph(strata, model, "--fresh"))


def test_what_was_captured_is_said_and_train_mode_too(strata):
    strata.level("one", rank=1)
    model = put_model(strata, "    return net, torch.ones(2, 6) * torch.arange(6)")
    done = strata.run(
        "compare",
        model,
        "--levels",
        "one",
        "--threads",
        "1",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(strata.store),
    )
    text = " ".join(done.stdout.split())
    assert (
        "weights: those that build() gave after torch.manual_seed(0), SHA-256 " in text
        and "weights: seeded" not in text
    )
    assert "build() left it in train mode; it runs in eval mode" in text


def test_an_export_after_a_change_proves_nothing_and_says_what_changed(strata):
    shipping_level(strata)
    strata.level("right", rank=1)
    model = put_model(strata, READERS["np.load"][0])
    write(strata.folder / "net" / "w.npy", "numpy", 1)
    done = strata.run(
        "compare",
        model,
        "--levels",
        "right,shipped",
        "--threads",
        "1",
        "--restarts",
        "1",
        "--budget",
        "1s",
        "--store",
        str(strata.store),
        "--format",
        "json",
    )
    run = json.loads(done.stdout)["run"]["id"]

    def export(to: str):
        done = strata.run(
            "export",
            model,
            "--level",
            "shipped",
            "-o",
            to,
            "--store",
            str(strata.store),
            "--threads",
            "1",
        )
        assert done.returncode == 0, done.stderr
        return done

    assert f"equal work proven by run {run}" in export("first").stdout
    write(strata.folder / "net" / "w.npy", "numpy", 2)
    (strata.folder / "net" / "notes.py").write_text("x = 1\n")
    changed = export("second")
    assert "equal work proven" not in changed.stdout
    assert (
        f"nothing is proven about this artefact: w.npy changed since run {run} measured it"
        in changed.stderr
    )
    write(strata.folder / "net" / "w.npy", "numpy", 1)
    assert f"equal work proven by run {run}" in export("third").stdout


def in_its_own_process(strata, cache: Path) -> None:
    """The capture is a process of the driver's, not one that the tests' server forked and ends when
    it gets to it."""
    strata.environment |= {"STRATA_CACHE": str(cache), "STRATA_PYTHON": PYTHON}


def test_a_timeout_ends_a_build_that_never_ends_and_leaves_nothing(strata, tmp_path):
    model = put_model(strata, "    import time\n    time.sleep(600)")
    cache = tmp_path / "cache of its own"
    in_its_own_process(strata, cache)
    began = time.monotonic()
    done = strata.run(
        "compare",
        model,
        "--levels",
        "eager",
        "--timeout",
        "5s",
        "--threads",
        "1",
        "--store",
        str(strata.store),
    )
    assert done.returncode == 1 and time.monotonic() - began < 60
    assert "took longer than 5 s" in done.stderr and "a longer --timeout" in done.stderr
    assert list((cache / "bundles").iterdir()) == []


def test_an_interrupted_capture_leaves_nothing(strata, tmp_path):
    model = put_model(strata, "    import time\n    time.sleep(600)")
    in_its_own_process(strata, tmp_path / "cache of its own")
    process = strata.start("graph", model, "--threads", "1")
    bundles = tmp_path / "cache of its own" / "bundles"
    deadline = time.monotonic() + 60
    while (
        not (bundles.is_dir() and list(bundles.glob(".*partial*"))) and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130 and list(bundles.iterdir()) == []
