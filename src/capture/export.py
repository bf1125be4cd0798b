# SPDX-License-Identifier: Apache-2.0
"""Exports the network with torch.export and says where it fails."""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from pathlib import Path

import torch
from torch import Tensor, nn

from capture.faults import shared_copy
from strata_sdk.models import graph_module, source_files
from strata_sdk.preparing import save_exported

_USER_LINE = re.compile(r'File "([^"]+)", line (\d+)')


def export(
    module: nn.Module,
    entry: dict[str, Tensor],
    bundle: dict,
    dynamic_shapes: tuple | None = None,
    training: bool = False,
) -> tuple[torch.export.ExportedProgram | None, dict]:
    """The exported program (positional tensors in, flat tuple out, PyTorch's names) and
    bundle.json's `export`. `dynamic_shapes` as torch.export takes it; `training`: in train mode. A
    copy of `module` is exported: what a call assigns to attributes is no tensor while it is."""
    if why := getattr(module, "cannot_export", ""):
        return None, {"ok": False, "what": why, "where": ""}
    args = tuple(entry[i["name"]].clone() for i in bundle["inputs"])
    first: Exception | None = None
    for strict in (False, True):
        try:
            with torch.no_grad():
                program = torch.export.export(
                    graph_module(shared_copy(module), bundle).train(training),
                    args,
                    strict=strict,
                    dynamic_shapes=dynamic_shapes,
                )
            return program, {"ok": True, "what": "", "where": ""}
        except Exception as error:  # torch.export raises errors of many kinds, user code more
            traceback.print_exc(file=sys.stderr)
            first = first or error
        finally:
            torch._dynamo.reset()
    assert first is not None
    return None, {"ok": False, "what": _reason(first), "where": where_of(first, module)}


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # the second line says which value is fixed
    shown = lines[:2] if lines and lines[0].startswith("Constraints violated") else lines[:1]
    return f"torch.export: {type(error).__name__}: {' '.join(shown) or 'no message'}"[:400]


def where_of(error: BaseException, module: nn.Module) -> str:
    """file:line of the model's own code where an export failed; empty when no frame of it is
    known."""
    own = source_files(module)
    torch_folder = f"{Path(torch.__file__).parent}/"  # not torchvision
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    frames += [(f.filename, f.lineno) for f in getattr(error, "real_stack", None) or []]
    frames += [(name, int(line)) for name, line in _USER_LINE.findall(str(error))]
    for chosen in (
        [f for f in frames if f[0] in own],
        [
            f
            for f in frames
            if not f[0].startswith(torch_folder)
            and "strata_sdk" not in f[0]
            and "/capture/" not in f[0]
        ],
    ):
        if chosen:
            return f"{chosen[-1][0]}:{chosen[-1][1]}"
    return ""


def write_program(program: torch.export.ExportedProgram, folder: Path, with_inputs: bool) -> None:
    """model.pt2, as save_exported() takes `with_inputs`, and the printed graph."""
    save_exported(program, folder / "model.pt2", with_inputs)
    (folder / "graph.txt").write_text(
        f"{program.graph_module.print_readable(print_output=False)}\n# constants: {_constants_digest(program)}\n",
        encoding="utf-8",
    )


def _constants_digest(program: torch.export.ExportedProgram) -> str:
    """One SHA-256 of the tensors that no weight set replaces (constants, non-persistent buffers):
    with the printed graph it says what a compiled artefact holds."""
    digest = hashlib.sha256()
    for name, value in sorted(program.constants.items()):
        if isinstance(value, Tensor):
            digest.update(
                f"{name} {value.dtype} {tuple(value.shape)}".encode()
                + value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            )
    return digest.hexdigest()
