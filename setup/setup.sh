#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh NEED [PYTHON [PART...]]: does what is missing for NEED (program, levels, tests) and PYTHON (empty: strata's own environment), then writes
# build/setup/ready-..., which the launchers compare with the sources. PARTs are those of ./test. Safe to stop at any time and to run twice at once.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
# what a caller's Python or compiler environment says must not lead into another one
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
source setup/common.sh
source setup/packages.sh
source setup/python.sh
source setup/build.sh
need=$1
python=${2:-}
set -- "$need" "$python" "${@:3}"
parts=" ${*:3} "
trap 'say ""; say "strata: set-up interrupted; running the same command again goes on from there."; exit 130' INT TERM

mkdir -p "$logs"
exec 9>"$logs/lock"
if ! flock -n 9; then
  say "strata: another set-up is running in this folder; waiting for it"
  flock 9
fi
# sources that change while they are compiled must be seen as newer
started=$(mktemp "$logs/started.XXXXXX")
trap 'rm -f "$started"' EXIT

set_up_packages "$need"
if [[ $need == tests ]]; then build_preset release ON strata strata_unit strata_training_graph strata_network_code; else build_preset release "" strata; fi
if [[ $parts == *" unit "* ]]; then
  build_preset asan ON strata_unit
  if command -v clang++-14 >/dev/null || command -v clang++ >/dev/null; then step fuzz "compiling the fuzzers" sh tests/fuzz/run 0 || fail_with_log fuzz "the fuzzers could not be compiled" "see the log above"; fi
fi

tools_python="$venv/bin/python"
level_build=""
overlay=""
torch_witness=""
if [[ $need != program ]]; then
  sets=(base)
  [[ -n $python ]] || sets+=(torch)
  [[ $need != tests ]] || sets+=(test)
  [[ -z $python ]] || describe_python "$python" # before any download: a wrong path must not cost minutes
  set_up_venv "${sets[@]}"
  if [[ -z $python ]]; then
    python=$tools_python
    describe_python "$python"
    own=1
  fi
  key="$torch_version-$(printf '%s' "$python" | sha256sum | cut -c1-8)"
  level_build="$root/build/env-${key//[^A-Za-z0-9._-]/-}"
  drop_foreign_build "$level_build" "$root/levels"
  if [[ -z ${own:-} ]]; then
    overlay="$level_build/overlay"
    set_up_overlay "$python" "$overlay"
    [[ -n $overlay_missing ]] || overlay=""
    ((has_torchvision)) || say "strata: $python has no torchvision: its models are not available by name"
  fi
  set_up_cudnn_frontend
  targets=()
  [[ $need != tests ]] || targets=(all strata_test_levels)
  build_levels "$python" "$level_build" "${targets[@]}"
fi

# what is ready for more is ready for less
case $need in
  tests) ready_for=("tests-${2//\//%}" "levels-${2//\//%}" program-) ;;
  levels) ready_for=("levels-${2//\//%}" program-) ;;
  *) ready_for=(program-) ;;
esac
for name in "${ready_for[@]}"; do
  {
    printf 'STRATA_PYTHON=%q\n' "$python"
    printf 'STRATA_TOOLS_PYTHON=%q\n' "$tools_python"
    printf 'STRATA_LEVEL_BUILD=%q\n' "$level_build"
    printf 'STRATA_OVERLAY=%q\n' "$overlay"
    printf 'torch_witness=%q\n' "$torch_witness"
  } >"$started.new"
  touch -r "$started" "$started.new"
  mv "$started.new" "$logs/ready-$name"
done
