// SPDX-License-Identifier: Apache-2.0
#include "report/ledger.hpp"

#include <fmt/format.h>

namespace strata::report {
namespace {
std::string shown(const nlohmann::json& settings, const char* name) {
  const auto it = settings.is_object() ? settings.find(name) : settings.end();
  if (!settings.is_object() || it == settings.end() || it->is_null()) return "not reported";
  if (it->is_boolean()) return it->get<bool>() ? "yes" : "no";
  return it->is_string() ? it->get<std::string>() : it->dump();
}
}  // namespace

std::vector<std::string> setting_differences(const nlohmann::json& from, const nlohmann::json& to) {
  std::vector<std::string> result;
  for (const char* name : {"layout", "precision", "freezing", "threads"}) {
    const auto a = shown(from, name), b = shown(to, name);
    const bool free_layout = std::string_view(name) == "layout" && (a == "any" || b == "any");
    if (a != b && !free_layout) result.push_back(fmt::format("{}: {}, {}", name, a, b));
  }
  return result;
}

}  // namespace strata::report
