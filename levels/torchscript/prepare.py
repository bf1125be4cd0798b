# SPDX-License-Identifier: Apache-2.0
"""Saves the bundle's network as <cache>/script.pt: traced and not frozen for inference, scripted
for training. The worker puts weights in by name."""

import json
from pathlib import Path

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from strata_sdk import UnavailableError, UnsupportedError, losses, models, precision, preparing


def prepare(bundle_dir: Path, cache: Path) -> None:
    bundle = models.read_bundle(bundle_dir)
    device = bundle["case"]["device"]
    if device == "cuda" and not torch.cuda.is_available():
        raise UnavailableError(
            "PyTorch sees no CUDA device",
            "trace on the machine that will run it: a trace may hold its device",
        )
    if bundle["model"]["kind"] == "onnx":
        raise UnsupportedError(
            "an ONNX file holds no PyTorch module", "onnxruntime and openvino run it"
        )
    # a trace holds whether cuDNN and cuBLAS may round to TF32, as PyTorch's default lets cuDNN
    precision.settle(bundle["case"]["precision"])
    step = preparing.Steps()
    step("building the network")
    if bundle["case"]["mode"] == "train":
        if losses.is_output(bundle) and bundle["case"]["loss"] != losses.OWN:
            raise UnsupportedError(
                "torch.jit.script takes the module, and not the module with its loss",
                "other levels train it; a forward that returns its loss is scripted: --loss output",
            )
        module = (
            models.build_model(bundle["case"]["model"], int(bundle["case"].get("seed") or 0))
            .module.train()
            .to(device)
        )
        step("scripting it")
        script, dropouts = scripted(module)
    else:
        module, names = models.build_module(bundle_dir)
        example = models.example_inputs(bundle_dir)
        step("tracing it")
        view = models.graph_module(
            precision.in_mode(module.to(device), bundle["case"], bundle["outputs"]), bundle
        )
        script = preparing.traced(view, tuple(example[name].to(device) for name in names), bundle)
        dropouts = []
    step("saving script.pt")
    part = cache / "script.pt.part"
    script.save(
        str(part),
        _extra_files={
            "dropouts.json": json.dumps(dropouts),
            "precision": bundle["case"]["precision"],
        },
    )
    part.replace(cache / "script.pt")


def scripted(module: nn.Module) -> tuple[torch.jit.ScriptModule, list[list[str]]]:
    """The scripted module, in which every dropout's probability is an attribute, and where these
    are: [module path, attribute]. UnsupportedError with the compiler's reason."""
    # p is a constant by default, written into the code, where nothing can set it to 0
    _DropoutNd.__constants__ = ["inplace"]
    try:
        script = torch.jit.script(module)
    except Exception as error:
        raise UnsupportedError(
            f"torch.jit.script cannot compile the network: {' '.join(str(error).split())[:400]}",
            "levels that run the Python module can train it",
        ) from error
    places = switchable_calls(script)
    places += [
        [path, "p"]
        for path, part in module.named_modules()
        if isinstance(part, _DropoutNd) or type(part).__name__ == "StochasticDepth"
    ]
    return script, places + [
        [path, "dropout"]
        for path, part in module.named_modules()
        if isinstance(part, nn.MultiheadAttention)
    ]


def switchable_calls(script: torch.jit.ScriptModule) -> list[list[str]]:
    """Moves the probability of every dropout that a method calls with a number, `F.dropout(x, 0.3,
    ...)`, from the code into an attribute of the module, where it can be changed. [module path,
    attribute] of each."""
    places: list[list[str]] = []
    done: dict[str, list[tuple[str, float]]] = {}  # by the code that instances of one class share
    for path, part in script.named_modules():
        if not hasattr(part, "forward"):
            continue
        name = part._c._type().qualified_name()
        if name not in done:
            done[name] = [
                moved(node, part, f"called_dropout_{number}")
                for number, node in enumerate(calls_with_numbers(part))
            ]
        for attribute, p in done[name]:
            part._c._register_attribute(attribute, torch._C.FloatType.get(), p)
        places += [[path, attribute] for attribute, _ in done[name]]
    return places


def calls_with_numbers(part: torch.jit.ScriptModule) -> list[torch._C.Node]:
    """Dropouts in a module's own code whose probability is a constant other than 0."""
    nodes = []
    for node in part.graph.findAllNodes("prim::CallFunction"):
        called, *arguments = node.inputs()
        # None: not a constant
        if "dropout" in str(called.type()) and len(arguments) > 1 and arguments[1].toIValue():
            nodes.append(node)
    return nodes


def moved(node: torch._C.Node, part: torch.jit.ScriptModule, attribute: str) -> tuple[str, float]:
    """The call reads its probability from this attribute of `part` from now on; the attribute and
    the probability."""
    graph, (_, _, p, *_) = part.graph, node.inputs()
    value = float(p.toIValue())
    read = graph.create("prim::GetAttr", [next(iter(graph.inputs()))], 1)
    read.s_("name", attribute)
    read.output().setType(torch._C.FloatType.get())
    read.insertBefore(node)
    node.replaceInput(2, read.output())
    return attribute, value


if __name__ == "__main__":
    preparing.main(prepare)
