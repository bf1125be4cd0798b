#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker that follows a script: the protocol without a network, for tests of the driver.
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
      escape: true | "bare"         starts a sleeping child in a session of its own, whose parent
      ends at once (its pid on standard error: "escaped PID"); bare: with an empty environment
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
      from_start: n, to_start: n    only in processes from the n-th on that were started with this
      script (a file), or only up to it
  environment_settings: [VARIABLE]
                                  settings of load also hold these variables of its environment, and
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
import shutil
import signal
import sys
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # PYTHONSAFEPATH leaves it out
from fake_answers import Json, out_of_memory
from fake_level import Fake

FILLED: list[bytearray] = []


def escape(bare: bool) -> None:
    """A grandchild that no process group, session or parent leads to; `bare`: nor its
    environment."""
    if (child := os.fork()) == 0:
        os.setsid()
        if (grandchild := os.fork()) == 0:
            os.execvpe("sleep", ["sleep", "1000000"], {} if bare else os.environ)
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
        FILLED.append(bytearray(b"x") * trouble["fill"])
    if trouble.get("escape"):
        escape(trouble["escape"] == "bare")
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
    text = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("STRATA_FAKE", "{}")
    script: Json = (
        json.loads(text)
        if text.lstrip().startswith("{")
        else json.load(open(text, encoding="utf-8"))
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
            instead, answer = None, out_of_memory(request["id"])
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
