# SPDX-License-Identifier: Apache-2.0
"""Writes example_run.json: a made-up result that has every field and every state. Not a
measurement.

Run it again after a change of docs/results_schema.md: python tests/report/make_example.py
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from example_cases import accuracy, case_of, edge, limit, trained
from example_levels import FAILED, LEVELS
from example_rows import failed, measured
from example_values import Json


def build() -> Json:
    rng = random.Random(7)
    first = [
        measured(rng, position, level, 1.0, 37.2, gpu=False)
        for position, level in enumerate(LEVELS)
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
    second = [measured(rng, 0, LEVELS[0], 7.6, 282.0, gpu=True)] + [
        failed(level) for level in FAILED
    ]
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
            "state": "finished",
            "resumed": 0,
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
    for case in cases:
        rows = case.pop("rows")
        parts.append(
            json.dumps(case)[:-1]
            + ',\n"rows":[\n'
            + ",\n".join(json.dumps(row) for row in rows)
            + "\n]}"
        )
    path.write_text(text + ",\n".join(parts) + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
