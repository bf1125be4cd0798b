# SPDX-License-Identifier: Apache-2.0
"""Operators that a package or the user's own file registers when it is imported: found wherever an
artefact is read, in a process that has not imported it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from client import ROOT, Failed, Worker, prepare

sys.path[:0] = [str(ROOT / "src"), str(ROOT / "sdk" / "python")]

from specs import capture  # noqa: E402

NETWORKS = '''
import torch
import torchvision
from torch import nn

@torch.library.custom_op("of_a_user::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x

@twice.register_fake
def _(x):
    return torch.empty_like(x)

class Boxes(nn.Module):
    """(N, 4, 16, 16) -> (N, 4): what lies in four boxes of each map."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 4)
        self.register_buffer("boxes", torch.tensor([[0.0, 0, 0, 7, 7], [1, 2, 2, 9, 9]]))

    def forward(self, x):
        return self.fc(torchvision.ops.roi_align(x, self.boxes, 2).flatten(1))

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, x):
        return self.fc(twice(x))

def boxes():
    return Boxes().eval(), torch.rand(2, 4, 16, 16)

def own():
    return Own().eval(), torch.rand(2, 6)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("operators")
    (place / "networks.py").write_text(NETWORKS)
    return place


@pytest.fixture(scope="module")
def bundle(folder):
    """bundle(network) -> its folder, captured once."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = folder / f"bundle-{name}"
            spec = {"model": f"{folder / 'networks.py'}:{name}", "threads": 1}
            capture(spec, made[name], lambda _text: None)
        return made[name]

    return get


def fresh(code: str, *arguments: Path) -> str:
    """What Python says that has imported nothing before."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "sdk" / "python")},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(("network", "operator"), [("boxes", "torchvision"), ("own", "of_a_user")])
def test_an_exported_network_is_read_with_the_operators_of_its_own_code(network, operator, bundle):
    operators = fresh(
        "import sys; from pathlib import Path; from strata_sdk import preparing\n"
        "program = preparing.exported(Path(sys.argv[1]))\n"
        "print([str(node.target) for node in program.graph.nodes])",
        bundle(network),
    )
    assert operator in operators, operators


@pytest.mark.parametrize("ending", ["pt2", "pt"])
def test_a_file_is_read_with_the_operators_of_the_packages_that_files_may_need(ending, folder):
    file = folder / f"boxes.{ending}"
    sys.path.insert(0, str(folder))
    import networks

    module, example = networks.boxes()
    if ending == "pt2":
        torch.export.save(torch.export.export(module, (example,)), file)
    else:
        torch.jit.trace(module, example).save(str(file))
    said = fresh(
        "import sys, torch; from strata_sdk import models\n"
        "print(models.build_model(sys.argv[1]).module(torch.rand(2, 4, 16, 16)).shape)",
        file,
    )
    assert said == "torch.Size([2, 4])\n"


@pytest.mark.parametrize("level", ["torchscript", "aoti"])
def test_a_cpp_worker_without_the_package_is_unsupported_with_the_operators_name(
    level, bundle, tmp_path
):
    assert prepare(level, bundle("boxes"), tmp_path)["ok"]
    with (
        Worker(level, bundle("boxes"), tmp_path, threads=1) as worker,
        pytest.raises(Failed) as failed,
    ):
        worker.load()
        worker.ask("weights", weights="timed")
        worker.prove([0])
    assert failed.value.code == "unsupported" and "torchvision::roi_align" in str(failed.value)
