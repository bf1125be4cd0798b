# SPDX-License-Identifier: Apache-2.0
"""Saves the bundle's network as <cache>/script.pt: traced and not frozen for inference, scripted for training. The worker puts weights in by name."""
import json
import re
from pathlib import Path

import torch
from strata_sdk import UnavailableError, UnsupportedError, maths, models, preparing
from torch import nn
from torch.nn.modules.dropout import _DropoutNd


def prepare(bundle_dir: Path, cache: Path) -> None:
    bundle = models.read_bundle(bundle_dir)
    device = bundle["case"]["device"]
    if device == "cuda" and not torch.cuda.is_available():
        raise UnavailableError("PyTorch sees no CUDA device", "trace on the machine that will run it: a trace may hold its device")
    if bundle["model"]["kind"] == "onnx":
        raise UnsupportedError("an ONNX file holds no PyTorch module", "onnxruntime and openvino run it")
    step = preparing.Steps()
    step("building the network")
    if bundle["case"]["mode"] == "train":
        module = models.build_model(bundle["case"]["model"], int(bundle["case"].get("seed") or 0)).module.train().to(device)
        step("scripting it")
        script, dropouts = scripted(module)
    else:
        module, names = models.build_module(bundle_dir)
        example = models.example_inputs(bundle_dir)
        step("tracing it")
        view = models.graph_module(maths.in_mode(module.to(device), bundle["case"], bundle["outputs"]), bundle)
        script, warned = preparing.traced(view, tuple(example[name].to(device) for name in names))
        dropouts = []
        if warned and not bundle["export"]["ok"]:  # either alone may be harmless (a shape that is checked, an operation that only torch.export lacks)
            raise UnsupportedError(f"the network's path depends on its input, a trace would hold one of them: {warned}", "levels that run the Python module can run it")
    step("saving script.pt")
    part = cache / "script.pt.part"
    script.save(str(part), _extra_files={"dropouts.json": json.dumps(dropouts), "maths": bundle["case"]["maths"]})
    part.replace(cache / "script.pt")


def scripted(module: nn.Module) -> tuple[torch.jit.ScriptModule, list[list[str]]]:
    """The scripted module, in which every dropout's probability is an attribute, and where these are: [module path, attribute]. UnsupportedError with the compiler's reason."""
    _DropoutNd.__constants__ = ["inplace"]  # p is a constant by default, written into the code, where nothing can set it to 0
    try:
        script = torch.jit.script(module)
    except Exception as error:
        raise UnsupportedError(f"torch.jit.script cannot compile the network: {' '.join(str(error).split())[:400]}", "levels that run the Python module can train it") from error
    for node in (node for part in script.modules() for node in part.graph.findAllNodes("prim::CallFunction")):
        called, *arguments = node.inputs()
        if "dropout" in str(called.type()) and len(arguments) > 1 and arguments[1].toIValue():  # None: not a constant
            place = re.search(r'File "(.*?)", line (\d+)', node.sourceRange())
            raise UnsupportedError(f"dropout is called with a probability that is written into the code, so that nothing can switch it off: {':'.join(place.groups()) if place else called.type()}", "use torch.nn.Dropout")
    places = [[path, "p"] for path, part in module.named_modules() if isinstance(part, _DropoutNd) or type(part).__name__ == "StochasticDepth"]
    return script, places + [[path, "dropout"] for path, part in module.named_modules() if isinstance(part, nn.MultiheadAttention)]


if __name__ == "__main__":
    preparing.main(prepare)
