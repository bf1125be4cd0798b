# SPDX-License-Identifier: Apache-2.0
"""What a Python `prepare` script shares with others: its command line, the one JSON line it answers with, and a network's exported form. Needs torch only where used."""
from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UnavailableError, UnsupportedError, describe, last_line

if TYPE_CHECKING:
    import torch


def main(prepare: Callable[[Path, Path], None]) -> None:
    """Calls prepare(bundle, cache) with the folders of --bundle and --cache; answers as docs/protocol.md says and exits with 0 or 1."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # exporters print
    parser = argparse.ArgumentParser(description="makes a level's artefact from a bundle")
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    options = parser.parse_args()
    answer: dict = {"ok": True}
    try:
        options.cache.mkdir(parents=True, exist_ok=True)
        prepare(options.bundle.resolve(), options.cache.resolve())
    except ImportError as error:
        traceback.print_exc()
        answer = {"ok": False, **describe(UnavailableError(last_line(error), f"install the missing package for {sys.executable}"))}
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        answer = {"ok": False, **describe(error)}
    stream.write(json.dumps(answer) + "\n")
    stream.flush()
    sys.stderr.flush()
    os._exit(0 if answer["ok"] else 1)


class Steps:
    """Progress on stderr: what is done now, and what the step before took."""

    def __init__(self) -> None:
        self.begin = time.monotonic()

    def __call__(self, what: str) -> None:
        print(f"{time.monotonic() - self.begin:6.1f} s  {what}", file=sys.stderr, flush=True)


def exported(bundle_dir: Path) -> torch.export.ExportedProgram:
    """The bundle's network as the capture exported it: positional inputs, a flat tuple as its result, the `timed` weights. A deep case is exported here, with
    its taps. UnsupportedError with the place in the model's source when it does not export."""
    import torch

    from . import models

    bundle = models.read_bundle(bundle_dir)
    if not bundle["export"]["ok"]:
        raise UnsupportedError(f"the network does not export: {bundle['export']['what']} ({bundle['export']['where']})", "only levels that run the Python module can run it")
    if not bundle["case"].get("deep"):
        return torch.export.load(bundle_dir / "model.pt2")
    module, names = models.build_module(bundle_dir)
    example = models.example_inputs(bundle_dir)
    with torch.no_grad():
        return torch.export.export(models.graph_module(module, bundle), tuple(example[name] for name in names))


def weight_sets(bundle_dir: Path) -> list[str]:
    """The names of the bundle's weight sets, `timed` and generic ones."""
    return sorted(path.stem for path in (bundle_dir / "weights").glob("*.safetensors"))


def weights(bundle_dir: Path, weight_set: str) -> dict[str, torch.Tensor]:
    """A weight set of the bundle by PyTorch names."""
    from safetensors.torch import load_file

    return load_file(str(bundle_dir / "weights" / f"{weight_set}.safetensors"))


def set_weights(program: torch.export.ExportedProgram, tensors: dict[str, torch.Tensor]) -> None:
    """Writes a weight set into an exported program, in place."""
    import torch

    with torch.no_grad():
        for name, value in program.state_dict.items():
            value.copy_(tensors[name])
