# SPDX-License-Identifier: Apache-2.0
"""Numbers of the made-up result: estimates with bounds, quantiles, histograms."""

from __future__ import annotations

import math
from typing import Any

MB = 1_000_000
Json = dict[str, Any]


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
