# SPDX-License-Identifier: Apache-2.0
"""compile: the same module under torch.compile with its default mode, dynamic=False. Graph breaks are allowed and counted."""
import sys
from typing import Any

import torch
from strata_sdk import Job, UnavailableError, UnsupportedError
from strata_sdk.torch_level import TorchLevel
from torch._dynamo.utils import counters


class Compile(TorchLevel):
    def load(self, job: Job) -> None:
        super().load(job)
        self.runner = torch.compile(self.module, dynamic=False)
        try:
            self.set_input(self.host_input(job.example()))  # compiling is lazy: one pass on an input of the case makes it happen here
            self.run()
            self.wait()
        except Exception as error:
            if "C++ compiler" in str(error) or type(error).__name__ == "InvalidCxxCompiler":
                raise UnavailableError("torch.compile finds no C++ compiler", "install g++, or set CXX to one") from error
            raise
        self.result = self.inputs = None
        stats, breaks = counters["stats"], counters["graph_break"]
        self.found = {"graphs": stats["unique_graphs"], "graph_breaks": sum(breaks.values())}
        for reason, count in breaks.items():
            print(f"graph break x{count}: {reason}", file=sys.stderr)

    def build_module(self, job: Job) -> torch.nn.Module:
        if job.about.get("model", {}).get("kind") == "torchscript":
            raise UnsupportedError("torch.compile runs TorchScript as it is", "torchscript and eager run it")
        return super().build_module(job)

    def unload(self) -> None:
        super().unload()
        torch.compiler.reset()
        counters.clear()

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"layout": "any", "freezing": False, "graph": "compiled", **self.found}
