# SPDX-License-Identifier: Apache-2.0
"""Writes example_run.json: a made-up result that has every field and every state. Not a
measurement.

Run it again after a change of docs/results_schema.md: python tests/report/make_example.py
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

MB = 1_000_000
Json = dict[str, Any]

# level, title, rank, language, peer, harness, ms, ratio verdict, private memory idle and above
# (MB), warm start parts (process, library, load, first), prepare ms, artefact MB, layout
LEVELS = [
    (
        "eager",
        "PyTorch eager",
        1,
        "python",
        False,
        False,
        36.94,
        "reference",
        182,
        308,
        (22, 1480, 310, 182),
        None,
        102,
        "contiguous",
    ),
    (
        "compile",
        "torch.compile",
        2,
        "python",
        False,
        False,
        30.12,
        "faster",
        214,
        396,
        (22, 1510, 420, 6900),
        None,
        102,
        "contiguous",
    ),
    (
        "torchscript",
        "TorchScript from C++",
        3,
        "c++",
        False,
        False,
        36.90,
        "same",
        96,
        312,
        (6, 410, 380, 905),
        5200,
        103,
        "contiguous",
    ),
    (
        "libtorch",
        "LibTorch, hand-written C++",
        4,
        "c++",
        False,
        False,
        36.05,
        "inconclusive",
        95,
        301,
        (6, 405, 150, 130),
        None,
        102,
        "contiguous",
    ),
    (
        "aoti",
        "AOTInductor from C++",
        4,
        "c++",
        False,
        False,
        29.55,
        "faster",
        97,
        290,
        (6, 402, 210, 88),
        81500,
        131,
        "contiguous",
    ),
    (
        "onnxruntime",
        "ONNX Runtime",
        5,
        "python",
        True,
        False,
        26.04,
        "faster",
        61,
        249,
        (20, 190, 260, 61),
        9800,
        102,
        "any",
    ),
    (
        "openvino",
        "OpenVINO",
        5,
        "python",
        True,
        False,
        39.87,
        "slower",
        72,
        265,
        (20, 260, 940, 75),
        14100,
        102,
        "any",
    ),
    (
        "null_cpp",
        "null level, C++",
        90,
        "c++",
        False,
        True,
        0.0011,
        "slower",
        3,
        2,
        (5, 1, 1, 1),
        None,
        0,
        "any",
    ),
    (
        "null_py",
        "null level, Python",
        90,
        "python",
        False,
        True,
        0.0038,
        "slower",
        9,
        5,
        (18, 2, 1, 1),
        None,
        0,
        "any",
    ),
]

FAILED = [
    (
        "compile",
        2,
        "out_of_memory",
        "the worker reached its limit of 6.0 GB of private memory while it compiled",
        "its limit of memory was reached while compiling",
        "raise --memory-limit, or choose a smaller batch",
    ),
    (
        "torchscript",
        3,
        "unsupported",
        "aten::scaled_dot_product_attention has a data-dependent branch at model.py:41, which tracing would freeze",
        "data-dependent branch at model.py:41",
        "remove the branch, or leave this level out",
    ),
    (
        "libtorch",
        4,
        "unavailable",
        "no C++ compiler was found, which this level is built with",
        "no C++ compiler",
        "apt-get install g++",
    ),
    (
        "aoti",
        4,
        "crashed",
        "the worker ended by signal 11 (SIGSEGV) in `measure`",
        "ended by signal 11 in measure",
        "repeat it and look at the log",
    ),
    (
        "onnxruntime",
        5,
        "unequal",
        "the output differs from the reference by 812 times what float32 explains; first difference at layer1.0.bn1",
        "output differs 812 times the bound",
        "strata show RUN --certificate",
    ),
    (
        "openvino",
        5,
        "mistrusted",
        "the output did not follow its input in block 31",
        "output did not follow its input",
        "strata show RUN --certificate",
    ),
    (
        "null_cpp",
        90,
        "timeout",
        "no answer to `load` within 600 s",
        "no answer to load within 600 s",
        "raise --timeout",
    ),
    (
        "null_py",
        90,
        "failed",
        "the level reported: cannot import strata_sdk <from here>",
        "cannot import strata_sdk",
        "check PYTHONPATH",
    ),
]


def estimate(value: float, percent: float) -> Json:
    return {
        "value": round(value, 5),
        "low": round(value * (1 - percent / 100), 5),
        "high": round(value * (1 + percent / 100), 5),
    }


def quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def times(ordered: list[float], factor: float = 1.0) -> Json:
    at = {"median": 0.5, "p90": 0.9, "p99": 0.99, "min": 0.0}
    result = {name: round(quantile(ordered, share) * factor, 6) for name, share in at.items()}
    return {"estimate": result["median"], "is_median": False, **result, "samples": len(ordered)}


def histogram(ordered: list[float]) -> Json:
    low, high, count = math.log(ordered[0]), math.log(ordered[-1] * 1.0001), 48
    edges = [math.exp(low + (high - low) * i / count) for i in range(count + 1)]
    counts = [0] * count
    for sample in ordered:
        counts[min(count - 1, int((math.log(sample) - low) / (high - low) * count))] += 1
    return {"edges_ms": [round(edge, 6) for edge in edges], "counts": counts}


def proof(level: str, peer: bool) -> Json:
    lines = [
        ("outputs, generic weights 1", "observed", "pass", "0.97 of eager's envelope", "8", ""),
        ("outputs, generic weights 2", "observed", "pass", "1.02 of eager's envelope", "8", ""),
        (
            "outputs, timed weights, 4 inputs",
            "observed",
            "pass",
            "0.99 of eager's envelope",
            "8",
            "",
        ),
        ("largest difference", "observed", "pass", "1.1 of eager's envelope", "16", ""),
        ("outputs follow their inputs", "observed", "pass", "4 of 4 differ", "all", ""),
        ("an output of every block", "observed", "pass", "48 of 48", "all", "drawn by the seed"),
        ("weights follow the weight set", "observed", "pass", "2 sets", "2", ""),
        (
            "weights read back",
            "observed",
            "not_checked" if peer else "pass",
            "320 tensors" if not peer else "",
            "all",
            "the level cannot read them back" if peer else "",
        ),
        ("deterministic", "observed", "pass", "0 bits differ", "0", ""),
        ("parameters", "reported", "pass", "25557032", "25557032", ""),
        ("threads", "reported", "pass", "2", "2", ""),
        ("precision", "reported", "pass", "fp32", "fp32", ""),
        (
            "operations",
            "assumed",
            "not_checked",
            "",
            "8.18 GFLOP",
            "no operator counts on this level",
        ),
    ]
    fields = ("check", "how", "result", "value", "bound", "detail")
    return {
        "verdict": "equal_looser" if level == "openvino" else "equal",
        "weak": False,
        "observed": sum(line[1] == "observed" for line in lines) - peer,
        "reported": 3,
        "assumed": 1,
        "first_difference": None,
        "lines": [dict(zip(fields, line)) for line in lines],
    }


def blocks(rng: random.Random, ms: float, position: int) -> tuple[list[Json], list[float]]:
    made, samples = [], []
    for restart in range(2):
        effect = rng.gauss(1, 0.006)
        for round_ in range(24):
            time_s = round_ * 1.1 + position * 0.12
            disturbed = round_ in (7, 8) and restart == 0 and position < 6
            here = [
                ms
                * effect
                * (
                    1
                    + abs(rng.gauss(0, 0.012))
                    + (rng.expovariate(12) if rng.random() < 0.06 else 0)
                )
                for _ in range(9)
            ]
            if disturbed:
                here = [sample * (1.25 + rng.random() * 0.4) for sample in here]
            samples += here
            made.append(
                {
                    "restart": restart,
                    "round": round_,
                    "position": position,
                    "time_s": round(time_s, 3),
                    "median_ms": round(sorted(here)[4], 6),
                    "disturbed": disturbed,
                    "why": "another program ran on this core" if disturbed else "",
                }
            )
    return made, sorted(samples)


def dynamic(level: str, ms: float) -> Json:
    """One artefact over 1 to 8: compile recompiles at 1, and OpenVINO computes one size wrongly."""
    nothing = {
        "sizes": [],
        "unseen": None,
        "recompiled": None,
        "recompile_ms": None,
        "reported": None,
        "against_fixed": None,
    }
    found = {
        "low": 1,
        "high": 8,
        "own": 1,
        "state": "measured",
        "reason": "",
        "hint": "",
        "prepare_ms": 83100.0 if level == "aoti" else None,
    }
    if level == "openvino":
        return (
            found
            | nothing
            | {
                "state": "unequal",
                "reason": "batch 4: output is off by 12 times what float32 explains",
            }
        )
    sizes = []
    for batch in (1, 2, 4, 8):
        settled, extra = (
            round(ms * batch * 0.97, 3),
            5210.0 if level == "compile" and batch == 2 else None,
        )
        sizes.append(
            {
                "batch": batch,
                "seen": batch == 1,
                "first_ms": settled + (extra or 1.5),
                "again_ms": settled + 0.4,
                "settled_ms": settled,
                "recompiled": extra is not None,
                "recompile_ms": extra,
                "envelopes": 0.97,
            }
        )
    recompiled = sum(size["recompiled"] for size in sizes)
    return found | {
        "sizes": sizes,
        "unseen": 3,
        "recompiled": recompiled,
        "recompile_ms": 5210.0 * recompiled,
        "reported": {
            "recompiles": 1,
            "reasons": ["tensor 'x' size mismatch at index 0. expected 1, actual 2"],
        }
        if level == "compile"
        else None,
        "against_fixed": {"batch": 1, "ratio": estimate(0.96, 3.2) | {"verdict": "inconclusive"}},
    }


def measured(
    rng: random.Random, position: int, spec: tuple, slow: float, reference_ms: float, gpu: bool
) -> Json:
    (
        level,
        title,
        rank,
        language,
        peer,
        harness,
        ms,
        verdict,
        idle,
        above,
        start,
        prepare,
        artefact,
        layout,
    ) = spec
    made, ordered = blocks(rng, ms * (slow if not harness else 1), position)
    stats = times(ordered)
    process, library, load, first = start
    warm = process + library + load + first
    cold = warm + (prepare or 0) + (31000 if level == "compile" else 0)
    value = reference_ms / stats["estimate"]
    bounds = estimate(value, 0 if level == "eager" else 3.4)
    saved = reference_ms - stats["estimate"]
    return {
        "level": level,
        "variant": "default",
        "environment": None,
        "title": title,
        "rank": rank,
        "language": language,
        "peer": peer,
        "harness": harness,
        "reference": level == "eager",
        "state": "measured",
        "reason": "",
        "reason_short": "",
        "hint": "",
        "log_tail": "",
        "repeat": f"./strata compare resnet50 --preset quick --levels {level}",
        "end_to_end_ms": stats,
        "latency_ms": times(ordered, 0.992),
        "throughput_per_s": round(1000 / stats["estimate"], 3),
        "cpu_ms": round(stats["estimate"] * 1.97, 5),
        "ratio": {
            **bounds,
            "verdict": verdict,
            "same_within_percent": 4.1 if verdict == "same" else None,
            "smallest_visible_percent": 5.5,
            "rests_on": None
            if level == "eager"
            else "restarts"
            if level == "openvino"
            else "assumed",
            "learned": None,
            "by_restart": []
            if level == "eager"
            else [round(value * factor, 5) for factor in (0.99, 1.0, 1.02, 0.99)],
            "resolve": {
                "command": "./strata compare resnet50 --preset thorough --levels eager,libtorch",
                "minutes": 9.0,
            }
            if verdict == "inconclusive"
            else None,
        },
        "memory": {
            "idle_private_bytes": idle * MB,
            "steady_private_bytes": int((idle + above * 0.83) * MB),
            "peak_private_bytes": (idle + above) * MB,
            "steady_pss_bytes": int((idle + above * 0.83 + 88) * MB),
            "above_idle_bytes": above * MB,
            "shared_file_bytes": 176 * MB,
            "device_peak_bytes": 412 * MB if gpu else None,
        },
        "startup": {
            "process_ms": process,
            "library_ms": library,
            "load_ms": load,
            "build_ms": load * 0.7,
            "weights_ms": load * 0.2,
            "first_iteration_ms": first,
            "warm_start_ms": warm,
            "cold_start_ms": cold,
            "prepare_ms": prepare,
        },
        "default": "contiguous layout, float32, no freezing, no autotuning",
        "deep": {"first_difference": "", "worst_ratio": 0.97, "reason": ""}
        if level == "libtorch"
        else None,
        "disk_bytes": (artefact + 540) * MB,
        "artefact_bytes": artefact * MB,
        "shipped": None
        if harness
        else {
            "bytes": (artefact + 431) * MB,
            "libraries_bytes": 431 * MB,
            "artefact_bytes": artefact * MB,
            "libraries": [
                {"file": "libtorch_cpu.so", "bytes": 402 * MB},
                {"file": "libgomp.so.1", "bytes": 29 * MB},
            ],
        },
        "lines": None
        if harness
        else {
            "total": 24 + position,
            "files": [
                {"file": "use.py" if language == "python" else "serve.cpp", "lines": 24 + position}
            ],
        },
        "facts": {
            "compile": {
                "guards": 31,
                "guard_us": 12,
                "graphs": 1,
                "recompiles": 1,
                "recompile_reasons": ["tensor 'x' size mismatch at index 0. expected 1, actual 2"],
            },
            "torchscript": {"bailouts": 0},
        }.get(level),
        "dynamic": None if harness else dynamic(level, stats["estimate"]),
        "break_even_once": None
        if level == "eager" or harness
        else {
            "iterations": round((cold - warm) / saved, 1) if saved > 0.5 else None,
            "low": round((cold - warm) / saved * 0.8, 1) if saved > 0.5 else None,
            "high": round((cold - warm) / saved * 1.3, 1) if saved > 0.5 else None,
            "never": False,
            "inconclusive": saved <= 0.5,
        },
        "break_even": None
        if level == "eager" or harness
        else {
            "iterations": round(max(0, warm - 1994) / saved, 1) if saved > 0.5 else None,
            "low": round(max(0, warm - 1994) / saved * 0.8, 1) if saved > 0.5 else None,
            "high": round(max(0, warm - 1994) / saved * 1.3, 1) if saved > 0.5 else None,
            "never": False,
            "inconclusive": saved <= 0.5,
        },
        "settings": {
            "threads": 2,
            "precision": "fp32",
            "layout": layout,
            "inference_mode": True,
            "autotune": False,
            "freezing": level in ("torchscript", "onnxruntime"),
            "graph": "none",
            "huge_pages": "madvise",
            "huge_page_bytes": 0,
        },
        "proof": None if harness else proof(level, peer),
        "blocks": made,
        "histogram": histogram(ordered),
        "aa": {
            "ratio": estimate(1.002, 3.1),
            "verdict": "same",
            "rests_on": "learned",
            "learned": {"process_effect_percent": 0.53, "restarts": 18, "runs": 3},
            "by_restart": [1.001, 0.999, 1.004, 1.004],
            "if_assumed": {"ratio": estimate(1.002, 2.7), "verdict": "same"},
        }
        if not harness
        else None,
        "steps_per_s": None,
        "phases": None,
        "tuned": None,
        "tuning": None,
        "clients": None if harness or gpu else served(position, ms, language, idle + above),
    }


def served(position: int, ms: float, language: str, memory: int) -> Json:
    """Clients of a made-up level: two cores, one request on one of them takes 1.9 times as long as
    on both."""
    points = []
    for clients, kind in [(1, "threads"), (2, "threads"), (4, "threads")] + (
        [(2, "processes"), (4, "processes")] if language == "python" else []
    ):
        lock = 1.12 if language == "python" and kind == "threads" and clients > 1 else 1.0
        took = ms * (1 if clients == 1 else 0.95 * clients) * lock
        few = position == 6
        bounds = {
            "value": round(took * 1.3, 3),
            "low": round(took * 1.2, 3),
            "high": None if few else round(took * 1.5, 3),
        }
        points.append(
            {
                "clients": clients,
                "as": kind,
                "threads_each": 2 if clients == 1 else 1,
                "state": "measured",
                "reason": "",
                "hint": "",
                "repetitions": 3,
                "requests_per_s": estimate(1000 * clients / took, 5),
                "inputs_per_s": estimate(1000 * clients / took, 5),
                "latency_ms": {
                    "p50": estimate(took, 1),
                    "p90": estimate(took * 1.1, 2),
                    "p99": bounds,
                    "samples": 300 if few else 900,
                    "requests": 300 if few else 900,
                },
                "cpu_ms": round(ms * 1.9, 3),
                "memory": {
                    "private_bytes": memory * MB * (clients if kind == "processes" else 1)
                    + 20 * clients * MB,
                    "pss_bytes": (memory + 90) * MB * (clients if kind == "processes" else 1),
                },
            }
        )
    if position == 2:
        empty = dict.fromkeys(("requests_per_s", "inputs_per_s", "latency_ms", "cpu_ms", "memory"))
        points[-1] |= empty | {
            "state": "mistrusted",
            "reason": "with 4 requests in flight: output of input 2 is that of input 1",
            "hint": "its callers share what each must have for itself",
            "repetitions": 0,
        }
    return {"seconds": 9, "cores": 2, "points": points}


def limit(rows: list[Json]) -> Json:
    levels = []
    for row in rows:
        if row["harness"]:
            continue
        ms = row["end_to_end_ms"]["estimate"] * 1.3
        verdict = "meets" if ms < 40 else "may_meet" if ms < 47.5 else "misses"
        sentences = {
            "meets": f"{row['level']}: batch 1, 1 client, {1300 / ms:.1f} inputs/s at p99 {ms:.1f} ms (at most {ms * 1.15:.1f} ms)",
            "may_meet": f"{row['level']} may meet it: batch 1, 1 client, {1300 / ms:.1f} inputs/s at p99 {ms:.1f} ms (300 requests are too few to bound it, 528 would do)",
            "misses": f"{row['level']} misses it by {ms - 46:.2f} ms: p99 is {ms:.1f} ms at its best (batch 1, 1 client, {1300 / ms:.1f} inputs/s)",
        }
        levels.append(
            {
                "level": row["level"],
                "variant": "default",
                "environment": None,
                "verdict": verdict,
                "batch": 1,
                "clients": 1,
                "as": "threads",
                "inputs_per_s": round(1300 / ms, 2),
                "quantile_ms": {
                    "value": round(ms, 3),
                    "low": round(ms * 0.95, 3),
                    "high": round(ms * 1.15, 3),
                },
                "miss_ms": round(ms - 46, 3) if verdict == "misses" else None,
                "samples": 900,
                "needed_samples": 528,
                "sentence": sentences[verdict],
            }
        )
    return {"quantile": "p99", "limit_ms": 46.0, "levels": levels, "note": ""}


def failed(spec: tuple) -> Json:
    level, rank, state, reason, short, hint = spec
    proven = None
    if state == "unequal":
        proven = {
            "verdict": "unequal",
            "weak": False,
            "observed": 2,
            "reported": 1,
            "assumed": 0,
            "first_difference": "layer1.0.bn1",
            "lines": [
                {
                    "check": "outputs, generic weights 1",
                    "how": "observed",
                    "result": "fail",
                    "value": "812 of eager's envelope",
                    "bound": "8",
                    "detail": "largest at element 417 of output",
                },
                {
                    "check": "outputs, generic weights 2",
                    "how": "observed",
                    "result": "fail",
                    "value": "790 of eager's envelope",
                    "bound": "8",
                    "detail": "",
                },
                {
                    "check": "threads",
                    "how": "reported",
                    "result": "pass",
                    "value": "2",
                    "bound": "2",
                    "detail": "",
                },
            ],
        }
    empty = (
        "end_to_end_ms",
        "latency_ms",
        "throughput_per_s",
        "cpu_ms",
        "ratio",
        "memory",
        "startup",
        "disk_bytes",
        "artefact_bytes",
        "break_even",
        "break_even_once",
        "histogram",
        "aa",
        "steps_per_s",
        "phases",
        "tuned",
        "tuning",
        "shipped",
        "lines",
        "facts",
        "dynamic",
    )
    return {
        "level": level,
        "variant": "default",
        "environment": None,
        "title": level,
        "rank": rank,
        "language": "c++",
        "peer": rank == 5,
        "harness": rank == 90,
        "reference": False,
        "state": state,
        "reason": reason,
        "reason_short": short,
        "hint": hint,
        "log_tail": 'Traceback (most recent call last):\n  File "worker.py", line 7\nRuntimeError: <planted> & "quoted"\n',
        "repeat": f"./strata compare resnet50 --batch 8 --levels eager,{level}",
        **dict.fromkeys(empty),
        "default": "",
        "deep": None,
        "settings": {},
        "proof": proven,
        "blocks": [],
    }


def edge(
    kind: str,
    start: str,
    end: str,
    changes: str,
    rows: dict[str, Json],
    differs: list[str] | None = None,
) -> Json:
    difference = rows[end]["end_to_end_ms"]["estimate"] - rows[start]["end_to_end_ms"]["estimate"]
    value = rows[start]["end_to_end_ms"]["estimate"] / rows[end]["end_to_end_ms"]["estimate"]
    seen = "faster" if value > 1.046 else "slower" if value < 0.956 else "inconclusive"
    width = 1.1
    return {
        "from": start,
        "to": end,
        "kind": kind,
        "changes": changes,
        "differs": differs or [],
        "difference_ms": {
            "value": round(difference, 4),
            "low": round(difference - width, 4),
            "high": round(difference + width, 4),
        }
        if kind == "step"
        else None,
        "ratio": estimate(value, 3.4) if kind != "differs" else None,
        "verdict": seen if kind != "differs" else None,
    }


def case_of(
    batch: int,
    rows: list[Json],
    edges: list[Json],
    limits: Json | None,
    aa: Json | None,
    headline: Json | None,
    mode: str = "infer",
) -> Json:
    spec = {
        "model": "resnet50",
        "mode": mode,
        "batch": batch,
        "inputs": [
            {
                "name": "",
                "dtype": "float32",
                "shape": [batch, 3, 224, 224],
                "low": None,
                "high": None,
            }
        ],
        "precision": "fp32",
        "device": "cpu",
        "threads": 2,
        "optimiser": None,
        "loss": None,
        "seed": 0,
        "weights": None,
        "input_from": None,
        "synthetic": False,
        "ring": 4,
        "deep": False,
        "generic_sets": 2,
    }
    return {
        "id": f"resnet50/{mode}/b{batch}/3x224x224/fp32/cpu/t2",
        "key": "3f2a91c07d2f2a91",
        "network_hash": "b1946ac92492d234",
        "case": spec,
        "model": {
            "name": "resnet50",
            "kind": "shipped",
            "source": "the residual network with 50 layers, as torchvision writes it",
            "note": "",
            "data": [],
        },
        "input_source": "crops of 11 photographs that scikit-learn and scikit-image ship",
        "weight_source": "seeded 0, calibrated BatchNorm statistics",
        "network": {"sha256": "9c1e2f", "tensors": 320},
        "flops": 8.18e9 * batch,
        "parameters": 25557032,
        "weight_bytes": 102228128,
        "flops_uncounted": [],
        "reference_level": "eager",
        "reference_instead_of": None,
        "headline": headline,
        "limits": limits,
        "trust": {
            "restarts": 4,
            "restarts_compared": 4,
            "most_process_effect_percent": 10.0,
            "process_effect_percent": 3.0,
            "process_effect_source": "assumed" if batch == 1 else "calibrated 2026-11-21",
            "smallest_visible_percent": 5.5,
            "blocks": 432,
            "disturbed_blocks": 12,
            "minimum_effect_percent": 1.0,
            "together": True,
            "others_begin_percent": 1.2,
            "others_percent": 0.8,
            "host_percent": 0.1,
            "other_run": None,
            "reliable": True,
            "one_thread_fits": True,
        },
        "next_command": "./strata compare resnet50 --preset thorough --levels eager,libtorch"
        if batch == 1
        else "./strata compare resnet50 --batch 8 --levels eager,onnxruntime --deep",
        "ledger": {"edges": edges},
        "aa": aa,
        "rows": rows,
    }


def accuracy() -> list[Json]:
    """Made up: what a run with --precision fp32,bf16 and --eval would show."""
    points = []
    for level, precision, ms, error, differ, score in [
        ("eager", "fp32", 37.2, 3.1e-7, 0, 97.20),
        ("onnxruntime", "fp32", 26.1, 2.8e-7, 0, 97.20),
        ("eager", "bf16", 19.9, 4.4e-3, 1, 97.17),
        ("compile", "amp-bf16", 16.2, 3.0e-3, 0, 97.19),
    ]:
        first = level == "eager" and precision == "fp32"
        points.append(
            {
                "case": f"resnet50/infer/b1/3x224x224/{precision}/cpu/t2",
                "level": level,
                "variant": "default",
                "precision": precision,
                "reference": first,
                "time_ms": ms,
                "reliable": True,
                "ratio": {
                    **estimate(37.2 / ms, 0 if first else 5.0),
                    "together": precision == "fp32",
                },
                "error": error,
                "answers": 4,
                "differ": differ,
                "eval": {
                    "state": "scored",
                    "reason": "",
                    "hint": "",
                    "count": 10000,
                    "score": score,
                    "difference": {
                        "value": round(score - 97.2, 4),
                        "low": round(score - 97.27, 4),
                        "high": round(score - 97.13, 4),
                    },
                    "differ": 4 if precision == "bf16" else 0,
                },
            }
        )
    points.append(
        {
            "case": "resnet50/infer/b1/3x224x224/bf16/cpu/t2",
            "level": "openvino",
            "variant": "default",
            "precision": "bf16",
            "reference": False,
            "time_ms": 21.0,
            "reliable": True,
            "ratio": None,
            "error": 5.1e-3,
            "answers": 4,
            "differ": 0,
            "eval": {
                "state": "failed",
                "reason": "score() of my_score.py raised ValueError: <planted> (my_score.py:9)",
                "hint": "the log has the whole trace",
                "count": 10000,
                "score": None,
                "difference": None,
                "differ": None,
            },
        }
    )
    return [
        {
            "id": "resnet50/infer/b1/3x224x224/*/cpu/t2",
            "reference": {"case": points[0]["case"], "level": "eager", "precision": "fp32"},
            "score": "my_score.py:score",
            "measured_apart": True,
            "points": points,
        }
    ]


SGD = {
    "name": "sgd",
    "lr": 0.01,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.0001,
    "nesterov": False,
    "schedule": None,
}


def trained(rng: random.Random) -> Json:
    """A case of mode train in which each level's best variant was found: eager's is another one, of
    compile the default, torchscript cannot tell its phases apart."""
    rows = [
        measured(rng, position, spec, 7.5, 277.0, gpu=False)
        for position, spec in enumerate(LEVELS[:4])
    ]
    fused = measured(rng, 4, LEVELS[0], 7.1, 277.0, gpu=False) | {
        "variant": "fused",
        "title": "the optimiser's update in one kernel",
        "reference": False,
    }
    fused["ratio"] |= {"verdict": "faster"}
    rows.insert(1, fused)
    for row in rows:
        ms = row["end_to_end_ms"]["estimate"]
        shares = {
            "input": 0.001,
            "to_device": 0.0,
            "forward": 0.33,
            "loss": 0.005,
            "backward": 0.6,
            "update": 0.05,
        }
        row["steps_per_s"], row["throughput_per_s"] = round(1000 / ms, 3), round(8000 / ms, 3)
        row["phases"] = {
            "ms": {name: round(share * ms, 4) for name, share in shares.items()},
            "joined": {},
            "iterations": 20,
            "note": "",
        }
        row["settings"]["loss"] = "cross_entropy"
        row["clients"] = None  # of inference only
    rows[3]["phases"] = {
        "ms": {"forward": 91.0, "backward": 160.1, "update": 12.2},
        "joined": {"forward": ["forward", "loss"]},
        "iterations": 20,
        "note": "",
    }
    rows[4]["phases"] = {
        "ms": {},
        "joined": {},
        "iterations": 0,
        "note": "the level ended before its phases were taken",
    }
    tried = [
        {
            "variant": name,
            "title": title,
            "state": state,
            "reason": reason,
            "median_ms": ms,
            "ratio": estimate(277.0 / ms, 12.0) | {"verdict": "inconclusive"}
            if name == "fused"
            else None,
        }
        for name, title, state, reason, ms in (
            ("default", "PyTorch eager", "measured", "", 277.0),
            ("fused", "the optimiser's update in one kernel", "measured", "", 262.1),
            ("channels_last", "memory in channels_last", "unequal", "a gradient differs", None),
        )
    ]
    rows[0]["tuning"] = {"seconds": 8, "restarts": 2, "best": "fused", "note": "", "tried": tried}
    for row in rows[2:]:
        row["tuning"] = {
            "seconds": 0,
            "restarts": 0,
            "best": "default",
            "note": "no variants",
            "tried": [],
        }
    for row in rows[1:]:
        row["tuned"] = {
            "ratio": row["ratio"]
            | {"verdict": "reference" if row is fused else row["ratio"]["verdict"]},
            "break_even": None if row is fused else row["break_even"],
        }
    case = case_of(8, rows, [], None, None, None, mode="train")
    case["case"] |= {"optimiser": SGD, "loss": "cross_entropy"}
    case["across_environments"] = [
        {
            "level": "compile",
            "variant": "default",
            "from": "old",
            "to": "new",
            "ratio": rows[2]["ratio"],
        }
    ]
    return case


def build() -> Json:
    rng = random.Random(7)
    first = [
        measured(rng, position, spec, 1.0, 37.2, gpu=False) for position, spec in enumerate(LEVELS)
    ]
    by_name = {row["level"]: row for row in first}
    edges = [
        edge("step", "eager", "compile", "generated fused code", by_name),
        edge("step", "compile", "aoti", "Python and guards removed, same settings", by_name),
        edge(
            "differs",
            "eager",
            "torchscript",
            "graph instead of Python",
            by_name,
            ["freezing: off, on"],
        ),
        edge("step", "eager", "libtorch", "Python removed, same kernels", by_name),
        edge("peer", "eager", "onnxruntime", "", by_name),
        edge("peer", "eager", "openvino", "", by_name),
    ]
    limits = {
        "gflops": 341.0,
        "gbytes_per_s": 14.2,
        "quiet": True,
        "cache_bytes": 33554432,
        "memory_bytes": 69275776,
        "compute_ms": 23.99,
        "memory_ms": 4.9,
        "limit_ms": 23.99,
        "kind": "roofline",
    }
    # without a headline a renderer makes it
    case = case_of(
        1, first, edges, limits, {"comparisons": 7, "false_alarms": 0, "bound_percent": 34.8}, None
    )
    case["slo"] = limit(first)
    second = [measured(rng, 0, LEVELS[0], 7.6, 282.0, gpu=True)] + [failed(spec) for spec in FAILED]
    return {
        "schema": "strata.run/1",
        "run": {
            "id": "20261121-061500-3f2a",
            "name": None,
            "started": "2026-11-21T06:15:00Z",
            "command": "./strata compare resnet50 --batch 1,8 --preset quick --aa --dynamic batch=1..8 --clients 1,2,4 --slo p99=46ms",
            "version": "0.1.0",
            "finished": True,
            "interrupted": False,
            "seed": 123456,
            "preset": "quick",
            "wall_s": 151.2,
            "restarts": 4,
            "budget_s": 20,
            "ci_width": None,
            "aa": True,
            "deep": False,
            "tuned": True,
            "clients": "1,2,4",
            "slo": "p99=46ms",
            "dynamic": "batch=1..8",
            "eval": "my_score.py:score",
        },
        "accuracy": accuracy(),
        "machine": {
            "cpu": "AMD EPYC",
            "cores": 2,
            "memory_bytes": 8_200_000_000,
            "kernel": "6.1.0-28-amd64",
            "gpu": None,
            "governor": "unknown",
            "smt": "on",
            "l2_bytes": 1_048_576,
            "l3_bytes": 33_554_432,
            "instruction_sets": "avx avx2 fma avx512f avx512_bf16",
            "load_before": 0.31,
            "steal_percent": 0.0,
            "distribution": "Debian GNU/Linux 12",
        },
        "environments": [
            {
                "name": "old",
                "python": ".venv/bin/python",
                "python_version": "3.11.2",
                "torch": "2.15.0",
                "torchvision": "0.30.0",
                "onnxruntime": "1.24.1",
                "packages": {"numpy": "2.4.6", "torch": "2.15.0"},
            },
            {
                "name": "new",
                "python": "next/bin/python",
                "python_version": "3.12.1",
                "torch": "2.16.0",
                "packages": {"numpy": "2.4.6", "torch": "2.16.0"},
            },
        ],
        "warnings": [
            {
                "id": "W003",
                "case": None,
                "what": "the process effect of this machine is assumed, not measured",
                "advice": "./strata doctor --calibrate (9 minutes)",
            }
        ],
        "cases": [
            case,
            case_of(
                8,
                second,
                [],
                None,
                None,
                {
                    "verdict": "no_data",
                    "level": None,
                    "sentence": "No comparison: eager takes 284 ms, and none of the 6 other levels has a number.",
                },
            ),
            trained(rng),
        ],
    }


def main() -> None:
    path = Path(__file__).with_name("example_run.json")
    # One line a row keeps differences readable without a hundred thousand lines.
    run = build()
    cases = run.pop("cases")
    text = json.dumps(run)[:-1] + ',\n"cases":[\n'
    parts = []
    for one in cases:
        rows = one.pop("rows")
        parts.append(
            json.dumps(one)[:-1]
            + ',\n"rows":[\n'
            + ",\n".join(json.dumps(row) for row in rows)
            + "\n]}"
        )
    path.write_text(text + ",\n".join(parts) + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
