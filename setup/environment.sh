#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# environment.sh LEVEL ITS_FOLDER FOLDER: makes the environment that a level brings (requirements.txt in its folder) as FOLDER, whole or not at all, with the
# Python of strata's own. Why it failed is left in FOLDER.failed: a line for the reason, one for what to do. Started by src/plan/install.cpp.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
source setup/common.sh
source setup/python.sh
level=$1
requirements=$2/requirements.txt
folder=$3
part=$folder.part
name=environment-$level

# As in common.sh; the level is then unavailable with this reason, and the others go on.
fail() {
  printf '%s\n%s\n' "$2" "${3:-}" >"$folder.failed"
  say ""
  say "strata: the environment of $level was not installed: $2"
  [[ -z ${3:-} ]] || say "what to do: $3"
  exit 3
}
trap 'say ""; say "strata: stopped; the environment of $level is not installed"; exit 130' INT TERM

mkdir -p "$logs" "$(dirname "$folder")"
exec 9>"$logs/lock"
if ! flock -n 9; then
  say "strata: another set-up is running in this folder; waiting for it"
  flock 9
fi
[[ ! -x $folder/bin/python ]] || exit 0 # the other one was for it
# what was stopped earlier, or whose Python is gone
rm -rf "$part" "$folder" "$folder.failed"
trap 'rm -rf "$part"' EXIT

sizes=$(sed -n 's/^# *\([0-9]*\) MB to download, \([0-9]*\) MB on disk.*/\1 \2/p' "$requirements" | head -n 1)
read -r download disk <<<"${sizes:-0 0}"
say "strata: the level $level brings an environment of its own, into $folder${sizes:+ ($download MB to download, $disk MB on disk)}"
make_venv
need_disk "$name" "$(dirname "$folder")" $((disk > 0 ? disk + 100 : 500))
((download <= 100)) || announce_download "$download" "$disk" "$folder" ""
link_mode_for
# its programs find their Python by their own place, so that it can be moved when it is whole
run_uv "$name" "making it" venv --relocatable --python "$venv/bin/python" "$part" || fail_with_log "$name" "the environment could not be made" "$logs/$name.log says why"
run_uv "$name" "installing its packages" pip install --compile-bytecode --python "$part/bin/python" --no-deps --require-hashes -r "$requirements" ||
  fail_with_log "$name" "the packages of $requirements could not be installed" "$logs/$name.log says why"
mv -T "$part" "$folder"
# those of an older list are of no use
for old in "$(dirname "$folder")/$level"-*; do [[ $old == "$folder" || ! -e $old ]] || rm -rf "$old"; done
say "  installed: $(du -sm "$folder" | cut -f1) MB"
