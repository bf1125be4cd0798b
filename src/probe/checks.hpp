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

// Compiler, CMake, Ninja, Python and, of the packages of strata's own interpreter (by their normal names, with their
// versions), those that strata uses. No Python is started.
Checks software_checks(const Installation& place, const std::map<std::string, std::string>& packages);

// Debian packages, Python packages and level binaries that a comparison still has to set up: download, disk, minutes.
Checks set_up_checks(const Installation& place);

// The site-packages folder of the virtual environment that `python` belongs to; empty: not a virtual environment.
std::filesystem::path site_packages(const std::filesystem::path& python);

// Whether strata was installed by pip, or packed: then its Python is the user's, and nothing is set up.
bool is_package(const Installation& place);

// As pip compares names of packages: lower case, dashes.
std::string normal_name(std::string package);

// Normal names and versions of the packages in a site-packages folder, by its *.dist-info folders.
std::map<std::string, std::string> installed_packages(const std::filesystem::path& site_packages);

// Parts of requirements/sizes: megabytes to download and on disk of a lock. Zeros: not listed.
struct Size {
  int download_mb = 0, disk_mb = 0;
};
Size lock_size(const std::filesystem::path& sizes_file, std::string_view lock);

}  // namespace strata::probe
