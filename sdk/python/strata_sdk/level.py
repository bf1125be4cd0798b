# SPDX-License-Identifier: Apache-2.0
"""What the author of a Python level writes: a class derived from `Level` in the level's level.py.
It never times, prints or parses arguments.

The SDK calls, for a case: supports, load, load_weights, then per iteration set_input, run, wait,
outputs. Only those six have to be written. In a case of mode train an iteration is set_batch, step,
wait, loss; a level that has `train` in its modes writes those and the others of the last section.
"""

from __future__ import annotations

import copy
import json
import platform
import sys
import types
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadRequest, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

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


class Level:
    """One way to run a network. `job` is set before supports() is called; `copy_inputs` is True
    where the network writes into its inputs (the bundle says so, or the SDK saw it)."""

    job: Job
    copy_inputs = False
    batches_of: Any = (
        None  # what gathers the batches of `steps` in place of the SDK, as dataloader.batches does
    )

    # -- to write ---------------------------------------------------------------------------------

    def supports(self, job: Job) -> None:
        """Raises UnsupportedError when this level cannot run the case. What level.json declares is
        checked before."""

    def load(self, job: Job) -> None:
        """Builds or opens the network."""
        raise NotImplementedError

    def load_weights(self, weights: str) -> None:
        """Loads a weight set (job.weights_path(weights)) into the loaded network. Called once after
        load, and again for other sets."""
        raise NotImplementedError

    def set_input(self, inputs: Any) -> None:
        """Takes one entry of the ring, as host_input() made it. Timed. On a device: the copy to
        it."""
        raise NotImplementedError

    def run(self) -> None:
        """Starts one forward pass. Timed."""
        raise NotImplementedError

    def wait(self) -> None:
        """Returns when the pass has ended. Timed. Nothing to do on a synchronous device."""

    def outputs(self) -> Sequence[Any]:
        """The results in host memory, in the order of job.output_names; the level does not touch
        them again. Timed."""
        raise NotImplementedError

    # -- may be written ---------------------------------------------------------------------------

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

    def weight_names(self) -> Sequence[str]:
        """Names of the tensors that weight() can read back from the framework."""
        return ()

    def weight(self, name: str) -> np.ndarray:
        """A tensor as the framework holds it now, by its PyTorch name; the SDK hashes it."""
        raise KeyError(name)

    def parameters(self) -> int:
        """Elements of the parameters that the framework holds; 0: it cannot tell."""
        return 0

    def artefacts(self) -> Sequence[Path]:
        """Files that must be shipped with a program, beside the level's libraries."""
        return ()

    def settings(self) -> dict[str, Any]:
        """What differs from the SDK's defaults (see worker.py): threads, precision, layout,
        inference_mode, autotune, freezing, graph."""
        return {}

    def deterministic(self) -> bool:
        return True

    def report(self) -> dict[str, Any]:
        """Facts about what it did since load that are known only later (docs/protocol.md, report).
        May run the network; never called while something is timed."""
        return {}

    def device_peak_bytes(self) -> int | None:
        """Peak of the framework's own device allocator, if it has one."""
        return None

    def versions(self) -> dict[str, str]:
        """Versions of the libraries that do the work."""
        return {"python": platform.python_version()}

    def build(self) -> dict[str, str]:
        """`type` is release, or debug, sanitizer, assertions: the driver refuses those."""
        return {"type": "debug" if hasattr(sys, "gettotalrefcount") else "release", "flags": ""}

    def devices(self, declared: Sequence[str]) -> list[str]:
        """Which of level.json's devices this machine has."""
        return list(declared)

    # -- several clients at once: what levels need that can be called by several threads ----------

    def clients(self, count: int, threads: int) -> Sequence[Level]:
        """`count` callers that may run the loaded network at the same time, each with `threads`
        threads for its work: twin() makes one. Raises UnsupportedError where it cannot."""
        raise UnsupportedError("this level cannot be called by several threads at once")

    def enter(self) -> None:
        """Called once by the thread of a client, before its first request: for what a library keeps
        by thread."""

    def twin(self) -> Self:
        """A caller with attributes of its own that shares what they refer to: the network, not the
        inputs and results of a request."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            # a variant replaces methods of the instance
            if isinstance(value, types.MethodType) and value.__self__ is self:
                setattr(other, name, types.MethodType(value.__func__, other))
        return other

    # -- training: all of these, where level.json's modes have `train` ----------------------------

    # where step_in_phases() cannot tell phases apart: the one it marks -> those that it holds
    joined_phases: Mapping[str, Sequence[str]] = {}

    def set_mode(self, mode: str, dropout: bool) -> None:
        """`train`: step() follows; `eval`: set_input() and run(), as in inference. `dropout` False:
        no dropout in train mode."""
        raise NotImplementedError

    def set_optimiser(self, optimiser: dict[str, Any]) -> None:
        """A new optimiser without buffers, by the fields of docs/bundle.md (`name` is sgd, adam or
        adamw); `lr` is the rate of the next step, `schedule` is None: the SDK keeps it."""
        raise NotImplementedError

    def set_learning_rate(self, rate: float) -> None:
        """The rate of the next step and those after it; buffers stay. Timed where a schedule
        changes it."""
        raise NotImplementedError

    def host_labels(self, labels: np.ndarray) -> Any:
        """What the caller of this framework would hold, made from int64 labels once, before
        timing."""
        return labels

    def set_batch(self, inputs: Any, labels: Any) -> None:
        """Takes one entry of the ring: what host_input() and host_labels() made. Timed. On a
        device: the copy to it."""
        raise NotImplementedError

    def step(self) -> None:
        """One optimiser step: forward, mean loss, gradients from zero, backward, update. Timed."""
        raise NotImplementedError

    def loss(self) -> float:
        """The step's loss, in host memory. Timed."""
        raise NotImplementedError

    def step_in_phases(self, inputs: Any, labels: Any, mark: Callable[[str], None]) -> None:
        """set_batch() and step(), calling mark(phase) at the end of each phase: input, to_device,
        forward, loss, backward, update."""
        raise NotImplementedError

    def layer_norms(self) -> list[dict[str, Any]]:
        """Sizes by layer in a step of the batch that set_batch() took, which is not made
        (docs/protocol.md, `norms`). Only where the level can say them."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        """`weight:<name>` of every parameter and floating-point buffer, of every buffer that the
        optimiser has `momentum:<parameter>`, or `exp_avg:` and `exp_avg_sq:`, `count:<name>` of
        every buffer that is one int64, by PyTorch's names; `generator:<kind>`: what the next
        dropout masks follow from."""
        raise NotImplementedError

    def load_state(self, tensors: Mapping[str, np.ndarray], step: int) -> None:
        """What state() gave, of this level or another, after `step` steps, which Adam's bias
        correction counts on from. A parameter without `momentum:` has no buffer afterwards; without
        `exp_avg:` and `exp_avg_sq:` these are zero; counts and generators that are not there, or of
        another kind, stay. Raises BadRequest when names or shapes do not fit."""
        raise NotImplementedError

    def seed_dropout(self, seed: int) -> None:
        """Masks drawn from now on follow from the seed, by the same numbers in every process.
        Nothing to do where no network draws."""


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
