// SPDX-License-Identifier: Apache-2.0
// level.json of the level that runs (docs/protocol.md): what was said of it before the process began, which `hello` and
// the checks of a case repeat, so that no level says it twice.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata {

class LevelJson {
 public:
  // Of the folder STRATA_LEVEL_DIR. Throws failed if there is no such file, or no JSON object in it.
  static LevelJson read();

  std::string id() const;
  std::vector<std::string> variants() const;  // "default" first
  // A field of the variant, or of the level where the variant has none. Throws failed for another type.
  std::vector<std::string> list(std::string_view field, std::string_view variant = "default") const;
  bool flag(std::string_view field, std::string_view variant = "default") const;  // false where it is not there

 private:
  explicit LevelJson(nlohmann::json object) : object_(std::move(object)) {}
  const nlohmann::json* find(std::string_view field, std::string_view variant) const;  // nullptr: not there

  nlohmann::json object_;
};

}  // namespace strata
