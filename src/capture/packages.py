# SPDX-License-Identifier: Apache-2.0
"""Whether a package's network (strata_sdk.packages), which a short name may make as large as one
likes, fits the memory: said and refused before it is built."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from capture.errors import Problem
from strata_sdk import packages

# How often a network's weights lie in memory at once. In a capture, which proves in float64 and
# holds what it compares with, by how much its peak grew with the layers of transformers' BERT (3.6
# and 10.1 times the weights, from 126 MB of them to 268 and 211 MB); libraries and activations come
# on top. A level's process reads weights from a file into those that were drawn.
IN_A_CAPTURE = {"infer": 4, "train": 10}
IN_A_LEVEL = 2
GIB = 1 << 30


def check_size(spec: dict, limit_gib: float | None, say: Callable[[str], None]) -> None:
    """Says how large the spec's network will be, if it is a package's. `limit_gib`: what a level's
    process may have; None: no limit. Raises Problem where the network cannot fit."""
    model = spec["model"]
    if not packages.is_reference(model):
        return
    size = packages.size_of(model)
    if size is None:
        say(f"the size of {model} is not known before it is built")
        return
    described = f"{_count(size.parameters)} parameters, {_bytes(size.bytes)}"
    say(f"{model} has {described}")
    needed, has = IN_A_CAPTURE[spec["mode"]] * size.bytes, available_bytes()
    if has is not None and needed > has:
        raise Problem(
            "usage",
            f"{model} has {described}, of which a capture in mode {spec['mode']} holds"
            f" {IN_A_CAPTURE[spec['mode']]} times as much: {_bytes(needed)}; {_bytes(has)} of memory are free",
            "options that make it smaller, or a machine with more memory",
        )
    needed = IN_A_LEVEL * size.bytes
    if limit_gib is not None and needed > limit_gib * GIB:
        raise Problem(
            "usage",
            f"{model} has {described}, and a level needs {IN_A_LEVEL} times as much while it loads them:"
            f" {_bytes(needed)}; --memory-limit allows {_bytes(limit_gib * GIB)}",
            "a higher --memory-limit, or options that make the network smaller",
        )


def available_bytes(root: Path = Path("/")) -> int | None:
    """Memory that this process may still take: what the machine has free, its control groups and
    its own limits allow. None: nothing of it can be read. `root`: where /proc and /sys lie."""
    amounts = [*_free(root), *_left_in_groups(root)]
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            amounts.append(soft)
    return min(amounts, default=None)


def _free(root: Path) -> Iterator[int]:
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def _left_in_groups(root: Path) -> Iterator[int]:
    """Of the process's control group and those around it (version 2)."""
    base, own = root / "sys/fs/cgroup", ""
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::/"):
                own = line.removeprefix("0::/")
    folder = base / own
    for group in (folder, *folder.parents):
        if not group.is_relative_to(base):
            return
        with contextlib.suppress(OSError, ValueError):  # the outermost has no limit
            most = int((group / "memory.max").read_text(encoding="utf-8"))
            used = int((group / "memory.current").read_text(encoding="utf-8"))
            yield max(0, most - used)


def _count(number: int) -> str:
    for unit, word in ((10**9, "billion"), (10**6, "million")):
        if number >= unit:
            return f"{number / unit:.3g} {word}"
    return str(number)


def _bytes(number: float) -> str:
    return f"{number / 1e9:.3g} GB" if number >= 1e9 else f"{number / 1e6:.3g} MB"
