# SPDX-License-Identifier: Apache-2.0
"""Traces the bundle's network and saves it, not frozen, as <cache>/script.pt. The worker puts a weight set in by name and freezes."""
import warnings
from pathlib import Path

import torch
from strata_sdk import UnavailableError, UnsupportedError, models, preparing


def prepare(bundle_dir: Path, cache: Path) -> None:
    bundle = models.read_bundle(bundle_dir)
    device = bundle["case"]["device"]
    if device == "cuda" and not torch.cuda.is_available():
        raise UnavailableError("PyTorch sees no CUDA device", "trace on the machine that will run it: a trace may hold its device")
    if bundle["model"]["kind"] == "onnx":
        raise UnsupportedError("an ONNX file holds no PyTorch module", "onnxruntime and openvino run it")
    step = preparing.Steps()
    step("building the network")
    module, names = models.build_module(bundle_dir)
    view = models.graph_module(module, bundle).to(device)
    example = models.example_inputs(bundle_dir)
    step("tracing it")
    script, warned = trace(view, tuple(example[name].to(device) for name in names))
    if warned and not bundle["export"]["ok"]:  # either alone may be harmless (a shape that is checked, an operation that only torch.export lacks)
        raise UnsupportedError(f"the network's path depends on its input, a trace would hold one of them: {warned}", "levels that run the Python module can run it")
    step("saving script.pt")
    part = cache / "script.pt.part"
    script.save(str(part))
    part.replace(cache / "script.pt")


def trace(view: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.jit.ScriptModule, str]:
    """The traced module, and the first place where the tracer saw a value turn into Python's ("" if nowhere)."""
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        try:
            script = torch.jit.trace(view, inputs, check_trace=False)  # the proof compares with float64; the tracer's own check only runs it again
        except Exception as error:
            raise UnsupportedError(f"torch.jit.trace cannot trace the network: {' '.join(str(error).split())[:300]}", "levels that run the Python module can run it") from error
    places = [f"{w.filename}:{w.lineno}" for w in caught if issubclass(w.category, torch.jit.TracerWarning)]
    return script, places[0] if places else ""


if __name__ == "__main__":
    preparing.main(prepare)
