# SPDX-License-Identifier: Apache-2.0
"""Which tests may be skipped where: every allowed reason names what the machine or the environment
lacks, and that is looked up here. Any other skip hides a test that could have run, and fails
./test.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import platform
import re
import shutil
import sys
from collections.abc import Callable


@functools.cache
def has_cuda_device() -> bool:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return (
        driver.cuInit(0) == 0
        and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        and count.value > 0
    )


@functools.cache
def processor_has(*flags: str) -> bool:
    words = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    return any(flag in words for flag in flags)


@functools.cache
def gives_huge_pages() -> bool:
    """Whether the kernel gives transparent huge pages to who asks, and glibc's malloc can ask."""
    try:
        mode = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(
            encoding="ascii"
        )
    except OSError:
        return False
    library, version = platform.libc_ver()
    new_enough = library == "glibc" and tuple(map(int, version.split(".")[:2])) >= (2, 35)
    return "[never]" not in mode and new_enough


def has_nvcc() -> bool:
    return shutil.which("nvcc") is not None or os.access(
        pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin/nvcc", os.X_OK
    )


def has_slurm() -> bool:
    """Whether a cluster on loopback can be started (tests/cli/slurm_local.py)."""
    places = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return os.geteuid() == 0 and all(
        shutil.which(name, path=places)
        for name in ("slurmctld", "slurmd", "munged", "sbatch", "squeue")
    )


def other_pytorch() -> bool:
    """Whether the tests are of another PyTorch than strata's own."""
    return os.environ.get("STRATA_PYTHON", sys.executable) != os.environ.get(
        "STRATA_TOOLS_PYTHON", sys.executable
    )


def has_level_environments() -> bool:
    """Whether every level that brings an environment has it: ./test tries to install them, which
    takes the network."""
    root = pathlib.Path(__file__).resolve().parent.parent
    return all(
        list(root.glob(f"build/environments/{level.parent.name}-*/bin/python"))
        for level in root.glob("levels/*/requirements.txt")
    )


# (what a reason says, whether that may be so here)
ALLOWED: list[tuple[str, Callable[[], bool]]] = [
    (
        r"no CUDA driver|CUDA's driver finds no device|cudaError(NoDevice|InsufficientDriver)",
        lambda: not has_cuda_device(),
    ),
    (r"there is a (device|GPU)$", has_cuda_device),
    (r"no AVX-512", lambda: not processor_has("avx512f")),
    (r"this CPU has no bf16", lambda: not processor_has("amx_bf16", "avx512_bf16")),
    (r"cudnn is left out", lambda: not has_nvcc() or other_pytorch()),
    (
        r"oneDNN|static is not built|level_static|level_onednn",
        lambda: platform.machine() != "x86_64",
    ),
    (r"the environment of \w+ is not installed", lambda: not has_level_environments()),
    (r"no real data sets here", lambda: not os.path.isdir(os.environ.get("STRATA_TEST_DATA", ""))),
    (r"the program curl is missing", lambda: shutil.which("curl") is None),
    (r"the program shellcheck is missing", lambda: shutil.which("shellcheck") is None),
    (r"the program clang-tidy is missing", lambda: shutil.which("clang-tidy") is None),
    (r"no huge pages here", lambda: not gives_huge_pages()),
    (r"no Slurm here", lambda: not has_slurm()),
    (r"the record is of torch|no PyTorch in the tests' own environment", other_pytorch),
    (r"no file system can be mounted here without rights", lambda: True),  # the test has tried
    (r"no network can be taken away here", lambda: True),  # the same
    (r"PyTorch refuses a BatchNorm over one value", lambda: True),  # one drawn case
    (r"only as the child of another test", lambda: True),  # which runs it
    (r"in Python alone", lambda: True),  # a cheat that only Python can reach
    (r"others use this machine", lambda: True),  # the test has measured it
]


def may_skip(reason: str) -> bool:
    return any(re.search(pattern, reason) and here() for pattern, here in ALLOWED)
