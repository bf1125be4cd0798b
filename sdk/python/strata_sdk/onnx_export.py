# SPDX-License-Identifier: Apache-2.0
"""A bundle's network as <weight set>.onnx, for the runtimes that read ONNX: exported once, then
each set's values replace the initialisers before the graph is optimised.

The order matters: optimising folds BatchNorm into the convolutions, after which weights have no
names of their own. Needs torch, onnx and onnxscript.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

from . import models, preparing
from .errors import UnsupportedError


def write_all(bundle_dir: Path, folder: Path, step: preparing.Steps) -> Iterator[tuple[str, Path]]:
    """Writes one file a weight set into `folder` and yields (set, file) after each. Beyond 2 GB the
    weights lie beside it, in <file>.data."""
    import onnxscript  # noqa: F401  torch.onnx needs it and says so only in the middle of an export

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=torch.onnx.errors.OnnxExporterWarning)
    bundle = models.read_bundle(bundle_dir)
    if bundle["model"]["kind"] == "onnx":
        yield from _write_file(bundle, bundle_dir, folder, step)
        return
    step("reading the exported network")
    program = preparing.exported(bundle_dir)
    step("translating it to ONNX")
    raw = translate(program, bundle)
    swappable = weights_in_use(program) <= set(raw.model.graph.initializers)
    for weight_set in preparing.weight_sets(bundle_dir):
        step(f"writing {weight_set}.onnx")
        tensors = preparing.weights(bundle_dir, weight_set)
        if not swappable:  # the exporter folded a weight into something else
            preparing.set_weights(program, tensors)
            raw = translate(program, bundle)
        model = torch.onnx.ONNXProgram(raw.model.clone(), program)
        model.apply_weights(
            {
                name: value
                for name, value in tensors.items()
                if name in model.model.graph.initializers
            }
        )
        model.optimize()
        path = folder / f"{weight_set}.onnx"
        model.save(str(path))
        yield weight_set, path


def _write_file(
    bundle: dict, bundle_dir: Path, folder: Path, step: preparing.Steps
) -> Iterator[tuple[str, Path]]:
    """The person's own ONNX file with each weight set in it; nothing else is changed."""
    import numpy as np
    import onnx

    network = models.build_model(bundle["case"]["model"]).module
    for weight_set in preparing.weight_sets(bundle_dir):
        step(f"writing {weight_set}.onnx")
        models.load_weights(network, preparing.weights(bundle_dir, weight_set), weight_set)
        path = folder / f"{weight_set}.onnx"
        model = network.with_weights(np.float32)
        onnx.save(
            model,
            str(path),
            save_as_external_data=model.ByteSize() > 2**31 - 1,
            location=f"{path.name}.data",
        )
        yield weight_set, path


def convert_all(
    bundle_dir: Path, cache: Path, python: str, script: Path, ending: str, *further: str
) -> None:
    """Each weight set as <weight set>.<ending>, made from ONNX by `python script ONNX TARGET
    further...`."""
    step = preparing.Steps()
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for weight_set, path in write_all(bundle_dir, Path(scratch), step):
            step(f"converting {weight_set}.onnx")
            target = cache / f"{weight_set}.{ending}"
            preparing.delegate([python, str(script), str(path), str(target), *further])
            path.unlink()


def translate(program: torch.export.ExportedProgram, bundle: dict) -> torch.onnx.ONNXProgram:
    """The program in ONNX, not yet optimised. UnsupportedError names the operation that ONNX
    lacks."""
    from torch.onnx._internal.exporter._errors import ConversionError

    try:
        return torch.onnx.export(
            program,
            dynamo=True,
            optimize=False,
            verbose=False,
            input_names=[i["name"] for i in bundle["inputs"]],
            output_names=[o["name"] for o in bundle["outputs"]],
        )
    except ConversionError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise UnsupportedError(
            f"the ONNX exporter of torch {torch.__version__} cannot translate the network: {' '.join(str(cause).split())[:300]}",
            "a newer PyTorch may translate it",
        ) from error


def weights_in_use(program: torch.export.ExportedProgram) -> set[str]:
    """The parameters and persistent buffers that an operation of the graph reads."""
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    used = {
        names[node.name]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in names and node.users
    }
    return used - set(signature.non_persistent_buffers)
