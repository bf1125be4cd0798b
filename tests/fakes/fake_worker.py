#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker that does as it is told: the protocol without a network, for tests of the driver.
Standard library only.

The script is a JSON object, from argv[1] (text, or a path to a file), else from STRATA_FAKE (text
or path), else empty:

  name, api, language, build      what hello says ("fake", 2, "python", "release")
  extra_hello                     fields that replace or join those of hello
  unsupported                     every load is answered so, with this reason
  start_s                         sleeps before it reads its first request
  ops: {OP: {...}}                what goes wrong in OP, by any of
      progress: ["text", ...]       says before its answer that it does these, each after progress_s
      seconds (0)
      hang: true | seconds          sleeps (true: for ever) before it answers
      fill: bytes                   allocates that much and keeps it
      escape: true                  starts a sleeping child in a session of its own, whose parent
      ends at once (its pid on standard error: "escaped PID")
      log_bytes: n                  writes that many bytes to standard error
      drip: seconds                 answers a byte at a time, so long apart
      delete_out: true              removes the folder that `out` lies in, with all that is in it
      signal: 11                    kills itself with that signal
      exit: 3                       exits with that code
      junk: "text"                  answers with that line instead of JSON
      id: 99                        answers with that id
      huge: bytes                   answers with a line of that many bytes
      close: true                   closes its output and goes on living
      error: {"code","what","hint"} answers with that failure
      allocate: bytes               allocates that much (a limit makes it fail), then answers
      chatty: true                  prints to its standard output, as a careless library would
      twice: true                   answers twice
      log: "text"                   writes that to standard error first
      answer: {...}                 fields that replace or join those of the answer
      after: n                      only from the n-th such request on (1 is the first)
      from_start: n                 only in processes from the n-th on that were started with this
      script (a file)
  told_settings: [VARIABLE]       settings of load also hold these variables of its environment, and
  with "variant" what load said of it
  empty_folder: VARIABLE          makes the folder that this variable of its environment names, and
  puts nothing there
  leave_stdout: true              does not protect the protocol's stream: chatty lines corrupt it
  helper: true                    starts a child in its process group that sleeps for ever (its pid
  in hello: helper_pid)
  ignore_eof: true                lives on when its input closes
  samples:
  {"median_ns":1000000,"jitter":0.02,"seed":1,"restart":0.01,"slow_every":0,"slow_by":2.0,"batch_power":0}
                                  wall_ns of measure and warm_up, drawn from the seed and the
                                  position; measure takes as long in truth, warm_up only its first
                                  iteration;
                                  restart: spread between processes, drawn from how often this
                                  script (a file) was started before;
                                  batch_power: times grow with that power of the batch
  clock: 0.5                      measure tells that share of the time that it takes (and of
  latencies, CPU time)
  first_ns                        first iteration of warm_up (10 x median)
  variants: {NAME: {...}}         fields that replace those above once load names that variant
  outputs: {"scale":1.0,"add":0.0,"from":"timed"|null,"only_in":"measure"|null}
                                  outputs are the bundle's reference as float32, times scale plus
                                  add;
                                  "from": always this weight set's reference, whatever is loaded
                                  (null: what is loaded);
                                  "only_in": all this in that operation only, and right in every
                                  other
                                  "few_runs": true: all this only where the envelope is of three
                                  runs of eager
  serve: {...}                    the worker serves several clients, each as fast as alone, but for
      slow_with: 0.5                every further client makes a request that share of its time
      slower
      late_ns: n                    every client begins that much after the one before it
      late_first: n                 ... in the first n measured calls only
      race: true                    its results are those of other inputs where there is more than
      one client
  same_output: true               every index answers with the output of index 0
  precision: {"has":["fp32","bf16"],"ignores":true,"always":true}
                                  precisions of hello (fp32); in bf16 outputs are rounded to
                                  bfloat16: ignores: in no case, always: in every case
  dynamic: {"compile_ns":0,"wrong_size":null}
                                  the first iteration at a batch that was not seen takes compile_ns
                                  longer; outputs of batch wrong_size are 1% off
  report: {...}                   the worker offers `report` and answers with these facts
  train: {...}                    the worker trains train_net.py's network (a bundle of
  train_bundle.py), correctly but for
      no_momentum, no_weight_decay, skip_biases, eval_statistics, biased_variance, summed_loss,
      constant_loss,
      ignore_dropout, dropout_in_eval: true
      lr_factor: 0.999              every update is that much smaller
      shift_labels: 1               labels are off by that
      steps_off: 1                  state counts that many steps more
      diverges_after: n             the loss is NaN from the n-th step after weights were loaded on,
      and so are the weights
      stale: true                   every index is trained as index 0
      only_in: "measure"            all this in that operation only
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import struct
import sys
import time
from typing import Any

Json = dict[str, Any]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # PYTHONSAFEPATH leaves it out
from fake_trainer import Trainer  # noqa: E402
from tensors import FORMATS, read_tensors, rows_of, write_tensors  # noqa: E402


class Refusal(Exception):
    """An answer with ok false."""

    def __init__(self, code: str, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.fields = {"code": code, "what": what, "hint": hint}


def to_bfloat16(value: float) -> float:
    """The nearest number of bfloat16."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    (rounded,) = struct.unpack(
        "<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000)
    )
    return rounded


def spend(walls: list[int]) -> None:
    """Takes the time that is told: the driver holds it against its own clock."""
    time.sleep(sum(walls) * 1e-9)


class Fake:
    OPS = [
        "hello",
        "load",
        "weights",
        "inputs",
        "prove",
        "warm_up",
        "measure",
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
            + [op for op in ("serve", "report") if op in script]
        )
        self.place = ""  # where the references of the ring lie
        self.batch: int | None = None
        self.seen: set[int] = set()
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
            "from_start" in told for told in script.get("ops", {}).values()
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
        told = {
            "median_ns": 1_000_000,
            "jitter": 0.02,
            "seed": 1,
            "restart": 0.0,
            "slow_every": 0,
            "slow_by": 2.0,
            "batch_power": 0,
            **self.script.get("samples", {}),
        }
        run, median_ns = self.starts, told["median_ns"] * (self.batch or 1) ** told["batch_power"]
        level = random.Random(f"{told['seed']}/{run}").gauss(0.0, 1.0) * told["restart"]
        out = []
        for _ in range(count):
            noise = abs(
                random.Random(f"{told['seed']}/{run}/{self.drawn}").gauss(0.0, told["jitter"])
            )
            slow = (
                told["slow_by"]
                if told["slow_every"] and self.drawn % told["slow_every"] == told["slow_every"] - 1
                else 1.0
            )
            out.append(max(1, round(median_ns * (1.0 + level) * (1.0 + noise) * slow)))
            self.drawn += 1
        if out and self.batch is not None and self.batch not in self.seen:
            self.seen.add(self.batch)
            out[0] += self.script.get("dynamic", {}).get("compile_ns", 0)
        return out

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
        told, asked = {"scale": 1.0, "add": 0.0, "from": None}, self.script.get("outputs", {})
        if asked.get("only_in") in (None, op) and (self.few_runs or not asked.get("few_runs")):
            told |= asked
        if self.batch is not None and self.batch == self.script.get("dynamic", {}).get(
            "wrong_size"
        ):
            told["scale"] *= 1.01
        reference = read_tensors(
            os.path.join(
                self.place or self.need_bundle(),
                "reference",
                f"{told['from'] or self.weight_set}.safetensors",
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
            found = {
                name[len(prefix) :]: value
                for name, value in reference.items()
                if name.startswith(prefix)
            }
            if not found:
                raise Refusal("failed", f"the reference of {self.weight_set} lacks input {index}")
            for name, (dtype, shape, raw) in found.items():
                values = [value[0] for value in struct.iter_unpack("<" + FORMATS[dtype], raw)]
                if dtype in ("F64", "F32"):
                    values = [value * told["scale"] + told["add"] for value in values]
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
        told = self.hello(request)
        for field, allowed in (
            ("mode", told["modes"]),
            ("precision", told["precisions"]),
            ("device", told["devices"]),
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
        told, precision = self.script.get("precision", {}), request["case"].get("precision", "fp32")
        rounds = precision.endswith("bf16") and not told.get("ignores")
        self.trainer = (
            Trainer(self.script["train"], request["case"]["optimiser"], bundle, rounds)
            if request["case"].get("mode") == "train"
            else None
        )
        self.weights(request)
        self.ring = None
        precision, told = (
            request.get("case", {}).get("precision", "fp32"),
            self.script.get("precision", {}),
        )
        self.in_bfloat16 = bool(
            told.get("always") or (precision == "bf16" and not told.get("ignores"))
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
            for name in self.script.get("told_settings", [])
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
        if len(indices) != request["iterations"] or not 0 <= request["check"] < len(indices):
            raise Refusal(
                "bad_request",
                f"{request['iterations']} iterations, {len(indices)} indices, check {request['check']}",
            )
        spend(self.draw(request["head"]))
        started = time.monotonic_ns()
        walls = self.draw(request["iterations"])
        spend(walls)
        walls = [max(1, round(wall * self.script.get("clock", 1))) for wall in walls]
        if self.trainer:
            self.trainer.run(
                "measure",
                list(range(request["head"])) + indices,
                request["out"],
                request["head"] + request["check"],
            )
        else:
            self.outputs("measure", [indices[request["check"]]], request["out"])
        return {
            "wall_ns": walls,
            "latency_ns": [max(1, wall - wall // 20) for wall in walls],
            "cpu_ns": sum(walls),
            "start_ns": started,
            "runq_ns": 0,
        }

    def serve(self, request: Json) -> Json:
        self.need_index(0)
        told = {
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
        self.served += request["checks"] > 0  # the one without checks only warms up
        late = told["late_ns"] if self.served <= told["late_first"] else 0
        for client in range(count):
            walls, done = [], [0]
            while done[-1] < request["min_ns"] or not walls:
                walls.append(round(self.draw(1)[0] * (1 + told["slow_with"] * (count - 1))))
                done.append(done[-1] + walls[-1])
            checked = [(client + i) % len(self.ring) for i in range(min(2, request["checks"]))]
            for i, index in enumerate(checked):
                self.outputs(
                    "serve",
                    [index],
                    f"{request['out']}-{client}-{i}.safetensors",
                    shift=1 if told["race"] and count > 1 else 0,
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
        end = max(one["start_ns"] + one["wall_ns"] for one in clients)
        spend([max(0, end - time.monotonic_ns())])
        return {"clients": clients, "cpu_ns": sum(one["wall_ns"] for one in clients)}

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
        told = self.script.get("ops", {}).get(op, {})
        return (
            told
            if self.counts[op] >= told.get("after", 1) and self.starts >= told.get("from_start", 0)
            else {}
        )

    def answer(self, request: Any) -> Json:
        if not isinstance(request, dict):
            return {
                "id": None,
                "ok": False,
                "code": "bad_request",
                "what": "a request is a JSON object",
                "hint": "",
            }
        identity = request.get("id")
        op = request.get("op")
        handler = getattr(self, op, None) if isinstance(op, str) and op in self.ops else None
        if not isinstance(op, str) or not isinstance(identity, int):
            return {
                "id": identity if isinstance(identity, int) else None,
                "ok": False,
                "code": "bad_request",
                "what": "a request has an integer id and a string op",
                "hint": "",
            }
        try:
            if handler is None:
                raise Refusal("unsupported", f"no operation {op}")
            return {"id": identity, "ok": True, **handler(request)}
        except Refusal as refusal:
            return {"id": identity, "ok": False, **refusal.fields}
        except MemoryError:
            return {
                "id": identity,
                "ok": False,
                "code": "out_of_memory",
                "what": "no memory left",
                "hint": "a smaller batch",
            }
        except (KeyError, TypeError, ValueError) as error:
            return {
                "id": identity,
                "ok": False,
                "code": "bad_request",
                "what": f"{type(error).__name__}: {error}",
                "hint": "",
            }


KEPT: list[bytearray] = []


def escape() -> None:
    """A grandchild that no process group, session or parent leads to."""
    if (child := os.fork()) == 0:
        os.setsid()
        if (grandchild := os.fork()) == 0:
            os.execvp("sleep", ["sleep", "1000000"])
        os.write(2, f"escaped {grandchild}\n".encode())
        os._exit(0)
    os.waitpid(child, 0)


def misbehave(trouble: Json, protocol: Any, number: Any) -> bytes | None:
    """Acts out what the script says before the answer to request `number`; bytes replace the
    answer."""
    for text in trouble.get("progress", []):
        time.sleep(trouble.get("progress_s", 0))
        os.write(protocol.fileno(), json.dumps({"id": number, "progress": text}).encode() + b"\n")
    if "log" in trouble:
        print(trouble["log"], file=sys.stderr, flush=True)
    if trouble.get("chatty"):
        os.write(1, b"a careless library prints this to standard output\n")
    if "fill" in trouble:
        KEPT.append(bytearray(b"x") * trouble["fill"])
    if trouble.get("escape"):
        escape()
    for _ in range(trouble.get("log_bytes", 0) // 1000):
        os.write(2, b"x" * 999 + b"\n")
    if "hang" in trouble:
        time.sleep(1e6 if trouble["hang"] is True else trouble["hang"])
    if "signal" in trouble:
        signal.signal(trouble["signal"], signal.SIG_DFL) if trouble["signal"] not in (
            signal.SIGKILL,
            signal.SIGSTOP,
        ) else None
        os.kill(os.getpid(), trouble["signal"])
    if "exit" in trouble:
        os._exit(trouble["exit"])
    if trouble.get("close"):
        os.close(protocol.fileno())
        while True:
            time.sleep(3600)
    if "allocate" in trouble:
        bytearray(trouble["allocate"])
    if "junk" in trouble:
        return trouble["junk"].encode() + b"\n"
    if "huge" in trouble:
        return b"x" * trouble["huge"] + b"\n"
    return None


def main() -> None:
    told = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STRATA_FAKE", "{}")
    script: Json = (
        json.loads(told)
        if told.lstrip().startswith("{")
        else json.load(open(told, encoding="utf-8"))
    )
    protocol = os.fdopen(os.dup(1), "wb", buffering=0)
    if not script.get("leave_stdout"):
        os.dup2(2, 1)
    helper_pid = (
        os.posix_spawnp("sleep", ["sleep", "1000000"], os.environ) if script.get("helper") else None
    )
    time.sleep(script.get("start_s", 0))
    fake = Fake(script, helper_pid)
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        op = request.get("op") if isinstance(request, dict) else None
        trouble = fake.trouble(op) if isinstance(op, str) else {}
        try:
            instead = misbehave(
                trouble, protocol, request.get("id") if isinstance(request, dict) else None
            )
            answer = fake.answer(request)
        except MemoryError:
            instead, answer = (
                None,
                {
                    "id": request["id"],
                    "ok": False,
                    "code": "out_of_memory",
                    "what": "no memory left",
                    "hint": "a smaller batch",
                },
            )
        if "error" in trouble:
            answer = {"id": request["id"], "ok": False, **trouble["error"]}
        if "id" in trouble:
            answer["id"] = trouble["id"]
        answer.update(trouble.get("answer", {}))
        text = instead if instead is not None else json.dumps(answer).encode() + b"\n"
        text *= 2 if trouble.get("twice") else 1
        if trouble.get("delete_out"):
            shutil.rmtree(os.path.dirname(request["out"]))
        if "drip" in trouble:
            for i in range(len(text)):
                os.write(protocol.fileno(), text[i : i + 1])
                time.sleep(trouble["drip"])
            continue
        while text:
            text = text[os.write(protocol.fileno(), text) :]
        if op == "bye" and answer.get("ok"):
            return
    if script.get("ignore_eof"):
        time.sleep(1e6)


if __name__ == "__main__":
    main()
