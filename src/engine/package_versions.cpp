// SPDX-License-Identifier: Apache-2.0
#include "engine/package_versions.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

#include "common/python.hpp"
#include "worker/answers.hpp"

namespace strata::engine {
namespace {

constexpr const char* kQuestion = R"(import importlib.metadata as m, json, platform, sys
def version(name):
  try:
    return m.version(name)
  except m.PackageNotFoundError:
    return ''
print(json.dumps([platform.python_version(), {name: version(name) for name in sys.argv[1:]}]))
)";

}  // namespace

PackageVersions package_versions(const std::vector<std::string>& packages, const std::string& python,
                                 const std::filesystem::path& root) {
  worker::Launch launch;
  std::vector<std::string> words{"-c", kQuestion};
  words.insert(words.end(), packages.begin(), packages.end());
  launch.argv = python_command(python, root, words);
  launch.env = python_variables({});
  PackageVersions versions;
  for (const auto& name : packages) versions.packages[name];
  const auto ran = worker::run_to_end(launch, std::chrono::seconds(60));
  const auto reply = ran ? nlohmann::json::parse(ran->stdout_text, nullptr, false) : nlohmann::json();
  if (!reply.is_array() || reply.size() != 2 || !reply[0].is_string() || !reply[1].is_object()) return versions;
  versions.python = reply[0];
  for (const auto& [name, version] : reply[1].items())
    if (version.is_string()) versions.packages[name] = version;
  return versions;
}

}  // namespace strata::engine
