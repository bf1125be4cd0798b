# SPDX-License-Identifier: Apache-2.0
"""convert.py NETWORK.onnx NETWORK.mnn: as MNN's converter reads it. Needs no PyTorch."""

import sys
from pathlib import Path

from strata_sdk import UnsupportedError, preparing


def convert(source: str, target: str) -> None:
    # the converter itself: the package's command beside it installs and starts a logger that
    # reports to its makers
    import _tools

    _tools.mnnconvert(
        [
            "mnnconvert",
            "-f",
            "ONNX",
            "--modelFile",
            source,
            "--MNNModel",
            target,
            "--bizCode",
            "strata",
            "--keepInputFormat",
        ]
    )
    if not Path(target).is_file():
        raise UnsupportedError(
            "MNN's converter does not take the network", "the lines above name the operation"
        )


if __name__ == "__main__":
    preparing.answer_for(lambda: convert(*sys.argv[1:]))
