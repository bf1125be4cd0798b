// SPDX-License-Identifier: Apache-2.0
#include "common/container_image.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "common/escape.hpp"
#include "common/fill_in.hpp"

namespace strata {
namespace {

// "3.11" of "3.11.7"; the newest of 3 where it is not known.
std::string minor_version(const std::string& version) {
  return version.empty() ? "3" : version.substr(0, version.find('.', version.find('.') + 1));
}

// name==version; the name alone where the version is not known.
std::string pinned(const std::map<std::string, std::string>& packages) {
  std::vector<std::string> words;
  for (const auto& [name, version] : packages)
    words.push_back(escape::shell_word(version.empty() ? name : fmt::format("{}=={}", name, version)));
  return fmt::format("{}", fmt::join(words, " "));
}

std::string json_words(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const auto& word : words) quoted.push_back(nlohmann::json(word).dump());
  return fmt::format("{}", fmt::join(quoted, ", "));
}

}  // namespace

std::string dockerfile(const std::string& text, const ContainerImage& image) {
  const auto system = image.libraries.empty()
                          ? std::string()
                          : fmt::format(
                                "RUN apt-get update && apt-get install -y --no-install-recommends {} && rm -rf "
                                "/var/lib/apt/lists/*\n",
                                fmt::join(image.libraries, " "));
  std::string tools;
  for (const auto& tool : image.tools) tools += " " + tool;
  return fill_in(text, {{"verb", image.verb},
                        {"python", minor_version(image.python)},
                        {"packages", pinned(image.packages)},
                        {"tools", tools},
                        {"choices", image.choices},
                        {"build", image.build},
                        {"test", image.test},
                        {"system", system},
                        {"program", json_words(image.program)},
                        {"arguments", json_words(image.arguments)}});
}

}  // namespace strata
