# SPDX-License-Identifier: Apache-2.0
"""Makes one bundle: builds the network, its weight sets, inputs, references, envelopes, planted
faults and export, and writes them as docs/bundle.md says."""

from __future__ import annotations

import copy
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.broken import BROKEN, broken_sentence, overflow_sentence
from capture.calls import count_work, write_calls
from capture.case import Input, check_spec, resolve_inputs
from capture.described import described_case, described_outputs
from capture.dynamic import DynamicCapture, check_range
from capture.effects import STATE_HINT, Answers, find_effects
from capture.errors import Problem, is_out_of_memory
from capture.export import export, write_program
from capture.flushed import flushed_answers
from capture.forward import advice
from capture.graph import write_graph
from capture.identity import state_of_capture, write_manifest
from capture.input_file import label_of
from capture.inputs import make_ring
from capture.network import NetworkWeights, own_ring
from capture.objective import Objective
from capture.opened import Opened, merged
from capture.packages import check_size
from capture.precision import add_mode, copy_strict
from capture.publishing import check_space, identity, publish, remove_left_overs, state_folder
from capture.specials import special_values
from capture.state import Shared
from capture.train import TrainCapture
from capture.unseen import how_many, unseen_entries
from capture.weights import bytes_once, prepare_timed, state_of
from strata_sdk.losses import is_file
from strata_sdk.models import (
    Built,
    TapModule,
    build_model,
    call,
    last_line,
    load_weights,
    source_files,
)

Progress = Callable[[str], None]


def capture(
    spec: dict,
    out: Path,
    progress: Progress,
    strict: Path | None = None,
    by_state: bool = False,
    networks: Path | None = None,
    memory_limit_gib: float | None = None,
) -> dict:
    """Writes the bundle to `out` and returns its bundle.json; the folder appears whole or not at
    all. Of two captures that run at once the first stays: what reads it is not disturbed. `strict`:
    a bundle of the same case in fp32, whose files a case in another precision shares. `by_state`:
    the folder's name gets the beginning of `state`, so that captures of one network before and
    after a change lie side by side. `networks`: where weight sets are kept that cases share
    (network.py), `memory_limit_gib`: what a level's process may have. Raises Problem, OSError and
    what torch raises."""
    check_spec(spec)
    out.parent.mkdir(parents=True, exist_ok=True)
    remove_left_overs(out)
    before = {
        path: identity(path)
        for path in ([out] if not by_state else out.parent.glob(f"{out.name}.*"))
    }
    partial = out.parent / f".{out.name}.partial-{os.getpid()}"
    try:
        (partial / "weights").mkdir(parents=True)
        (partial / "reference").mkdir()
        with Opened([partial, out, *filter(None, [strict, networks])]) as opened:
            maker = _Capture(spec | {"precision": "fp32"}, partial, progress, networks, opened)
            maker.memory_limit_gib = memory_limit_gib
            info = (
                copy_strict(strict, spec, partial)
                if strict and spec["precision"] != "fp32"
                else maker.run()
            )
            if spec["precision"] != "fp32":
                info = add_mode(spec, info, partial, maker.write, maker.say)
        _complete(info, partial, opened)
        if by_state:
            out = state_folder(out, info)
        publish(partial, out, before.get(out))
        return json.loads((out / "bundle.json").read_text(encoding="utf-8"))
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check(spec: dict, progress: Progress, memory_limit_gib: float | None = None) -> list[dict]:
    """What capture() would refuse of the question is refused before anything is made: the network
    is built, given the user's weights, and run on its inputs. Returns these as bundle.json lists
    them; raises as capture()."""
    maker = _Capture(check_spec(spec) | {"precision": "fp32"}, Path(), progress, None, Opened([]))
    maker.memory_limit_gib = memory_limit_gib
    built, _ = maker.begin()
    if spec["weights"]:
        prepare_timed(built.module, maker.spec, [], maker.info)
    return maker.info["inputs"]


def _complete(info: dict, folder: Path, opened: Opened) -> None:
    """Adds what a user's network was read from, so that a cached capture can be checked against it,
    and the manifest. strata's own networks come from nothing else than strata and its packages."""
    info["read"] = [] if _is_own(info) else merged(info["read"], opened.files())
    info["state"] = state_of_capture(info, folder)
    (folder / "bundle.json").write_text(json.dumps(info, indent=1), encoding="utf-8")
    write_manifest(folder)


def _is_own(info: dict) -> bool:
    return info["model"]["kind"] in ("shipped", "torchvision") and not is_file(
        info["case"]["loss"] or ""
    )


class _Capture:
    def __init__(
        self, spec: dict, folder: Path, progress: Progress, networks: Path | None, opened: Opened
    ) -> None:
        self.spec, self.folder, self.progress = spec, folder, progress
        self.networks, self.opened = networks, opened
        self.started = time.monotonic()
        self.memory_limit_gib: float | None = None
        self.notes: list[str] = []
        self.e0 = 0.0
        self.work = 0  # FLOPs of one call, as far as PyTorch's counter knows them

    def say(self, text: str) -> None:
        self.progress(f"{text} ({time.monotonic() - self.started:.1f} s)")

    def run(self) -> dict:
        try:
            return self._run()
        except Exception as error:  # a state may forbid what a proof needs, as another batch
            if getattr(self, "info", {}).get("keeps_state"):
                raise Problem("unsupported", self.info["unproven"], STATE_HINT) from error
            raise

    def begin(self) -> tuple[Built, list[Input]]:
        """All that needs no file: what is wrong with the question is told here."""
        spec = self.spec
        torch.set_num_threads(spec["threads"])
        ref.strict_float32()
        check_size(spec, self.memory_limit_gib, self.say)
        self.say(f"building {spec['model']}")
        built = build_model(spec["model"], spec["seed"])
        trains = spec["mode"] == "train"
        built.targets = built.targets if trains else {}
        objective = Objective(spec, built) if trains else None
        inputs = resolve_inputs(spec, built)
        if objective:
            objective.join(inputs)
        self.trained = [name for name, p in built.module.named_parameters() if p.requires_grad]
        module = built.module.requires_grad_(False)
        self.shared = Shared(module)
        if spec["dynamic"]:
            check_range(spec, inputs)
        self.info = described_case(spec, built, inputs)
        self.runner = ref.Runner(self.info, spec["device"])
        self.say("preparing inputs")
        drawn, self.info["input_source"] = make_ring(
            spec,
            inputs,
            answers=Answers(module, self.info),
            further=how_many(spec),
        )
        self.ring, self.unseen = drawn[: spec["ring"]], drawn[spec["ring"] :]
        if spec["input_file"]:
            self.info["case"]["inputs_label"] = label_of(Path(spec["input_file"]))
        self._first_run(module)
        return built, inputs

    def _run(self) -> dict:
        spec = self.spec
        built, inputs = self.begin()
        module = built.module
        self.write("inputs", ref.by_entry(self.ring))
        self._weights(module, built, inputs)
        self.say("counting operations")
        self.work, self.info["activation_bytes"], calls = count_work(
            module, self.ring[0], self.info
        )
        if spec["mode"] == "train":
            self._training(module, self.trained)
        else:
            self._sets(module)
        if not self.info["graph"]["ok"]:
            write_calls(calls, self.folder)
        if spec["dynamic"]:
            load_weights(module, self.timed, "timed")
            DynamicCapture(spec, self.info, self.folder, self.runner, self.write_at, self.say).run(
                module, inputs
            )
        self.info["reference_note"] = "; ".join(self.notes)
        self.say("done")
        return self.info

    def _first_run(self, module: nn.Module) -> None:
        """Runs copies of the network, so that a wrong input shape is told before anything is
        written, and what its calls do."""
        try:
            with torch.no_grad():
                outputs = call(copy.deepcopy(module), self.ring[0], self.info)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            shapes = ", ".join(
                f"{i['name']} {i['dtype']} {'x'.join(map(str, i['shape']))}"
                for i in self.info["inputs"]
            )
            raise Problem(
                "usage",
                f"the model does not run on its inputs ({shapes}): {last_line(error, *source_files(module))}",
                advice(module, [i["name"] for i in self.info["inputs"] if i["keyword"]])
                or "check the inputs' names, types, shapes and ranges with --input",
            ) from error
        if not outputs:
            raise Problem(
                "unsupported",
                "the model returns no tensor",
                "return a tensor, or a tuple, dict or dataclass of tensors",
            )
        for name, value in outputs.items():
            if value.is_complex() or value.is_sparse or value.is_quantized:
                raise Problem(
                    "unsupported",
                    f"output '{name}' is {value.dtype}, {value.layout}",
                    "return dense real tensors",
                )
        self.info["outputs"] = described_outputs(outputs)
        try:
            effects = find_effects(
                module, self.ring, self.info, self.spec["mode"] == "train", self.shared
            )
        except Exception as error:  # it ran in eval mode above
            if is_out_of_memory(error):
                raise
            raise Problem(
                "unsupported",
                f"the network does not run in {self.spec['mode']} mode: {last_line(error, *source_files(module))}",
                "a larger --batch, if it normalises over the batch",
            ) from error
        self.info |= {
            "writes_inputs": effects.inputs,
            "writes_buffers": [
                *dict.fromkeys([*effects.changed.get("buffer", []), *effects.overwritten])
            ],
            "reads_values": effects.reads,
            "reads_extents": effects.extents,
            "unproven": effects.unproven,
            "keeps_state": effects.keeps_state,
        }
        self.info["input_source"] = "; ".join(
            filter(None, (self.info["input_source"], effects.input_sentence()))
        )
        self.state_sentence = effects.state_sentence()

    def _weights(self, module: nn.Module, built: Built, inputs: list[Input]) -> None:
        self.say("preparing weights")
        case = (self.ring, self.info["inputs"])
        rings = [ring for ring in (own_ring(self.spec, built, inputs), case) if ring]
        read = [] if self.networks is None or _is_own(self.info) else self.opened.files()
        self.weights = NetworkWeights(
            copy.deepcopy(module) if self.info["keeps_state"] else module,
            self.spec,
            self.info,
            rings,
            self.networks,
            read,
            self.folder,
        )
        size = sum(
            t.numel() * t.element_size()
            for t in module.state_dict().values()
            if isinstance(t, Tensor)
        )
        extra = 5 if self.spec["mode"] == "train" else 0  # of probes and gradients
        source, self.info["case"]["weights_label"] = self.weights.prepare(
            lambda sets: check_space(self.folder, (sets + extra) * size), self.say
        )
        self.shared.restore()
        load_weights(module, self.weights.tensors("timed"), "timed")
        self.info["weight_source"] = "; ".join(filter(None, (source, self.state_sentence)))
        self.info["weight_bytes"] = bytes_once(module)

    def _training(self, module: nn.Module, trained: list[str]) -> None:
        """Mode train has references of its own; its export becomes graph.json alone, since levels
        on PyTorch train the module."""
        self.info["export"] = {
            "ok": False,
            "what": "a case of mode train is not exported",
            "where": "",
        }
        TrainCapture(
            self.spec, self.info, self.ring, self.folder, self.write, self.say, self.work
        ).run(module, trained)
        self.say("exporting the training graph")
        self.info["graph"] = self._training_graph(module, trained)

    def _training_graph(self, module: nn.Module, trained: list[str]) -> dict:
        """graph.json of the network in train mode; `module` is used up."""
        program, outcome = export(module, self.ring[0], self.info, training=True)
        if program is None:
            return outcome
        with torch.no_grad():
            # auxiliary outputs come in train mode only
            names = list(call(module.train(), self.ring[0], self.info))
        return write_graph(
            program,
            module,
            "train",
            names,
            [i["name"] for i in self.info["inputs"]],
            self.folder,
            self.write,
            trained,
        )

    def _sets(self, module: nn.Module) -> None:
        """Per weight set: weights, reference and envelope; the export after `timed`, the faults
        after `generic1`."""
        self.timed = state_of(module)
        work = copy.deepcopy(module).to(self.spec["device"])
        for name in self.weights.names:
            load_weights(module, self.weights.tensors(name), name)
            load_weights(work, module.state_dict(), name)
            entries = self.ring if name == "timed" else self.ring[: ref.PROVEN_GENERIC]
            self.say(f"float32 runs of weight set {name}")
            runs, expected = self._reference(name, work, entries)
            if name == "timed":
                self._unseen(work)
                self._specials(work)
                self._export(module, runs, expected)
            elif name == "generic1" and not self.spec["light"]:
                self._faults(module, expected[0])

    def _reference(
        self, name: str, work: nn.Module, entries: list[dict[str, Tensor]]
    ) -> tuple[dict[str, list[dict[str, Tensor]]], list[dict[str, Tensor]]]:
        """Writes and returns a set's envelope and reference. Taps are large and tell only where
        levels part: one set and one entry have them."""
        runs, expected = self._run_all(work, entries)
        self.say(f"writing the reference of weight set {name}")
        self.e0 = ref.envelope_error(runs, expected)
        self.info["unproven"] = self.info["unproven"] or overflow_sentence(
            self.runner, work, entries, runs["default"], expected, name
        )
        if self.e0 > BROKEN and not self.info["unproven"]:
            wide = ref.double_copy(work) if self.info["reference"] == "float64" else None
            self.info["unproven"] = broken_sentence(
                self.runner, work, wide, entries, runs, expected, name, self.spec["seed"] + 1
            ) + (f"; {self.state_sentence}" if self.state_sentence else "")
        if self.spec["deep"] and name == "generic1":
            self.say("tapping every layer")
            tapped_runs, tapped = self._run_all(TapModule(copy.deepcopy(work)).eval(), entries[:1])
            runs = {
                variant: [tapped_runs[variant][0], *results[1:]]
                for variant, results in runs.items()
                if variant in tapped_runs
            }
            self._write_reference(name, [tapped[0], *expected[1:]], runs)
            self.info["outputs"] = described_outputs(runs["default"][0])
        else:
            self._write_reference(name, expected, runs)
        if flushed := flushed_answers(self.runner, work, entries, expected, self.e0):
            self.write(f"reference/{name}.flushed", flushed)
        return runs, expected

    def _run_all(
        self, view: nn.Module, entries: list[dict[str, Tensor]]
    ) -> tuple[dict[str, list[dict[str, Tensor]]], list[dict[str, Tensor]]]:
        """Envelope and reference; from the first module that does not run in float64 on, the
        reference is the envelope's centre."""
        runs = ref.envelope(
            self.runner, view, entries, self.spec["seed"] + 1, light=ref.few_runs(self.spec)
        )
        if self.info["reference"] == "float64":
            self.say("float64 reference")
            try:
                return runs, ref.reference_float64(self.runner, ref.double_copy(view), entries)
            except Exception as error:  # whatever the model's code raises in float64
                if is_out_of_memory(error):
                    raise
                self.info["reference"] = "float32_envelope"
                self.notes.append(
                    f"the model does not run in float64: {last_line(error, *source_files(view))}"
                )
        return runs, ref.mean_of(runs)

    def _write_reference(
        self, name: str, expected: list[dict[str, Tensor]], runs: dict[str, list[dict[str, Tensor]]]
    ) -> None:
        self.write(f"reference/{name}", ref.by_entry(expected, "f64/"))
        self.write(f"reference/{name}.envelope", ref.by_variant(runs))

    def _unseen(self, work: nn.Module) -> None:
        if self.info["unproven"]:
            return
        wide, seed = self.info["reference"] == "float64", self.spec["seed"]
        if tensors := unseen_entries(
            self.runner, work, wide, self.ring, self.unseen, self.e0, seed
        ):
            self.write("reference/unseen", tensors)

    def _specials(self, work: nn.Module) -> None:
        if not self.spec["light"] and not self.info["unproven"]:
            for name, tensors in special_values(self.runner, work, self.ring[0]).items():
                self.write(name, tensors)

    def _export(
        self,
        module: nn.Module,
        runs: dict[str, list[dict[str, Tensor]]],
        expected: list[dict[str, Tensor]],
    ) -> None:
        """Exports the eval-mode module on the CPU and proves the result on two inputs against the
        reference."""
        self.say("exporting the graph")
        if self.info["keeps_state"]:
            self.info["graph"] = self.info["export"] = {
                "ok": False,
                "what": self.info["unproven"],
                "where": "",
            }
            return
        program, self.info["export"] = export(module, self.ring[0], self.info)
        self.shared.restore()  # an export leaves tensors without values in tables
        self.info["graph"] = self.info["export"]
        if program is None:
            return
        runnable = program.module()
        names = [o["name"] for o in self.info["outputs"]]
        for i in range(2):
            with torch.no_grad():
                outputs = runnable(*[self.ring[i][d["name"]].clone() for d in self.info["inputs"]])
            got = dict(zip(names, outputs))
            if differs := ref.differs(got, expected[i], [run[i] for run in runs.values()], self.e0):
                self.info["graph"] = self.info["export"] = {
                    "ok": False,
                    "where": "",
                    "what": f"the exported graph computes something else than the model on input {i}: output {differs}",
                }
                return
        write_program(program, self.folder, with_inputs=False)
        self.info["graph"] = write_graph(
            program,
            module,
            "infer",
            names,
            [d["name"] for d in self.info["inputs"]],
            self.folder,
            self.write,
        )

    def _faults(self, module: nn.Module, expected: dict[str, Tensor]) -> None:
        self.say("planting faults")
        wide = self.info["reference"] == "float64"
        whole = copy.deepcopy(module).to(self.spec["device"])
        results, descriptions, unseen = ref.faulty_references(
            self.runner,
            whole.double() if wide else whole,
            self.ring[0],
            expected,
            self.work,
            wide,
            self.e0,
        )
        self.info["faults"], self.info["fault_sentences"] = list(results), descriptions
        self.info["unproven"] = self.info["unproven"] or unseen
        self.write("reference/faults", ref.by_variant({f: [named] for f, named in results.items()}))

    # --------------------------------------------------------------------------------------- files

    def write(self, name: str, tensors: dict[str, Tensor]) -> None:
        self.write_at(self.folder / name, tensors)

    def write_at(self, path: Path, tensors: dict[str, Tensor]) -> None:
        from safetensors.torch import save_file

        save_file({k: v.contiguous() for k, v in tensors.items()}, f"{path}.safetensors")
