# SPDX-License-Identifier: Apache-2.0
"""A user's own environment need not hold safetensors or an ONNX exporter: strata keeps such
packages in a folder named by STRATA_OVERLAY."""

import os
import sys


def append() -> None:
    """Appends STRATA_OVERLAY to sys.path, once. It comes last, so that what the environment has
    itself wins."""
    folder = os.environ.get("STRATA_OVERLAY", "")
    if folder and folder not in sys.path:
        sys.path.append(folder)
