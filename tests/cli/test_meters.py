# SPDX-License-Identifier: Apache-2.0
"""`stratabench.meters()`: what code of one's own takes."""

from __future__ import annotations

import mmap
import sys
import threading
import time
import types

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))

from stratabench import metering as module
from stratabench import meters

MEGABYTE = 1 << 20


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_processor_time_is_told_apart_by_thread_and_sleep_takes_none():
    with meters() as taken:
        thread = threading.Thread(target=busy, args=(0.15,), name="worker")
        thread.start()
        time.sleep(0.05)
        thread.join()
        busy(0.05)
    assert 0.2 <= taken.cpu_s <= taken.wall_s + 0.25 and taken.wall_s >= 0.2
    own = [seconds for name, seconds in taken.cpu_by_thread.items()]
    assert own and sum(own) <= taken.cpu_s + 0.05
    with meters() as slept:
        time.sleep(0.2)
    assert slept.wall_s >= 0.2 and slept.cpu_s < 0.1 * slept.wall_s + 0.05


def test_memory_that_is_written_counts_as_faults_private_bytes_and_peak():
    with meters() as taken:
        area = mmap.mmap(-1, 64 * MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.write(b"x" * 64 * MEGABYTE)
    area.close()
    assert taken.minor_faults > 0
    if taken.private_grown_bytes is None or taken.peak_resident_bytes is None:
        pytest.skip("the kernel does not tell a process's own memory")
    assert taken.private_grown_bytes >= 60 * MEGABYTE
    assert taken.peak_resident_bytes >= 64 * MEGABYTE and taken.private_bytes >= 64 * MEGABYTE
    with meters() as less:
        pass
    assert less.peak_resident_bytes < taken.peak_resident_bytes


def test_a_reading_is_there_after_an_exception_too_with_the_cost_of_each_meter():
    with pytest.raises(ValueError, match="mine"), meters() as taken:
        busy(0.02)
        raise ValueError("mine")
    assert taken.cpu_s >= 0.02
    assert set(taken.cost_s) == {"peak", "gpu", *module.METERS} and min(taken.cost_s.values()) >= 0


def test_a_counter_of_energy_that_begins_again_is_read_on(monkeypatch):
    told = iter([{"package-0": (90.0, 100.0)}, {"package-0": (5.0, 100.0), "new": (1.0, 9.0)}])
    monkeypatch.setitem(module.METERS, "energy", lambda: next(told))
    with meters() as taken:
        pass
    assert taken.energy_j == {"package-0": 15.0}


def test_a_gpu_is_sampled_and_what_it_does_not_tell_is_none(monkeypatch):
    energy = iter([1000, 3500])
    fake = types.SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: "fake GPU",
        nvmlDeviceGetUtilizationRates=lambda handle: types.SimpleNamespace(gpu=50, memory=1),
        nvmlDeviceGetMemoryInfo=lambda handle: types.SimpleNamespace(used=7 * MEGABYTE),
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(energy),
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    with meters() as taken:
        pass
    (gpu,) = taken.gpus
    assert (gpu.name, gpu.utilisation, gpu.peak_memory_bytes) == ("fake GPU", 0.5, 7 * MEGABYTE)
    assert gpu.energy_j == 2.5 and gpu.power_w is None and gpu.samples >= 1
