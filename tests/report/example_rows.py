# SPDX-License-Identifier: Apache-2.0
"""Rows of the made-up result, one per level."""

from __future__ import annotations

import random

from example_levels import Failed, Level
from example_values import MB, Json, estimate, histogram, times


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
    drawn, samples = [], []
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
            drawn.append(
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
    return drawn, sorted(samples)


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
    answer = {
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
            answer
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
    return answer | {
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


PARTS = [
    ("conv2d", "conv1", "jit:avx2", 0.2),
    ("batch_norm", "bn1", "bnorm_jit:avx2", 0.05),
    ("conv2d", "layer1.0.conv1", "jit:avx2", 0.4),
    ("relu_", "layer1.0.relu", "jit:avx2", 0.1),
    ("linear", "fc", "brgemm:avx2", 0.1),
    ("outputs", None, "", 0.01),
]


def profiled(level: Level, ms: float) -> Json | None:
    """Where an iteration of `ms` goes; of levels that tell none, why."""
    if level.harness:
        return None
    tells = level.name in ("eager", "libtorch")
    operations = [
        {
            "operation": operation,
            "layer": layer,
            "kernel": kernel,
            "shapes": [[1, 3, 224, 224]],
            "moves_only": operation == "outputs",
            "ms": round(share * ms, 4),
            "gap_ms": round(0.02 * ms, 4),
            "flops": 1.2e9 if operation == "conv2d" else None,
            "bytes": 12e6 if operation == "conv2d" else None,
        }
        for operation, layer, kernel, share in PARTS
        if tells
    ]
    return {
        "operations": operations,
        "after_ms": round(0.02 * ms, 4) if tells else 0,
        "profiled_ms": ms if tells else 0,
        "plain_ms": round(0.98 * ms, 4) if tells else 0,
        "iterations": 15 if tells else 0,
        "note": "" if tells else "the level does not time its operations",
    }


def measured(
    rng: random.Random, position: int, level: Level, slow: float, reference_ms: float, gpu: bool
) -> Json:
    drawn, ordered = blocks(rng, level.ms * (slow if not level.harness else 1), position)
    stats = times(ordered)
    process, library, load, first = level.start_ms
    warm = process + library + load + first
    cold = warm + (level.prepare_ms or 0) + (31000 if level.name == "compile" else 0)
    value = reference_ms / stats["estimate"]
    bounds = estimate(value, 0 if level.name == "eager" else 3.4)
    saved = reference_ms - stats["estimate"]
    return {
        "level": level.name,
        "variant": "default",
        "environment": None,
        "title": level.title,
        "rank": level.rank,
        "language": level.language,
        "peer": level.peer,
        "harness": level.harness,
        "reference": level.name == "eager",
        "state": "measured",
        "reason": "",
        "reason_short": "",
        "hint": "",
        "log_tail": "",
        "repeat": f"./strata compare resnet50 --preset quick --levels {level.name}",
        "end_to_end_ms": stats,
        "latency_ms": times(ordered, 0.992),
        "throughput_per_s": round(1000 / stats["estimate"], 3),
        "cpu_ms": round(stats["estimate"] * 1.97, 5),
        "ratio": {
            **bounds,
            "verdict": level.verdict,
            "same_within_percent": 4.1 if level.verdict == "same" else None,
            "smallest_visible_percent": 5.5,
            "rests_on": None
            if level.name == "eager"
            else "restarts"
            if level.name == "openvino"
            else "assumed",
            "learned": None,
            "by_restart": []
            if level.name == "eager"
            else [round(value * factor, 5) for factor in (0.99, 1.0, 1.02, 0.99)],
            "by_processor_time": None,
            "resolve": {
                "command": "./strata compare resnet50 --preset thorough --levels eager,libtorch",
                "minutes": 9.0,
            }
            if level.verdict == "inconclusive"
            else None,
        },
        "memory": {
            "idle_private_bytes": level.idle_mb * MB,
            "steady_private_bytes": int((level.idle_mb + level.above_mb * 0.83) * MB),
            "peak_private_bytes": (level.idle_mb + level.above_mb) * MB,
            "steady_pss_bytes": int((level.idle_mb + level.above_mb * 0.83 + 88) * MB),
            "above_idle_bytes": level.above_mb * MB,
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
            "prepare_ms": level.prepare_ms,
        },
        "default": "contiguous layout, float32, no freezing, no autotuning",
        "deep": {"first_difference": "", "worst_ratio": 0.97, "reason": ""}
        if level.name == "libtorch"
        else None,
        "disk_bytes": (level.artefact_mb + 540) * MB,
        "artefact_bytes": level.artefact_mb * MB,
        "shipped": None
        if level.harness
        else {
            "bytes": (level.artefact_mb + 431) * MB,
            "libraries_bytes": 431 * MB,
            "artefact_bytes": level.artefact_mb * MB,
            "libraries": [
                {"file": "libtorch_cpu.so", "bytes": 402 * MB},
                {"file": "libgomp.so.1", "bytes": 29 * MB},
            ],
        },
        "lines": None
        if level.harness
        else {
            "total": 24 + position,
            "files": [
                {
                    "file": "standalone.py" if level.language == "python" else "serve.cpp",
                    "lines": 24 + position,
                }
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
        }.get(level.name),
        "dynamic": None if level.harness else dynamic(level.name, stats["estimate"]),
        "break_even_once": None
        if level.name == "eager" or level.harness
        else {
            "iterations": round((cold - warm) / saved, 1) if saved > 0.5 else None,
            "low": round((cold - warm) / saved * 0.8, 1) if saved > 0.5 else None,
            "high": round((cold - warm) / saved * 1.3, 1) if saved > 0.5 else None,
            "never": False,
            "inconclusive": saved <= 0.5,
        },
        "break_even": None
        if level.name == "eager" or level.harness
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
            "layout": level.layout,
            "inference_mode": True,
            "autotune": False,
            "freezing": level.name in ("torchscript", "onnxruntime"),
            "graph": "none",
            "huge_pages": "madvise",
            "huge_page_bytes": 0,
        },
        "proof": None if level.harness else proof(level.name, level.peer),
        "blocks": drawn,
        "histogram": histogram(ordered),
        "aa": {
            "ratio": estimate(1.002, 3.1),
            "verdict": "same",
            "rests_on": "learned",
            "learned": {"process_effect_percent": 0.53, "restarts": 18, "runs": 3},
            "by_restart": [1.001, 0.999, 1.004, 1.004],
            "if_assumed": {"ratio": estimate(1.002, 2.7), "verdict": "same"},
        }
        if not level.harness
        else None,
        "steps_per_s": None,
        "phases": None,
        "profile": profiled(level, level.ms),
        "tuned": None,
        "tuning": None,
        "clients": None
        if level.harness or gpu
        else served(position, level.ms, level.language, level.idle_mb + level.above_mb),
    }


def failed(level: Failed) -> Json:
    proven = None
    if level.state == "unequal":
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
        "profile",
        "tuned",
        "tuning",
        "shipped",
        "lines",
        "facts",
        "dynamic",
    )
    return {
        "level": level.name,
        "variant": "default",
        "environment": None,
        "title": level.name,
        "rank": level.rank,
        "language": "c++",
        "peer": level.rank == 5,
        "harness": level.rank == 90,
        "reference": False,
        "state": level.state,
        "reason": level.reason,
        "reason_short": level.short,
        "hint": level.hint,
        "log_tail": 'Traceback (most recent call last):\n  File "worker.py", line 7\nRuntimeError: <planted> & "quoted"\n',
        "repeat": f"./strata compare resnet50 --batch 8 --levels eager,{level.name}",
        **dict.fromkeys(empty),
        "default": "",
        "deep": None,
        "settings": {},
        "proof": proven,
        "blocks": [],
    }
