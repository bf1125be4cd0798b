# SPDX-License-Identifier: Apache-2.0
"""run_programs.py LIBRARY BUNDLE...: runs each program of a library of several_programs.py on its
bundle's input, twice, and writes BUNDLE/found.safetensors: outputs by name; of a training step
loss, `grad:<parameter>` and `stat:<buffer>` of one step. Prints a line for each: JSON, null or what
failed."""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

POINTERS = {"create", "error", "output"}  # what gives one


class Program:
    def __init__(self, library: ctypes.CDLL, bundle: Path) -> None:
        self.library, self.bundle = library, bundle
        self.graph = json.loads((bundle / "graph.json").read_text())
        self.model = ctypes.c_void_p(self.function("create")(2))
        self.need(self.model.value is not None)
        constants = bundle / "graph_constants.safetensors"
        self.done(
            "load",
            str(bundle / "weights" / "timed.safetensors").encode(),
            str(constants).encode() if constants.exists() else None,
        )
        self.inputs = load_file(bundle / "inputs.safetensors")
        for number, one in enumerate(self.graph["inputs"]):
            self.call(
                "set_input", number, self.inputs[f"0/{one['name']}"].ctypes.data_as(ctypes.c_void_p)
            )

    def function(self, name: str):
        found = getattr(self.library, f"{self.bundle.name}_{name}")
        found.restype = ctypes.c_void_p if name in POINTERS else ctypes.c_int
        return found

    def need(self, condition: bool) -> None:
        if not condition:
            raise RuntimeError(ctypes.string_at(self.function("error")()).decode())

    def call(self, name: str, *arguments):
        return self.function(name)(self.model, *arguments)

    def done(self, name: str, *arguments) -> None:
        self.need(self.call(name, *arguments) == 0)

    def output(self, number: int, shape: list[int]) -> np.ndarray:
        floats = ctypes.cast(self.call("output", number), ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(floats, (int(np.prod(shape)),)).reshape(shape).copy()

    def shape(self, value: int) -> list[int]:
        return self.graph["values"][value]["shape"]

    def inferred(self) -> dict[str, np.ndarray]:
        for _ in range(2):  # the second run finds what the first left in the arena
            self.done("run")
        return {
            one["name"]: self.output(number, self.shape(one["value"]))
            for number, one in enumerate(self.graph["outputs"])
        }

    def trained(self) -> dict[str, np.ndarray]:
        self.labels = load_file(self.bundle / "labels.safetensors")["0/labels"]
        self.call("set_labels", self.labels.ctypes.data_as(ctypes.c_void_p))
        self.call("set_dropout", 0)
        # the first step's momentum is the gradient
        self.call("set_optimiser", ctypes.c_float(1), ctypes.c_float(0.9))
        self.done("run")
        found = {"loss": self.output(0, [])}
        for one in self.graph["parameters"]:
            if not one.get("frozen"):
                found[f"grad:{one['name']}"] = self.read("read_momentum", one)
        return found | {
            f"stat:{one['name']}": self.read("read", one)
            for one in self.graph["buffers"]
            if "running_" in one["name"]
        }

    def read(self, what: str, one: dict) -> np.ndarray:
        values = np.empty(self.shape(one["value"]), np.float32)
        self.done(what, one["name"].encode(), values.ctypes.data_as(ctypes.c_void_p))
        return values


def attempted(library: ctypes.CDLL, bundle: Path) -> str | None:
    try:
        program = Program(library, bundle)
        found = program.trained() if program.graph["mode"] == "train" else program.inferred()
        program.call("destroy")
        save_file(found, bundle / "found.safetensors")
        return None
    except RuntimeError as error:
        return str(error)


if __name__ == "__main__":
    everything = ctypes.CDLL(sys.argv[1])
    for folder in sys.argv[2:]:
        print(json.dumps(attempted(everything, Path(folder))), flush=True)
