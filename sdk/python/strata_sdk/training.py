# SPDX-License-Identifier: Apache-2.0
"""Training as the protocol has it: the operations beside those of inference, and a step as the
timed loop sees it. The step itself is the level's.

The learning rate of a schedule is computed here, outside the level: a level holds one rate, and is
told when it changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from . import loop
from .capabilities import MeasuresLayers, Profiles, Trains
from .errors import BadRequest
from .level import Level
from .optimiser import OptimiserError, check_optimiser, learning_rate
from .request import Request, natural

if TYPE_CHECKING:
    from .worker import Worker

PHASES = ("input", "to_device", "forward", "loss", "backward", "update")


class Training:
    """A loaded level in a case of mode train. The loop meets it in the level's place: one iteration
    is one optimiser step, an entry of the ring is (inputs, labels); labels: None where the
    network's output is its loss."""

    def __init__(self, level: Level) -> None:
        self.level, self.trained = level, cast(Trains, level)
        self.wait = level.wait
        self.mode, self.dropout = "train", True
        self.ring: list[tuple[Any, Any]] = []
        self.data: Data | None = None
        self.set_optimiser(level.job.case.get("optimiser"))
        self.trained.set_mode(self.mode, self.dropout)

    def set_optimiser(self, optimiser: Any) -> None:
        """No buffers, step 0."""
        try:
            self.optimiser = check_optimiser(optimiser)
        except OptimiserError as error:
            raise BadRequest(error.what, error.hint) from None
        self.start()

    def start(self) -> None:
        """The same optimiser again, without buffers, at step 0."""
        self.step, self.rate = 0, learning_rate(self.optimiser, 0)
        self.trained.set_optimiser(self.optimiser | {"lr": self.rate, "schedule": None})

    def begin_ring(self, ring: list[Any]) -> None:
        """Of inputs; their labels, if the loss is of labels, come with `set_labels`."""
        self.ring = [] if self.has_labels() else [(inputs, None) for inputs in ring]

    def has_labels(self) -> bool:
        """Not where the network's output, one number, is its loss."""
        return bool(self.level.job.about["outputs"][0]["shape"])

    def set_rate(self) -> None:
        """Tells the level the rate of the step that comes, if it is another one."""
        rate = learning_rate(self.optimiser, self.step)
        if rate != self.rate:
            self.trained.set_learning_rate(rate)
            self.rate = rate

    # -- what the loop calls ----------------------------------------------------------------------

    def set_input(self, entry: tuple[Any, Any]) -> None:
        self.trained.set_batch(*entry)

    def run(self) -> None:
        if self.optimiser["schedule"] is not None:
            self.set_rate()
        self.trained.step()
        self.step += 1

    def outputs(self) -> tuple[float]:
        return (self.trained.loss(),)


def of(worker: Worker) -> Training:
    """The training of the loaded case. Raises BadRequest."""
    level = worker.loaded()
    if worker.training is None:
        raise BadRequest(
            f"the loaded case is of mode {level.job.case['mode']}", "load a case of mode train"
        )
    return worker.training


# ------------------------------------------------------------------------------------- operations


def set_labels(worker: Worker, request: Request) -> dict:
    from . import tensors

    training, path = of(worker), request["path"]
    if not training.has_labels():
        raise BadRequest(
            "the network's output is its loss", "leave `set_labels` out: targets are inputs"
        )
    count = len(worker.ring)
    if not count:
        raise BadRequest("there are no inputs", "send `inputs` before `set_labels`")
    present, required = set(tensors.names_in(path)), [f"{i}/labels" for i in range(count)]
    missing = [name for name in required if name not in present]
    if missing or len(present) != count:
        raise BadRequest(
            f"{path} holds {len(present)} tensors"
            + (f" and lacks {missing[0]}" if missing else f" for {count} inputs"),
            "one `<index>/labels` an entry of the ring, from 0",
        )
    arrays = list(tensors.read(path, required).values())
    shape = tuple(training.level.job.about["outputs"][0]["shape"])
    for name, array in zip(required, arrays):
        if array.dtype.name != "int64" or array.shape != shape[:1]:
            raise BadRequest(
                f"{name} is {array.dtype.name} of shape {list(array.shape)}",
                f"allowed: int64 of shape {list(shape[:1])}, one label a sample",
            )
        if array.size and not (0 <= array.min() and array.max() < shape[1]):
            raise BadRequest(
                f"{name} holds the label {array.min() if array.min() < 0 else array.max()}",
                f"allowed: 0 to {shape[1] - 1}",
            )
    training.ring = [
        (inputs, training.trained.host_labels(array)) for inputs, array in zip(worker.ring, arrays)
    ]
    return {"count": count}


def set_mode(worker: Worker, request: Request) -> dict:
    training = of(worker)
    mode, dropout = request["mode"], request.get("dropout", training.dropout)
    if mode not in ("train", "eval"):
        raise BadRequest(f"`mode` is {mode!r}", "allowed: train, eval")
    if not isinstance(dropout, bool):
        raise BadRequest(f"`dropout` is {dropout!r}", "allowed: true, false")
    training.trained.set_mode(mode, dropout)
    training.mode, training.dropout = mode, dropout
    return {}


def set_optimiser(worker: Worker, request: Request) -> dict:
    of(worker).set_optimiser(request["optimiser"])
    return {}


def state(worker: Worker, request: Request) -> dict:
    from . import tensors

    training, path, names = of(worker), _path(request["out"], "out"), request.get("names")
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise BadRequest(
            f"`names` is {names!r}", "allowed: a list of names that `state` writes; without it, all"
        )
    held = training.trained.state()
    missing = [name for name in names or [] if name not in held]
    if missing:
        raise BadRequest(
            f"the state has no {missing[0]}", "`names` are those that `state` writes without it"
        )
    tensors.write(path, held if names is None else {name: held[name] for name in names})
    return {"step": training.step, "lr": learning_rate(training.optimiser, training.step)}


def load_state(worker: Worker, request: Request) -> dict:
    from . import tensors

    training, path, step = (
        of(worker),
        _path(request["path"], "path"),
        natural(request, "step"),
    )
    seed = natural(request, "seed") if "seed" in request else None
    training.trained.load_state(tensors.read(path), step)
    if seed is not None:
        training.trained.seed_dropout(seed)
    training.step = step
    training.set_rate()
    return {}


def _path(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"`{field}` is {value!r}", "allowed: the path of a file")
    return value


def profile(worker: Worker, request: Request) -> dict:
    """Steps whose phases are timed one by one; on a device each phase ends with a wait, so that
    they are a pass of their own."""
    training = of(worker)
    if training.mode != "train":
        raise BadRequest(
            "the phases of a training step, in mode eval", "send `set_mode` with train first"
        )
    level, ring = worker.running()
    indices, iterations = worker.indices(request["indices"]), request["iterations"]
    if iterations != len(indices):
        raise BadRequest(
            f"`indices` has {len(indices)} entries for {iterations!r} iterations",
            "one ring index an iteration",
        )
    profiled = cast(Profiles, training.level)
    phases: dict[str, list[int]] = {}
    last = 0

    def mark(phase: str) -> None:
        nonlocal last
        training.level.wait()
        phases.setdefault(phase, []).append(loop.clock() - last)
        last = loop.clock()

    with loop.quiet_collector():
        for index in indices:
            inputs, labels = ring[index]
            training.set_rate()
            training.level.wait()
            last = loop.clock()
            profiled.step_in_phases(inputs, labels, mark)
            training.step += 1
            level.outputs()
    return {"phases": {name: phases[name] for name in PHASES if name in phases}} | (
        {"joined": profiled.joined_phases} if profiled.joined_phases else {}
    )


class Data:
    """What `data` named: how batches are made, the splits, and two batches of host memory that are
    filled in turn, as the level's framework holds them."""

    def __init__(self, level: Level, mean: Any, deviation: Any, splits: Any) -> None:
        from .training_data import BatchMaker

        if not isinstance(splits, dict) or not splits:
            raise BadRequest(f"`splits` is {splits!r}", "allowed: an object, name -> path")
        self.maker = BatchMaker(level.job, mean, deviation)
        self.splits = {
            name: self.maker.open_split(_path(path, f"splits.{name}"))
            for name, path in splits.items()
        }
        self.entries = (self.maker.allocate(), self.maker.allocate())
        self.held = [
            (level.host_input((images,)), cast(Trains, level).host_labels(labels))
            for images, labels in self.entries
        ]

    def split(self, name: Any) -> Any:
        if name not in self.splits:
            raise BadRequest(
                f"the data set has no split {name!r}", f"it has: {', '.join(self.splits)}"
            )
        return self.splits[name]

    def split_and_order(self, request: Request) -> tuple[Any, Any]:
        """The split that a request names, and its order of that split's samples."""
        split = self.split(request["split"])
        return split, self.maker.open_order(_path(request["order"], "order"), split)


def data(worker: Worker, request: Request) -> dict:
    training = of(worker)
    training.data = Data(training.level, request["mean"], request["deviation"], request["splits"])
    return {"counts": {name: len(split.labels) for name, split in training.data.splits.items()}}


def _data_of(training: Training) -> Data:
    if training.data is None:
        raise BadRequest("there is no data set", "send `data` first")
    return training.data


def steps(worker: Worker, request: Request) -> dict:
    """Optimiser steps on a data set; ends early where the loss is not finite: what follows is as
    lost."""
    from .training_data import ahead

    training = of(worker)
    data, first, count = (
        _data_of(training),
        natural(request, "first"),
        natural(request, "count"),
    )
    if training.mode != "train":
        raise BadRequest("the mode is eval", "send `set_mode` with train first")
    split, order = data.split_and_order(request)
    if count < 1 or first + count > len(order.samples):
        raise BadRequest(
            f"steps {first} to {first + count - 1} of an order of {len(order.samples)}"
        )

    def fill(step: int, entry: Any) -> None:
        data.maker.fill_step(split, order, first + step, entry)

    own = training.trained.batches_of
    batches = (
        own(data.maker, split, order, range(first, first + count))
        if own
        else (
            (data.held[which], waited, gathered)
            for which, waited, gathered in ahead(fill, data.entries, count)
        )
    )
    losses: list[float | None] = []
    walls, waits, gathers = [], [], []
    with loop.quiet_collector():
        for entry, waited, gathered in batches:
            (loss,), wall = loop.iterate(training, entry)
            walls.append(wall)
            waits.append(waited)
            gathers.append(gathered)
            losses.append(loss if math.isfinite(loss) else None)
            if losses[-1] is None:
                break
    return {"loss": losses, "wall_ns": walls, "waited_ns": waits, "gathered_ns": gathers}


def norms(worker: Worker, request: Request) -> dict:
    """Sizes by layer in a step of an order, which is not made."""
    training = of(worker)
    data, step = _data_of(training), natural(request, "step")
    if training.mode != "train":
        raise BadRequest("the mode is eval", "send `set_mode` with train first")
    split, order = data.split_and_order(request)
    if step >= len(order.samples):
        raise BadRequest(f"step {step} of an order of {len(order.samples)}")
    data.maker.fill_step(split, order, step, data.entries[0])
    training.trained.set_batch(*data.held[0])
    return {"layers": cast(MeasuresLayers, training.level).layer_norms()}


def evaluate(worker: Worker, request: Request) -> dict:
    """Loss and accuracy of images of a split, in eval mode."""
    import numpy

    from .training_data import ahead, score

    training = of(worker)
    data, first, count = (
        _data_of(training),
        natural(request, "first"),
        natural(request, "count"),
    )
    if training.mode != "eval":
        raise BadRequest("the mode is train", "send `set_mode` with eval first")
    split, level, batch = data.split(request["split"]), training.level, data.maker.shape[0]
    if count < 1 or first + count > len(split.labels):
        raise BadRequest(f"images {first} to {first + count - 1} of a split of {len(split.labels)}")

    def fill(step: int, entry: Any) -> None:  # the last batch is filled up with its own last image
        data.maker.fill(
            split,
            first + numpy.minimum(numpy.arange(step * batch, (step + 1) * batch), count - 1),
            entry,
        )

    total, correct, walls = 0.0, 0, []
    with loop.quiet_collector():
        for index, (which, _, _) in enumerate(
            ahead(fill, data.entries, (count + batch - 1) // batch)
        ):
            outputs, wall = loop.iterate(level, data.held[which][0])
            walls.append(wall)
            rows = min(batch, count - index * batch)
            loss, right = score(
                level.to_numpy(outputs[0])[:rows],
                data.entries[which][1][:rows],
                level.job.case.get("loss") or "cross_entropy",
            )
            total, correct = total + loss, correct + right
    return {"samples": count, "correct": correct, "loss_sum": total, "wall_ns": walls}


OPERATIONS: dict[str, Callable[[Any, Any], dict]] = {
    "set_labels": set_labels,
    "set_mode": set_mode,
    "set_optimiser": set_optimiser,
    "state": state,
    "load_state": load_state,
    "profile": profile,
    "data": data,
    "steps": steps,
    "evaluate": evaluate,
    "norms": norms,
}
