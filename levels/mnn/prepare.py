# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.mnn for each weight set of the bundle: ONNX with the PyTorch that is
measured, converted by MNN in the level's own environment."""

from pathlib import Path

from strata_sdk import UnsupportedError, preparing


def prepare(bundle_dir: Path, cache: Path, mnn: str) -> None:
    """`mnn`: the Python that has MNN."""
    from strata_sdk import models, onnx_export

    bundle = models.read_bundle(bundle_dir)
    preparing.refuse_read_values(bundle)
    for tensor in [*bundle["inputs"], *bundle["outputs"]]:
        if tensor["dtype"] not in ("float32", "int32", "int64"):
            raise UnsupportedError(
                f"{tensor['name']} is {tensor['dtype']}; MNN takes float32 and integers",
                "onnxruntime and openvino take other tensors",
            )
    onnx_export.convert_all(bundle_dir, cache, mnn, Path(__file__).with_name("convert.py"), "mnn")


if __name__ == "__main__":
    preparing.main(prepare, "mnn")
