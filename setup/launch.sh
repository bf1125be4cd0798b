# SPDX-License-Identifier: Apache-2.0
# The fast path of the launchers: if nothing that set-up depends on is newer than its last success, no other program than find is started.
# Sourced with `root` set.

# absolute_python PATH: a folder stands for the environment in it, a bare name is looked up; links stay (a venv's python is one).
absolute_python() {
  local python=$1
  [[ -n $python ]] || return 0
  [[ ! -d $python || ! -x $python/bin/python ]] || python=$python/bin/python
  [[ $python == */* ]] || python=$(command -v "$python" || printf '%s' "$python")
  [[ $python == /* ]] || python=$PWD/$python
  [[ ! $python -ef $root/.venv/bin/python || $python != "$root/.venv/"* ]] || return 0
  printf '%s' "$python"
}

# add_programs LEVEL.JSON [DEVICE]: adds what its start and prepare take from the build folder, {build}/NAME, to the array `programs`; with DEVICE only if the
# level has it; where `torch_only` is set only if the level uses the PyTorch that is measured. Started by no other program.
add_programs() {
  local text=""
  IFS= read -r -d '' text <"$1" || true
  [[ -z ${torch_only:-} || ! $text =~ \"environment\":\ *false ]] || return 0
  [[ -z ${2:-} || ! $text =~ \"devices\":\ *\[([^]]*)\] || ${BASH_REMATCH[1]} == *"\"$2\""* ]] || return 0
  while [[ $text =~ \{build\}/([A-Za-z0-9_.-]+)(.*) ]]; do
    programs+=("${BASH_REMATCH[1]}")
    text=${BASH_REMATCH[2]}
  done
}

# add_programs_of DEVICE [NAME...]: of these levels, by id (without its variant) or folder, as far as they have DEVICE (empty: in any case); without a name of
# all that have it. What is no level has no programs; strata says so.
add_programs_of() {
  local device=$1 file name text
  shift
  (($# > 0)) || for file in "$root"/levels/*/level.json; do [[ ! -f $file ]] || add_programs "$file" "$device"; done
  for name in "$@"; do
    name=${name%%@*}
    for file in "$name/level.json" "$root"/levels/*/level.json; do
      [[ -f $file ]] || continue
      text=""
      IFS= read -r -d '' text <"$file" || true
      [[ $file != "$name/level.json" && ! $text =~ \"id\":\ *\""$name"\" ]] || add_programs "$file" "$device"
    done
  done
  # what they need beside their programs
  [[ $device != cuda ]] || programs+=(strata_for_cuda)
}

# names_cuda ARGUMENT...: whether one is a suite, by its file or name, that runs something on CUDA. Started by no other program.
names_cuda() {
  local word file text
  for word in "$@"; do
    for file in "$word" "$root/suites/$word.toml"; do
      [[ -f $file ]] || continue
      IFS= read -r -d '' text <"$file" || true
      [[ $text != *\"cuda\"* ]] || return 0
    done
  done
  return 1
}

# is_ready NEED PYTHON [PROGRAM...]: whether set-up has been done for it, with these programs of levels, and nothing has changed since. Sets the environment's
# variables, and `built`.
is_ready() {
  local ready="$root/build/setup/ready-$1-${2//\//%}" newer program built_programs=""
  [[ -f $ready && -x $root/build/release/strata ]] || return 1
  # shellcheck disable=SC1090
  source "$ready"
  local paths=("$root/src" "$root/runtime" "$root/CMakeLists.txt" "$root/CMakePresets.json" "$root/setup")
  if [[ $1 != program ]]; then
    [[ -x $STRATA_PYTHON && -x $STRATA_TOOLS_PYTHON && -e $torch_witness ]] || return 1
    [[ ! $STRATA_PYTHON -nt $ready && -d $STRATA_LEVEL_BUILD ]] || return 1
    for program in "${@:3}"; do
      [[ " $built_programs " == *" $program "* || $built_programs == all ]] || return 1
    done
    paths+=("$root/requirements" "$root/cmake")
    newer=$(find "$root/levels" "$root/sdk/cpp" -newer "$ready" \( -name CMakeLists.txt -o -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.cu' \) -print -quit)
    [[ -z $newer ]] || return 1
  fi
  # folders count too: a file that was added or deleted changes its folder; __pycache__ and its folder do so without meaning
  newer=$(find "${paths[@]}" \( -name __pycache__ -o -name '*.py' \) -prune -o -newer "$ready" ! \( -type d -exec test -d '{}/__pycache__' \; \) -print -quit 2>/dev/null)
  [[ -z $newer ]] || return 1
  built=$built_programs
}

# get_ready NEED PYTHON [PROGRAM...]: sets up what is missing; exports what the program needs.
get_ready() {
  if ! is_ready "$@"; then
    bash "$root/setup/setup.sh" "$@" || exit $?
    # shellcheck disable=SC1090
    source "$root/build/setup/ready-$1-${2//\//%}"
  fi
  export STRATA_ROOT="$root" STRATA_PYTHON STRATA_TOOLS_PYTHON STRATA_LEVEL_BUILD STRATA_OVERLAY
}

# can_be_set_up NAME=PATH...: whether each names another interpreter, one that runs. The program says what is wrong where not.
can_be_set_up() {
  local one python here other pythons=() names=" "
  for one in "$@"; do
    [[ $one =~ ^[a-z0-9._-]+=.+$ && $names != *" ${one%%=*} "* ]] || return 1
    names+="${one%%=*} "
    python=$(absolute_python "${one#*=}")
    here=${python:-$root/.venv/bin/python}
    for other in "${pythons[@]}"; do
      [[ ! $here -ef $other || ! ${here%/*} -ef ${other%/*} ]] || return 1
    done
    pythons+=("$here")
    [[ -n $python ]] || continue
    [[ -f $python && -x $python ]] || return 1
    [[ -e $root/build/setup/ready-levels-${python//\//%} || $("$python" -I -c 'print(6 * 7)' 2>/dev/null) == 42 ]] || return 1
  done
}

# get_all_ready NAME=PATH...: get_ready for each environment of --env, with the programs of the levels that --levels names; those that use no PyTorch run in the
# first alone. Exports what the program needs of the first, and STRATA_ENVIRONMENTS: name, interpreter, programs and overlay of each, a line with tabs.
get_all_ready() {
  local i name python torch_only
  STRATA_ENVIRONMENTS=""
  for ((i = $#; i > 0; i--)); do # the first is the last, whose variables stay
    name=${!i%%=*}
    python=$(absolute_python "${!i#*=}")
    torch_only=""
    ((i == 1)) || torch_only=1
    programs=()
    [[ $verb != compare && $verb != engine ]] || add_programs_of "$device" "${levels[@]}"
    export STRATA_NAMED_BY="--env $name"
    get_ready levels "$python" "${programs[@]}"
    STRATA_ENVIRONMENTS+="$name"$'\t'"$STRATA_PYTHON"$'\t'"$STRATA_LEVEL_BUILD"$'\t'"$STRATA_OVERLAY"$'\n'
  done
  unset STRATA_NAMED_BY
  export STRATA_ENVIRONMENTS
}
