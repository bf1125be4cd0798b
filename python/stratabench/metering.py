# SPDX-License-Identifier: Apache-2.0
"""What a piece of code takes, of this process: `with meters() as m:` around it, then `m.wall_s` and
the rest. Read once before and once after, so that nothing runs beside the code, except what samples
a GPU."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SELF = Path("/proc/self")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
GPU_PERIOD_S = 0.05


@dataclass
class GpuUse:
    """Of one GPU, by all of its users. None: the device does not tell.

    Attributes:
        name: the device's.
        utilisation: the share of time in which something ran on it: the mean of samples every 50
            ms.
        peak_memory_bytes: the most of its memory that was in use in a sample.
        power_w: watts, the mean of the samples.
        energy_j: joules, by the device's counter.
        samples: how many there were.
    """

    name: str
    utilisation: float | None = None
    peak_memory_bytes: int | None = None
    power_w: float | None = None
    energy_j: float | None = None
    samples: int = 0


@dataclass
class Reading:
    """What code took. All of it is of this process, all of its threads; children are not in it.
    None: the kernel does not tell.

    Attributes:
        wall_s: seconds from the block's start to its end.
        cpu_s: seconds of processor time.
        cpu_by_thread: the same by "id name", of the kernel's clock, in steps of 10 ms; a thread
            that ended meanwhile is missing.
        run_queue_wait_s: seconds that this thread waited for a processor.
        minor_faults: page faults that needed no disk.
        major_faults: page faults that did.
        switched_out: how often a thread lost its processor to another before it was done.
        private_bytes: memory that no other process shares, afterwards.
        private_grown_bytes: how much that is more than before.
        peak_resident_bytes: the most that was in memory meanwhile.
        energy_j: joules by package of processors, of all that ran on them; empty where it cannot be
            read (root alone may, mostly).
        gpus: a GpuUse for each, where nvidia-ml-py and a driver are there.
        cost_s: seconds that reading each meter took, before and after together: none of it is in
            `wall_s`.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    cpu_by_thread: dict[str, float] = field(default_factory=dict)
    run_queue_wait_s: float | None = None
    minor_faults: int = 0
    major_faults: int = 0
    switched_out: int = 0
    private_bytes: int | None = None
    private_grown_bytes: int | None = None
    peak_resident_bytes: int | None = None
    energy_j: dict[str, float] = field(default_factory=dict)
    gpus: list[GpuUse] = field(default_factory=list)
    cost_s: dict[str, float] = field(default_factory=dict)


@contextlib.contextmanager
def meters() -> Iterator[Reading]:
    """Measures a block of this process's code; the reading is filled in when the block ends, by an
    exception, too.

    ```python
    import stratabench as strata

    with strata.meters() as reading:
        squares = [n * n for n in range(100_000)]
    print(f"{reading.wall_s:.3f} s, of them {reading.cpu_s:.3f} on a processor")
    ```
    """
    reading = Reading()
    costs: dict[str, float] = {}

    def timed(name: str, read: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        value = read()
        costs[name] = costs.get(name, 0.0) + time.perf_counter() - begin
        return value

    gpus = timed("gpu", _Gpus.start)
    before = {name: timed(name, read) for name, read in METERS.items()}
    resets = timed("peak", _reset_peak)
    begin = time.perf_counter()
    try:
        yield reading
    finally:
        reading.wall_s = time.perf_counter() - begin
        reading.peak_resident_bytes = timed("peak", _peak) if resets else None
        after = {name: timed(name, read) for name, read in reversed(METERS.items())}
        reading.gpus = timed("gpu", gpus.stop)
        _fill(reading, before, after)
        reading.cost_s = costs


def _fill(reading: Reading, before: dict[str, Any], after: dict[str, Any]) -> None:
    reading.cpu_s = after["cpu"] - before["cpu"]
    threads = {
        name: seconds - before["threads"].get(name, 0.0)
        for name, seconds in after["threads"].items()
    }
    reading.cpu_by_thread = {name: seconds for name, seconds in threads.items() if seconds > 0}
    if before["queue"] is not None and after["queue"] is not None:
        reading.run_queue_wait_s = after["queue"] - before["queue"]
    usage = [after["usage"][i] - before["usage"][i] for i in range(3)]
    reading.minor_faults, reading.major_faults, reading.switched_out = usage
    reading.private_bytes = after["private"]
    if before["private"] is not None and after["private"] is not None:
        reading.private_grown_bytes = after["private"] - before["private"]
    for zone, (joules, wraps_at) in after["energy"].items():
        if zone in before["energy"]:
            used = joules - before["energy"][zone][0]
            reading.energy_j[zone] = used if used >= 0 else used + wraps_at


def _threads() -> dict[str, float]:
    """Seconds of processor time by "id name"."""
    seconds = {}
    for task in (SELF / "task").iterdir():
        with contextlib.suppress(OSError):
            name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
            words = rest.split()
            seconds[f"{task.name} {name}"] = (int(words[11]) + int(words[12])) * TICK_S
    return seconds


def _queue() -> float | None:
    """Seconds that this thread waited for a processor; None: the kernel does not count them."""
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text()
        return int(text.split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return None


def _usage() -> tuple[int, int, int]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, used.ru_majflt, used.ru_nivcsw


def _private() -> int | None:
    """Bytes that no other process shares."""
    try:
        lines = (SELF / "smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _reset_peak() -> bool:
    try:
        (SELF / "clear_refs").write_text("5")
        return True
    except OSError:
        return False


def _peak() -> int | None:
    for line in (SELF / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return None


def _energy() -> dict[str, tuple[float, float]]:
    """Joules so far, and where the counter begins again, by package."""
    counted = {}
    for zone in sorted(Path("/sys/class/powercap").glob("intel-rapl:?")):
        with contextlib.suppress(OSError, ValueError):
            name = (zone / "name").read_text().strip()
            joules = int((zone / "energy_uj").read_text()) * 1e-6
            counted[name] = joules, int((zone / "max_energy_range_uj").read_text()) * 1e-6
    return counted


# What is read before and after; the processor's clock last before and first after.
METERS: dict[str, Callable[[], Any]] = {
    "energy": _energy,
    "private": _private,
    "threads": _threads,
    "queue": _queue,
    "usage": _usage,
    "cpu": time.process_time,
}


class _Gpus:
    """Samples all GPUs in a thread of its own, if nvidia-ml-py and a driver are there."""

    def __init__(self, library: Any, handles: list[Any]) -> None:
        self.library, self.handles = library, handles
        self.uses = [GpuUse(str(self._told("nvmlDeviceGetName", handle))) for handle in handles]
        self.before = [self._told("nvmlDeviceGetTotalEnergyConsumption", h) for h in handles]
        self.sums = [[0.0, 0.0] for _ in handles]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._sample_all, daemon=True)
        if handles:
            self.thread.start()

    @classmethod
    def start(cls) -> _Gpus:
        try:
            import pynvml

            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
            return cls(pynvml, [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)])
        except Exception:  # no library, no driver: there is nothing to measure
            return cls(None, [])

    def stop(self) -> list[GpuUse]:
        self.ended.set()
        if self.handles:
            self.thread.join()
        for use, handle, begin, (busy, watts) in zip(
            self.uses, self.handles, self.before, self.sums
        ):
            end = self._told("nvmlDeviceGetTotalEnergyConsumption", handle)
            use.energy_j = None if begin is None or end is None else (end - begin) * 1e-3
            use.utilisation = None if use.utilisation is None else busy / use.samples
            use.power_w = None if use.power_w is None else watts / use.samples
        return self.uses

    def _sample_all(self) -> None:
        while True:  # at least once
            for use, handle, sums in zip(self.uses, self.handles, self.sums):
                self._sample(use, handle, sums)
            if self.ended.wait(GPU_PERIOD_S):
                return

    def _sample(self, use: GpuUse, handle: Any, sums: list[float]) -> None:
        use.samples += 1
        if (rates := self._told("nvmlDeviceGetUtilizationRates", handle)) is not None:
            use.utilisation = rates.gpu / 100
            sums[0] += use.utilisation
        if (memory := self._told("nvmlDeviceGetMemoryInfo", handle)) is not None:
            use.peak_memory_bytes = max(use.peak_memory_bytes or 0, int(memory.used))
        if (milliwatts := self._told("nvmlDeviceGetPowerUsage", handle)) is not None:
            use.power_w = milliwatts / 1000
            sums[1] += use.power_w

    def _told(self, question: str, handle: Any) -> Any:
        try:
            return getattr(self.library, question)(handle)
        except Exception:  # not every device tells everything
            return None
