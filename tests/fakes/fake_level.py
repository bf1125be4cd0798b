# SPDX-License-Identifier: Apache-2.0
"""What fake_worker.py answers to each request, as its script says (described there)."""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import time
from typing import Any

from fake_answers import Json, Refusal, out_of_memory, refusal, spend, to_bfloat16
from fake_trainer import Trainer
from tensors import FORMATS, read_tensors, rows_of, write_tensors


class Fake:
    OPS = [
        "hello",
        "load",
        "weights",
        "inputs",
        "prove",
        "warm_up",
        "measure",
        "result",
        "memory",
        "unload",
        "bye",
    ]
    TRAIN_OPS = ["set_labels", "set_mode", "set_optimiser", "state", "load_state", "profile"]

    def __init__(self, script: Json, helper_pid: int | None) -> None:
        self.script = self.started_with = script
        self.ops = (
            self.OPS
            + (self.TRAIN_OPS if "train" in script else [])
            + [op for op in ("serve", "report", "operations") if op in script]
        )
        self.place = ""  # where the references of the ring lie
        self.batch: int | None = None
        self.seen: set[int] = set()
        # of the last block: the input of each iteration, and whose results can be asked for
        self.timed: list[int] = []
        self.retained: list[int] = []
        self.trainer: Trainer | None = None
        self.served = 0
        self.warm = False
        self.helper_pid = helper_pid
        self.counts: dict[str, int] = {}
        self.bundle: str | None = None
        self.few_runs = False  # the bundle has an envelope of three runs
        self.weight_set = "timed"
        self.own_inputs = True  # the ring has references of its own
        self.in_bfloat16 = False
        self.ring: set[int] | None = None
        self.drawn = 0
        self.starts = 0
        counted = script.get("samples", {}).get("restart") or any(
            "from_start" in fault for fault in script.get("ops", {}).values()
        )
        if counted and os.path.exists(sys.argv[1]):
            with open(sys.argv[1] + ".starts", "a+", encoding="utf-8") as file:
                file.write("+")
                self.starts = file.tell()

    def variants(self) -> set[str]:
        """Those of the script and of the level.json beside it."""
        known = {"default", *self.started_with.get("variants", {})}
        about = os.path.join(os.environ.get("STRATA_LEVEL_DIR", ""), "level.json")
        if os.path.exists(about):
            with open(about, encoding="utf-8") as file:
                known |= set(json.load(file).get("variants", {}))
        return known

    # Samples: a pure function of the script, so that a test can compute them again.
    def draw(self, count: int) -> list[int]:
        samples = {
            "median_ns": 1_000_000,
            "jitter": 0.02,
            "seed": 1,
            "restart": 0.0,
            "slow_every": 0,
            "slow_by": 2.0,
            "batch_power": 0,
            **self.script.get("samples", {}),
        }
        run, median_ns = (
            self.starts,
            samples["median_ns"] * (self.batch or 1) ** samples["batch_power"],
        )
        level = random.Random(f"{samples['seed']}/{run}").gauss(0.0, 1.0) * samples["restart"]
        walls = []
        for _ in range(count):
            noise = abs(
                random.Random(f"{samples['seed']}/{run}/{self.drawn}").gauss(0.0, samples["jitter"])
            )
            slow = (
                samples["slow_by"]
                if samples["slow_every"]
                and self.drawn % samples["slow_every"] == samples["slow_every"] - 1
                else 1.0
            )
            walls.append(max(1, round(median_ns * (1.0 + level) * (1.0 + noise) * slow)))
            self.drawn += 1
        if walls and self.batch is not None and self.batch not in self.seen:
            self.seen.add(self.batch)
            walls[0] += self.script.get("dynamic", {}).get("compile_ns", 0)
        return walls

    def need_bundle(self) -> str:
        if self.bundle is None:
            raise Refusal("bad_request", "nothing is loaded")
        return self.bundle

    def need_index(self, index: Any) -> int:
        if self.ring is None:
            raise Refusal("bad_request", "no inputs were given")
        if not isinstance(index, int) or index not in self.ring:
            raise Refusal("bad_request", f"index {index} is not in the ring of {len(self.ring)}")
        return index

    def outputs(self, op: str, indices: list[int], path: str, shift: int = 0) -> list[str]:
        change, planted = {"scale": 1.0, "add": 0.0, "from": None}, self.script.get("outputs", {})
        if planted.get("only_in") in (None, op) and (self.few_runs or not planted.get("few_runs")):
            change |= planted
        if self.batch is not None and self.batch == self.script.get("dynamic", {}).get(
            "wrong_size"
        ):
            change["scale"] *= 1.01
        reference = read_tensors(
            os.path.join(
                self.place or self.need_bundle(),
                "reference",
                f"{change['from'] or self.weight_set}.safetensors",
            )
        )
        out: dict[str, tuple[str, list[int], bytes]] = {}
        names: list[str] = []
        for index in indices:
            source = (
                0
                if self.script.get("same_output")
                else (index + shift) % len(self.ring or {0})
                if self.own_inputs
                else (index + shift) % 4
            )
            prefix = f"f64/{source}/"
            tensors = {
                name[len(prefix) :]: value
                for name, value in reference.items()
                if name.startswith(prefix)
            }
            if not tensors:
                raise Refusal("failed", f"the reference of {self.weight_set} lacks input {index}")
            for name, (dtype, shape, raw) in tensors.items():
                values = [value[0] for value in struct.iter_unpack("<" + FORMATS[dtype], raw)]
                if dtype in ("F64", "F32"):
                    values = [value * change["scale"] + change["add"] for value in values]
                    values = (
                        [to_bfloat16(value) for value in values] if self.in_bfloat16 else values
                    )
                    dtype = "F32"
                out[f"{index}/{name}"] = (
                    dtype,
                    shape,
                    struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values),
                )
                if name not in names:
                    names.append(name)
        write_tensors(path, out)
        return names

    def hello(self, request: Json) -> Json:
        answer = {
            "api": self.script.get("api", 2),
            "level": self.script.get("name", "fake"),
            "language": self.script.get("language", "python"),
            "versions": {"fake": "1"},
            "build": {"type": self.script.get("build", "release"), "flags": ""},
            "devices": ["cpu"],
            "modes": ["infer", "train"] if "train" in self.script else ["infer"],
            "precisions": self.script.get("precision", {}).get("has", ["fp32"]),
            "ops": self.ops,
            "library_ns": 1000,
        }
        if self.helper_pid is not None:
            answer["helper_pid"] = self.helper_pid
        return {**answer, **self.script.get("extra_hello", {})}

    def load(self, request: Json) -> Json:
        bundle = request["bundle"]
        if "empty_folder" in self.script:
            os.makedirs(os.environ[self.script["empty_folder"]], exist_ok=True)
        if not os.path.exists(os.path.join(bundle, "bundle.json")):
            raise Refusal("failed", f"{bundle} holds no bundle.json")
        variant = request.get("variant", "default")
        if variant not in self.variants():
            raise Refusal("unsupported", f"no variant {variant}")
        self.script = self.started_with | self.started_with.get("variants", {}).get(variant, {})
        hello = self.hello(request)
        for field, allowed in (
            ("mode", hello["modes"]),
            ("precision", hello["precisions"]),
            ("device", hello["devices"]),
        ):
            if request["case"].get(field) not in (None, *allowed):
                raise Refusal("unsupported", f"no {field} {request['case'][field]}")
        if self.script.get("unsupported"):
            raise Refusal("unsupported", self.script["unsupported"])
        with open(os.path.join(bundle, "bundle.json"), encoding="utf-8") as file:
            about = json.load(file)
        parameters, self.few_runs = (
            about.get("parameters", 0),
            about["spec"].get("light", False) and not about["spec"].get("all_runs"),
        )
        self.bundle = bundle
        planted, precision = (
            self.script.get("precision", {}),
            request["case"].get("precision", "fp32"),
        )
        rounds = precision.endswith("bf16") and not planted.get("ignores")
        self.trainer = (
            Trainer(self.script["train"], request["case"]["optimiser"], bundle, rounds)
            if request["case"].get("mode") == "train"
            else None
        )
        self.weights(request)
        self.ring = None
        self.in_bfloat16 = bool(
            planted.get("always") or (precision == "bf16" and not planted.get("ignores"))
        )
        settings = {
            "threads": request.get("case", {}).get("threads", 1),
            "precision": precision,
            "layout": "contiguous",
            "inference_mode": True,
            "autotune": False,
            "freezing": False,
            "graph": "none",
        }
        settings |= {
            name: variant if name == "variant" else os.environ.get(name)
            for name in self.script.get("environment_settings", [])
        }
        return {
            "phases": {"build_ns": 1000, "weights_ns": 2000},
            "settings": settings,
            "parameters": parameters,
            "artefact_bytes": 0,
            "deterministic": True,
        }

    def weights(self, request: Json) -> Json:
        name = request["weights"]
        if not os.path.exists(os.path.join(self.need_bundle(), "weights", f"{name}.safetensors")):
            raise Refusal("bad_request", f"the bundle has no weight set {name}")
        self.weight_set = name
        if self.trainer:
            self.trainer.load_weights(
                read_tensors(os.path.join(self.need_bundle(), "weights", f"{name}.safetensors"))
            )
        return {}

    def inputs(self, request: Json) -> Json:
        self.need_bundle()
        try:
            tensors = read_tensors(request["path"])
        except OSError as error:
            raise Refusal("failed", f"cannot read the inputs: {error}") from error
        folder = os.path.dirname(request["path"])
        self.own_inputs = os.path.exists(os.path.join(folder, "reference"))
        self.place = folder if self.own_inputs else self.need_bundle()
        self.ring = {int(name.split("/", 1)[0]) for name in tensors}
        self.batch = next((shape[0] for _, shape, _ in tensors.values() if shape), None)
        if self.trainer:
            self.trainer.inputs = {
                int(name.split("/", 1)[0]): rows_of(*tensor) for name, tensor in tensors.items()
            }
        return {"count": len(self.ring)}

    def prove(self, request: Json) -> Json:
        indices = [self.need_index(index) for index in request["indices"]]
        if self.trainer:
            return {"outputs": self.trainer.run("prove", indices, request["out"])}
        return {"outputs": self.outputs("prove", indices, request["out"])}

    def warm_up(self, request: Json) -> Json:
        self.need_index(0)
        first = self.script.get(
            "first_ns", 10 * self.script.get("samples", {}).get("median_ns", 1_000_000)
        )
        spend([first] if not self.warm else [])
        self.warm = True
        walls, total = [first], first
        while len(walls) < request["iterations"] or total < request["min_ns"]:
            walls += self.draw(1)
            total += walls[-1]
        if self.trainer:
            self.trainer.run("warm_up", [i % len(self.ring) for i in range(len(walls))], None)
        return {"iterations": len(walls), "first_ns": first, "wall_ns": walls}

    def measure(self, request: Json) -> Json:
        indices = [self.need_index(index) for index in request["indices"]]
        if len(indices) != request["iterations"]:
            raise Refusal(
                "bad_request", f"{request['iterations']} iterations, {len(indices)} indices"
            )
        begun, head = time.monotonic_ns(), self.draw(request["head"])
        walls = self.draw(request["iterations"])
        retain = request.get("retain", [])
        if any(not 0 <= iteration < len(indices) for iteration in retain):
            raise Refusal("bad_request", f"retain: {retain} of {len(indices)} iterations")
        self.timed, self.retained = indices, retain
        if self.trainer:  # its steps are a part of the times that it tells
            self.trainer.run("measure", list(range(request["head"])) + indices, None)
        spend(head + walls, begun)
        started = begun + sum(head)
        walls = [max(1, round(wall * self.script.get("clock", 1))) for wall in walls]
        return {
            "wall_ns": walls,
            "latency_ns": [max(1, wall - wall // 20) for wall in walls],
            "cpu_ns": sum(walls),
            "start_ns": started,
            "runq_ns": 0,
        }

    def result(self, request: Json) -> Json:
        iteration = request["iteration"]
        if iteration not in self.retained:
            raise Refusal("bad_request", f"the result of iteration {iteration} was not retained")
        if self.trainer:
            self.trainer.write_result(iteration - len(self.timed), request["out"])
        else:
            self.outputs("measure", [self.timed[iteration]], request["out"])
        return {}

    def serve(self, request: Json) -> Json:
        self.need_index(0)
        script = {
            "slow_with": 0.0,
            "late_ns": 0,
            "late_first": 10**9,
            "race": False,
            **self.script["serve"],
        }
        count, start, clients = (
            request["clients"],
            request.get("begin_ns") or time.monotonic_ns(),
            [],
        )
        self.served += request["checks"] > 0  # the client without checks only warms up
        late = script["late_ns"] if self.served <= script["late_first"] else 0
        for client in range(count):
            walls, done = [], [0]
            while done[-1] < request["min_ns"] or not walls:
                walls.append(round(self.draw(1)[0] * (1 + script["slow_with"] * (count - 1))))
                done.append(done[-1] + walls[-1])
            checked = [(client + i) % len(self.ring) for i in range(min(2, request["checks"]))]
            for i, index in enumerate(checked):
                self.outputs(
                    "serve",
                    [index],
                    f"{request['out']}-{client}-{i}.safetensors",
                    shift=1 if script["race"] and count > 1 else 0,
                )
            most = request["samples"]
            clients.append(
                {
                    "requests": len(walls),
                    "start_ns": start + client * late,
                    "wall_ns": done[-1],
                    "latency_ns": walls[:most],
                    "done_ns": done[1 : most + 1],
                    "checked": checked,
                }
            )
        end = max(client["start_ns"] + client["wall_ns"] for client in clients)
        spend([max(0, end - time.monotonic_ns())])
        return {"clients": clients, "cpu_ns": sum(client["wall_ns"] for client in clients)}

    def need_trainer(self) -> Trainer:
        if self.trainer is None:
            raise Refusal("bad_request", "no case of mode train is loaded")
        return self.trainer

    def set_labels(self, request: Json) -> Json:
        tensors = read_tensors(request["path"])
        self.need_trainer().labels = {
            int(name.split("/", 1)[0]): [int(v[0]) for v in struct.iter_unpack("<q", raw)]
            for name, (_, _, raw) in tensors.items()
        }
        return {"count": len(tensors)}

    def set_mode(self, request: Json) -> Json:
        if request["mode"] not in ("train", "eval"):
            raise Refusal("bad_request", f"mode {request['mode']}; allowed: train, eval")
        self.need_trainer().mode, self.need_trainer().dropout = (
            request["mode"],
            request.get("dropout", True),
        )
        return {}

    def set_optimiser(self, request: Json) -> Json:
        self.need_trainer().reset(request["optimiser"])
        return {}

    def state(self, request: Json) -> Json:
        return self.need_trainer().write_state(request["out"])

    def load_state(self, request: Json) -> Json:
        trainer = self.need_trainer()
        trainer.reset(trainer.optimiser)
        trainer.load_weights(read_tensors(request["path"]), prefix="weight:")
        trainer.step = request["step"]
        return {}

    def profile(self, request: Json) -> Json:
        walls = self.draw(request["iterations"])
        spend(walls)
        self.need_trainer().run(
            "profile", [self.need_index(index) for index in request["indices"]], None
        )
        shares = {"input": 0.05, "forward": 0.4, "backward": 0.4, "update": 0.15}
        return {
            "phases": {
                phase: [round(wall * share) for wall in walls] for phase, share in shares.items()
            },
            "joined": {"forward": ["forward", "loss"]},
        }

    def operations(self, request: Json) -> Json:
        """The script's: [name, layer, nanoseconds, nanoseconds before it] each."""
        script, count = self.script["operations"], len(request["indices"])
        spend([sum(ns + gap for *_, ns, gap in script)] * count)
        return {
            "operations": [
                {"operation": name, "layer": layer, "ns": [ns] * count, "gap_ns": [gap] * count}
                for name, layer, ns, gap in script
            ],
            "wall_ns": [sum(ns + gap for *_, ns, gap in script) + 1000] * count,
            "after_ns": [1000] * count,
        }

    def memory(self, request: Json) -> Json:
        return {"device_peak_bytes": None}

    def report(self, request: Json) -> Json:
        return {"facts": self.script["report"]}

    def unload(self, request: Json) -> Json:
        self.bundle = self.ring = None
        return {}

    def bye(self, request: Json) -> Json:
        return {}

    def trouble(self, op: str) -> Json:
        """What the script says about this request of `op`; empty when all is well."""
        self.counts[op] = self.counts.get(op, 0) + 1
        fault = self.script.get("ops", {}).get(op, {})
        return (
            fault
            if self.counts[op] >= fault.get("after", 1)
            and fault.get("from_start", 0) <= self.starts <= fault.get("to_start", self.starts)
            else {}
        )

    def answer(self, request: Any) -> Json:
        if not isinstance(request, dict):
            return refusal(None, "bad_request", "a request is a JSON object")
        identity = request.get("id")
        op = request.get("op")
        handler = getattr(self, op, None) if isinstance(op, str) and op in self.ops else None
        if not isinstance(op, str) or not isinstance(identity, int):
            return refusal(
                identity if isinstance(identity, int) else None,
                "bad_request",
                "a request has an integer id and a string op",
            )
        try:
            if handler is None:
                raise Refusal("unsupported", f"no operation {op}")
            return {"id": identity, "ok": True, **handler(request)}
        except Refusal as refused:
            return {"id": identity, "ok": False, **refused.fields}
        except MemoryError:
            return out_of_memory(identity)
        except (KeyError, TypeError, ValueError) as error:
            return refusal(identity, "bad_request", f"{type(error).__name__}: {error}")
