#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first run on a machine with a GPU, in one command: builds the levels, tests them on the device, asks cuDNN for the
# device's description, and compares ResNet-50. bench/cuda.sh OUT [PYTHON]: results go to the folder OUT; PYTHON is the
# interpreter whose PyTorch is measured (default: strata's own).
set -uo pipefail
(($# >= 1)) || { echo "bench/cuda.sh OUT [PYTHON]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
python=${2:-}
# shellcheck source=/dev/null
bash setup/setup.sh tests "$python" && source "build/setup/ready-tests-${python//\//%}" || exit 3
export STRATA_ROOT=$PWD STRATA_PYTHON STRATA_TOOLS_PYTHON STRATA_LEVEL_BUILD STRATA_OVERLAY
failed=0

echo "== the device"
"$STRATA_LEVEL_BUILD/cudnn_plans" --dump "$out/device.json" || failed=1  # to take the place of tests/levels/cudnn_plans/h200.json
"$STRATA_LEVEL_BUILD/cudnn_plans" --for "$out/device.json" >"$out/plans.tsv" || failed=1
./strata doctor >"$out/doctor.txt" || true

echo "== tests on the device"
"$STRATA_TOOLS_PYTHON" -m pytest -q -m gpu -rs tests/levels 2>&1 | tee "$out/tests.txt" || failed=1

echo "== ResNet-50"
levels=eager,eager@channels_last,compile,compile@channels_last,libtorch,aoti,cudnn,cudnn@channels_last,static
# bound by launches, by the device, and one image; levels without a precision (cudnn: bf16) are left out of it with a word
for case in "resnet50 --input 128x3x32x32 --mode train --precision fp32,tf32,amp-bf16" "resnet50 --input 128x3x32x32 --precision fp32,tf32,bf16" \
  "resnet50 --batch 256 --mode train --precision fp32,tf32,amp-bf16" "resnet50 --batch 256 --precision fp32,tf32,bf16" "resnet50 --precision fp32,tf32,bf16"; do
  # shellcheck disable=SC2086
  ./strata compare $case ${python:+--python "$python"} --device cuda --levels "$levels" --format md -o "$out/${case//[^a-z0-9]/_}.html" |
    tee "$out/${case//[^a-z0-9]/_}.md" || failed=1
done
exit $failed
