# SPDX-License-Identifier: Apache-2.0
"""The part of a capture that belongs to the network and not to the case: its weight sets
(docs/bundle.md, "Networks").

They are calibrated at the network's own shape, so that every batch, size, precision and number of
threads has the same ones, and lie once in the cache; bundles hold links to them. A set counts only
with the file beside it that says its hash and that is written last: what a killed capture leaves is
made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from capture.case import Input, resolve_inputs
from capture.errors import Problem, is_out_of_memory
from capture.identity import network_of
from capture.inputs import make_ring
from capture.opened import sha256_of, state_of_files
from capture.weights import CALIBRATION_SAMPLES, make_generic, prepare_timed, state_of
from strata_sdk.models import ROOT, Built, ModelError, load_weights

Ring = list[dict[str, Tensor]]
GENERIC_STEP = 7919  # between the seeds of two generic sets
SOURCES = ("src/capture", "sdk/python", "models")  # whose code decides what a network's weights are


def own_ring(spec: dict, built: Built, inputs: list[Input]) -> tuple[Ring, list[dict]] | None:
    """Inputs of the network's own shape and their description; None where only the case knows what
    the network takes, or takes other inputs than of another extent."""
    if spec["input_from"] or spec["input_file"]:
        return None
    own = spec | {"inputs": [], "batch": None}
    try:
        forms = resolve_inputs(own, built)
        if [_form(declared) for declared in forms] != [_form(declared) for declared in inputs]:
            return None
        batch = forms[0].shape[0] if forms[0].shape else 1
        ring = max(2, CALIBRATION_SAMPLES // min(batch, CALIBRATION_SAMPLES))
        return make_ring(own | {"ring": ring}, forms)[0], [
            declared.described() for declared in forms
        ]
    except Problem:
        return None


def _form(declared: Input) -> tuple:
    return (
        declared.name,
        declared.keyword,
        declared.dtype,
        len(declared.shape),
        declared.low,
        declared.high,
    )


class NetworkWeights:
    """The weight sets of one network, `timed` and for inference the generic ones. `module` is as
    built and has run; `networks`: where networks are kept, None: the sets are the bundle's alone;
    `read`: what the module was made from; `rings`: what to calibrate on, with the inputs'
    description, the first that the network runs on."""

    def __init__(
        self,
        module: nn.Module,
        spec: dict,
        info: dict,
        rings: list[tuple[Ring, list[dict]]],
        networks: Path | None,
        read: list[dict],
        bundle: Path,
    ) -> None:
        self.module, self.spec, self.info, self.rings = module, spec, info, rings
        self.networks, self.bundle = networks, bundle
        self.names = (
            ["timed"]
            if spec["mode"] == "train"
            else ["timed", *(f"generic{n + 1}" for n in range(spec["generic_sets"]))]
        )
        self.about: dict[str, dict] = {}  # of each set that is there
        # which packages are loaded by now differs from capture to capture; those that were there
        # when a set was made must be as they were
        self.packages = {
            entry["path"]: entry["sha256"]
            for entry in read
            if entry["path"].endswith(".dist-info/RECORD") and "sha256" in entry
        }
        self.identity = (
            ""
            if networks is None
            else _identity(
                module, spec, info, [entry for entry in read if entry["path"] not in self.packages]
            )
        )
        self.home = bundle

    def prepare(
        self, make_room: Callable[[int], None], say: Callable[[str], None]
    ) -> tuple[str, str]:
        """Makes the sets that are not there and links all into the bundle. A sentence for the
        report and a label for the case.
        `make_room`: raises where so many sets do not fit."""
        for number, (ring, described) in enumerate(self.rings):
            try:
                with self._kept(ring, described, say):
                    missing = [name for name in self.names if not self._is_there(name)]
                    make_room(len(missing))
                    if missing:
                        self._make(missing, ring, self.info | {"inputs": described}, say)
                break
            except (Problem, ModelError):
                raise
            except Exception as error:
                if is_out_of_memory(error) or number + 1 == len(self.rings):
                    raise
        for name in self.names:
            self._link(name)
        return self.about["timed"]["source"], self.about["timed"]["label"]

    def tensors(self, name: str) -> dict[str, Tensor]:
        return load_file(str(self.bundle / "weights" / f"{name}.safetensors"))

    @contextlib.contextmanager
    def _kept(
        self, ring: Ring, described: list[dict], say: Callable[[str], None]
    ) -> Iterator[None]:
        """The network's folder, which no other capture fills meanwhile; on a file system without
        locks one may, of which `strata doctor` warns."""
        if self.networks is None:
            yield
            return
        key = hashlib.sha256(f"{self.identity} {described} {_digest(ring)}".encode()).hexdigest()[
            :24
        ]
        self.home = self.networks / key
        (self.home / "weights").mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self.home / "lock", "w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another strata that captures this network")
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError:
                pass
            self.info["network"]["key"] = key
            for half in (self.home / "weights").glob(".*"):
                half.unlink(missing_ok=True)
            about = {
                "network": 1,
                "model": self.info["model"]["name"],
                "seed": self.spec["seed"],
                "weights": self.spec["weights"],
                "inputs": described,
                "torch": torch.__version__,
            }
            # its time is when the network was used last
            (self.home / "network.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
            yield

    def _file(self, name: str) -> Path:
        return self.home / "weights" / f"{name}.safetensors"

    def _is_there(self, name: str) -> bool:
        """Whether the set is whole; what is not is made again."""
        if self.networks is None:
            return False
        try:
            about = json.loads(self._file(name).with_suffix(".json").read_text(encoding="utf-8"))
            alike = all(
                self.packages.get(path) == digest or sha256_of(path)[0] == digest
                for path, digest in about["packages"].items()
            )
            if (
                alike
                and not self._file(name).is_symlink()
                and sha256_of(self._file(name)) == (about["sha256"], about["bytes"])
            ):
                self.about[name] = about
                return True
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        return False

    def _make(self, missing: list[str], ring: Ring, info: dict, say: Callable[[str], None]) -> None:
        """The sets of that name, on all processors: how many the case has makes no other
        weights."""
        torch.set_num_threads(os.cpu_count() or 1)
        built = state_of(self.module)
        try:
            if "timed" in missing:
                source, label = prepare_timed(self.module, self.spec, ring, info)
                timed = state_of(self.module)
                self._write("timed", timed, {"source": source, "label": label})
            else:
                timed = load_file(str(self._file("timed")))
            for name in missing:
                if name != "timed":
                    say(f"making weight set {name}")
                    make_generic(
                        self.module,
                        timed,
                        self.spec["seed"] + GENERIC_STEP * int(name.removeprefix("generic")),
                        ring,
                        info,
                    )
                    self._write(name, state_of(self.module), {})
        except Exception:
            load_weights(self.module, built, "as built")
            raise
        finally:
            torch.set_num_threads(self.spec["threads"])

    def _write(self, name: str, tensors: dict[str, Tensor], about: dict) -> None:
        path = self._file(name)
        if self.networks is None:
            save_file(tensors, str(path))
            self.about[name] = about
            return
        half = path.with_name(f".{name}.safetensors")
        save_file(tensors, str(half))
        digest, size = sha256_of(half)
        self.about[name] = about | {"sha256": digest, "bytes": size, "packages": self.packages}
        os.replace(half, path)  # bundles that have the file of before keep it
        half = path.with_name(f".{name}.json")
        half.write_text(json.dumps(self.about[name]), encoding="utf-8")
        os.replace(half, path.with_suffix(".json"))

    def _link(self, name: str) -> None:
        if self.home == self.bundle:
            return
        target = self.bundle / "weights" / f"{name}.safetensors"
        try:
            os.link(self._file(name), target)
        except OSError:  # another file system, or one without links
            shutil.copyfile(self._file(name), target)


def _identity(module: nn.Module, spec: dict, info: dict, read: list[dict]) -> str:
    """Of all that decides the weights beside the inputs that they are calibrated on, and of nothing
    of the case."""
    files = [
        spec["weights"],
        *(info["model"].get("data") or []),
        *([spec["model"]] if Path(spec["model"]).is_file() else []),
    ]
    packages = [
        f"{name} {sys.modules[name].__version__}"
        for name in ("torch", "torchvision")
        if name in sys.modules
    ]
    parts = [
        sys.prefix,
        platform.python_version(),
        *packages,
        _code(),
        info["model"]["kind"],
        info["model"]["name"],
        str(spec["seed"]),
        network_of(module)["sha256"],
        *(sha256_of(path)[0] if path and Path(path).is_file() else str(path) for path in files),
        state_of_files(read),
    ]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _code() -> str:
    """Names and contents of strata's own sources."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".json") and path.is_file():
                digest.update(f"{path.relative_to(ROOT)} {sha256_of(path)[0]}\n".encode())
    return digest.hexdigest()


def _digest(ring: Ring) -> str:
    digest = hashlib.sha256()
    for entry in ring:
        for name, value in entry.items():
            digest.update(
                name.encode() + value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            )
    return digest.hexdigest()
