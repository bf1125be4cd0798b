# SPDX-License-Identifier: Apache-2.0
"""Cases of the made-up result, and what compares several of their rows."""

from __future__ import annotations

import random

from example_levels import LEVELS
from example_rows import measured
from example_values import Json, estimate

SGD = {
    "name": "sgd",
    "lr": 0.01,
    "momentum": 0.9,
    "dampening": 0.0,
    "weight_decay": 0.0001,
    "nesterov": False,
    "schedule": None,
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


def trained(rng: random.Random) -> Json:
    """A case of mode train in which each level's best variant was found: eager's is another one, of
    compile the default, torchscript cannot tell its phases apart."""
    rows = [
        measured(rng, position, level, 7.5, 277.0, gpu=False)
        for position, level in enumerate(LEVELS[:4])
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
