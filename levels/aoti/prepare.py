# SPDX-License-Identifier: Apache-2.0
"""Compiles the exported network with AOTInductor: <cache>/package.pt2, and <cache>/package.json
with what it was compiled for and which weights it reads. A variant that bakes weights in gets one
package a weight set: <cache>/<set>.pt2."""

import json
from pathlib import Path

import torch

from strata_sdk import UnavailableError, UnsupportedError, models, precision, preparing

CONFIGS = {
    # else vectors of at most 8 numbers go into the code, where no weight set can reach them
    "default": {"always_keep_tensor_constants": True},
    "freezing": {"freezing": True},
    "max-autotune": {"max_autotune": True, "coordinate_descent_tuning": True},
}


def prepare(bundle_dir: Path, cache: Path, variant: str) -> None:
    case = models.read_bundle(bundle_dir)["case"]
    if case["device"] == "cuda" and not torch.cuda.is_available():
        raise UnavailableError(
            "PyTorch sees no CUDA device", "AOTInductor compiles for the device that it finds"
        )
    if variant not in CONFIGS:
        raise UnsupportedError(f"aoti has no variant {variant}", f"it has: {', '.join(CONFIGS)}")
    configs = CONFIGS[variant]
    # autotuning too: the C++ matrix products that it chooses hold packed copies of their weights
    baked = variant != "default"
    torch.set_num_threads(case["threads"])  # generated loops carry the number of threads
    precision.settle(case["precision"])
    step = preparing.Steps()
    for weight_set in (
        sorted(path.stem for path in (bundle_dir / "weights").glob("*.safetensors"))
        if baked
        else ["package"]
    ):
        step("reading the exported network")
        program = preparing.exported_in_mode(bundle_dir)
        if baked:
            preparing.set_weights(program, preparing.weights(bundle_dir, weight_set))
        if case["device"] == "cuda":
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, "cuda")
        step(f"compiling {weight_set}.pt2")
        # the file's name lies inside it too, so it must not change
        part = cache / "part" / f"{weight_set}.pt2"
        part.parent.mkdir(exist_ok=True)
        with torch.no_grad():
            compile_package(program, part, configs)
        about = {
            "device": case["device"],
            "threads": case["threads"],
            "precision": case["precision"],
            "torch": torch.__version__,
            "variant": variant,
            "baked": baked,
            "freezing": bool(configs.get("freezing")),
            "autotune": bool(configs.get("max_autotune")),
            "parameters": list(program.graph_signature.parameters),
            "weights": weights_in_use(program),
        }
        (cache / "package.json").write_text(json.dumps(about), encoding="utf-8")
        part.replace(cache / part.name)
        part.parent.rmdir()
    step("done")


def weights_in_use(program: torch.export.ExportedProgram) -> list[list[str]]:
    """The parameters and persistent buffers that an operation reads; names of one and the same
    tensor (tied weights) in one list."""
    signature = program.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    tensors: dict[tuple, list[str]] = {}
    for node in program.graph.nodes:
        name = names.get(node.name) if node.op == "placeholder" and node.users else None
        if name is not None and name not in signature.non_persistent_buffers:
            value = program.state_dict[name]
            tensors.setdefault((value.data_ptr(), tuple(value.shape), value.stride()), []).append(
                name
            )
    return list(tensors.values())


def compile_package(program: torch.export.ExportedProgram, path: Path, configs: dict) -> None:
    """AOTInductor with the defaults that torch.compile's default mode shares, but for `configs`:
    see README.md."""
    from torch._inductor import aoti_compile_and_package

    try:
        aoti_compile_and_package(program, package_path=str(path), inductor_configs=configs)
    except Exception as error:
        if "C++ compiler" in str(error) or type(error).__name__ == "InvalidCxxCompiler":
            raise UnavailableError(
                "AOTInductor finds no C++ compiler", "install g++, or set CXX to one"
            ) from error
        raise


if __name__ == "__main__":
    preparing.main(prepare, by_variant=True)
