# SPDX-License-Identifier: Apache-2.0
"""A Python level as a worker: main(), the protocol (docs/protocol.md) and the order of requests.
The timed loop is in loop.py.

`library_ns` is the time from the first line of main() until the level's file and what it imports
are loaded; the interpreter's own start (some 20 ms) is before it, since /proc/self/stat dates a
process only to 10 ms.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from . import ending, errors, loop, measuring, operation_times, serving, training
from .capabilities import (
    MeasuresLayers,
    Profiles,
    ReadsWeights,
    Reports,
    Serves,
    TimesOperations,
    Trains,
)
from .errors import BadRequest, UnavailableError, UnsupportedError
from .level import Level, read_job
from .request import Request, natural, parse

API = 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves one level until `bye` or the end of the input. Never returns: a framework's own exit
    handlers may hang or crash."""
    begin = loop.clock()
    # before any library can print
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1, newline="\n")
    os.dup2(2, 1)
    ending.watch_input()
    if sys.path and sys.path[0] == os.getcwd():
        # `python -m` puts it there; a file random.py of the user's must not shadow a library
        del sys.path[0]
    arguments = sys.argv[1:] if arguments is None else arguments
    folder = Path(arguments[0] if arguments else os.environ.get("STRATA_LEVEL_DIR", ".")).resolve()
    worker = Worker(folder, stream)
    worker.library_ns = loop.clock() - begin
    for line in iter(sys.stdin.buffer.readline, b""):
        if line.strip():
            answer, is_last = worker.answer(line)
            worker.write(answer)
            if is_last:
                break
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class Worker:
    """The state between requests: a level, its ring of inputs, whether a network is loaded."""

    def __init__(self, folder: Path, stream: TextIO) -> None:
        self.folder, self.stream = folder, stream
        self.telling: int | None = None  # the request whose progress may be told
        self.library_ns = 0
        self.broken: BaseException | None = (
            None  # why the level's file cannot be used; told with every answer
        )
        self.about: dict[str, Any] = {}
        self.make: type[Level]  # set unless the level is broken
        self.level: Level | None = None
        self.training: training.Training | None = None  # in a case of mode train
        self.arrays: list[tuple[Any, ...]] = []
        self.ring: list[Any] = []
        self.retained: dict[int, Any] = {}  # results of the last block, by iteration
        self.first_ns: int | None = None
        try:
            self.about = json.loads((folder / "level.json").read_text(encoding="utf-8"))
            self.make = find_level(folder / "level.py")
            self.make()
        except ImportError as error:
            traceback.print_exc()
            self.broken = UnavailableError(
                f"{folder.name} cannot import what it needs: {errors.last_line(error)}",
                f"install the missing package for {sys.executable}",
            )
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            self.broken = error

    def write(self, message: dict) -> None:
        self.stream.write(json.dumps(message, separators=(",", ":"), default=_plain) + "\n")
        self.stream.flush()

    def tell(self, what: str) -> None:
        """A line of progress before the answer to the request that is worked on."""
        if self.telling is not None:
            self.write({"id": self.telling, "progress": what})

    def answer(self, line: bytes) -> tuple[dict, bool]:
        """The answer to one line, and whether it was `bye`."""
        number: Any = None
        try:
            request = parse(line)
            number = request.get("id")
            if isinstance(number, bool) or not isinstance(number, int):
                number = None
                raise BadRequest("the request has no integer `id`", "number requests from 1")
            op = request.get("op")
            if not isinstance(op, str):
                raise BadRequest("the request has no string `op`")
            self.telling = None if op in _TIMED else number
            return {"id": number, "ok": True, **self._dispatch(op, request)}, op == "bye"
        except (Exception, SystemExit) as error:
            failure = errors.describe(error)
            if failure["code"] in ("failed", "out_of_memory"):
                traceback.print_exc()
                sys.stderr.flush()
            error.__traceback__ = None  # it would keep the network's tensors alive
            gc.collect()
            return {"id": number, "ok": False, **failure}, False
        finally:
            self.telling = None

    def _dispatch(self, op: str, request: Request) -> dict:
        if op == "bye":
            return {}
        operation = _OPERATIONS.get(op)
        if operation is None:
            raise UnsupportedError(
                f"this level has no operation `{op}`", "`hello` lists the operations"
            )
        if self.broken is not None:
            raise self.broken
        if not self.offers(op):
            raise UnsupportedError(
                f"{self.about['id']} has no operation `{op}`", "`hello` lists the operations"
            )
        return operation(self, request)

    def can(self, capability: type) -> bool:
        """Whether the level has one of capabilities.py."""
        return issubclass(self.make, capability)

    def trains(self) -> bool:
        """It can, and its level.json says so: what it derives from may be able to do more."""
        return self.can(Trains) and "train" in self.declared("modes")

    def offers(self, op: str) -> bool:
        """Whether the level has what the operation needs."""
        if op in training.OPERATIONS and not self.trains():
            return False
        if op == "read_weights" and self.declared("bakes_weights"):
            return False
        return op not in _NEEDS or self.can(_NEEDS[op])

    # -- operations -------------------------------------------------------------------------------

    def hello(self, _request: Request) -> dict:
        level = self.level or self.make()
        return {
            "api": API,
            "level": self.about["id"],
            "language": "python",
            "versions": level.versions(),
            "build": level.build(),
            "devices": level.devices(self.declared("devices")),
            "modes": [mode for mode in self.declared("modes") if mode != "train" or self.trains()],
            "precisions": self.about["precisions"],
            "ops": [*filter(self.offers, _OPERATIONS), "bye"],
            "dynamic": bool(self.about.get("dynamic")),
            "library_ns": self.library_ns,
        }

    def load(self, request: Request) -> dict:
        if self.level is not None:
            raise BadRequest("a network is loaded", "send `unload` first")
        job = read_job(request)
        level = self.make()
        level.job, level.copy_inputs, level.said_to = job, job.writes_inputs, self.tell
        self._check_declared(level)
        level.supports(job)
        begin = loop.clock()
        level.load(job)
        built = loop.clock()
        level.load_weights(job.weights)
        self.training = training.Training(level) if job.trains else None
        loaded = loop.clock()
        self.level, self.first_ns = level, None
        # then the network is built when its weights are known
        bakes = bool(self.declared("bakes_weights", job.variant))
        settings = {
            "threads": job.threads,
            "precision": job.precision,
            "layout": "any",
            "inference_mode": not job.trains,
            "autotune": False,
            "freezing": bakes,
            "graph": "none",
        }
        return {
            "phases": {
                "build_ns": (loaded if bakes else built) - begin,
                "weights_ns": 0 if bakes else loaded - built,
            },
            "settings": settings | level.settings(),
            "parameters": level.parameters(),
            "artefact_bytes": sum(path.stat().st_size for path in level.artefacts()),
            "deterministic": level.deterministic(),
        }

    def _check_declared(self, level: Level) -> None:
        """What level.json and hello say is checked here, so that no author has to."""
        job = level.job
        name = self.about["id"] if job.variant == "default" else f"{self.about['id']}@{job.variant}"
        variants = ["default", *self.about.get("variants", {})]
        if job.variant not in variants:
            raise UnsupportedError(
                f"{self.about['id']} has no variant {job.variant}",
                f"it has: {', '.join(variants)}",
            )
        for field, got, allowed in (
            ("mode", job.case["mode"], self.declared("modes", job.variant)),
            ("precision", job.precision, self.about["precisions"]),
            ("device", job.device, self.declared("devices", job.variant)),
        ):
            if got not in allowed:
                raise UnsupportedError(
                    f"{name} has no {field} {got}", f"it has: {', '.join(allowed)}"
                )
        if job.trains and not self.can(Trains):
            raise UnsupportedError(f"{name} does not train", "its level.json says otherwise")
        if job.dynamic and not self.about.get("dynamic"):
            raise UnsupportedError(
                f"{name} serves one batch size only", "`dynamic` in level.json says otherwise"
            )
        models = self.about.get("models")
        if models and job.case["model"] not in models:
            raise UnsupportedError(
                f"{self.about['id']} has no {job.case['model']}", f"it has: {', '.join(models)}"
            )
        if job.device not in level.devices(self.declared("devices", job.variant)):
            raise UnavailableError(
                f"{name} finds no device {job.device} here", "`strata doctor` says why"
            )

    def weights(self, request: Request) -> dict:
        self.loaded().load_weights(request["weights"])
        if self.training:
            self.training.start()
        return {}

    def read_weights(self, _request: Request) -> dict:
        from . import tensors

        level = self.loaded()
        if self.declared("bakes_weights", level.job.variant):
            raise UnsupportedError(
                f"the weights of {self.about['id']}@{level.job.variant} are part of its code"
            )
        held = cast(ReadsWeights, level)
        return {"sha256": {name: tensors.sha256(held.weight(name)) for name in held.weight_names()}}

    def inputs(self, request: Request) -> dict:
        self.arrays = self._entries(request["path"])
        self.ring = [self.loaded().host_input(entry) for entry in self.arrays]
        if self.training:
            self.training.begin_ring(self.ring)
        return {"count": len(self.ring)}

    def unseen(self, path: str) -> tuple[Any, ...]:
        """The inputs of a file of one entry, which is to be exchanged with one of the ring."""
        entries = self._entries(path)
        forms = [[(array.shape, array.dtype) for array in entry] for entry in entries]
        if forms != [[(array.shape, array.dtype) for array in self.arrays[0]]]:
            raise BadRequest(
                f"{path} is not one entry like those of the ring",
                "send `0/<input name>` of the ring's shapes",
            )
        return entries[0]

    def _entries(self, path: str) -> list[tuple[Any, ...]]:
        from . import tensors

        names = self.loaded().job.input_names
        present = set(tensors.names_in(path))
        count = len({name.split("/", 1)[0] for name in present})
        entries = [[f"{i}/{name}" for name in names] for i in range(count)]
        missing = [name for entry in entries for name in entry if name not in present]
        if missing or not count:
            raise BadRequest(
                f"{path} holds no tensor {missing[0] if missing else '0/' + names[0]}",
                f"a ring of the inputs {', '.join(names)} is named `<index>/<input name>`, from 0",
            )
        return [tuple(tensors.read(path, entry).values()) for entry in entries]

    def prove(self, request: Request) -> dict:
        self.loaded()
        indices = self.indices(request["indices"])
        outputs: dict[str, Any] = {}
        for index in indices:
            outputs |= self.named(index, self._guarded_iteration(index))
        if self.is_harness():
            return {"outputs": []}
        from . import tensors

        tensors.write(request["out"], outputs)
        return {"outputs": ["loss"] if self.steps() else self.loaded().job.output_names}

    def _guarded_iteration(self, index: int) -> Any:
        """One iteration that notices a network that writes into its inputs (an in-place ReLU in
        front): then the level copies them from now on. A training step is not repeated: its own
        inputs were sound."""
        import numpy

        level, ring = self.running()
        before = [array.copy() for array in self.arrays[index]]
        for _ in range(2):
            result, wall = loop.iterate(level, ring[index])
            self.first_ns = wall if self.first_ns is None else self.first_ns
            changed = [
                not numpy.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
                for a, b in zip(self.arrays[index], before)
            ]
            if not any(changed):
                return result
            for array, saved in zip(self.arrays[index], before):
                array[...] = saved
            self.loaded().copy_inputs = True
            if level is self.training:
                return result
        raise errors.LevelError(
            f"running the network changes the caller's input {self.loaded().job.input_names[changed.index(True)]}",
            "copy the input in set_input() when `copy_inputs` is set",
        )

    def warm_up(self, request: Request) -> dict:
        iterations, min_ns = natural(request, "iterations"), natural(request, "min_ns")
        self.loaded()
        self.indices([0])
        level, ring = self.running()
        # what a level does to its inputs is seen before anything depends on them
        if self.first_ns is None and iterations:
            with loop.quiet_collector():
                self._guarded_iteration(0)
            first: int = self.first_ns or 0
            count, times = loop.warm_up(level, ring, iterations - 1, max(0, min_ns - first))
            count, times = count + 1, [first, *times]
        else:
            count, times = loop.warm_up(level, ring, iterations, min_ns)
        return {"iterations": count, "first_ns": self.first_ns, "wall_ns": times}

    def write_outputs(self, path: str, index: int, outputs: Any) -> None:
        """One result as a file of tensors; a harness level has none."""
        if self.is_harness():
            return
        from . import tensors

        tensors.write(path, self.named(index, outputs))

    def memory(self, _request: Request) -> dict:
        return {"device_peak_bytes": self.level.device_peak_bytes() if self.level else None}

    def report(self, _request: Request) -> dict:
        level = cast(Reports, self.loaded())
        self.indices([0])
        return {"facts": level.report()}

    def unload(self, _request: Request) -> dict:
        if self.level is not None:
            self.level.unload()
        self.level, self.training, self.arrays, self.ring, self.first_ns = None, None, [], [], None
        self.retained = {}
        gc.unfreeze()
        gc.collect()
        return {}

    # -- helpers ----------------------------------------------------------------------------------

    def declared(self, field: str, variant: str = "default") -> Any:
        """A field of level.json, or of the variant where that has its own."""
        return self.about.get("variants", {}).get(variant, {}).get(field, self.about.get(field))

    def loaded(self) -> Level:
        if self.level is None:
            raise BadRequest("no network is loaded", "send `load` first")
        return self.level

    def running(self) -> tuple[Any, Sequence[Any]]:
        """What the loop runs and its ring: the level, or its training step with labels beside the
        inputs. Raises BadRequest when those are missing."""
        if not self.steps():
            return self.loaded(), self.ring
        if self.training is None or not self.training.ring:
            raise BadRequest("there are no labels", "send `set_labels` after `inputs`")
        return self.training, self.training.ring

    def steps(self) -> bool:
        """An iteration is an optimiser step."""
        return self.training is not None and self.training.mode == "train"

    def is_harness(self) -> bool:
        return bool(self.about.get("harness"))

    def indices(self, indices: Any) -> list[int]:
        if not self.ring:
            raise BadRequest("there are no inputs", "send `inputs` first")
        if not isinstance(indices, list) or not all(
            isinstance(i, int) and not isinstance(i, bool) and 0 <= i < len(self.ring)
            for i in indices
        ):
            raise BadRequest(
                "`indices` is not a list of ring indices", f"allowed: 0 to {len(self.ring) - 1}"
            )
        return indices

    def named(self, index: int, outputs: Sequence[Any]) -> dict[str, Any]:
        """`<index>/<output name>` -> array, checked against the names that the bundle gives."""
        if self.is_harness():
            return {}
        if self.steps():
            import numpy

            return {f"{index}/loss": numpy.asarray(outputs[0], numpy.float32)}
        level = self.loaded()
        names = level.job.output_names
        if len(outputs) != len(names):
            raise errors.LevelError(
                f"the level returned {len(outputs)} outputs, the network has {len(names)} ({', '.join(names[:4])})",
                "outputs() returns all, in the bundle's order",
            )
        return {f"{index}/{name}": level.to_numpy(value) for name, value in zip(names, outputs)}


def find_level(path: Path) -> type[Level]:
    """The one class derived from Level that the file defines itself. Raises what importing it
    raises."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("strata_level", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["strata_level"] = module
    spec.loader.exec_module(module)
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Level)
        and value.__module__ == "strata_level"
    ]
    if len(classes) != 1:
        raise errors.LevelError(
            f"{path} defines {len(classes)} classes derived from strata_sdk.Level",
            "define exactly one",
        )
    return classes[0]


def _plain(value: Any) -> Any:
    """numpy's scalars as JSON numbers, paths and the like as text."""
    return value.item() if hasattr(value, "item") else str(value)


_OPERATIONS: dict[str, Callable[[Worker, Request], dict]] = {
    "hello": Worker.hello,
    "load": Worker.load,
    "weights": Worker.weights,
    "read_weights": Worker.read_weights,
    "inputs": Worker.inputs,
    "prove": Worker.prove,
    "warm_up": Worker.warm_up,
    "measure": measuring.measure,
    "result": measuring.result,
    "memory": Worker.memory,
    "report": Worker.report,
    "unload": Worker.unload,
    "serve": serving.serve,
    "operations": operation_times.operations,
    **training.OPERATIONS,
}

# operations in which nothing is said: each of their iterations counts
_TIMED = ("measure", "serve", "profile", "steps", "evaluate", "operations")

# what an operation needs of a level; of all in training.OPERATIONS it is Trains, too
_NEEDS: dict[str, type] = {
    "read_weights": ReadsWeights,
    "report": Reports,
    "serve": Serves,
    "profile": Profiles,
    "norms": MeasuresLayers,
    "operations": TimesOperations,
}
