# SPDX-License-Identifier: Apache-2.0
"""What the author of a Python level writes: a class derived from `Level` in the level's level.py,
and from those of capabilities.py that it has. It never times, prints or parses arguments.

The SDK calls, for a case: supports, load, load_weights, then per iteration set_input, run, wait,
outputs.
"""

from __future__ import annotations

import json
import platform
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadRequest, LevelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np


@dataclass(frozen=True)
class Job:
    """One case for one level. `bundle` and `cache` are folders (docs/bundle.md); `weights` is the
    weight set to load first; `variant` is one of level.json's, or default."""

    case: dict
    bundle: Path
    cache: Path
    weights: str
    about: dict = field(repr=False)  # bundle.json
    variant: str = "default"

    @property
    def threads(self) -> int:
        return int(self.case["threads"])

    @property
    def device(self) -> str:
        return self.case["device"]

    @property
    def precision(self) -> str:
        return self.case["precision"]

    @property
    def trains(self) -> bool:
        return self.case["mode"] == "train"

    @property
    def deep(self) -> bool:
        return bool(self.case.get("deep"))

    @property
    def dynamic(self) -> dict | None:
        """`low`, `high` and `sizes` of the batch that one network must serve, or None: the case has
        one batch."""
        return self.case.get("dynamic")

    @property
    def writes_inputs(self) -> bool:
        """Whether the network writes into its inputs, as the capture found."""
        return bool(self.about.get("writes_inputs"))

    @property
    def writes_buffers(self) -> bool:
        """Whether the network keeps a state of its own between calls, as the capture found."""
        return bool(self.about.get("writes_buffers"))

    @cached_property
    def input_names(self) -> list[str]:
        return [i["name"] for i in self.about["inputs"]]

    @cached_property
    def output_names(self) -> list[str]:
        return [o["name"] for o in self.about["outputs"]]

    def weights_path(self, weights: str) -> Path:
        """The safetensors file of a weight set."""
        return self.bundle / "weights" / f"{weights}.safetensors"

    def example(self) -> tuple[np.ndarray, ...]:
        """Entry 0 of the bundle's ring, in the order of the inputs: for levels that must run once
        to compile."""
        from . import tensors

        read = tensors.read(
            str(self.bundle / "inputs.safetensors"), [f"0/{name}" for name in self.input_names]
        )
        return tuple(read.values())


class Level(ABC):
    """One way to run a network: what every level implements, and what it may say differently. What
    else it can do (train, serve several clients, report) are the classes of capabilities.py. `job`
    is set before supports() is called; `copy_inputs` is True where the network writes into its
    inputs (the bundle says so, or the SDK saw it)."""

    job: Job
    copy_inputs = False
    libraries: Mapping[str, str] = {}  # that do the work: name -> version
    shipped: Sequence[Path] = ()  # what artefact() gave last
    said_to: Callable[[str], None] | None = None  # whom progress() tells; the SDK sets it

    # -- to write ---------------------------------------------------------------------------------

    @abstractmethod
    def load_weights(self, weights: str) -> None:
        """Loads a weight set (job.weights_path(weights)) into the loaded network. Called once after
        load, and again for other sets."""

    @abstractmethod
    def set_input(self, inputs: Any) -> None:
        """Takes one entry of the ring, as host_input() made it. Timed. On a device: the copy to
        it."""

    @abstractmethod
    def run(self) -> None:
        """Starts one forward pass. Timed."""

    @abstractmethod
    def outputs(self) -> Sequence[Any]:
        """The results in host memory, in the order of job.output_names; the level does not touch
        them again. Timed."""

    # -- may be written ---------------------------------------------------------------------------

    def load(self, job: Job) -> None:  # noqa: B027
        """Builds or opens the network, where that is done once for all weight sets."""

    def supports(self, job: Job) -> None:  # noqa: B027
        """Raises UnsupportedError when this level cannot run the case. What level.json declares
        (modes, devices, precisions, variants, models) is checked before."""

    def wait(self) -> None:  # noqa: B027
        """Returns when the pass has ended. Timed. Nothing to do on a synchronous device."""

    def host_input(self, arrays: tuple[np.ndarray, ...]) -> Any:
        """What the caller of this framework would hold in host memory, made from the input arrays
        once, before timing; must share their memory."""
        return arrays

    def to_numpy(self, output: Any) -> np.ndarray:
        """One of outputs() as an array. Not timed."""
        import numpy

        return numpy.asarray(output)

    def unload(self) -> None:
        """Frees the network. Default: forgets every attribute of the instance."""
        self.__dict__.clear()

    def parameters(self) -> int:
        """Elements of the parameters that the framework holds; 0: it cannot tell."""
        return 0

    def artefacts(self) -> Sequence[Path]:
        """Files that must be shipped with a program, beside the level's libraries. Default: those
        that artefact() gave."""
        return self.shipped

    def settings(self) -> dict[str, Any]:
        """What differs from the SDK's defaults (see worker.py): threads, precision, layout,
        inference_mode, autotune, freezing, graph."""
        return {}

    def deterministic(self) -> bool:
        return True

    def device_peak_bytes(self) -> int | None:
        """Peak of the framework's own device allocator, if it has one."""
        return None

    def versions(self) -> dict[str, str]:
        """Versions of the libraries that do the work."""
        return {"python": platform.python_version(), **self.libraries}

    def build(self) -> dict[str, str]:
        """`type` is release, or debug, sanitizer, assertions: the driver refuses those."""
        return {"type": "debug" if hasattr(sys, "gettotalrefcount") else "release", "flags": ""}

    def devices(self, declared: Sequence[str]) -> list[str]:
        """Which of level.json's devices this machine has."""
        return list(declared)

    # -- to call ----------------------------------------------------------------------------------

    def progress(self, what: str) -> None:
        """Says what is being done to whoever waits for a request that takes long ("compiling 3 of
        8"). Nothing is said while something is timed."""
        if self.said_to is not None:
            self.said_to(what)

    def artefact(self, name: str, *further: str) -> Path:
        """The file of the cache that the level's prepare command wrote under that name. It and the
        `further` ones, where they are there, are shipped. Raises LevelError when it is missing."""
        path = self.job.cache / name
        if not path.is_file():
            raise LevelError(f"{path} is missing", "run the level's prepare command again")
        others = [self.job.cache / other for other in further]
        self.shipped = [path, *(other for other in others if other.is_file())]
        return path


def read_job(request: dict) -> Job:
    """The Job of a `load` request. Raises BadRequest for fields of a wrong type, OSError or
    ValueError for a bundle that cannot be read."""
    variant = request.get("variant", "default")
    for name, text in (
        *((name, request[name]) for name in ("bundle", "weights", "cache")),
        ("variant", variant),
    ):
        if not isinstance(text, str):
            raise BadRequest(f"`{name}` is {text!r}", "allowed: text")
    case = request["case"]
    if not isinstance(case, dict):
        raise BadRequest(f"`case` is {case!r}", "allowed: an object, the bundle's case")
    for name, kind in (
        ("mode", str),
        ("precision", str),
        ("device", str),
        ("model", str),
        ("threads", int),
    ):
        if not isinstance(case.get(name), kind) or isinstance(case[name], bool):
            raise BadRequest(
                f"`case.{name}` is {case.get(name)!r}",
                f"allowed: {'text' if kind is str else 'a whole number'}",
            )
    bundle = Path(request["bundle"])
    about = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    return Job(
        case=case,
        bundle=bundle,
        cache=Path(request["cache"]),
        weights=request["weights"],
        about=about,
        variant=variant,
    )
