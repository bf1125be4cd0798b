# SPDX-License-Identifier: Apache-2.0
"""describe_device.py cuda|cpu: one JSON object: the device, its tools, and its ceilings as PyTorch
reaches them (median of repeats, by CUDA events): copies on and to the device, products by
format."""

from __future__ import annotations

import functools
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import torch


def first_line(*words: str) -> str:
    if shutil.which(words[0]) is None:
        return "missing"
    ran = subprocess.run(words, capture_output=True, text=True)
    lines = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    return lines[-1 if words[0] == "nvcc" else 0].strip() if lines else ""


def median_s(call: Callable[[], object], repeats: int = 20) -> float:
    """Of one call, by events on the device."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def products() -> dict[str, float]:
    """TFLOP/s of a product of two square matrices of random numbers."""
    found = {}
    for name, dtype, tf32, n in [
        ("fp64", torch.float64, False, 4096),
        ("fp32", torch.float32, False, 8192),
        ("tf32", torch.float32, True, 8192),
        ("bf16", torch.bfloat16, False, 8192),
        ("fp16", torch.float16, False, 8192),
    ]:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
        found[name] = round(
            2 * n**3 / median_s(functools.partial(torch.matmul, a, b), 10) / 1e12, 1
        )
    torch.backends.cuda.matmul.allow_tf32 = False
    return found


def copies() -> dict[str, float]:
    """GB/s; on the device bytes read and written are counted, to and from it bytes sent."""
    size = 1 << 30
    here, there = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    found = {"on the device": round(2 * size / median_s(lambda: there.copy_(here)) / 1e9, 1)}
    part = 1 << 28
    pinned = torch.empty(part, dtype=torch.uint8, pin_memory=True)
    pageable = torch.ones(part, dtype=torch.uint8)
    device = here[:part]
    for name, to, source in [
        ("pinned to device", device, pinned),
        ("device to pinned", pinned, device),
        ("pageable to device", device, pageable),
        ("device to pageable", pageable, device),
    ]:
        found[name] = round(part / median_s(functools.partial(to.copy_, source), 5) / 1e9, 1)
    return found


def launches() -> dict[str, float]:
    """Microseconds of host time for one small kernel by PyTorch, and in a CUDA graph."""
    x = torch.zeros(64, device="cuda")
    count = 1000
    graph = torch.cuda.CUDAGraph()
    x.add_(1)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(count):
            x.add_(1)
    found = {}
    for name, call in [
        ("eager", lambda: [x.add_(1) for _ in range(count)]),
        ("graph", graph.replay),
    ]:
        call()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        found[name] = round((time.perf_counter() - begin) / count * 1e6, 2)
    return found


def profiler() -> str:
    """Whether PyTorch's profiler, which uses CUPTI, sees kernels."""
    from torch.profiler import ProfilerActivity, profile

    try:
        with profile(activities=[ProfilerActivity.CUDA]) as ran:
            torch.ones(8, device="cuda").sum().item()
        kernels = [e.key for e in ran.key_averages() if "reduce" in e.key]
        return f"sees kernels: {kernels[0][:60]}" if kernels else "sees no kernel"
    except Exception as error:
        return f"failed: {error}"


def main() -> None:
    found: dict[str, object] = {
        "tools": {
            "g++": first_line("g++", "--version"),
            "nvcc": first_line("nvcc", "--version"),
            "compute-sanitizer": first_line("compute-sanitizer", "--version"),
        }
    }
    if sys.argv[1] == "cuda":
        properties = torch.cuda.get_device_properties(0)
        wanted = "name major minor total_memory multi_processor_count L2_cache_size clock_rate"
        found |= {
            "device": {
                name: getattr(properties, name)
                for name in wanted.split()
                if hasattr(properties, name)
            },
            "cudnn": torch.backends.cudnn.version(),
            "nvidia-smi": first_line(
                "nvidia-smi",
                "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,"
                "power.draw,power.limit,temperature.gpu,mig.mode.current,compute_mode",
                "--format=csv,noheader",
            ),
            "copies_gb_s": copies(),
            "products_tflop_s": products(),
            "launches_us": launches(),
            "profiler": profiler(),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
