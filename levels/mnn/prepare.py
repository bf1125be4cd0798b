# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.mnn for each weight set of the bundle: ONNX with the PyTorch that is
measured, converted by MNN in the level's own environment."""

import tempfile
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
    step = preparing.Steps()
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for weight_set, path in onnx_export.write_all(bundle_dir, Path(scratch), step):
            step(f"converting {weight_set}.onnx")
            preparing.delegate(
                [
                    mnn,
                    str(Path(__file__).with_name("convert.py")),
                    str(path),
                    str(cache / f"{weight_set}.mnn"),
                ]
            )
            path.unlink()


if __name__ == "__main__":
    preparing.main(prepare, "mnn")
