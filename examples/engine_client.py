#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of `strata engine` (docs/engine.md): compares a network at two levels, shows progress,
begins a second comparison and cancels it.

    python examples/engine_client.py ./strata mnist_convnet eager,static
"""

import json
import subprocess
import sys

program, model, levels = sys.argv[1:4]
with subprocess.Popen(
    [program, "engine"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
) as engine:

    def send(line: dict) -> None:
        engine.stdin.write(json.dumps(line) + "\n")
        engine.stdin.flush()

    asked = {"verb": "compare", "version": 1, "model": model, "levels": levels.split(",")}
    send({"id": "short", "request": asked | {"restarts": 2, "budget_s": 4}})
    send({"id": "long", "request": asked | {"restarts": 8, "budget_s": 600}})
    for line in engine.stdout:
        answer = json.loads(line)
        if "event" in answer:
            print(answer["id"], answer.get("doing") or answer.get("text"))
            if answer["id"] == "long" and "measuring" in str(answer.get("doing")):
                send({"cancel": "long"})
            continue
        if "error" in answer:
            print(answer["id"], "error:", answer["error"]["what"])
        else:
            for row in answer["result"]["cases"][0]["rows"]:
                print(answer["id"], row["level"], row["state"], row["end_to_end_ms"])
        if answer["id"] == "long":
            engine.stdin.close()
