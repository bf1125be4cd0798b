# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.xml and .bin for each weight set with OpenVINO's own PyTorch front end; no ONNX in between.

Conversion folds BatchNorm into the convolutions, so each set is converted anew; the network is exported once and the set's values are written into its state.
"""
import os
from pathlib import Path

from strata_sdk import UnsupportedError, models, preparing


def prepare(bundle_dir: Path, cache: Path) -> None:
    os.environ.setdefault("OPENVINO_TELEMETRY", "off")
    import openvino

    step = preparing.Steps()
    step("exporting the network")
    program = preparing.exported(bundle_dir)
    bundle = models.read_bundle(bundle_dir)
    for weight_set in preparing.WEIGHT_SETS:
        step(f"converting {weight_set}")
        preparing.set_weights(program, preparing.weights(bundle_dir, weight_set))
        try:
            model = openvino.convert_model(program)
        except openvino.frontend.OpConversionFailure as error:
            raise UnsupportedError(f"OpenVINO {openvino.get_version().split('-')[0]} cannot convert the network: {' '.join(str(error).split())[-300:]}") from error
        for port, described in zip(model.outputs, bundle["outputs"], strict=True):
            port.get_tensor().set_names({described["name"]})
        openvino.save_model(model, cache / f"{weight_set}.xml", compress_to_fp16=False)


if __name__ == "__main__":
    preparing.main(prepare)
