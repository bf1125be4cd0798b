# SPDX-License-Identifier: Apache-2.0
"""compile: the same module under torch.compile with its default mode, dynamic=False. Graph breaks
are allowed and reported, and so are guards and recompilations."""

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._dynamo import utils as dynamo

from strata_sdk import (
    Job,
    RecordedIteration,
    Reports,
    TimesOperations,
    UnavailableError,
    UnsupportedError,
)
from strata_sdk.torch_level import TorchLevel

MODES = {"max-autotune": "max-autotune", "reduce-overhead": "reduce-overhead"}


class Compile(TorchLevel, Reports, TimesOperations):
    joined_phases = {"forward": ["forward", "loss"]}  # one compiled function holds both

    def load(self, job: Job) -> None:
        if self.job.variant == "freezing":
            import torch._inductor.config as inductor

            inductor.freezing = True
        super().load(job)
        if self.job.variant == "channels_last":
            self.go_channels_last()
        options = {"dynamic": None if job.dynamic else False} | (
            {"mode": MODES[self.job.variant]} if self.job.variant in MODES else {}
        )
        self.runner = torch.compile(self.runner, **options)
        if job.trains:
            self.objective = torch.compile(self.loss_of_batch, **options)
        if self.job.variant != "freezing":
            self.compile_now()

    def load_weights(self, weights: str) -> None:
        super().load_weights(weights)
        if self.job.variant == "freezing":  # the compiled code holds the set before
            torch.compiler.reset()
            self.compile_now()

    def compile_now(self) -> None:
        """Compiling is lazy: one pass on an input of the case makes it happen here. In training the
        weights are loaded after it."""
        inputs = self.host_input(self.job.example())
        self.progress("compiling")
        try:
            if self.job.trains:
                self.set_mode("train", True)
                batch = self.job.about["outputs"][0]["shape"][:1]
                self.set_batch(inputs, torch.zeros(batch, dtype=torch.int64) if batch else None)
                self.objective(self.inputs, self.named, self.labels).backward()
                self.module.zero_grad()
            else:
                self.set_input(inputs)
                self.open_batch()
                self.run()
            self.wait()
        except Exception as error:
            if "C++ compiler" in str(error) or type(error).__name__ == "InvalidCxxCompiler":
                raise UnavailableError(
                    "torch.compile finds no C++ compiler", "install g++, or set CXX to one"
                ) from error
            raise
        self.result = self.inputs = self.labels = None

    def open_batch(self) -> None:
        """Says that the batch will vary. A weak mark: where the network fixes it all the same, each
        size compiles again, and that is counted."""
        if not self.job.dynamic:
            return
        bounds = {"min": self.job.dynamic["low"], "max": self.job.dynamic["high"]}
        # as in PyTorch 2.11: a mark without bounds
        if "min" not in inspect.signature(torch._dynamo.maybe_mark_dynamic).parameters:
            bounds = {}
        for tensor in [*self.inputs, *self.named.values()]:
            if tensor.dim():
                torch._dynamo.maybe_mark_dynamic(tensor, 0, **bounds)

    def forward_in_phases(self, mark: Callable[[str], None]) -> Tensor:
        loss = self.objective(self.inputs, self.named, self.labels)
        mark("forward")
        return loss

    def build_module(self, job: Job) -> torch.nn.Module:
        if job.about.get("model", {}).get("kind") == "torchscript":
            raise UnsupportedError(
                "torch.compile runs TorchScript as it is", "torchscript and eager run it"
            )
        return super().build_module(job)

    def clients(self, count: int, threads: int) -> Sequence[TorchLevel]:
        """Generated code carries its number of threads; TorchDynamo guards on it and compiles again
        for another, while the first client warms up."""
        if self.device.type == "cuda" and self.job.variant in MODES:
            raise UnsupportedError(
                f"the CUDA graphs of {self.job.variant} belong to one thread",
                "compile serves several clients",
            )
        return super().clients(count, threads)

    def record_operations(
        self, iterate: Callable[[int], None], indices: Sequence[int]
    ) -> Sequence[RecordedIteration]:
        """The first call compiles once more, so that generated kernels tell when they run; which
        operations are fused into which stays as it is."""
        if self.device.type != "cpu":
            raise UnsupportedError("operations on a GPU end after Python has gone on")
        if self.job.variant == "max-autotune":
            raise UnsupportedError("a generated product is one kernel with what is fused to it")
        import torch._inductor.config as inductor

        from strata_sdk.operation_times import of_calls

        if not inductor.cpp.enable_kernel_profile:
            inductor.cpp.enable_kernel_profile = True
            torch.compiler.reset()
            iterate(indices[0])
        return of_calls(iterate, indices)

    def unload(self) -> None:
        super().unload()
        torch.compiler.reset()
        dynamo.counters.clear()
        dynamo.clear_compilation_metrics()

    def report(self) -> dict[str, Any]:
        """Guards with the time of one evaluation, and everything that was compiled again until now,
        with why."""
        compiled = compiler_report()
        return {
            "graphs": compiled["graphs"],
            "guards": compiled["guards"],
            "guard_us": compiled["guard_us"],
            "recompiles": len(compiled["recompiles"]),
            "recompile_reasons": compiled["recompiles"],
        }

    def settings(self) -> dict[str, Any]:
        compiled = compiler_report()
        for graph_break in compiled["graph_breaks"]:
            print(
                f"graph break at {graph_break['where']}: {graph_break['reason']}", file=sys.stderr
            )
        changed = {
            "layout": "channels_last" if self.job.variant == "channels_last" else "any",
            "freezing": self.job.variant == "freezing",
            "graph": "compiled",
            "graphs": compiled["graphs"],
            "graph_breaks": sum(dynamo.counters["graph_break"].values()),
            "compile": compiled,
        }
        return (
            super().settings()
            | changed
            | ({"autotune": True} if self.job.variant == "max-autotune" else {})
        )


def compiler_report() -> dict[str, Any]:
    """What TorchDynamo did since the last unload: graphs, guards and their time, graph breaks
    ({reason, where}) and the reasons of recompilations. `guard_us`: of each frame's newest code,
    what TorchDynamo measured when it compiled it: one evaluation of all its guards with flushed
    caches, hence an upper end."""
    breaks = []
    for reason in dynamo.graph_break_reasons:
        place = reason.user_stack[-1] if reason.user_stack else None
        graph_break = {
            "reason": first_line(reason.reason),
            "where": f"{place.filename}:{place.lineno}" if place else "",
        }
        if graph_break not in breaks:
            breaks.append(graph_break)
    metrics = dynamo.get_compilation_metrics()
    recompiled = [
        first_line(reason) for m in metrics if (reason := getattr(m, "recompile_reason", None))
    ]
    newest = {str(m.compile_id).partition("/")[0]: m.guard_latency_us or 0 for m in metrics}
    return {
        "graphs": dynamo.counters["stats"]["unique_graphs"],
        "guards": sum(m.guard_count or 0 for m in metrics),
        "guard_us": sum(newest.values()),
        "graph_breaks": breaks,
        "recompiles": recompiled,
    }


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]
