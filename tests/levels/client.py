# SPDX-License-Identifier: Apache-2.0
"""A small client of the worker protocol for the tests of Python levels: starts a level as the
driver does, sends requests, checks the shape of the answers."""

from __future__ import annotations

import ctypes
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import preloaded
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("STRATA_PROGRAM", ROOT / "build" / "release" / "strata"))
FAULTY = Path(__file__).resolve().parent / "faulty_eager"


def why_no_cuda_device() -> str:
    """What CUDA's driver says; empty: there is a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no CUDA driver"
    count = ctypes.c_int(0)
    return (
        ""
        if driver.cuInit(0) == 0
        and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        and count.value > 0
        else "CUDA's driver finds no device"
    )


NO_CUDA_DEVICE = why_no_cuda_device()
WAIT_S = 240  # compile on a loaded machine; a test never gets near it


class Failed(Exception):
    """A worker's failure answer."""

    def __init__(self, answer: dict) -> None:
        super().__init__(f"{answer['code']}: {answer['what']}")
        self.code, self.what, self.hint = answer["code"], answer["what"], answer["hint"]


def level_folder(name: str) -> Path:
    """levels/<name>, or the test levels beside this file; `name` may have an @variant."""
    name = name.partition("@")[0]
    own = Path(__file__).resolve().parent / name
    return own if (own / "level.json").is_file() else ROOT / "levels" / name


def environment(
    folder: Path, threads: int = 2, cache: Path | None = None, **extra: str
) -> dict[str, str]:
    """The variables that docs/protocol.md promises to a worker."""
    # the last one is not promised: tests share the machine
    promised = {
        "STRATA_LEVEL_DIR": str(folder),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONPATH": str(ROOT / "sdk" / "python"),
        "PYTHONSAFEPATH": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    if cache:
        # shared, since precompiled headers cost more than the networks
        kernels = Path(os.environ.get("STRATA_TEST_KERNELS", cache))
        promised |= {
            "TORCHINDUCTOR_CACHE_DIR": str(kernels / "inductor"),
            "TRITON_CACHE_DIR": str(kernels / "triton"),
        }
    return os.environ | promised | extra


def own_python(level: str) -> str:
    """The interpreter of the environment that a level brings; empty: it is not installed."""
    found = sorted(
        ROOT.glob(f"build/environments/{level}-*/bin/python"),
        key=lambda path: path.lstat().st_mtime,
    )
    return str(found[-1]) if found else ""


def command(folder: Path, key: str) -> list[str]:
    """`start` or `prepare` of level.json with its placeholders filled in."""
    words = json.loads((folder / "level.json").read_text(encoding="utf-8"))[key]
    for placeholder, value in (
        ("{python}", preloaded.PYTHON),
        ("{tools_python}", sys.executable),
        ("{level_python}", own_python(folder.name)),
        ("{level}", str(folder)),
        ("{root}", str(ROOT)),
        ("{build}", os.environ.get("STRATA_LEVEL_BUILD", "")),
    ):
        words = [word.replace(placeholder, value) for word in words]
    return words


def loads_pytorch(folder: Path) -> bool:
    """Whether a worker of this level is a Python program with PyTorch."""
    return json.loads((folder / "level.json").read_text(encoding="utf-8"))["start"][0] == "{python}"


def prepare(name: str, bundle: Path, cache: Path, variant: str = "default", **extra: str) -> dict:
    """Runs a level's prepare command; its answer, the last of its lines. A level without one
    answers {"ok": True}."""
    folder = level_folder(name)
    if "prepare" not in json.loads((folder / "level.json").read_text(encoding="utf-8")):
        return {"ok": True}
    words, variables = (
        [*command(folder, "prepare"), "--bundle", str(bundle), "--cache", str(cache)],
        environment(folder, cache=cache, **extra),
    )
    words += [] if variant == "default" else ["--variant", variant]
    if words[0] == preloaded.PYTHON:
        done = preloaded.run(words, variables, os.getcwd(), WAIT_S)
    else:
        done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=WAIT_S)
    *progress, answer = [json.loads(line) for line in done.stdout.splitlines()] or [None]
    assert answer is not None and all(line.keys() == {"progress"} for line in progress), (
        f"prepare wrote {done.stdout!r} to stdout; stderr ends: {done.stderr[-2000:]}"
    )
    assert (done.returncode == 0) == answer["ok"], done.stderr[-2000:]
    return answer


class Worker:
    """A running level. Use as a context manager; leaving it kills what is left."""

    def __init__(
        self,
        name: str | Path,
        bundle: Path | None = None,
        cache: Path | None = None,
        threads: int = 2,
        variant: str = "default",
        **extra: str,
    ) -> None:
        self.folder = name if isinstance(name, Path) else level_folder(name)
        self.variant = name.partition("@")[2] if isinstance(name, str) and "@" in name else variant
        self.bundle, self.threads = bundle, threads
        self.scratch = tempfile.TemporaryDirectory(prefix="strata-test-")
        self.cache = cache or Path(self.scratch.name)
        self.log = open(Path(self.scratch.name) / "log", "w+", encoding="utf-8")
        words, variables = (
            command(self.folder, "start"),
            environment(self.folder, threads, self.cache, **extra),
        )
        if loads_pytorch(self.folder):
            self.process = preloaded.Process(words, variables, self.scratch.name, self.log)
        else:
            self.process = subprocess.Popen(
                words,
                env=variables,
                cwd=self.scratch.name,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                start_new_session=True,
            )
        self.number = 0
        self.progress: list[str] = []  # lines of progress, of all requests
        self.buffer = b""

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()
        self.log.close()
        self.scratch.cleanup()

    def log_text(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text(encoding="utf-8")

    def send(self, line: bytes) -> dict:
        """One raw line, and the answer to it."""
        self.process.stdin.write(line.rstrip(b"\n") + b"\n")
        self.process.stdin.flush()
        while "progress" in (answer := json.loads(self.read_line())):
            assert answer.keys() == {"id", "progress"} and json.loads(line)["id"] == answer["id"], (
                answer
            )
            self.progress.append(answer["progress"])
        return answer

    def read_line(self) -> bytes:
        deadline = time.monotonic() + WAIT_S
        while b"\n" not in self.buffer:
            ready, _, _ = select.select(
                [self.process.stdout], [], [], max(0.0, deadline - time.monotonic())
            )
            assert ready, f"no answer within {WAIT_S} s; log: {self.log_text()[-2000:]}"
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            assert part, (
                f"the worker ended with {self.process.wait()}; log: {self.log_text()[-2000:]}"
            )
            self.buffer += part
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def ask(self, op: str, **fields) -> dict:
        """The answer to a request; raises Failed. Checks that it carries the request's id."""
        self.number += 1
        answer = self.send(json.dumps({"id": self.number, "op": op} | fields).encode())
        assert answer["id"] == self.number, answer
        if not answer["ok"]:
            assert {"code", "what", "hint"} <= set(answer), answer
            raise Failed(answer)
        return answer

    def load(self, weights: str = "timed", **changed) -> dict:
        """`load` of the bundle's own case, with fields of it changed (its device, where the level
        has another), `inputs`, and in mode train, where the loss is of labels, `set_labels`."""
        devices = json.loads((self.folder / "level.json").read_text(encoding="utf-8"))["devices"]
        case = (
            json.loads((self.bundle / "bundle.json").read_text(encoding="utf-8"))["case"]
            | {"threads": self.threads, "device": devices[0]}
            | changed
        )
        variant_field = {} if self.variant == "default" else {"variant": self.variant}
        answer = self.ask(
            "load",
            case=case,
            bundle=str(self.bundle),
            weights=weights,
            cache=str(self.cache),
            **variant_field,
        )
        self.ask("inputs", path=str(self.bundle / "inputs.safetensors"))
        labels = self.bundle / "labels.safetensors"
        if case["mode"] == "train" and labels.exists():
            self.ask("set_labels", path=str(labels))
        return answer

    def prove(self, indices: list[int]) -> dict[str, np.ndarray]:
        """`<index>/<output>` -> array."""
        out = Path(self.scratch.name) / "prove.safetensors"
        out.unlink(missing_ok=True)
        self.ask("prove", indices=indices, out=str(out))
        return load_file(out) if out.exists() else {}

    def measure(
        self, indices: list[int], check: int = 0, head: int = 1
    ) -> tuple[dict, dict[str, np.ndarray]]:
        """The answer to `measure` and the checked outputs."""
        answer = self.ask(
            "measure",
            iterations=len(indices),
            head=head,
            indices=indices,
            retain=[check] if check >= 0 else [],
            region="end_to_end",
        )
        return answer, self.result(check) if check >= 0 else {}

    def result(self, iteration: int) -> dict[str, np.ndarray]:
        """`<index>/<output>` -> array, of an iteration that the last `measure` retained."""
        out = Path(self.scratch.name) / "block.safetensors"
        out.unlink(missing_ok=True)
        self.ask("result", iteration=iteration, out=str(out))
        return load_file(out) if out.exists() else {}


def error(outputs: dict[str, np.ndarray], reference: dict[str, np.ndarray]) -> float:
    """The greatest relative error of any output against the float64 reference: e of the proof
    without its floor."""
    worst = 0.0
    for name, value in outputs.items():
        truth = reference[f"f64/{name}"]
        assert value.shape == truth.shape, (
            f"{name} has shape {value.shape}, the reference {truth.shape}"
        )
        if not np.isfinite(value).all():
            return float("inf")
        worst = max(
            worst,
            float(
                np.linalg.norm(value.astype(np.float64) - truth) / max(np.linalg.norm(truth), 1e-30)
            ),
        )
    return worst


def compare(folder: Path, *arguments: str, **how) -> dict[str, dict]:
    """The rows of the first case of a comparison by level."""
    return {row["level"]: row for row in compare_all(folder, *arguments, **how)["cases"][0]["rows"]}


def compare_all(
    folder: Path, *arguments: str, levels: Path | None = None, afresh: bool = False
) -> dict:
    """The result of one comparison. Its Python programs are forked from one that has loaded
    PyTorch, unless they are to start afresh as a user's do."""
    environment = os.environ | {
        "STRATA_ROOT": str(ROOT),
        "XDG_DATA_HOME": str(folder),
        "STRATA_PYTHON": preloaded.PYTHON,
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    if not afresh:
        environment |= preloaded.interpreter()
    if levels:
        environment["STRATA_LEVEL_PATH"] = str(levels)
    done = subprocess.run(
        [str(PROGRAM), "compare", *arguments, "--format", "json"],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout)
