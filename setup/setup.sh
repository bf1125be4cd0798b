#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh NEED [PYTHON [WHAT...]]: does what is missing for NEED (program, levels, tests) and PYTHON (empty: strata's own environment), then writes
# build/setup/ready-..., which the launchers compare with the sources. WHAT are programs of levels (targets of levels/CMakeLists.txt; none: Python alone), with
# tests parts of ./test. Safe to stop at any time and to run twice at once.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
# what a caller's Python or compiler environment says must not lead into another one
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
source setup/common.sh
source setup/packages.sh
source setup/python.sh
source setup/build.sh
source setup/launch.sh
need=$1
python=${2:-}
shift $(($# < 2 ? $# : 2))
programs=("$@")
parts=""
with_torch=1
asked=${python//\//%}
if [[ $need == tests ]]; then
  parts=" $* "
  programs=()
  [[ $parts != *" cli "* ]] || programs=(level_static strata_generate)
  [[ $parts != *" levels "* && $parts != *" compat "* && $parts != *" long "* ]] || programs=(all strata_test_levels)
  [[ $parts != " fast " && $parts != " style " ]] || with_torch=""
fi
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
# what was built of the same sources stays true
built_earlier=$([[ $need == program ]] || ! is_ready levels "$python" || printf '%s' "$built")

set_up_packages "$need"
targets=(strata)
# it writes the pages that `report` looks at, in whichever build there is
if [[ $parts == *" fast "* || $parts == *" long "* || ($parts == *" report "* && $parts != *" unit "*) ]]; then targets+=(strata_unit); fi
[[ $parts != *" levels "* && $parts != *" compat "* && $parts != *" long "* ]] || targets+=(strata_training_graph strata_network_code strata_judge_trainings)
build_preset release "${parts:+ON}" "${targets[@]}"
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
  [[ -n $python || -z $with_torch ]] || sets+=(torch)
  [[ $need != tests ]] || sets+=(test)
  [[ -z $python ]] || describe_python "$python" # before any download: a wrong path must not cost minutes
  set_up_venv "${sets[@]}"
  if [[ -z $python ]]; then
    python=$tools_python
    own=1
    torch_version="" overlay_missing="" torch_witness=$tools_python
    [[ -z $with_torch ]] || describe_python "$python"
  fi
  if [[ -n ${own:-} && -z $with_torch ]]; then
    level_build=$(built_for_levels)
  else
    key="$torch_version-$(printf '%s' "$python" | sha256sum | cut -c1-8)"
    level_build="$root/build/env-${key//[^A-Za-z0-9._-]/-}"
    drop_foreign_build "$level_build" "$root/levels"
    if [[ -z ${own:-} ]]; then
      overlay="$level_build/overlay"
      set_up_overlay "$python" "$overlay"
      [[ -n $overlay_missing ]] || overlay=""
      # shellcheck disable=SC2154 # describe_python sets it
      ((has_torchvision)) || say "strata: $python has no torchvision: its models are not available by name"
    fi
    ((${#programs[@]} == 0)) || set_up_cudnn_frontend
    build_levels "$python" "$level_build" "${programs[@]}"
    [[ $need != tests || ${#programs[@]} == 0 ]] || need_all_levels "$level_build"
  fi
fi
built="$built_earlier ${programs[*]}"
[[ " $built " != *" all "* ]] || built=all

# what is ready for more is ready for less
case $need in
  tests) ready_for=("tests-$asked" ${with_torch:+"levels-$asked"} program-) ;;
  levels) ready_for=("levels-$asked" program-) ;;
  *) ready_for=(program-) ;;
esac
for name in "${ready_for[@]}"; do
  {
    printf 'STRATA_PYTHON=%q\n' "$python"
    printf 'STRATA_TOOLS_PYTHON=%q\n' "$tools_python"
    printf 'STRATA_LEVEL_BUILD=%q\n' "$level_build"
    printf 'STRATA_OVERLAY=%q\n' "$overlay"
    printf 'torch_witness=%q\n' "$torch_witness"
    printf 'built_programs=%q\n' "$built"
  } >"$started.new"
  touch -r "$started" "$started.new"
  mv "$started.new" "$logs/ready-$name"
done
