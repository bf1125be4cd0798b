// SPDX-License-Identifier: Apache-2.0
#include "export/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "common/container_image.hpp"
#include "common/escape.hpp"
#include "common/fill_in.hpp"
#include "plan/jobs.hpp"

namespace strata::exporting {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

using Values = std::map<std::string, std::string>;

// Paths in the place of {root}, {cache}, ...
Values paths_of(const plan::Job& job, const Installation& place) {
  const auto places = plan::places_of(place);
  return {{"python", places.python},
          {"tools_python", places.tools_python},
          {"build", places.build},
          {"root", places.root},
          {"cache", job.cache.string()},
          {"level", job.level.folder.string()},
          {"bundle", job.bundle->folder.string()}};
}

std::vector<ExportedFile> pieces(const Json& object, const Values& paths, const std::string& about, bool optional) {
  std::vector<ExportedFile> out;
  for (const auto& [name, from] : object.items())
    out.push_back({.from = fill_in(from.get<std::string>(), paths, '{', '}'),
                   .name = name,
                   .about = about,
                   .optional = optional});
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
  const auto paths = paths_of(job, place);
  auto words = paths;  // the same in a command of the shell
  for (auto& [name, path] : words) path = escape::shell_word(path);
  auto image_words = words;
  for (const char* name : {"python", "tools_python"}) image_words[name] = kImagePython;
  const auto command = [&](const char* key, const Values& values) {
    return fill_in(fields.at(key).get<std::string>(), values, '{', '}');
  };
  Recipe recipe;
  try {
    recipe.what = fields.at("what");
    recipe.build = command("build", words);
    recipe.test = command("test", words);
    recipe.run = command("run", words);
    recipe.image_build = command("build", image_words);
    recipe.image_test = command("test", image_words);
    recipe.artefacts = pieces(fields.at("artefacts"), paths, "the artefact that was measured", false);
    for (auto& piece : pieces(fields.value("optional", Json::object()), paths, "the artefact that was measured", true))
      recipe.artefacts.push_back(std::move(piece));
    recipe.sources = pieces(fields.value("files", Json::object()), paths, "belongs to the program", false);
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
            [](const ExportedFile& a, const ExportedFile& b) { return a.name < b.name; });
  return recipe;
}

}  // namespace strata::exporting
