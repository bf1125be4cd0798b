# SPDX-License-Identifier: Apache-2.0
"""What a level may be able to do beside running a network: it derives from `Level` and from these,
those that it has. The SDK finds them by isinstance; `hello` says which operations and modes there
are, so that no level lists them.
"""

from __future__ import annotations

import copy
import types
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    import numpy as np


class ReadsWeights(ABC):
    """Weights can be read back from the framework. Not asked where level.json says `bakes_weights`:
    what the framework still holds is then not what runs."""

    @abstractmethod
    def weight_names(self) -> Sequence[str]:
        """Names of the tensors that weight() can read back."""

    @abstractmethod
    def weight(self, name: str) -> np.ndarray:
        """A tensor as the framework holds it now, by its PyTorch name; the SDK hashes it."""


class Reports(ABC):
    """Facts that are known only after the network has run."""

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Facts about what it did since load (docs/protocol.md, report). May run the network; never
        called while something is timed."""


class Serves(ABC):
    """Several threads may call the level at once."""

    @abstractmethod
    def clients(self, count: int, threads: int) -> Sequence[Any]:
        """`count` callers that may run the loaded network at the same time, each with `threads`
        threads for its work: twin() makes one. Raises UnsupportedError where a variant or a device
        cannot."""

    def enter(self) -> None:  # noqa: B027
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


class Trains(ABC):
    """In a case of mode train an iteration is set_batch, step, wait, loss."""

    batches_of: Any = (
        None  # what gathers the batches of `steps` in place of the SDK, as dataloader.batches does
    )

    @abstractmethod
    def set_mode(self, mode: str, dropout: bool) -> None:
        """`train`: step() follows; `eval`: set_input() and run(), as in inference. `dropout` False:
        no dropout in train mode."""

    @abstractmethod
    def set_optimiser(self, optimiser: dict[str, Any]) -> None:
        """A new optimiser without buffers, by the fields of docs/bundle.md (`name` is sgd, adam or
        adamw); `lr` is the rate of the next step, `schedule` is None: the SDK keeps it."""

    @abstractmethod
    def set_learning_rate(self, rate: float) -> None:
        """The rate of the next step and those after it; buffers stay. Timed where a schedule
        changes it."""

    def host_labels(self, labels: np.ndarray) -> Any:
        """What the caller of this framework would hold, made from int64 labels once, before
        timing."""
        return labels

    @abstractmethod
    def set_batch(self, inputs: Any, labels: Any) -> None:
        """Takes one entry of the ring: what host_input() and host_labels() made. Timed. On a
        device: the copy to it."""

    @abstractmethod
    def step(self) -> None:
        """One optimiser step: forward, mean loss, gradients from zero, backward, update. Timed."""

    @abstractmethod
    def loss(self) -> float:
        """The step's loss, in host memory. Timed."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """`weight:<name>` of every parameter and floating-point buffer, of every buffer that the
        optimiser has `momentum:<parameter>`, or `exp_avg:` and `exp_avg_sq:`, `count:<name>` of
        every buffer that is one int64, by PyTorch's names; `generator:<kind>`: what the next
        dropout masks follow from."""

    @abstractmethod
    def load_state(self, tensors: Mapping[str, np.ndarray], step: int) -> None:
        """What state() gave, of this level or another, after `step` steps, which Adam's bias
        correction counts on from. A parameter without `momentum:` has no buffer afterwards; without
        `exp_avg:` and `exp_avg_sq:` these are zero; counts and generators that are not there, or of
        another kind, stay. Raises BadRequest when names or shapes do not fit."""

    def seed_dropout(self, seed: int) -> None:  # noqa: B027
        """Masks drawn from now on follow from the seed, by the same numbers in every process.
        Nothing to do where no network draws."""


class Profiles(ABC):
    """The phases of a training step can be told apart."""

    # where step_in_phases() cannot tell phases apart: the one it marks -> those that it holds
    joined_phases: Mapping[str, Sequence[str]] = {}

    @abstractmethod
    def step_in_phases(self, inputs: Any, labels: Any, mark: Callable[[str], None]) -> None:
        """set_batch() and step(), calling mark(phase) at the end of each phase: input, to_device,
        forward, loss, backward, update."""


class MeasuresLayers(ABC):
    """Sizes by layer in a training step."""

    @abstractmethod
    def layer_norms(self) -> list[dict[str, Any]]:
        """Sizes by layer in a step of the batch that set_batch() took, which is not made
        (docs/protocol.md, `norms`)."""


@dataclass(frozen=True)
class Operation:
    """One operation of an iteration. `operation`: as ATen calls it, or the level's own word;
    `layer`: the module's path, empty for the network itself, None where it is not known; `kernel`:
    what computes it, empty where the level does not say; `shapes`: of its tensors; `moves_only`: it
    computes nothing. Times in nanoseconds of the clock of its iteration."""

    operation: str
    begin_ns: int
    end_ns: int
    layer: str | None = None
    kernel: str = ""
    shapes: Sequence[Sequence[int]] = ()
    moves_only: bool = False


@dataclass(frozen=True)
class RecordedIteration:
    """An iteration and its operations, one after the other, all by one clock, in nanoseconds."""

    begin_ns: int
    end_ns: int
    operations: Sequence[Operation]


class TimesOperations(ABC):
    """The operations of an iteration can be timed one by one."""

    @abstractmethod
    def record_operations(
        self, iterate: Callable[[int], None], indices: Sequence[int]
    ) -> Sequence[RecordedIteration]:
        """Calls iterate(index) for each, which is one iteration (set_input to outputs), and gives
        what was recorded. Of operations within others only the outermost count. Raises
        UnsupportedError where a device or a variant cannot."""
