# SPDX-License-Identifier: Apache-2.0
# The Python environments: strata's own (.venv, from hashed locks, by uv) and a user's (only looked at; what it lacks goes into an overlay).
# Sourced by setup.sh.

venv="$root/.venv"
uv="$venv/bin/uv"

lock_hash() { sha256sum <"$root/requirements/$1.txt" | cut -c1-16; }

# The system's interpreter for .venv; /usr/bin first, since a version manager's own may lack headers or vanish.
find_python() {
  local candidate
  for candidate in /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do
    command -v "$candidate" >/dev/null || continue
    if "$candidate" -I -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  fail python "no Python from 3.11 to 3.14 with the modules venv and ensurepip was found ($(/usr/bin/env python3 --version 2>&1 || true))" \
    "install one (Debian: apt-get install python3-venv)"
}

# uv does not read pip's configuration; an index set there is often the only one that can be reached.
use_pip_index() {
  local settings value
  settings=$("$venv/bin/python" -I -m pip config list 2>/dev/null || true)
  pip_setting() { sed -n "s/^\(global\|install\|user\|site\|:env:\)\.$1='\(.*\)'\$/\2/p" <<<"$settings" | tail -n 1; }
  value=$(pip_setting index-url)
  [[ -z $value || -n ${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-} ]] || export UV_DEFAULT_INDEX=$value
  value=$(pip_setting cert)
  [[ -z $value || -n ${SSL_CERT_FILE:-} || ! -r $value ]] || export SSL_CERT_FILE=$value
  value=$(pip_setting proxy)
  [[ -z $value || -n ${HTTPS_PROXY:-}${https_proxy:-} ]] || export HTTPS_PROXY=$value
}

make_venv() {
  if [[ -e $venv && ! -f $venv/pyvenv.cfg ]]; then
    fail python "$venv is in the way: it exists and is not a Python environment" "move it away"
  fi
  if [[ ! -f $venv/strata-uv ]] || ! "$venv/bin/python" -I -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
    local python
    python=$(find_python)
    need_disk python "$root" 200
    local clear=()
    "$venv/bin/python" -I -m pip --version >/dev/null 2>&1 || clear=(--clear)
    step python "making $venv with $python" "$python" -I -m venv "${clear[@]}" "$venv" || fail_with_log python "the environment could not be made" "see the log above"
    rm -f "$venv/strata-uv"
  fi
  if [[ ! -x $uv || $(cat "$venv/strata-uv" 2>/dev/null) != "$(lock_hash uv)" ]]; then
    step python "installing uv ($(megabytes uv 2) MB)" "$venv/bin/python" -I -m pip install --disable-pip-version-check --progress-bar off --require-hashes \
      -r "$root/requirements/uv.txt" || fail_with_log python "pip could not install uv" "see the log above"
    lock_hash uv >"$venv/strata-uv"
  fi
}

# Says what a large download is and how to avoid it; a person at a terminal may say no, anybody else goes on.
announce_download() {
  local download=$1 disk=$2 folder=$3 avoid=$4 answer
  say "strata: up to $download MB of Python packages are downloaded into $folder ($disk MB on disk; what uv's cache already has is not downloaded again)."
  [[ -z $avoid ]] || say "  $avoid"
  [[ -t 0 && -t 2 ]] || return 0
  printf '  Go on? [Y/n] (goes on by itself in 30 s) ' >&2
  read -r -t 30 answer || { answer=y; say ""; }
  case $answer in n* | N*) say "strata: nothing was downloaded"; exit 3 ;; esac
}

# run_uv STEP TITLE ARGUMENTS...: uv with the index that pip and uv are configured for, then once more with neither's configuration, since such an index may
# lack or rename files. The hashes make both equal.
run_uv() {
  local name=$1 title=$2
  shift 2
  use_pip_index
  step "$name" "$title" env UV_LINK_MODE="${UV_LINK_MODE:-$link_mode}" "$uv" "$@" && return
  [[ -n ${UV_DEFAULT_INDEX:-} ]] || return 1
  step "$name" "again with the public package index" env -u UV_DEFAULT_INDEX UV_LINK_MODE="${UV_LINK_MODE:-$link_mode}" "$uv" --no-config "$@"
}

link_mode_for() {
  local cache
  cache=$("$uv" cache dir)
  mkdir -p "$cache" 2>/dev/null || true
  link_mode=hardlink
  [[ $(stat -c %d "$cache" 2>/dev/null) == "$(stat -c %d "$root")" ]] || link_mode=copy
}

# set_up_venv SET...: of base, torch, test. What is there already costs one comparison.
set_up_venv() {
  make_venv
  local set files=() wanted=() download=0 disk=0 state="$venv/strata-installed" broken=()
  for set in "$@"; do
    files+=(-r "$root/requirements/$set.txt")
    wanted+=("$set=$(lock_hash "$set")")
    grep -qsFx "${wanted[-1]}" "$state" && continue
    download=$((download + $(megabytes "$set" 2)))
    disk=$((disk + $(megabytes "$set" 3)))
  done
  ((disk > 0)) || return 0
  link_mode_for
  local there avoid=""
  there=$(du -sm "$venv" | cut -f1)
  need_disk python "$root" $((disk > there ? disk - there + 500 : 500))
  [[ $link_mode == hardlink ]] || need_disk python "$("$uv" cache dir)" "$disk"
  [[ " $* " != *" torch "* ]] || avoid="To measure a PyTorch that you have instead ($(megabytes base 2) MB): ./strata ... --python PATH"
  ((download <= 100)) || announce_download "$download" "$disk" "$venv" "$avoid"
  # an interrupted installation may leave a package half there: then all are laid again, from uv's cache
  [[ ! -e $venv/strata-installing ]] || broken=(--reinstall)
  touch "$venv/strata-installing"
  run_uv python "installing Python packages ($*)" pip install --compile-bytecode --python "$venv/bin/python" --require-hashes "${broken[@]}" "${files[@]}" ||
    fail_with_log python "the Python packages could not be installed" "see the log above; nothing outside $venv was changed"
  rm -f "$venv/strata-installing"
  # sets that were installed earlier and are not asked for now stay true
  { printf '%s\n' "${wanted[@]}"; grep -vE "^($(IFS='|'; echo "$*"))=" "$state" 2>/dev/null || true; } >"$state.new"
  mv "$state.new" "$state"
}

# Checks PYTHON and sets python_version, torch_version, torch_witness, overlay_missing, has_torchvision.
describe_python() {
  local python=$1 facts by=${STRATA_NAMED_BY:---python}
  [[ -e $python ]] || fail python "$by: there is no $python" "give the path of a Python interpreter, for example \$(command -v python3)"
  [[ -f $python && -x $python ]] || fail python "$by: $python cannot be run" "give the path of a Python interpreter, for example \$(command -v python3)"
  mkdir -p "$logs"
  facts=$(timeout 60 "$python" "$root/setup/describe_python.py" 2>"$logs/python.log" </dev/null 9>&-) || true
  if [[ $facts != python_version=* ]]; then
    fail_with_log python "$by: $python is not a working Python 3 interpreter" "give the path of a Python interpreter that has PyTorch 2.11 or newer"
  fi
  eval "$facts"
  ((python_is_usable)) || fail python "$by: $python is Python $python_version; 3.10 or newer is needed" "name another interpreter"
  [[ -n $torch_version ]] || fail python "$by: $python (Python $python_version) has no PyTorch" \
    "install PyTorch 2.11 or newer there, or leave $by out: strata then installs its own"
  ((torch_is_new_enough)) || fail python "$by: $python has PyTorch $torch_version; 2.11 or newer is needed" \
    "upgrade it, or leave $by out: strata then installs its own"
}

# set_up_overlay PYTHON FOLDER: what a user's environment lacks goes into FOLDER, which workers append to sys.path; nothing goes into theirs.
set_up_overlay() {
  local python=$1 folder=$2
  [[ -n $overlay_missing ]] || return 0
  [[ $(cat "$folder/strata-installed" 2>/dev/null) == "$(lock_hash overlay)" ]] && return
  link_mode_for
  rm -rf "$folder"
  mkdir -p "$folder"
  run_uv overlay "adding what $python lacks ($overlay_missing), into $folder" pip install --python "$python" --target "$folder" --require-hashes \
    -r "$root/requirements/overlay.txt" || fail_with_log overlay "$overlay_missing could not be installed beside $python" "install them there yourself: $python -m pip install $overlay_missing"
  lock_hash overlay >"$folder/strata-installed"
}

# The headers of cudnn-frontend for the level cudnn, where there is CUDA's compiler. The package's own dependencies are for its Python half.
set_up_cudnn_frontend() {
  local folder="$venv/cudnn-frontend"
  command -v nvcc >/dev/null || [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]] || return 0
  [[ $(cat "$folder/strata-installed" 2>/dev/null) == "$(lock_hash cuda)" ]] && return
  link_mode_for
  rm -rf "$folder"
  mkdir -p "$folder"
  if run_uv cuda "adding the headers of cudnn-frontend ($(megabytes cuda 2) MB)" pip install --python "$venv/bin/python" --target "$folder" --no-deps --require-hashes \
    -r "$root/requirements/cuda.txt"; then
    lock_hash cuda >"$folder/strata-installed"
  else
    say "strata: cudnn-frontend could not be installed; the level cudnn is unavailable, the others go on. Log: $logs/cuda.log"
  fi
}
