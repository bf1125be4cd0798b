// SPDX-License-Identifier: Apache-2.0
#include "strata/level_json.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "strata/level.hpp"

namespace strata {

using nlohmann::json;

namespace {

const json* member(const json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(name));
  return it == object.end() ? nullptr : &*it;
}

template <class T>
T typed(const json& value, std::string_view field) {
  try {
    return value.get<T>();
  } catch (const json::exception&) {
    throw Failure("failed", fmt::format("level.json: field '{}' has the wrong type, got {}", field, value.dump()));
  }
}

}  // namespace

LevelJson LevelJson::read() {
  const char* folder = std::getenv("STRATA_LEVEL_DIR");
  const auto path = std::filesystem::path(folder == nullptr ? "" : folder) / "level.json";
  std::ifstream stream(path);
  json object = json::parse(stream, nullptr, false);
  if (!object.is_object())
    throw Failure("failed", fmt::format("{} cannot be read, or is not a JSON object", path.string()),
                  "strata sets STRATA_LEVEL_DIR to the level's folder, which has a level.json");
  return LevelJson(std::move(object));
}

const json* LevelJson::find(std::string_view field, std::string_view variant) const {
  if (const json* variants = member(object_, "variants"))
    if (const json* own = member(*variants, variant))
      if (const json* value = member(*own, field)) return value;
  return member(object_, field);
}

std::string LevelJson::id() const {
  const json* value = member(object_, "id");
  return value == nullptr ? std::string() : typed<std::string>(*value, "id");
}

std::vector<std::string> LevelJson::variants() const {
  std::vector<std::string> names{"default"};
  if (const json* variants = member(object_, "variants"); variants != nullptr && variants->is_object())
    for (const auto& [name, about] : variants->items()) names.push_back(name);
  return names;
}

std::vector<std::string> LevelJson::list(std::string_view field, std::string_view variant) const {
  const json* value = find(field, variant);
  return value == nullptr ? std::vector<std::string>() : typed<std::vector<std::string>>(*value, field);
}

bool LevelJson::flag(std::string_view field, std::string_view variant) const {
  const json* value = find(field, variant);
  return value != nullptr && typed<bool>(*value, field);
}

}  // namespace strata
