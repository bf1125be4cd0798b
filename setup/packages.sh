# SPDX-License-Identifier: Apache-2.0
# The Debian packages that strata builds and runs with. Sourced by setup.sh.

# Packages for NEED (program, levels, tests), one a line. What may come from elsewhere is asked for by its command.
wanted_packages() {
  local need=$1
  printf '%s\n' nlohmann-json3-dev libcli11-dev libexpected-dev libfmt-dev libsqlite3-dev libssl-dev zlib1g-dev libpng-dev libjpeg-dev libpugixml-dev libtomlplusplus-dev
  command -v g++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v curl >/dev/null || echo curl
  # of the levels, whose set-up follows the program's: asked for once, before minutes of compiling. Generated code of torch.compile and AOTInductor includes Python.h
  printf '%s\n' python3-venv python3-dev
  # bench/gpu/make
  [[ ${STRATA_SETUP_FOR:-} != pack ]] || printf '%s\n' libgtest-dev libgmock-dev
  [[ $need == tests ]] || return 0
  printf '%s\n' libgtest-dev libgmock-dev perl
  command -v shellcheck >/dev/null || echo shellcheck
  command -v chromium >/dev/null || echo chromium
  # its daemons start with the machine, which a person has not asked for; without it the tests of a real cluster are skipped
  [[ -z ${CI:-} ]] || echo slurm-wlm
  if apt-cache show clang-14 >/dev/null 2>&1; then printf '%s\n' clang-14 libclang-rt-14-dev; else printf '%s\n' clang libclang-rt-dev; fi
}

missing_packages() {
  local wanted
  mapfile -t wanted < <(wanted_packages "$1")
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p' | sort)
}

# may_use_sudo COMMAND: asks before anything runs as root; without a terminal the answer is no, unless STRATA_SUDO=1 says yes beforehand. No: says what to run instead.
may_use_sudo() {
  local answer=n
  if command -v sudo >/dev/null; then
    if [[ ${STRATA_SUDO:-} == 1 ]]; then
      answer=y
    elif [[ -t 0 && -t 2 ]]; then
      say "strata: Debian packages are missing, and installing them needs root: sudo $1"
      printf '  Run that now? [y/N] ' >&2
      read -r answer || answer=n
    fi
  fi
  case $answer in y* | Y*) sudo -v >&2 && return ;; esac
  say "strata: Debian packages are missing, and installing them needs root. Run this, then the same command again:"
  say ""
  say "  sudo $1"
  return 1
}

set_up_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "strata: this is not a Debian system, so nothing is installed; these packages' contents must be there: $(wanted_packages "$1" | tr '\n' ' ')"
    return
  fi
  local missing as_root=() advice
  mapfile -t missing < <(missing_packages "$1")
  ((${#missing[@]} > 0)) || return 0
  advice="apt-get install -y ${missing[*]}"
  if ((EUID != 0)); then
    may_use_sudo "$advice" || exit 3
    as_root=(sudo)
  fi
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "${missing[@]}")
  if ! "${install[@]}" -s >/dev/null 2>&1; then
    step packages "reading Debian's list of packages" "${as_root[@]}" apt-get update || fail_with_log packages "apt-get update failed" "see the log above"
  fi
  local size
  size=$(LC_ALL=C "${as_root[@]}" apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null | grep -E '^Need to get' || true)
  [[ -z $size ]] || say "strata: Debian packages: $size (into the system, by apt-get)"
  step packages "installing Debian packages: ${missing[*]}" "${install[@]}" || fail_with_log packages "apt-get could not install them" "try it by hand: $advice"
}
