# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.param and .bin for each weight set: TorchScript of one sample with the
PyTorch that is measured, converted by pnnx in the level's own environment."""

import tempfile
from pathlib import Path

from strata_sdk import UnsupportedError, preparing


def check(bundle: dict) -> None:
    """ncnn has no batch: a sample is a tensor without the first extent, and the level runs one
    after the other."""
    if bundle["model"]["kind"] == "onnx":
        raise UnsupportedError(
            "an ONNX file holds no PyTorch module, which pnnx converts",
            "onnxruntime, openvino and mnn run it",
        )
    batch = bundle["case"]["batch"]
    for tensor in [*bundle["inputs"], *bundle["outputs"]]:
        if (
            tensor["dtype"] != "float32"
            or len(tensor["shape"]) not in (2, 3, 4, 5)
            or tensor["shape"][0] != batch
        ):
            raise UnsupportedError(
                f"{tensor['name']} is {tensor['dtype']}{tensor['shape']}; ncnn takes float32 of 1 to 4 extents behind the batch, {batch}",
                "onnxruntime and openvino take other tensors",
            )


def prepare(bundle_dir: Path, cache: Path, ncnn: str) -> None:
    """`ncnn`: the Python that has ncnn and pnnx."""
    import torch

    from strata_sdk import models

    step = preparing.Steps()
    bundle = models.read_bundle(bundle_dir)
    check(bundle)
    module, names = models.build_module(bundle_dir)
    example = models.example_inputs(bundle_dir)
    sample = tuple(example[name][:1].contiguous() for name in names)
    shapes = ",".join(f"{list(tensor.shape)}f32".replace(" ", "") for tensor in sample)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for weight_set in preparing.weight_sets(bundle_dir):
            step(f"tracing with {weight_set}")
            models.load_weights(module, preparing.weights(bundle_dir, weight_set), weight_set)
            script = preparing.traced(models.graph_module(module, bundle), sample, bundle)
            file = Path(scratch) / f"{weight_set}.pt"
            script.save(str(file))
            step(f"converting {weight_set}")
            with torch.no_grad():
                preparing.delegate(
                    [
                        ncnn,
                        str(Path(__file__).with_name("convert.py")),
                        str(file),
                        str(cache / weight_set),
                        shapes,
                    ]
                )


if __name__ == "__main__":
    preparing.main(prepare, "ncnn")
