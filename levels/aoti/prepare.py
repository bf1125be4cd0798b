# SPDX-License-Identifier: Apache-2.0
"""Compiles the exported network with AOTInductor and its default settings: <cache>/package.pt2, and <cache>/package.json with what it was compiled for."""
import json
from pathlib import Path

import torch
from strata_sdk import UnavailableError, models, preparing
from strata_sdk.torch_level import set_strict_float32


def prepare(bundle_dir: Path, cache: Path) -> None:
    case = models.read_bundle(bundle_dir)["case"]
    if case["device"] == "cuda" and not torch.cuda.is_available():
        raise UnavailableError("PyTorch sees no CUDA device", "AOTInductor compiles for the device that it finds")
    torch.set_num_threads(case["threads"])  # generated loops carry the number of threads
    set_strict_float32()
    step = preparing.Steps()
    step("reading the exported network")
    program = preparing.exported(bundle_dir)
    if case["device"] == "cuda":
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, "cuda")
    step("compiling it")
    part = cache / "part" / "package.pt2"  # the file's name lies inside it too, so it must not change
    part.parent.mkdir(exist_ok=True)
    with torch.no_grad():
        compile_package(program, part)
    about = {"device": case["device"], "threads": case["threads"], "torch": torch.__version__, "parameters": list(program.graph_signature.parameters)}
    (cache / "package.json").write_text(json.dumps(about), encoding="utf-8")
    part.replace(cache / "package.pt2")
    part.parent.rmdir()
    step("done")


def compile_package(program: torch.export.ExportedProgram, path: Path) -> None:
    """AOTInductor with no option changed: what torch.compile's default mode takes as well."""
    from torch._inductor import aoti_compile_and_package

    try:
        aoti_compile_and_package(program, package_path=str(path))
    except Exception as error:
        if "C++ compiler" in str(error) or type(error).__name__ == "InvalidCxxCompiler":
            raise UnavailableError("AOTInductor finds no C++ compiler", "install g++, or set CXX to one") from error
        raise


if __name__ == "__main__":
    preparing.main(prepare)
