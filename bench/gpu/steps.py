# SPDX-License-Identifier: Apache-2.0
"""What the pack of bench/gpu/make does on a machine with a GPU, cheapest and most telling first."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

TITLE = "strata on a GPU"
# exit statuses of strata
COMPARED = {
    0: "done",
    1: "done, but not every level was measured",
    3: "done, but a level cannot run here",
}
# those that start in seconds; the others compile for a minute or more
QUICK = "eager,torchscript,libtorch,cudnn,static"
COMPILED = "eager,compile,aoti,static"


@dataclass
class Command:
    """One program with its time limit. `states`: what an exit status other than 0 means; `page`:
    its output belongs on the page, as Markdown."""

    name: str
    words: list
    limit_s: float
    environment: dict[str, str] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=lambda: {0: "done"})
    page: bool = False


@dataclass
class Step:
    number: int
    title: str
    commands: list[Command]


def steps(
    pack: Path, strata: Path, programs: Path, python: str, device: str, rehearse: bool
) -> list[Step]:
    """`programs`: the folder of the levels' and the checks' programs; `rehearse`: at most batch 8
    and 64 pixels, short measurements."""
    here = pack / "tree" / "bench" / "gpu"
    cuda = device == "cuda"
    test_states = {0: "done", 5: "skipped", 77: "skipped"}

    def compare(
        name: str, words: str, limit_s: float, budget_s: int = 6, restarts: int = 3
    ) -> Command:
        words += f" --device {device} --threads {threads} --restarts {1 if rehearse else restarts}"
        words += f" --budget {1 if rehearse else budget_s}s"
        page = pack / "work" / (re.sub(r"[^a-z0-9]+", "-", name) + ".html")
        return Command(
            name,
            [strata, "compare", *words.split(), "--format", "md", "--output", page],
            4 * limit_s if rehearse else limit_s,
            states=COMPARED,
            page=True,
        )

    def tests(name: str, words: list, limit_s: float, before: list | None = None) -> Command:
        pytest = [python, "-m", "pytest", "-q", "-rs", "--tb=short", "-p", "no:cacheprovider"]
        pytest += ["-p", "xdist.plugin", "-n", "6", "--rootdir"]
        tests_of = pack / "tree" / "tests"
        return Command(
            name,
            [*(before or []), *pytest, tests_of, "-c", tests_of / "pytest.ini"]
            + [tests_of / "levels" / word if word.endswith(".py") else word for word in words],
            limit_s,
            {
                "STRATA_TEST_FRESH": "1",
                "PYTHONPATH": str(pack / "test-packages"),
                # of a target that has a pytest of its own
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
            test_states,
        )

    sanitizer = ["compute-sanitizer", "--tool", "memcheck", "--error-exitcode", "9"]
    threads = 8 if (os.cpu_count() or 1) >= 16 else 2
    quick, compiled = (QUICK, COMPILED) if cuda else ("eager,torchscript,libtorch", "eager,compile")
    mnist = f"mnist_convnet --batch {8 if rehearse else 64}"
    small = f"resnet50 --batch {4 if rehearse else 32} --size {32 if rehearse else 96}"
    large = f"resnet50 --batch {2 if rehearse else 256} --size {64 if rehearse else 224}"
    single = f"resnet50 --batch 1 --size {64 if rehearse else 224}"
    dump = Command(
        "device of cuDNN",
        [programs / "cudnn_plans", "--dump", pack / "work" / "kept" / "cudnn_device.json"],
        20,
    )
    both = " --precision fp32,tf32" if cuda else ""
    return [
        Step(
            1,
            "the device",
            [
                Command("device", [python, here / "describe_device.py", device], 60),
                *([dump] if cuda else []),
                Command("doctor", [strata, "doctor"], 30),
            ],
        ),
        Step(
            2,
            "kernels and calls against host results",
            [
                Command("kernels", [programs / "kernels_on_device"], 40, states=test_states),
                tests(
                    "levels on small networks",
                    ["-m", "gpu", "test_cudnn.py", "test_static_cuda.py"],
                    120,
                ),
                Command(
                    "memcheck of the kernels",
                    [*sanitizer, programs / "kernels_on_device"],
                    60,
                    states=test_states,
                ),
            ],
        ),
        Step(
            3,
            "mnist_convnet at all levels",
            [
                compare("mnist train", f"{mnist} --levels {quick} --mode train", 90),
                compare("mnist infer", f"{mnist} --levels {quick}", 90),
                compare("mnist infer compiled", f"{mnist} --levels {compiled}", 180),
                compare(
                    "mnist train compiled", f"{mnist} --levels eager,compile --mode train", 120
                ),
            ],
        ),
        Step(
            4,
            "ResNet-50",
            [
                compare("resnet50 infer", f"{small} --levels {quick}{both}", 150),
                compare("resnet50 train", f"{small} --levels {quick} --mode train{both}", 180),
                compare("resnet50 infer, large", f"{large} --levels {quick} --precision bf16", 120),
                compare("resnet50 infer, one image", f"{single} --levels {quick}", 120),
                compare("resnet50 infer compiled", f"{small} --levels {compiled}", 240),
                compare(
                    "resnet50 train, mixed precision",
                    f"{small} --levels eager,libtorch,cudnn,static --mode train"
                    " --precision amp-bf16",
                    150,
                ),
            ],
        ),
    ]
