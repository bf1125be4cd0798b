# SPDX-License-Identifier: Apache-2.0
"""The part of a bundle for one artefact over several batch sizes (docs/bundle.md, dynamic): an
export whose batch is open, and the reference of every size.

The network, its weight sets and its references at the case's own batch are those of the bundle
itself; links lead to them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.case import Input
from capture.described import described_outputs
from capture.effects import Answers
from capture.errors import Problem, is_out_of_memory
from capture.export import export, write_program
from capture.inputs import make_ring
from strata_sdk.models import last_line, source_files

RING = 2  # entries that every size is proven on
Write = Callable[[Path, dict[str, Tensor]], None]


def check_range(spec: dict, inputs: list[Input]) -> None:
    """Refuses what no one batch can be varied of. Raises Problem."""
    limits = spec["dynamic"]
    words = f"--dynamic batch={limits['low']}..{limits['high']}"
    extents = {i.name: i.shape[0] for i in inputs if i.shape}
    if not extents:
        raise Problem(
            "usage",
            f"{words}: no input has a batch",
            "the first extent of every input is its batch",
        )
    if len(set(extents.values())) > 1:
        raise Problem(
            "usage",
            f"{words}: the inputs' first extents differ ({', '.join(f'{k} {v}' for k, v in extents.items())}), so that there is no one batch to vary",
            "give every --input the same first extent",
        )
    [own] = set(extents.values())
    if not limits["low"] <= own <= limits["high"]:
        raise Problem(
            "usage",
            f"{words}: the case's own batch {own} lies outside",
            f"give --batch a number from {limits['low']} to {limits['high']}, or widen the range",
        )


@dataclasses.dataclass
class DynamicCapture:
    """Writes `<bundle>/dynamic`. `info` is the bundle's, complete but for its notes; `module` holds
    the timed weights."""

    spec: dict
    info: dict
    bundle: Path
    runner: ref.Runner
    write: Write
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.folder = self.bundle / "dynamic"
        self.sizes = sorted({*self.spec["dynamic"]["sizes"], self.info["case"]["batch"]})
        self.references: dict[int, dict[str, Tensor]] = {}  # of input 0
        self.runs: dict[int, list[dict[str, Tensor]]] = {}  # legitimate ones, of input 0

    def run(self, module: nn.Module, inputs: list[Input]) -> None:
        self.folder.mkdir()
        for name in ("weights", "reference", "inputs.safetensors"):
            (self.folder / name).symlink_to(Path("..") / name)
        self.wide = ref.double_copy(module) if self.info["reference"] == "float64" else None
        rings, worst = {}, {}
        for size in self.sizes:
            rings[size], worst[size] = self._size(module, inputs, size)
        about = self.info | {
            "case": self.info["case"]
            | {
                "dynamic": {
                    "low": self.spec["dynamic"]["low"],
                    "high": self.spec["dynamic"]["high"],
                    "sizes": self.sizes,
                }
            },
            "export": self._export(module, rings, worst),
        }
        (self.folder / "bundle.json").write_text(json.dumps(about, indent=1), encoding="utf-8")

    def _size(
        self, module: nn.Module, inputs: list[Input], size: int
    ) -> tuple[list[dict[str, Tensor]], float]:
        """Inputs, reference and envelope of one size; its ring and envelope's error."""
        self.say(f"reference at batch {size}")
        folder = self.folder / "sizes" / str(size)
        (folder / "reference").mkdir(parents=True)
        resized = [_resized(declared, size) for declared in inputs]
        answers = Answers(module, self.info)
        ring, _ = make_ring(self.spec | {"ring": RING}, resized, repeat=True, answers=answers)
        try:
            runs = ref.envelope(self.runner, module, ring, self.spec["seed"] + 1)
        except Exception as error:  # what the model's code raises for this size
            if is_out_of_memory(error):
                raise
            raise Problem(
                "usage",
                f"--dynamic: the network does not run at batch {size}: {last_line(error, *source_files(module))}",
                "choose a range in which it does, or leave --dynamic out",
            ) from error
        expected = (
            ref.reference_float64(self.runner, self.wide, ring)
            if self.wide is not None
            else ref.mean_of(runs)
        )
        self.write(folder / "inputs", ref.by_entry(ring))
        self.write(folder / "reference" / "timed", ref.by_entry(expected, "f64/"))
        self.write(folder / "reference" / "timed.envelope", ref.by_variant(runs))
        # a size is proven on the timed weights alone
        case = self.info["case"] | {"batch": size, "generic_sets": 0}
        about = self.info | {
            "inputs": [declared.described() for declared in resized],
            "outputs": described_outputs(runs["default"][0]),
            "ring": RING,
            "case": case,
            "faults": [],
        }
        (folder / "bundle.json").write_text(json.dumps(about, indent=1), encoding="utf-8")
        self.references[size], self.runs[size] = (
            expected[0],
            [results[0] for results in runs.values()],
        )
        return ring, ref.envelope_error(runs, expected)

    def _export(
        self, module: nn.Module, rings: dict[int, list[dict[str, Tensor]]], worst: dict[int, float]
    ) -> dict:
        """Exports with an open batch and proves the result at both ends of the range; bundle.json's
        `export`."""
        self.say("exporting the graph with an open batch")
        limits = self.spec["dynamic"]
        # an extent of 1 is taken for a constant
        example = next(size for size in self.sizes if size > 1)
        batch = torch.export.Dim("batch", min=limits["low"], max=limits["high"])
        shapes = ({0: batch} if i["shape"] else None for i in self.info["inputs"])
        program, outcome = export(
            module, rings[example][0], self.info, dynamic_shapes=(tuple(shapes),)
        )
        if program is None:
            return outcome
        runnable = program.module()
        for size in (self.sizes[0], self.sizes[-1]):
            try:
                with torch.no_grad():
                    outputs = runnable(
                        *[rings[size][0][d["name"]].clone() for d in self.info["inputs"]]
                    )
            except Exception as error:
                # a guard on the range, or what an operation raises for this size
                return {
                    "ok": False,
                    "where": "",
                    "what": f"the graph that was exported at batch {example} does not run at batch {size}: {' '.join(str(error).split())[:300]}",
                }
            if differs := ref.differs(
                dict(zip([o["name"] for o in self.info["outputs"]], outputs)),
                self.references[size],
                self.runs[size],
                worst[size],
            ):
                return {
                    "ok": False,
                    "where": "",
                    "what": f"the graph that was exported at batch {example} computes something else than the model at batch {size}: output {differs}",
                }
        write_program(program, self.folder, with_inputs=True)
        return outcome


def _resized(declared: Input, size: int) -> Input:
    """The input with another batch; a user's example is repeated or cut."""
    if not declared.shape:
        return declared
    example = (
        declared.example[torch.arange(size) % declared.example.shape[0]].contiguous()
        if declared.example is not None
        else None
    )
    return dataclasses.replace(declared, shape=[size, *declared.shape[1:]], example=example)
