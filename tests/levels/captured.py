# SPDX-License-Identifier: Apache-2.0
"""Bundles of small networks, captured in this process: the graph, weights, one input and labels,
without the references of a comparison; and captures that are refused."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from client import PROGRAM, ROOT
from safetensors.torch import save_file
from torch import Tensor, nn

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from specs import capture  # noqa: E402

from capture.errors import Problem  # noqa: E402
from capture.export import export  # noqa: E402
from capture.graph import write_graph  # noqa: E402
from strata_sdk.models import call  # noqa: E402

TRAINING_GRAPH = Path(
    os.environ.get("STRATA_TRAINING_GRAPH", PROGRAM.with_name("strata_training_graph"))
)


def described(tensors: dict[str, Tensor], **more) -> list[dict]:
    return [
        {"name": name, "dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
        | more
        for name, value in tensors.items()
    ]


def captured(
    module: nn.Module,
    inputs: dict[str, Tensor],
    folder: Path,
    labels: Tensor | None = None,
    loss: str = "cross_entropy",
    gives_loss: bool = False,
) -> Path:
    """A bundle in `folder`, of mode train where there are labels, or the module gives its loss.
    `inputs`: by name, in the order in which the module takes them."""
    trains = labels is not None or gives_loss
    trained = [name for name, p in module.named_parameters() if p.requires_grad]
    module = copy.deepcopy(module).requires_grad_(False).train(trains)
    info = {"inputs": described(inputs, keyword=False)}
    outputs = call(
        copy.deepcopy(module), {name: value.clone() for name, value in inputs.items()}, info
    )
    info |= {
        "bundle": 2,
        "id": folder.name,
        "model": {"name": folder.name},
        "outputs": described(outputs),
        "parameters": sum(p.numel() for p in module.parameters()),
        "case": {
            "model": folder.name,
            "mode": "train" if trains else "infer",
            "precision": "fp32",
            "device": "cpu",
            "threads": 2,
            "loss": loss,
        },
    }
    (folder / "weights").mkdir(parents=True)

    def write(name, tensors):
        return save_file(
            {k: v.contiguous().clone() for k, v in tensors.items()}, folder / f"{name}.safetensors"
        )

    write("weights/timed", module.state_dict())
    write("inputs", {f"0/{name}": value for name, value in inputs.items()})
    if labels is not None:
        write("labels", {"0/labels": labels})
    program, answer = export(module, inputs, info, training=trains)
    assert program is not None, answer
    info["graph"] = answer = write_graph(
        program, module, info["case"]["mode"], list(outputs), list(inputs), folder, write, trained
    )
    assert answer["ok"], answer
    (folder / "bundle.json").write_text(json.dumps(info))
    return folder


def differentiated(bundle: Path, loss: str, folder: Path) -> Path:
    """A folder with the training graph in place of the network's."""
    folder.mkdir()
    for one in bundle.iterdir():
        if one.name != "graph.json":
            (folder / one.name).symlink_to(one)
    done = subprocess.run(
        [str(TRAINING_GRAPH), str(bundle), loss, str(folder / "graph.json")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return folder


def refused(spec: dict, tmp_path: Path) -> Problem:
    """The reason why `capture` refuses a spec, of which it leaves nothing in tmp_path/out."""
    out = tmp_path / "out" / "bundle"
    with pytest.raises(Problem) as caught:
        capture(spec, out, lambda _text: None)
    assert not out.exists() and not list(out.parent.glob(".*")), "something half-made is left"
    return caught.value
