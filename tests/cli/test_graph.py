# SPDX-License-Identifier: Apache-2.0
"""`strata graph`: the captured network of a real capture as a table, as JSON and as Graphviz;
`strata list models --level`."""

from __future__ import annotations

import json
import re

import pytest
from conftest import MODEL, ROOT

RESIDUAL = f"{ROOT / 'tests' / 'levels' / 'networks.py'}:residual_network"


@pytest.fixture(scope="module")
def place(tmp_path_factory, cache):
    from conftest import Strata

    return Strata(tmp_path_factory.mktemp("graph") / "place", cache)


@pytest.fixture(scope="module")
def residual(place):
    done = place.run("graph", RESIDUAL, "--threads", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_lists_every_operation_with_its_place_and_work(residual):
    operations = [node["operation"] for node in residual["nodes"]]
    assert (
        operations.count("conv2d") == 3
        and operations.count("batch_norm") == 3
        and operations[-1] == "linear"
        and "dropout" not in operations
    )
    second = next(node for node in residual["nodes"] if node["module"] == "3.conv2")
    assert second["module_type"] == "Conv2d" and second["source"].startswith("networks.py:")
    assert second["outputs"] == [
        {"name": second["name"], "dtype": "float32", "shape": [4, 12, 12, 12]}
    ]
    assert second["flops"] == 2 * 4 * 12 * 12 * 12 * 12 * 9
    assert (
        second["bytes_read"] == 4 * (4 * 12 * 12 * 12 + 12 * 12 * 9)
        and second["bytes_written"] == 4 * 4 * 12 * 12 * 12
    )
    assert (
        next(node for node in residual["nodes"] if node["operation"] == "flatten")["view"]
        == "reshape"
    )


def test_the_total_is_the_sum_of_what_is_shown(residual, cache):
    captured = [json.loads(path.read_text()) for path in (cache / "bundles").glob("*/bundle.json")]
    about = next(
        one
        for one in captured
        if one["case"]["model"] == RESIDUAL and one["case"]["mode"] == "infer"
    )
    assert (
        residual["case"].endswith("/infer/b4/3x12x12/fp32/cpu/t1")
        and residual["flops_uncounted"] == []
    )
    assert residual["total"]["flops"] == sum(node["flops"] for node in residual["nodes"]) > 0
    assert residual["parameters"] == about["parameters"] and residual["unknown"] == []


def test_the_table_fits_eighty_columns_and_ends_with_totals(place):
    import fcntl
    import os
    import pty
    import struct
    import subprocess
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    from conftest import PROGRAM

    process = subprocess.Popen(
        [str(PROGRAM), "graph", RESIDUAL, "--threads", "1"],
        env=place.environment,
        stdout=follower,
        stderr=subprocess.PIPE,
    )
    os.close(follower)
    text = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        text += part
    assert process.wait() == 0, process.stderr.read()
    lines = text.decode().replace("\r\n", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:2] == ["conv2d_1", "3.conv1"] for line in lines)
    assert any(line.split()[:1] == ["all"] for line in lines)


def test_draws_a_graph_for_graphviz(place):
    done = place.run("graph", RESIDUAL, "--threads", "1", "--format", "dot")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("digraph ") and done.stdout.rstrip().endswith("}")
    assert (
        done.stdout.count('[label="conv2d') == 3
        and "->" in done.stdout
        and "4x12x12x12" in done.stdout
    )
    assert done.stdout.count("{") == done.stdout.count("}")


def test_shows_the_training_graph_with_what_it_updates(place):
    done = place.run("graph", RESIDUAL, "--threads", "1", "--mode", "train", "--format", "json")
    assert done.returncode == 0, done.stderr
    graph = json.loads(done.stdout)
    assert (
        graph["mode"] == "train"
        and "1.running_mean" in graph["updates"]
        and len(graph["updates"]) == 9
    )
    assert "dropout" in [node["operation"] for node in graph["nodes"]]
    assert all(
        len(node["outputs"]) == 3 for node in graph["nodes"] if node["operation"] == "batch_norm"
    )


def test_takes_the_users_inputs_from_a_file_as_compare_does(place, tmp_path):
    import numpy as np

    np.savez(tmp_path / "x.npz", x=np.zeros((3, 3, 12, 12), np.float32))
    words = ("graph", RESIDUAL, "--batch", "3", "--inputs", str(tmp_path / "x.npz"))
    done = place.run(*words, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nodes"][0]["outputs"][0]["shape"][0] == 3
    done = place.run("graph", RESIDUAL, "--inputs", str(tmp_path / "none.npz"))
    assert done.returncode == 2 and "there is no such file" in done.stderr


def test_names_unknown_operations_where_they_occur(place, tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        return torch.median(self.fc(x), 1).values\n\n\ndef build():\n    return Net(), torch.randn(2, 4)\n"
    )
    done = place.run("graph", f"{tmp_path / 'net.py'}:build", "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert (
        "unknown to strata: median (levels that run the captured graph may lack it)\n  node 'median' (median) in the network itself (Net), net.py:11\n"
        in done.stdout
    )


def test_names_what_the_lowest_levels_lack_and_so_does_generate(place, tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mix = nn.Bilinear(4, 4, 4)\n        self.near = nn.CosineSimilarity(0)\n\n"
        "    def forward(self, x):\n        return self.near(self.mix(x, x), x)\n\n\ndef build():\n    return Net(), torch.randn(3, 4)\n"
    )
    words = "bilinear (mix, net.py:12), cosine_similarity (near, net.py:12)"
    done = place.run("graph", f"{tmp_path / 'net.py'}:build", "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert f"onednn lacks: {words}\nstatic lacks: {words}\n" in done.stdout
    shown = json.loads(
        place.run(
            "graph", f"{tmp_path / 'net.py'}:build", "--threads", "1", "--format", "json"
        ).stdout
    )
    assert shown["lacks"]["static"] == {
        "operations": ["bilinear", "cosine_similarity"],
        "words": words,
    }
    refused = place.run(
        "generate", f"{tmp_path / 'net.py'}:build", "--threads", "1", "-o", str(tmp_path / "out")
    )
    assert (
        refused.returncode == 3
        and f"no operation {words}" in refused.stderr
        and "--target libtorch" in refused.stderr
    )
    assert (
        json.loads(place.run("graph", RESIDUAL, "--threads", "1", "--format", "json").stdout)[
            "lacks"
        ]
        == {}
    )


def test_says_why_a_network_has_no_graph(place):
    done = place.run(
        "graph", f"{ROOT / 'tests' / 'levels' / 'networks.py'}:branching_network", "--threads", "1"
    )
    assert done.returncode == 3
    assert (
        "error: the network has no captured graph: " in done.stderr
        and "networks.py" in done.stderr
        and "try: " in done.stderr
    )


def test_a_sparse_file_of_inputs_is_refused_by_its_size(place, tmp_path):
    with open(tmp_path / "x.npz", "wb") as file:
        file.truncate(1 << 42)
    done = place.run("graph", RESIDUAL, "--inputs", str(tmp_path / "x.npz"))
    assert done.returncode == 2 and "4398046511104 bytes; allowed" in done.stderr, done.stderr


def test_dumps_the_program_after_a_pass(place):
    done = place.run(
        "graph",
        RESIDUAL,
        "--threads",
        "1",
        "--dump-after",
        "fuse_residual_sums",
        "--block",
        "8",
        "--format",
        "json",
    )
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)["steps"]
    assert [step["operation"] for step in steps].count("conv2d") == 3 and not [
        step for step in steps if step["operation"] in ("batch_norm", "add")
    ]
    layer = next(step for step in steps if "add" in [post["operation"] for post in step["posts"]])
    assert (
        layer["operation"] == "conv2d"
        and layer["graph_nodes"][0] == layer["name"]
        and any(name.startswith("batch_norm") for name in layer["graph_nodes"])
    )
    planned = place.run("graph", RESIDUAL, "--threads", "1", "--dump-after", "plan_memory")
    assert planned.returncode == 0, planned.stderr
    # cut at the terminal's width
    assert (
        "after plan_memory: " in planned.stdout
        and "above the least possible" in planned.stdout
        and re.search(r"conv2d \+ (add|ad\.\.\.)", planned.stdout)
    )


def test_dumps_a_program_in_bfloat16(place):
    done = place.run(
        "graph",
        RESIDUAL,
        "--threads",
        "1",
        "--dump-after",
        "plan_memory",
        "--precision",
        "bf16",
        "--format",
        "json",
    )
    assert done.returncode == 0, done.stderr
    steps = [step for step in json.loads(done.stdout)["steps"] if step["when"] == "run"]
    types = {(step["operation"], output["dtype"]) for step in steps for output in step["outputs"]}
    assert (
        ("conv2d", "bfloat16") in types
        and ("conv2d", "float32") not in types
        and {("strata.cast", "bfloat16"), ("strata.cast", "float32")} <= types
    )


def test_dumps_the_program_of_a_training_step(place):
    done = place.run(
        "graph",
        RESIDUAL,
        "--threads",
        "1",
        "--mode",
        "train",
        "--backward",
        "--dump-after",
        "fuse_gradients",
        "--format",
        "json",
    )
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)["steps"]
    called = [step["operation"] for step in steps]
    assert (
        called.count("strata.train_convolution") == 3
        and called.count("strata.sgd") == 1
        and called.count("strata.sgd_of_product") == 1
        and "strata.clamp_backward" not in called
    )
    assert any(
        "add" in [post["operation"] for post in step["posts"]]
        for step in steps
        if step["operation"] == "strata.batch_norm_train"
    )


def test_dumps_a_training_step_that_fits_a_memory_budget(place):
    words = (
        "graph",
        RESIDUAL,
        "--threads",
        "1",
        "--mode",
        "train",
        "--backward",
        "--dump-after",
        "plan_memory",
        "--format",
        "json",
    )
    whole, lean = place.run(*words), place.run(*words, "--memory-budget", "80%")
    assert whole.returncode == 0 and lean.returncode == 0, whole.stderr + lean.stderr
    whole, lean = json.loads(whole.stdout), json.loads(lean.stdout)
    assert lean["arena_bytes"] <= 0.8 * whole["arena_bytes"]
    again = [step["name"] for step in lean["steps"] if step["again"]]
    assert len(again) == lean["repeated_steps"] > 0 == whole["repeated_steps"] and all(
        name.endswith(".again") for name in again
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--memory-budget", "1MB"), "only the program of a training step is made to fit one"),
        (
            (
                "--memory-budget",
                "lots",
                "--mode",
                "train",
                "--backward",
                "--dump-after",
                "plan_memory",
            ),
            "--memory-budget lots: this is no number with a unit",
        ),
        (
            ("--memory-budget", "1MB", "--mode", "train", "--backward", "--dump-after", "lower"),
            "found later, by the pass recompute",
        ),
        (
            ("--dump-after", "fold_batchnorm"),
            "--dump-after: there is no pass 'fold_batchnorm'; passes, in their order: lower, fold_constants, fold_batch_norm, ",
        ),
        (
            ("--dump-after", "lower", "--format", "dot"),
            "--dump-after with --format dot: a program is shown as text or json",
        ),
        (
            ("--dump-after", "lower", "--mode", "train"),
            "--dump-after with --mode train: the passes are for inference, or for a whole training step",
        ),
        (
            ("--dump-after", "lower", "--precision", "tf32"),
            "--precision tf32: allowed are fp32 and bf16",
        ),
        (
            ("--precision", "bf16"),
            "--precision bf16: the captured graph is the same in all; the program is not",
        ),
        (
            ("--dump-after", "lower", "--mode", "train", "--backward", "--precision", "bf16"),
            "--precision bf16: allowed are fp32 and amp-bf16",
        ),
        (("--dump-after", "lower", "--block", "12"), "--block 12: unknown; allowed: 8, 16"),
        (
            ("--format", "jsn"),
            "--format jsn: unknown (did you mean 'json'?); allowed: text, json, dot",
        ),
        (("--mode", "infer,train"), "--mode infer,train: unknown; allowed: infer, train"),
        (("--batch", "0"), "--batch 0: allowed: 1 to"),
    ],
)
def test_refuses_wrong_usage_before_anything_is_captured(place, arguments, message):
    done = place.run("graph", MODEL, *arguments)
    assert done.returncode == 2 and message in done.stderr and not done.stdout


def test_a_name_that_no_model_has_is_refused_before_pytorch_is_loaded(place):
    done = place.run("graph", "resnet5o")
    assert done.returncode == 2 and "did you mean resnet50?" in done.stderr, done.stderr
    assert "loading PyTorch" not in done.stderr


def test_lists_the_models_that_a_level_can_run_and_what_it_lacks(strata):
    strata.level(
        "plain",
        json_fields={
            "operations": [
                "adaptive_avg_pool2d",
                "add",
                "batch_norm",
                "conv2d",
                "flatten",
                "linear",
                "max_pool2d",
                "relu",
            ]
        },
    )
    done = strata.run("list", "models", "--level", "plain", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {row["model"]: row for row in json.loads(done.stdout)}
    assert (
        rows["resnet50"]["infer"] == "yes"
        and rows["resnet50"]["train"] == "no"
        and rows["resnet50"]["why_not"] == "no mode train"
    )
    assert (
        rows["mnist_convnet"]["infer"] == "no"
        and rows["mnist_convnet"]["why_not"] == "lacks log_softmax; no mode train"
    )
    assert (
        "plain runs " in done.stderr
        and "models in infer, 0 in train; judged by graphs captured with torch " in done.stderr
    )
    # calls all of ATen
    generated = strata.run("list", "models", "--level", "libtorch", "--format", "json")
    assert {
        (row["infer"], row["train"]) for row in json.loads(generated.stdout) if row["model"] in rows
    } == {("yes", "yes")}, generated.stderr
    wrong = strata.run("list", "models", "--level", "plai")
    assert (
        wrong.returncode == 2
        and "--level: unknown level 'plai' (did you mean 'plain'?)" in wrong.stderr
    )
