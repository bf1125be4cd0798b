// SPDX-License-Identifier: Apache-2.0
// What `strata doctor` tells: one check a thing, with what was found, why it is not (fully) available, and what to do
// about it.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/places.hpp"

namespace strata::probe {

enum class Standing { ok, limited, missing };
std::string_view to_string(Standing standing);

struct Check {
  std::string group;  // machine, software, levels, set-up
  std::string name;   // "governor"
  Standing standing = Standing::ok;
  std::string found;   // what is there; may be empty when nothing is
  std::string reason;  // why it is limited or missing; empty if ok
  std::string remedy;  // what to do; empty if nothing needs or can be done
};
using Checks = std::vector<Check>;

// Cores, caches, instruction sets, SMT, governor, steal, load of others (both watched for `window`), memory, process
// probes, GPU.
Checks machine_checks(std::chrono::milliseconds window);

// Compiler, CMake, Ninja, Python and the packages in strata's own environment, read from files: no Python is started.
Checks software_checks(const Installation& place);

// Debian packages, Python packages and level binaries that a comparison still has to set up: download, disk, minutes.
Checks set_up_checks(const Installation& place);

// The site-packages folder of the virtual environment that `python` belongs to; empty: not a virtual environment.
std::filesystem::path site_packages(const std::filesystem::path& python);

// Names (lower case, dashes) and versions of the packages in a site-packages folder, by its *.dist-info folders.
std::map<std::string, std::string> installed_packages(const std::filesystem::path& site_packages);

// Parts of requirements/sizes: megabytes to download and on disk of a lock. Zeros: not listed.
struct Size {
  int download_mb = 0, disk_mb = 0;
};
Size lock_size(const std::filesystem::path& sizes_file, std::string_view lock);

}  // namespace strata::probe
