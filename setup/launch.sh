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

# is_ready NEED PYTHON: whether set-up has been done for it and nothing has changed since. Sets the environment's variables.
is_ready() {
  local ready="$root/build/setup/ready-$1-${2//\//%}" newer
  [[ -f $ready && -x $root/build/release/strata ]] || return 1
  source "$ready"
  local paths=("$root/src" "$root/CMakeLists.txt" "$root/CMakePresets.json" "$root/setup")
  if [[ $1 != program ]]; then
    [[ -x $STRATA_PYTHON && -x $STRATA_TOOLS_PYTHON && -e $torch_witness ]] || return 1
    [[ ! $STRATA_PYTHON -nt $ready && -d $STRATA_LEVEL_BUILD ]] || return 1
    paths+=("$root/requirements" "$root/cmake")
    newer=$(find "$root/levels" "$root/sdk/cpp" -newer "$ready" \( -name CMakeLists.txt -o -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.cu' \) -print -quit)
    [[ -z $newer ]] || return 1
  fi
  # folders count too: a file that was added or deleted changes its folder; __pycache__ and its folder do so without meaning
  newer=$(find "${paths[@]}" \( -name __pycache__ -o -name '*.py' \) -prune -o -newer "$ready" ! \( -type d -exec test -d '{}/__pycache__' \; \) -print -quit 2>/dev/null)
  [[ -z $newer ]]
}

# get_ready NEED PYTHON: sets up what is missing; exports what the program needs.
get_ready() {
  if ! is_ready "$1" "$2"; then
    bash "$root/setup/setup.sh" "$1" "$2" || exit $?
    source "$root/build/setup/ready-$1-${2//\//%}"
  fi
  export STRATA_ROOT="$root" STRATA_PYTHON STRATA_TOOLS_PYTHON STRATA_LEVEL_BUILD STRATA_OVERLAY
}
