# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.xml and .bin for each weight set of the bundle, by way of ONNX (README.md says why)."""
import os
import tempfile
from pathlib import Path

from strata_sdk import UnsupportedError, preparing


def prepare(bundle_dir: Path, cache: Path) -> None:
    os.environ.setdefault("OPENVINO_TELEMETRY", "off")
    import openvino
    from strata_sdk import models, onnx_export

    step = preparing.Steps()
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        for weight_set, path in onnx_export.write_all(bundle_dir, Path(scratch), step):
            step(f"converting {weight_set}.onnx")
            try:
                model = openvino.convert_model(path)
            except openvino.frontend.OpConversionFailure as error:
                raise UnsupportedError(f"OpenVINO {openvino.get_version().split('-')[0]} cannot convert the network: {' '.join(str(error).split())[-300:]}") from error
            if bounds := models.read_bundle(bundle_dir)["case"].get("dynamic"):  # the exporter leaves an open extent, the plugin plans better with its bounds
                batch = openvino.Dimension(bounds["low"], bounds["high"])
                model.reshape({port: openvino.PartialShape([batch, *list(port.partial_shape)[1:]]) for port in model.inputs if port.partial_shape.rank.get_length()})
            openvino.save_model(model, cache / f"{weight_set}.xml", compress_to_fp16=False)
            path.unlink()


if __name__ == "__main__":
    preparing.main(prepare)
