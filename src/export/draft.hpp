// SPDX-License-Identifier: Apache-2.0
// A folder that appears whole or not at all: written beside its place under another name, then renamed.
#pragma once

#include <filesystem>
#include <string>

#include "common/result.hpp"

namespace strata::exporting {

class Draft {
 public:
  // Errors (usage): something that strata export did not make stands at `wanted`, or it did and `replace` is false; the
  // parent folder is missing or cannot be written to.
  static Result<Draft> begin(const std::filesystem::path& target, bool replace);
  Draft(Draft&& other) noexcept;
  ~Draft();  // removes what was not published

  Result<void> write(const std::string& name, const std::string& text) const;
  Result<void> copy(const std::filesystem::path& from, const std::string& name) const;
  Result<void> publish();

  const std::filesystem::path& place() const { return target_; }    // absolute
  const std::filesystem::path& folder() const { return partial_; }  // until it is published

 private:
  Draft(std::filesystem::path target, std::filesystem::path partial)
      : target_(std::move(target)), partial_(std::move(partial)) {}
  std::filesystem::path target_, partial_;
};

}  // namespace strata::exporting
