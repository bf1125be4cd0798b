# SPDX-License-Identifier: Apache-2.0
# Builds the program, its C++ tests and the level binaries with CMake and Ninja. Sourced by setup.sh.

# As many compilers as there are processors, but no more than one for each 2 GiB of free memory: PyTorch's headers need about that.
build_jobs() {
  local processors memory
  processors=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 2097152) }' /proc/meminfo)
  ((memory >= 1)) || memory=1
  echo $((memory < processors ? memory : processors))
}

# A build folder that was made for another place (a moved or copied tree) cannot be used.
drop_foreign_build() {
  local cache="$1/CMakeCache.txt" home
  [[ -f $cache ]] || return 0
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  [[ -d $home && $home -ef $2 ]] || rm -rf "$1"
}

# build_preset PRESET TESTS TARGET...: configures if needed and builds; TESTS is ON or empty (keeps what is there, OFF at first).
build_preset() {
  local preset=$1 tests=$2 folder="$root/build/$1" options=() compiler
  shift 2
  drop_foreign_build "$folder" "$root"
  if [[ -n $tests ]]; then options=(-DSTRATA_TESTS=ON); elif [[ ! -f $folder/CMakeCache.txt ]]; then options=(-DSTRATA_TESTS=OFF); fi
  if [[ ! -f $folder/build.ninja ]] || { [[ -n $tests ]] && ! grep -qs '^STRATA_TESTS:BOOL=ON' "$folder/CMakeCache.txt"; }; then
    need_disk "$preset" "$root" 500
    # Clang takes half as long with the sanitizers
    if [[ $preset == asan ]] && compiler=$(command -v clang++-14 || command -v clang++); then options+=("-DCMAKE_CXX_COMPILER=$compiler"); fi
    (cd "$root" && step "$preset" "configuring the build ($preset)" cmake --preset "$preset" "${options[@]}") ||
      fail_with_log "$preset" "CMake could not configure the build" "see the log above; rm -r '$folder' starts afresh"
  fi
  step "$preset" "compiling ($preset: $*)" env NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$(build_jobs)" "$@" ||
    fail_with_log "$preset" "the compiler failed" "see the log above; if memory ran out, close other programs"
}

# needs_no_torch PROGRAM: whether its level uses no PyTorch, and, where there is a CUDA compiler, no library of the environment's wheels.
needs_no_torch() {
  local file
  for file in "$root"/levels/*/level.json; do
    if grep -qsF "{build}/$1\"" "$file" && grep -qE '"environment": *false' "$file"; then
      ! grep -qE '"devices": *\[[^]]*"cuda"' "$file" || { ! command -v nvcc >/dev/null && [[ ! -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]]; }
      return
    fi
  done
  return 1
}

# share_programs FOLDER PROGRAM...: compiles those that need no PyTorch in the folder of the environment that had them first, and links them into FOLDER; what is
# left to build there is in the array `targets`.
share_programs() {
  local folder=$1 first="" name file shared=()
  shift
  targets=("$@")
  [[ ! -f $logs/without-torch ]] || first="$root/build/$(<"$logs/without-torch")"
  [[ -f $first/build.ninja && ! $first -ef $folder && " $* " != *" all "* ]] || return 0
  targets=()
  for name in "$@"; do
    if needs_no_torch "$name" && ninja -C "$first" -t query "$name" >/dev/null 2>&1; then shared+=("$name"); else targets+=("$name"); fi
  done
  ((${#shared[@]} > 0)) || return 0
  name=levels-$(basename "$first")
  if step "$name" "compiling, for all environments: ${shared[*]}" env NINJA_STATUS='[%f/%t] ' ninja -C "$first" -j "$(build_jobs)" "${shared[@]}"; then
    for name in "${shared[@]}"; do
      for file in "$first/$name" "$first/$name.built_with"; do [[ ! -f $file ]] || ln -f "$file" "$folder/"; done
    done
  else
    targets+=("${shared[@]}")
  fi
}

# build_levels PYTHON FOLDER TARGET...: these programs of levels for one environment; all: every level's. A failure blocks nothing: FOLDER/FAILED says why, the
# levels are then unavailable. Those that the build left out are no targets of it.
build_levels() {
  local python=$1 folder=$2 name status=0 targets=() known
  shift 2
  name=levels-$(basename "$folder")
  [[ -f $root/levels/CMakeLists.txt ]] || return 0
  mkdir -p "$folder"
  share_programs "$folder" "$@"
  set -- "${targets[@]}"
  (($# > 0)) || return 0
  # what a level was left out for may be there by now
  if [[ ! -f $folder/build.ninja ]] || compgen -G "$folder/level_*.missing" >/dev/null; then
    need_disk levels "$root" 1000
    step "$name" "configuring the levels for $python" cmake -S "$root/levels" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSTRATA_PYTHON="$python" || status=$?
  fi
  if ((status == 0)); then
    known=$(ninja -C "$folder" -t targets all | sed -n 's/: .*//p')
    mapfile -t targets < <(printf '%s\n' "$@" | sort -u | grep -Fx -f <(printf '%s' "$known") || true)
    ((${#targets[@]} > 0)) || return 0
    # -k 0: one level that does not compile takes no other with it
    step "$name" "compiling for $python: ${targets[*]}" env NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -k 0 -j "$(build_jobs)" "${targets[@]}" || status=$?
  fi
  if ((status == 0)); then
    rm -f "$folder/FAILED"
    for name in "${targets[@]}"; do
      ! needs_no_torch "$name" || [[ -f $logs/without-torch && -f $root/build/$(<"$logs/without-torch")/build.ninja ]] || basename "$folder" >"$logs/without-torch"
    done
    return 0
  fi
  local reason
  reason=$(grep -m 1 -E 'error:|CMake Error' "$logs/$name.log" || grep -m 1 FAILED: "$logs/$name.log" || tail -n 1 "$logs/$name.log")
  printf '%s\n' "$reason" >"$folder/FAILED"
  log_tail "$name" 8
  say "strata: some level binaries could not be built; these levels are unavailable, the others go on."
  say "  Log: $logs/$name.log. To try again: rm -r '$folder'"
}

# need_all_levels FOLDER: ends the set-up if a program of a level did not compile. For tests: one of an earlier build may be there still, and they would test that.
need_all_levels() {
  [[ ! -e $1/FAILED ]] || fail levels "$(<"$1/FAILED")" "see the log above; only what compiles can be tested"
}

# built_for_levels: the folder of the programs that an earlier call built for strata's own environment; empty: none.
built_for_levels() (
  STRATA_LEVEL_BUILD=""
  # shellcheck disable=SC1091
  [[ ! -f $logs/ready-levels- ]] || source "$logs/ready-levels-"
  [[ ! -d $STRATA_LEVEL_BUILD ]] || printf '%s' "$STRATA_LEVEL_BUILD"
)
