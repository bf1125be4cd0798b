# SPDX-License-Identifier: Apache-2.0
"""The whole comparison with real levels: every planted fault is refused, times agree with PyTorch's
own timer."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from client import compare
from faulty_eager.copies import plant

ROOT = Path(__file__).resolve().parents[2]
NETWORK_FAULTS = [
    "relu_dropped",
    "shortcut_dropped",
    "bn_eps",
    "one_bn_eps",
    "bn_mean_zero",
    "bn_var_one",
    "bn_beta_zero",
    "bias_zero",
    "stride_moved",
    "bn_train_mode",
    "bf16",
    "tf32_emulated",
]
LEVEL_FAULTS = [
    "stale_input",
    "memo",
    "un_normalised_input",
    "baked_weights",
    "wrong_seed",
    "other_batch",
    "constant_output",
    "nan_output",
    "one_element",
    "every_tenth",
]


@pytest.fixture(scope="module")
def faulty_rows(tmp_path_factory):
    """One comparison of eager with as many faulty copies of itself as there are faults."""
    levels = plant(tmp_path_factory.mktemp("faulty"), NETWORK_FAULTS + LEVEL_FAULTS)
    return compare(
        tmp_path_factory.mktemp("store"),
        f"{ROOT / 'tests/levels/networks.py'}:strided_network",
        "--threads",
        "1",
        "--restarts",
        "1",
        "--budget",
        "8s",
        "--order-seed",
        "1",
        "--levels",
        ",".join(["eager", *NETWORK_FAULTS, *LEVEL_FAULTS]),
        levels=levels,
    )


@pytest.mark.parametrize("fault", NETWORK_FAULTS + LEVEL_FAULTS)
def test_a_planted_fault_is_refused_with_a_reason_and_gets_no_number(faulty_rows, fault):
    row = faulty_rows[fault]
    assert row["state"] in ("unequal", "mistrusted"), (row["state"], row["reason"])
    assert row["reason"] and row["end_to_end_ms"] is None and row["ratio"] is None


def test_faulty_neighbours_do_not_disturb_the_sound_level(faulty_rows):
    eager = faulty_rows["eager"]
    assert eager["state"] == "measured", eager["reason"]


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ("stale_input", "input"),
        ("memo", "input"),
        ("baked_weights", "weights"),
        ("nan_output", "NaN"),
        ("bf16", "bfloat16"),
    ],
)
def test_the_reason_names_the_cause(faulty_rows, fault, word):
    assert word in faulty_rows[fault]["reason"]


def test_deep_names_the_layer_where_a_fault_sits(tmp_path):
    levels = plant(tmp_path / "levels", ["one_bn_eps"])
    rows = compare(
        tmp_path,
        f"{ROOT / 'tests/levels/networks.py'}:strided_network",
        "--levels",
        "eager,one_bn_eps",
        "--deep",
        "--restarts",
        "1",
        "--budget",
        "1s",
        levels=levels,
    )
    assert rows["eager"]["deep"]["first_difference"] == ""
    faulty = rows["one_bn_eps"]
    assert (
        faulty["proof"]["first_difference"] == "4.downsample.1"
        and "4.downsample.1" in faulty["reason"]
    )


TIMER = """
import sys, json, torch
from pathlib import Path
from torch.utils.benchmark import Timer
from strata_sdk import models
torch.set_num_threads(1)
bundle = Path(sys.argv[1])
module, _ = models.build_module(bundle, "timed")
entry = models.example_inputs(bundle, 0)
args, named = models.bind(entry, models.read_bundle(bundle))
with torch.inference_mode():
    print(Timer("models.flatten_outputs(module(*args, **named))", globals={"models": models, "module": module, "args": args, "named": named}, num_threads=1).blocked_autorange(min_run_time=2).median * 1000)
"""


RUNS = 4
STUDENT_99 = 5.841  # the two-sided 99% point for three degrees of freedom


def timed_by_pytorch(bundle: Path) -> float:
    """log of the milliseconds that torch.utils.benchmark.Timer gives, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", TIMER, str(bundle)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'sdk' / 'python'}", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return math.log(float(done.stdout))


@pytest.mark.alone
def test_eagers_time_agrees_with_pytorchs_own_timer(tmp_path, bundles):
    """The timer runs before and after the comparison. The 99% interval of the ratio, with the
    spread between processes of both, must come within 5% of 1 (copies around a call), and the ratio
    within 30% whatever the noise."""
    bundle = bundles("mnist")
    theirs = [timed_by_pytorch(bundle) for _ in range(RUNS // 2)]
    row = compare(
        tmp_path,
        "mnist_convnet",
        "--batch",
        "4",
        "--levels",
        "eager",
        "--threads",
        "1",
        "--restarts",
        str(RUNS),
        "--budget",
        "8s",
        afresh=True,
    )["eager"]
    theirs += [timed_by_pytorch(bundle) for _ in range(RUNS // 2)]
    restarts: dict[int, list[float]] = {}
    for block in row["blocks"]:
        restarts.setdefault(block["restart"], []).append(math.log(block["median_ms"]))
    ours = [statistics.median(one) for one in restarts.values()]
    assert len(ours) == RUNS
    difference = math.log(row["latency_ms"]["median"]) - statistics.fmean(theirs)
    half_width = STUDENT_99 * math.sqrt(
        (statistics.variance(ours) + statistics.variance(theirs)) / RUNS
    )
    assert abs(difference) - half_width < 0.05 and abs(difference) < 0.3, (
        row["latency_ms"]["median"],
        ours,
        theirs,
    )
