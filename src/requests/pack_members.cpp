// SPDX-License-Identifier: Apache-2.0
// The members of PackRequest, and the one kind that no other request has: versions of a machine elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/outside.hpp"
#include "common/text.hpp"
#include "requests/members.hpp"

namespace strata::requests {
namespace {

using Target = PackRequest::Target;
constexpr const char* kVersions = "torch==2.11.0+cu130,python3.12, or one of the two";

// "2.11.0+cu130": digits first, then what versions are written with.
bool is_version(std::string_view text) {
  constexpr std::string_view figures = "0123456789", more = "abcdefghijklmnopqrstuvwxyz+.";
  return !text.empty() && figures.find(text.front()) != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return figures.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos;
         });
}

std::optional<Target> target_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  constexpr std::string_view torch = "torch==", python = "python";
  Target target;
  for (const auto& part : split(text, ',')) {
    const bool is_torch = part.starts_with(torch);
    if (!is_torch && !part.starts_with(python)) return std::nullopt;
    auto& version = is_torch ? target.torch : target.python;
    if (!version.empty()) return std::nullopt;
    version = part.substr(is_torch ? torch.size() : python.size());
    if (!is_version(version)) return std::nullopt;
  }
  return target;
}

nlohmann::json target_json(const Target& target) {
  auto value = nlohmann::json::object();
  if (!target.torch.empty()) value["torch"] = target.torch;
  if (!target.python.empty()) value["python"] = target.python;
  return value;
}

Member versions(Target& target) {
  Member member;
  member.type = "VERSIONS";
  member.read_text = [&target](const auto& option, const auto& text) -> Result<void> {
    const auto read = target_of(text);
    if (!read)
      return fail(fmt::format("{} {}: allowed: {}", option, text, kVersions),
                  "PYTHON -c 'import sys, torch; print(torch.__version__, sys.version)' says them", Exit::usage,
                  {option, outside::shown(text), kVersions});
    target = *read;
    return {};
  };
  member.read_json = [&target](const nlohmann::json& json) -> std::optional<std::string> {
    const Target read{outside::text_or(json, "torch"), outside::text_or(json, "python")};
    if (!json.is_object() || json != target_json(read)) return R"(an object as {"torch": "2.11.0", "python": "3.12"})";
    for (const auto& version : {read.torch, read.python})
      if (!version.empty() && !is_version(version)) return "versions as 2.11.0+cu130";
    target = read;
    return std::nullopt;
  };
  member.json = [&target] { return target_json(target); };
  member.values = [&target] {
    std::string text = target.torch.empty() ? "" : "torch==" + target.torch;
    if (!target.python.empty()) text += (text.empty() ? "python" : ",python") + target.python;
    return text.empty() ? std::vector<std::string>{} : std::vector{text};
  };
  return member;
}

}  // namespace

std::vector<Member> members_of(PackRequest& request) {
  auto output =
      described(text(request.output), "output", "-o",
                "the folder to make, or a file that ends in .tar or .tar.gz; all of it appears, or nothing", "PATH");
  output.also = "--output";
  output.required = true;
  return {output,
          member_of_levels(request.levels,
                           "the levels that can be run there, as eager,libtorch; eager comes with them (default: all "
                           "that run on the device and bring no environment of their own)"),
          member_of_device(request.device, "levels will run"), member_of_python(request.python),
          described(versions(request.target), "for", "--for",
                    "what the other machine has: refuse to pack for an interpreter that is of another version")};
}

}  // namespace strata::requests
