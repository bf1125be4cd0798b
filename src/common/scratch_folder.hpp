// SPDX-License-Identifier: Apache-2.0
// A folder of this process alone below the system's temporary one, removed with all that is in it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace strata {

class ScratchFolder {
 public:
  // Mode 0700, named "strata-NAME-...".
  explicit ScratchFolder(std::string_view name) {
    std::error_code ec;
    auto pattern = (std::filesystem::temp_directory_path(ec) / "strata-").string() + std::string(name) + "-XXXXXX";
    if (!ec && ::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ec;
    if (!path_.empty()) std::filesystem::remove_all(path_, ec);
  }
  // Empty: it could not be made.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace strata
