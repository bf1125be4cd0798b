// SPDX-License-Identifier: Apache-2.0
#include "export/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "plan/jobs.hpp"

namespace strata::exporting {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

std::string replaced(std::string text, const std::string& name, const std::string& value) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
  return text;
}

class Filler {
 public:
  Filler(const measure::Job& job, const Installation& place) : job_(job), places_(plan::places_of(place)) {}
  std::string operator()(const std::string& text) const {
    const auto known = level::expand({text}, job_.level, places_).front();
    return replaced(replaced(known, "{cache}", job_.cache.string()), "{bundle}", job_.bundle->folder.string());
  }

 private:
  const measure::Job& job_;
  level::Places places_;
};

std::vector<Piece> pieces(const Json& object, const Filler& fill, const std::string& about, bool optional) {
  std::vector<Piece> out;
  for (const auto& [name, from] : object.items()) out.push_back({fill(from.get<std::string>()), name, about, optional});
  return out;
}

}  // namespace

bool ships(const level::Level& level) {
  std::error_code ec;
  return fs::exists(level.folder / "export" / "export.json", ec);
}

Result<Recipe> read_recipe(const measure::Job& job, const Installation& place) {
  const fs::path folder = job.level.folder / "export", file = folder / "export.json";
  std::ifstream in(file);
  const Json told = Json::parse(in, nullptr, false);
  if (!told.is_object())
    return fail(fmt::format("{} cannot be read, or is not a JSON object", file.string()),
                "docs/export.md shows its fields");
  const Filler fill(job, place);
  Recipe recipe;
  try {
    recipe.what = told.at("what");
    recipe.build = fill(told.at("build").get<std::string>());
    recipe.test = fill(told.at("test").get<std::string>());
    recipe.run = fill(told.at("run").get<std::string>());
    recipe.artefacts = pieces(told.at("artefacts"), fill, "the artefact that was measured", false);
    for (auto& piece : pieces(told.value("optional", Json::object()), fill, "the artefact that was measured", true))
      recipe.artefacts.push_back(std::move(piece));
    recipe.sources = pieces(told.value("files", Json::object()), fill, "belongs to the program", false);
    recipe.packages = told.value("packages", std::vector<std::string>{});
  } catch (const Json::exception& error) {
    return fail(fmt::format("{}: {}", file.string(), error.what()), "docs/export.md shows its fields");
  }
  recipe.python = job.level.environment ? place.python : place.tools_python;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.is_regular_file(ec) && entry.path() != file)
      recipe.sources.push_back(
          {entry.path(), entry.path().filename().string(), "the program that serves the network", false});
  std::sort(recipe.sources.begin(), recipe.sources.end(),
            [](const Piece& a, const Piece& b) { return a.name < b.name; });
  return recipe;
}

}  // namespace strata::exporting
