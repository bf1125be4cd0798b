# SPDX-License-Identifier: Apache-2.0
"""A bundle in another precision: everything of the strict float32 bundle, and beside it what
legitimate runs of eager in that mode give (docs/bundle.md)."""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from capture import reference as ref
from capture.errors import Problem, is_out_of_memory
from capture.train import StepsInMode
from strata_sdk import precision
from strata_sdk.models import build_case, last_line, load_weights, read_bundle, source_files


def copy_strict(strict: Path, spec: dict, folder: Path) -> dict:
    """Links the files of a float32 bundle into `folder`; returns its bundle.json, which is not
    linked. Problem when it is of another case."""
    info = read_bundle(strict)
    expected = spec | {"precision": "fp32"}
    if info["spec"] != expected:
        other = next(k for k in expected if info["spec"].get(k) != expected[k])
        raise Problem(
            "usage",
            f"{strict} holds another case: its {other} is {info['spec'].get(other)!r}, not {expected[other]!r}",
            "give the bundle of the same case in fp32",
        )
    references = {
        path for folder in strict.rglob("reference") for path in folder.glob("*")
    }  # which may be links to where they lie apart
    for path in sorted({*strict.rglob("*"), *references}):
        target = folder / path.relative_to(strict)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        elif path.name not in ("bundle.json", "manifest.json"):
            try:
                os.link(path, target)
            except OSError:  # another file system, or one without links
                shutil.copyfile(path, target)
    return info


def add_mode(
    spec: dict,
    info: dict,
    folder: Path,
    write: Callable[[str, dict[str, Tensor]], None],
    say: Callable[[str], None],
) -> dict:
    """Adds eager's runs in the mode to a float32 bundle in `folder`,
    `reference/<set>.<mode>.envelope` or in mode train `reference/train.<mode>.json`, and returns
    the bundle.json of the mode."""
    from safetensors.torch import load_file

    torch.set_num_threads(spec["threads"])
    info = copy.deepcopy(info)
    for part in ("spec", "case"):
        info[part]["precision"] = spec["precision"]
    module = build_case(info).requires_grad_(False).to(spec["device"])
    inputs = load_file(str(folder / "inputs.safetensors"))
    ring = [
        {i["name"]: inputs[f"{n}/{i['name']}"] for i in info["inputs"]} for n in range(info["ring"])
    ]
    runner = ref.Runner(info, spec["device"])
    steps = StepsInMode(info, folder) if spec["mode"] == "train" else None
    precision.settle(spec["precision"])
    try:
        for name in sorted(path.stem for path in (folder / "weights").glob("*.safetensors")):
            say(f"eager in {spec['precision']}, weight set {name}")
            load_weights(module, load_file(str(folder / "weights" / f"{name}.safetensors")), name)
            with _told(module, spec["precision"]):
                view = precision.in_mode(copy.deepcopy(module), info["case"], info["outputs"])
                if steps:
                    steps.add(name, view, ring[0])
                    continue
                runs = ref.envelope(
                    runner,
                    view,
                    ring if name == "timed" else ring[: ref.PROVEN_GENERIC],
                    int(info["case"]["seed"]) + 1,
                    2 * precision.UNIT[spec["precision"]],
                    ref.few_runs(spec),
                )
            write(f"reference/{name}.{spec['precision']}.envelope", ref.by_variant(runs))
    finally:
        ref.strict_float32()
    if steps:
        steps.write()
    return info


@contextlib.contextmanager
def _told(module: nn.Module, mode: str) -> Iterator[None]:
    """What eager raises in the mode, as a Problem."""
    try:
        yield
    except Problem:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise Problem(
            "unsupported",
            f"eager does not run the network in {mode}: {last_line(error, *source_files(module))}",
            "let the module follow the types of its inputs and parameters, or use another precision",
        ) from error
