# SPDX-License-Identifier: Apache-2.0
# Shared by the launchers and the set-up steps: messages, running a step with its log, and finding the environment. Sourced, never run.
# Needs `root` to be set. Everything said goes to standard error, so that the program's own output stays clean.

logs="$root/build/setup"

say() { printf '%s\n' "$*" >&2; }

# fail STEP MESSAGE ADVICE: ends the set-up.
fail() {
  say ""
  say "strata: set-up step '$1' failed: $2"
  [[ -z ${3:-} ]] || say "what to do: $3"
  say "Running the same command again goes on from there."
  exit 3
}

# Shows the lines of standard input as they come: one line written over on a terminal, otherwise the newest line every 30 seconds.
show_progress() {
  local line latest="" begin=$SECONDS shown=$SECONDS status columns=${COLUMNS:-80}
  [[ ! -t 2 ]] || columns=$(tput cols 2>/dev/null || echo 80)
  while true; do
    status=0
    IFS= read -r -t 2 line || status=$?
    if ((status == 0)); then latest=$line; elif ((status <= 128)); then break; fi
    if [[ -t 2 ]]; then
      printf '\r\033[K  %4d s  %s' $((SECONDS - begin)) "${latest:0:columns-12}" >&2
    elif ((SECONDS - shown >= 30)); then
      shown=$SECONDS
      say "  $((SECONDS - begin)) s  $latest"
    fi
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# step NAME TITLE COMMAND...: runs the command with its output in build/setup/NAME.log and progress on the screen. Returns its exit code.
step() {
  local name=$1 title=$2 status=0 begin=$SECONDS
  shift 2
  say "strata: $title"
  mkdir -p "$logs"
  { "$@" 2>&1 </dev/null 9>&- | tee "$logs/$name.log" | show_progress; } 9>&- || status=$?
  ((status != 0)) || say "  done in $((SECONDS - begin)) s"
  return $status
}

# The end of a step's log, indented, for a failure.
log_tail() {
  say ""
  say "The end of $logs/$1.log:"
  tail -n "${2:-15}" "$logs/$1.log" 2>/dev/null | sed 's/^/  | /' >&2
}

# fail_with_log STEP MESSAGE ADVICE: the same as fail, after the end of the step's log; says so when the network is the likely cause.
fail_with_log() {
  log_tail "$1"
  local advice=$3
  if grep -qiE 'could not resolve|temporary failure|dns error|failed to fetch|error sending request|connection (refused|reset|timed)|network (is unreachable|was disabled)|NewConnectionError|timed out|could not connect|from versions: none' "$logs/$1.log"; then
    advice="the package index could not be reached: check the network; behind a proxy set HTTPS_PROXY, for a mirror set pip's index-url or UV_DEFAULT_INDEX"
  elif grep -qi 'no space left' "$logs/$1.log"; then
    advice="the disk is full: $(df -h --output=avail,target "$root" | tail -n 1 | sed 's/  */ free on /2; s/^ *//'); free some space"
  fi
  fail "$1" "$2" "$advice"
}

# megabytes LOCK COLUMN: 2 = download, 3 = on disk, from requirements/sizes.
megabytes() { awk -v lock="$1" -v column="$2" '$1 == lock { print $column; found = 1 } END { if (!found) print 0 }' "$root/requirements/sizes"; }

# need_disk STEP FOLDER MEGABYTES: fails when the file system of FOLDER has less.
need_disk() {
  local free
  free=$(df --output=avail -BM "$2" | tail -n 1 | tr -dc 0-9)
  ((free >= $3)) || fail "$1" "it needs $3 MB on the file system of $2, where $free MB are free" \
    "free some space, or move this folder to a larger disk; --python PATH measures a PyTorch that you have and needs $(megabytes base 3) MB"
}
