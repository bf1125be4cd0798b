# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.xml and .bin for each weight set of the bundle, by way of ONNX (README.md says why)."""
import os
import tempfile
from pathlib import Path

from strata_sdk import UnsupportedError, preparing


def prepare(bundle_dir: Path, cache: Path) -> None:
    os.environ.setdefault("OPENVINO_TELEMETRY", "off")
    import openvino
    from strata_sdk import onnx_export

    step = preparing.Steps()
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for weight_set, path in onnx_export.write_all(bundle_dir, Path(scratch), step):
            step(f"converting {weight_set}.onnx")
            try:
                model = openvino.convert_model(path)
            except openvino.frontend.OpConversionFailure as error:
                raise UnsupportedError(f"OpenVINO {openvino.get_version().split('-')[0]} cannot convert the network: {' '.join(str(error).split())[-300:]}") from error
            openvino.save_model(model, cache / f"{weight_set}.xml", compress_to_fp16=False)
            path.unlink()


if __name__ == "__main__":
    preparing.main(prepare)
