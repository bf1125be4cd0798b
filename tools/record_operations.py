#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/graph/recorded/operations.json: the ATen operations of torchvision's classification
models and the shipped ones, from their captured graphs, for `strata list models --level`.

.venv/bin/python tools/record_operations.py [--models resnet18,vgg16] [--modes infer,train] Some
minutes for all; what is recorded for this PyTorch is kept.

Models are built without values (the device `meta`), since operations depend on shapes alone: the
largest one has three gigabytes of weights.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from capture.export import export  # noqa: E402
from capture.graph import write_graph  # noqa: E402
from strata_sdk.models import Built, build_model, call, shipped_models, torchvision_names  # noqa: E402

RECORD = ROOT / "src/graph/recorded/operations.json"
BATCH = 2  # BatchNorm in train mode needs more than one value
MODES = ("infer", "train")

Models = dict[str, dict[str, list[str]]]  # model -> mode -> operations


def build_without_values(name: str) -> Built:
    try:
        with torch.device("meta"):
            return build_model(name)
    except NotImplementedError:  # RegNet computes its widths with tensors
        built = build_model(name)
        built.module.to("meta")
        return built


def operations_of(name: str, mode: str) -> list[str]:
    """Sorted names ("conv2d"; with their namespace unless that is aten). Raises RuntimeError when
    there is no graph."""
    built = build_without_values(name)
    with torch.device("meta"), torch.no_grad():
        entry = {"arg0": torch.empty([BATCH, *built.default_inputs[0]["shape"][1:]])}
        info = {"inputs": [{"name": "arg0", "keyword": False}], "outputs": [{"name": "output"}]}
        module = built.module.requires_grad_(False).train(mode == "train")
        names = list(call(module, dict(entry), info))
        program, answer = export(module, entry, info, training=mode == "train")
        with tempfile.TemporaryDirectory() as folder:
            if program is not None:
                answer = write_graph(
                    program, module, mode, names, ["arg0"], Path(folder), lambda name, tensors: None
                )
            if not answer["ok"]:
                raise RuntimeError(f"{name}, {mode}: {answer['what']} {answer['where']}")
            graph = json.loads((Path(folder) / "graph.json").read_text(encoding="utf-8"))
    return sorted({node["op"].rpartition(".")[0].removeprefix("aten.") for node in graph["nodes"]})


def models_of(record: dict) -> Models:
    return {
        name: {mode: alike[mode] for mode in MODES if mode in alike}
        for alike in record.get("graphs", [])
        for name in alike["models"]
    }


def text_of(versions: dict[str, str], models: Models) -> str:
    """Models of the same operations together, a line a group, so that a change shows as one."""
    alike: dict[str, dict] = {}
    for name, modes in sorted(models.items()):
        if modes:
            alike.setdefault(json.dumps(modes, sort_keys=True), {"models": [], **modes})[
                "models"
            ].append(name)
    groups = ",\n".join(f"  {json.dumps(group)}" for group in alike.values())
    head = ", ".join(
        f"{json.dumps(key)}: {json.dumps(version)}" for key, version in versions.items()
    )
    return f'{{{head},\n "graphs": [\n{groups}\n]}}\n'


def main() -> int:
    import torchvision

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="only these (default: all that are not recorded yet)")
    parser.add_argument("--modes", default=",".join(MODES))
    options = parser.parse_args()
    versions = {
        "torch": torch.__version__.partition("+")[0],
        "torchvision": torchvision.__version__.partition("+")[0],
    }
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    models = models_of(record) if {k: record.get(k) for k in versions} == versions else {}
    failed = 0
    for mode in options.modes.split(","):
        for name in (
            options.models.split(",")
            if options.models
            else [*shipped_models(), *torchvision_names()]
        ):
            known = models.setdefault(name, {})
            if mode in known and not options.models:
                continue
            try:
                known[mode] = operations_of(name, mode)
                print(f"{name} {mode}: {len(known[mode])} operations", flush=True)
            except (RuntimeError, ValueError) as error:
                print(error, file=sys.stderr)
                failed += 1
            RECORD.write_text(text_of(versions, models), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
