#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes operations.json: the ATen operations of torchvision's classification models and the shipped ones, from their captured graphs, for `strata list models --level`.

PYTHONPATH=src:sdk/python python src/graph/recorded/record.py [--models resnet18,vgg16] [--modes infer,train]     (an hour for all; what is recorded for this PyTorch is kept)
"""
from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

from capture.export import export
from capture.graph import write_graph
from strata_sdk.models import Built, build_model, call, shipped_models, torchvision_names

RECORD = Path(__file__).resolve().parent / "operations.json"
BATCH = 2  # BatchNorm in train mode needs more than one value


def operations_of(built: Built, mode: str) -> list[str]:
    """Sorted names ("conv2d"; with their namespace unless that is aten). Raises RuntimeError when there is no graph."""
    shape = [BATCH, *built.default_inputs[0]["shape"][1:]]
    entry = {"arg0": torch.randn(shape, generator=torch.Generator().manual_seed(0))}
    info = {"inputs": [{"name": "arg0", "keyword": False}], "outputs": [{"name": "output"}]}
    module = built.module.requires_grad_(False).train(mode == "train")
    with torch.no_grad():
        names = list(call(module, {k: v.clone() for k, v in entry.items()}, info))
    program, said = export(module, entry, info, training=mode == "train")
    with tempfile.TemporaryDirectory() as folder:
        if program is not None:
            said = write_graph(program, module, mode, names, ["arg0"], Path(folder), lambda name, tensors: None)
        if not said["ok"]:
            raise RuntimeError(f"{built.name}, {mode}: {said['what']} {said['where']}")
        graph = json.loads((Path(folder) / "graph.json").read_text(encoding="utf-8"))
    return sorted({node["op"].rpartition(".")[0].removeprefix("aten.") for node in graph["nodes"]})


def main() -> int:
    import torchvision

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", help="only these (default: all that are not recorded yet)")
    parser.add_argument("--modes", default="infer,train")
    options = parser.parse_args()
    versions = {"torch": torch.__version__.partition("+")[0], "torchvision": torchvision.__version__.partition("+")[0]}
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if {k: record.get(k) for k in versions} != versions:
        record = versions | {"models": {}}
    failed = 0
    for mode in options.modes.split(","):
        for name in (options.models.split(",") if options.models else [*shipped_models(), *torchvision_names()]):
            known = record["models"].setdefault(name, {})
            if mode in known and not options.models:
                continue
            try:
                known[mode] = operations_of(build_model(name), mode)
                print(f"{name} {mode}: {len(known[mode])} operations", flush=True)
            except (RuntimeError, ValueError) as error:
                print(error, file=sys.stderr)
                failed += 1
            record["models"] = {k: v for k, v in sorted(record["models"].items()) if v}
            RECORD.write_text(_text(record), encoding="utf-8")
    return 1 if failed else 0


def _text(record: dict) -> str:
    """One model a line, so that a change shows as one."""
    models = ",\n".join(f"  {json.dumps(name)}: {json.dumps(modes)}" for name, modes in record["models"].items())
    return f'{{"torch": "{record["torch"]}", "torchvision": "{record["torchvision"]}",\n "models": {{\n{models}\n}}}}\n'


if __name__ == "__main__":
    sys.exit(main())
