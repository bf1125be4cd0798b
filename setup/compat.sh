#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/compat-venv with the oldest supported PyTorch (requirements/compat.txt) and prints its interpreter. For ./test compat.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
source setup/common.sh
source setup/packages.sh
source setup/python.sh
folder="$root/build/compat-venv"
mkdir -p "$logs"
exec 9>"$logs/lock"
flock 9
set_up_packages tests
make_venv >&2
if [[ $(cat "$folder/strata-installed" 2>/dev/null) != "$(lock_hash compat)" ]]; then
  link_mode_for
  need_disk compat "$root" "$(megabytes compat 3)"
  announce_download "$(megabytes compat 2)" "$(megabytes compat 3)" "$folder" ""
  run_uv compat "making $folder" venv --clear --python "$venv/bin/python" "$folder" || fail_with_log compat "the environment could not be made" "see the log above"
  run_uv compat "installing the oldest supported PyTorch" pip install --python "$folder/bin/python" --require-hashes -r "$root/requirements/compat.txt" ||
    fail_with_log compat "PyTorch could not be installed" "see the log above"
  lock_hash compat >"$folder/strata-installed"
fi
echo "$folder/bin/python"
