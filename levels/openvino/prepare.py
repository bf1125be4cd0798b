# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.xml and .bin for each weight set of the bundle, by way of ONNX (README.md
says why): ONNX with the PyTorch that is measured, converted where OpenVINO is."""

from pathlib import Path

from strata_sdk import preparing


def prepare(bundle_dir: Path, cache: Path, openvino: str) -> None:
    """`openvino`: the Python that has OpenVINO."""
    from strata_sdk import models, onnx_export

    bounds = models.read_bundle(bundle_dir)["case"].get("dynamic")
    extent = [str(bounds["low"]), str(bounds["high"])] if bounds else []
    convert = Path(__file__).with_name("convert.py")
    onnx_export.convert_all(bundle_dir, cache, openvino, convert, "xml", *extent)


if __name__ == "__main__":
    preparing.main(prepare, "openvino")
