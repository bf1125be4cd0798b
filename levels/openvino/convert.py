# SPDX-License-Identifier: Apache-2.0
"""convert.py NETWORK.onnx NETWORK.xml [LOW HIGH]: as OpenVINO reads it; with LOW and HIGH the batch
is open between them. Needs no PyTorch."""

import sys

from strata_sdk import UnsupportedError, preparing


def convert(source: str, target: str, *bounds: str) -> None:
    sys.modules["openvino_telemetry"] = None  # README.md, telemetry
    import openvino

    try:
        model = openvino.convert_model(source)
    except openvino.frontend.OpConversionFailure as error:
        raise UnsupportedError(
            f"OpenVINO {openvino.get_version().split('-')[0]} cannot convert the network: {' '.join(str(error).split())[-300:]}"
        ) from error
    if bounds:  # the exporter leaves an open extent, the plugin plans better with its bounds
        batch = openvino.Dimension(*(int(bound) for bound in bounds))
        model.reshape(
            {
                port: openvino.PartialShape([batch, *list(port.partial_shape)[1:]])
                for port in model.inputs
                if port.partial_shape.rank.get_length()
            }
        )
    openvino.save_model(model, target, compress_to_fp16=False)


if __name__ == "__main__":
    preparing.answer_for(lambda: convert(*sys.argv[1:]))
