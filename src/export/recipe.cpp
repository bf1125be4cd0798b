// SPDX-License-Identifier: Apache-2.0
#include "export/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "common/escape.hpp"
#include "plan/jobs.hpp"

namespace strata::exporting {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

// Paths in the place of {root}, {cache}, ...; what they hold is never looked at again.
class Filler {
 public:
  Filler(const plan::Job& job, const Installation& place) {
    const auto places = plan::places_of(place);
    values_ = {{"python", places.python},
               {"tools_python", places.tools_python},
               {"build", places.build},
               {"root", places.root},
               {"cache", job.cache.string()},
               {"level", job.level.folder.string()},
               {"bundle", job.bundle->folder.string()}};
  }
  std::string operator()(const std::string& text) const { return filled(text, false); }
  // The same in a command of the shell.
  std::string command(const std::string& text) const { return filled(text, true); }

 private:
  std::string filled(const std::string& text, bool quoted) const {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const auto close = text[at] == '{' ? text.find('}', at) : std::string::npos;
      const auto it = close == std::string::npos ? values_.end() : values_.find(text.substr(at + 1, close - at - 1));
      if (it == values_.end()) {
        out += text[at++];
        continue;
      }
      out += quoted ? escape::shell_word(it->second) : it->second;
      at = close + 1;
    }
    return out;
  }

  std::map<std::string, std::string> values_;
};

std::vector<Piece> pieces(const Json& object, const Filler& fill, const std::string& about, bool optional) {
  std::vector<Piece> out;
  for (const auto& [name, from] : object.items())
    out.push_back({.from = fill(from.get<std::string>()), .name = name, .about = about, .optional = optional});
  return out;
}

}  // namespace

Result<Recipe> read_recipe(const plan::Job& job, const Installation& place) {
  const fs::path folder = job.level.folder / "export", file = folder / "export.json";
  std::ifstream in(file);
  const Json fields = Json::parse(in, nullptr, false);
  if (!fields.is_object())
    return fail(fmt::format("{} cannot be read, or is not a JSON object", file.string()),
                "docs/export.md shows its fields");
  const Filler fill(job, place);
  Recipe recipe;
  try {
    recipe.what = fields.at("what");
    recipe.build = fill.command(fields.at("build").get<std::string>());
    recipe.test = fill.command(fields.at("test").get<std::string>());
    recipe.run = fill.command(fields.at("run").get<std::string>());
    recipe.artefacts = pieces(fields.at("artefacts"), fill, "the artefact that was measured", false);
    for (auto& piece : pieces(fields.value("optional", Json::object()), fill, "the artefact that was measured", true))
      recipe.artefacts.push_back(std::move(piece));
    recipe.sources = pieces(fields.value("files", Json::object()), fill, "belongs to the program", false);
    recipe.packages = fields.value("packages", std::vector<std::string>{});
  } catch (const Json::exception& error) {
    return fail(fmt::format("{}: {}", file.string(), error.what()), "docs/export.md shows its fields");
  }
  recipe.python = job.level.environment ? place.python : place.tools_python;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.is_regular_file(ec) && entry.path() != file)
      recipe.sources.push_back({.from = entry.path(),
                                .name = entry.path().filename().string(),
                                .about = "the program that serves the network",
                                .optional = false});
  std::sort(recipe.sources.begin(), recipe.sources.end(),
            [](const Piece& a, const Piece& b) { return a.name < b.name; });
  return recipe;
}

}  // namespace strata::exporting
