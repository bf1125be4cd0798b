# SPDX-License-Identifier: Apache-2.0
"""`openvino` without its telemetry: importing it would write an identifier to ~/intel, unless a
file in the home forbids that, and report to its publisher beside what is measured. OpenVINO has a
stand-in for where the package is missing."""

import sys

sys.modules["openvino_telemetry"] = None

import openvino  # noqa: E402

__all__ = ["openvino"]
