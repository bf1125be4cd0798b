# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.xml and .bin for each weight set of the bundle, by way of ONNX (README.md
says why): ONNX with the PyTorch that is measured, converted where OpenVINO is."""

import tempfile
from pathlib import Path

from strata_sdk import preparing


def prepare(bundle_dir: Path, cache: Path, openvino: str) -> None:
    """`openvino`: the Python that has OpenVINO."""
    from strata_sdk import models, onnx_export

    step = preparing.Steps()
    bounds = models.read_bundle(bundle_dir)["case"].get("dynamic")
    extent = [str(bounds["low"]), str(bounds["high"])] if bounds else []
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for weight_set, path in onnx_export.write_all(bundle_dir, Path(scratch), step):
            step(f"converting {weight_set}.onnx")
            preparing.delegate(
                [
                    openvino,
                    str(Path(__file__).with_name("convert.py")),
                    str(path),
                    str(cache / f"{weight_set}.xml"),
                    *extent,
                ]
            )
            path.unlink()


if __name__ == "__main__":
    preparing.main(prepare, "openvino")
