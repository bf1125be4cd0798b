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

# runs_python PATH: whether it is an interpreter, or was set up as one. The program says what is wrong where not.
runs_python() {
  [[ -f $1 && -x $1 ]] && { [[ -e $root/build/setup/ready-levels-${1//\//%} ]] || [[ $("$1" -I -c 'print(6 * 7)' 2>/dev/null) == 42 ]]; }
}

# get_program NAMED [ARGUMENT...]: the program, and what the call that follows needs beside it, which the program says itself: a line for each environment, in
# `needs`. NAMED: the interpreter of what names none.
get_program() {
  local named=$1 i kind name programs python
  shift
  get_ready program ""
  mapfile -t needs < <("$root/build/release/strata" --needs lines "$@" 2>/dev/null)
  ((${#needs[@]} > 0)) || needs=("program|||")
  for i in "${!needs[@]}"; do
    IFS='|' read -r kind name programs python <<<"${needs[i]}"
    python=$(absolute_python "${python:-$named}")
    if [[ -n $name && -n $python ]] && ! runs_python "$python"; then
      needs=("program|||")
      return
    fi
    needs[i]="$kind|$name|$programs|$python"
  done
}

# get_what_it_needs: what `needs` says. Exports what the program has to know of it; of several environments that is the first, and STRATA_ENVIRONMENTS: name,
# interpreter, programs and overlay of each, a line with tabs.
get_what_it_needs() {
  local i kind name programs python environments="" known
  for ((i = ${#needs[@]} - 1; i >= 0; i--)); do # the first is the last, whose variables stay
    IFS='|' read -r kind name programs python <<<"${needs[i]}"
    if [[ $kind == program ]]; then
      # what an earlier set-up made is described even if it is out of date
      STRATA_PYTHON=${python:-$root/.venv/bin/python}
      known="$root/build/setup/ready-levels-${python//\//%}"
      # shellcheck disable=SC1090
      [[ ! -f $known ]] || source "$known"
      return
    fi
    [[ -z $name ]] || export STRATA_NAMED_BY="--env $name"
    # shellcheck disable=SC2086 # programs are words
    get_ready levels "$python" $programs
    environments+="$name"$'\t'"$STRATA_PYTHON"$'\t'"$STRATA_LEVEL_BUILD"$'\t'"$STRATA_OVERLAY"$'\n'
  done
  unset STRATA_NAMED_BY
  [[ -z $name ]] || export STRATA_ENVIRONMENTS=$environments
}
