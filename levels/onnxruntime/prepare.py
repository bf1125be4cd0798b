# SPDX-License-Identifier: Apache-2.0
"""Writes <weight set>.onnx for each weight set of the bundle."""

from pathlib import Path

from strata_sdk import preparing


def prepare(bundle_dir: Path, cache: Path) -> None:
    from strata_sdk import onnx_export

    for _ in onnx_export.write_all(bundle_dir, cache, preparing.Steps()):
        pass


if __name__ == "__main__":
    preparing.main(prepare)
