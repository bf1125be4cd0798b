// SPDX-License-Identifier: Apache-2.0
#include "level/level.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "common/fill_in.hpp"
#include "common/hash.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "common/python.hpp"
#include "level/own_environment.hpp"
#include "worker/answers.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using outside::Fields;

constexpr int search_depth = 4;
const char* const see_level_json = "docs/protocol.md, section level.json, shows every field";
constexpr std::uintmax_t largest_file_bytes = 1 << 20;
constexpr std::size_t most_variants = 200;
const std::vector<std::string> placeholders = {"python", "tools_python", "level_python", "build", "level", "root"};
const std::vector<std::string> known_keys = {
    "id",         "title",        "rank",          "language", "api",         "devices", "modes",
    "precisions", "models",       "start",         "prepare",  "environment", "needs",   "peer",
    "harness",    "reassociates", "bakes_weights", "from",     "changes",     "default", "variants",
    "dynamic",    "to_maintain",  "operations",    "generate", "huge_pages"};
const std::vector<std::string> known_variant_keys = {"title",        "modes",    "devices", "bakes_weights",
                                                     "reassociates", "generate", "on_data"};

// A list of strings; `allowed` empty: any. A required list has at least one entry.
std::vector<std::string> list(Fields& fields, const char* key, bool required,
                              const std::vector<std::string>& allowed = {}) {
  const Json* value = fields.find(key, required ? "a list of one or more strings" : "");
  if (value == nullptr) {
    return {};
  }
  if (required && value->is_array() && value->empty()) {
    fields.complain(key, *value, "a list of one or more strings");
  }
  auto entries = fields.texts(key);
  for (const std::string& entry : entries) {
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), entry) == allowed.end()) {
      const auto meant = nearest(entry, allowed);
      fields.fail_with(
          fmt::format("{}: \"{}\" holds \"{}\"; allowed are {}", fields.where(), key, entry, fmt::join(allowed, ", ")),
          meant ? fmt::format("did you mean \"{}\"?", *meant) : "");
    }
  }
  return entries;
}

// An object of strings by name, of which `allowed` are the names.
std::map<std::string, std::string> texts(Fields& fields, const char* key, const std::vector<std::string>& allowed) {
  std::map<std::string, std::string> result;
  const Json* value = fields.find(key, "");
  if (value == nullptr) {
    return result;
  }
  const auto good = [&](const auto& item) {
    return item.value().is_string() && std::find(allowed.begin(), allowed.end(), item.key()) != allowed.end();
  };
  bool all = value->is_object();
  if (all) {
    for (const auto& item : value->items()) {
      all = all && good(item);
    }
  }
  if (!all) {
    fields.complain(key, *value, fmt::format("an object of strings by {}", fmt::join(allowed, " and ")));
    return result;
  }
  return value->get<std::map<std::string, std::string>>();
}

// Names in braces that expand() would leave alone although they look like placeholders.
void check_placeholders(Fields& fields, const char* key, const std::vector<std::string>& command) {
  for (const std::string& argument : command) {
    for (std::size_t open = argument.find('{'); open != std::string::npos; open = argument.find('{', open + 1)) {
      const std::size_t close = argument.find('}', open);
      const std::string name =
          close == std::string::npos ? argument.substr(open + 1) : argument.substr(open + 1, close - open - 1);
      if (close == std::string::npos ||
          std::find(placeholders.begin(), placeholders.end(), name) == placeholders.end()) {
        const auto meant = nearest(name, placeholders);
        fields.fail_with(fmt::format("{}: \"{}\" uses the unknown placeholder {{{}}}; allowed are {{{}}}",
                                     fields.where(), key, name, fmt::join(placeholders, "}, {")),
                         meant ? fmt::format("did you mean {{{}}}?", *meant) : "");
      }
    }
  }
}

// Before all other fields, which another version may name otherwise.
void check_api(Fields& fields, const Json& object) {
  if (!object.is_object()) return;
  const auto api = fields.integer("api", 1, 1000000);
  if (fields.error() || api == worker::protocol_api) return;
  fields.fail_with(
      fmt::format("{}: \"api\" is {}; this strata speaks {}", fields.where(), api, worker::protocol_api),
      api > worker::protocol_api ? "use a newer strata, or write the level for this version" : worker::how_to_upgrade);
}

// A key that is nearly a known one is a slip and refused; any other may belong to a later version and is only
// remembered.
void check_keys(Fields& fields, const Json& object, const std::vector<std::string>& known,
                std::vector<std::string>& ignored) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) {
      continue;
    }
    const auto meant = nearest(key, known);
    if (meant && edit_distance(key, *meant) <= 2) {
      fields.fail_with(fmt::format("{}: unknown field \"{}\"", fields.where(), key),
                       fmt::format("did you mean \"{}\"?", *meant));
    }
    ignored.push_back(key);
  }
}

// A variant's name may hold what frameworks write in theirs, as max-autotune.
bool good_variant(const std::string& name) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 40 && name != "default" && name != kHugePages &&
         std::all_of(name.begin(), name.end(), good);
}

std::vector<Variant> read_variants(Fields& fields, const Json& object, std::vector<std::string>& ignored) {
  std::vector<Variant> result;
  const auto variants = object.find("variants");
  if (variants == object.end()) {
    return result;
  }
  if (!variants->is_object()) {
    fields.fail_with(fmt::format("{}: \"variants\" is {}; allowed is an object, a name for each variant",
                                 fields.where(), variants->type_name()),
                     "docs/protocol.md, section level.json, shows one");
    return result;
  }
  if (variants->size() > most_variants) {
    fields.fail_with(
        fmt::format("{}: \"variants\" has {} of them; allowed are {}", fields.where(), variants->size(), most_variants),
        see_level_json);
    return result;
  }
  for (const auto& [name, about] : variants->items()) {
    const std::string where = fmt::format("{}: variant \"{}\"", fields.where(), name);
    if (!good_variant(name) || !about.is_object()) {
      fields.fail_with(where + (about.is_object() ? " has a name that is not allowed" : " is not an object"),
                       fmt::format("a name has up to 40 of a-z, 0-9, _ and -, and is neither default nor {}, which "
                                   "strata gives every level",
                                   kHugePages));
      continue;
    }
    Fields own(about, where, see_level_json);
    check_keys(own, about, known_variant_keys, ignored);
    Variant variant{.name = name,
                    .title = own.text("title"),
                    .modes = list(own, "modes", false, {"infer", "train"}),
                    .devices = list(own, "devices", false, {"cpu", "cuda"}),
                    .on_data = own.flag("on_data", false),
                    .generate = own.text("generate", "")};
    if (about.contains("bakes_weights")) {
      variant.bakes_weights = own.flag("bakes_weights", false);
    }
    if (about.contains("reassociates")) {
      variant.reassociates = own.flag("reassociates", false);
    }
    if (own.error()) {
      fields.fail_with(own.error()->what, own.error()->hint);
    }
    result.push_back(std::move(variant));
  }
  return result;
}

// A worker's host memory is what it is about, so a level that has no device but a GPU has it not; nor one whose workers
// ask for them anyway.
bool takes_huge_pages(const Level& level) {
  return !level.harness && !level.huge_pages &&
         std::find(level.devices.begin(), level.devices.end(), "cpu") != level.devices.end();
}

Variant huge_pages_variant() {
  return {.name = kHugePages,
          .title = fmt::format("memory asked for in huge pages (GLIBC_TUNABLES={})", kHugePagesTunable),
          .devices = {"cpu"}};
}

// What the user has set keeps its say.
std::string tunables_with_huge_pages() {
  const char* set = std::getenv("GLIBC_TUNABLES");
  return set == nullptr || *set == '\0' ? kHugePagesTunable : fmt::format("{}:{}", set, kHugePagesTunable);
}

Result<Json> parse_file(const fs::path& file) {
  auto object = outside::read_file(file, {.bytes = largest_file_bytes});
  if (!object) {
    return fail(object.error().what, object.error().hint, Exit::usage);
  }
  if (!object->is_object()) {
    return fail(fmt::format("{}: holds {} instead of a JSON object", file.string(), object->type_name()), "",
                Exit::usage);
  }
  return object;
}

// An environment of the level's own: requirements.txt, which {level_python} needs and whose every line pins a hash.
void read_requirements(Fields& fields, Level& level) {
  const fs::path file = level.folder / "requirements.txt";
  const auto names = [](const std::vector<std::string>& command) {
    return std::any_of(command.begin(), command.end(),
                       [](const std::string& word) { return word.find("{level_python}") != std::string::npos; });
  };
  const bool used = names(level.start) || names(level.prepare);
  std::error_code none;
  if (const auto bytes = fs::file_size(file, none); used && !none && bytes > largest_file_bytes)
    return fields.fail_with(fmt::format("{}: has {} bytes; allowed are {}", file.string(), bytes, largest_file_bytes),
                            see_level_json);
  const auto hash = sha256_of_file(file);
  if (hash && used) {
    level.requirements = *hash;
  } else if (used) {
    fields.fail_with(
        fmt::format("{}: {{level_python}} is the interpreter of the level's own environment, and {} is not "
                    "there",
                    fields.where(), file.string()),
        "write it (docs/add_a_level.md says how), or use {python} or {tools_python}");
  }
}

void walk(const fs::path& folder, int depth, std::vector<fs::path>& out) {
  std::error_code error;
  if (fs::exists(folder / "level.json", error)) {
    out.push_back(folder);
    return;
  }
  if (depth == 0) {
    return;
  }
  std::vector<fs::path> inner;
  for (fs::directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(error) && !entry->is_symlink(error) && !name.starts_with(".")) {
      inner.push_back(entry->path());
    }
  }
  std::sort(inner.begin(), inner.end());
  for (const fs::path& path : inner) {
    walk(path, depth - 1, out);
  }
}

}  // namespace

bool good_id(const std::string& id) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !id.empty() && id.size() <= 40 && id[0] >= 'a' && id[0] <= 'z' && std::all_of(id.begin(), id.end(), good);
}

bool ships(const Level& level) {
  std::error_code ec;
  return fs::exists(level.folder / "export" / "export.json", ec);
}

Result<Level> read(const fs::path& folder) {
  const fs::path file = folder / "level.json";
  auto object = parse_file(file);
  if (!object) {
    return tl::unexpected<Error>(object.error());
  }
  Fields fields(*object, file.string(), see_level_json);
  fields.set_exit(Exit::usage);
  Level level;
  level.folder = fs::absolute(folder).lexically_normal();
  if (!level.folder.has_filename()) {
    level.folder = level.folder.parent_path();  // "levels/eager/" and "levels/eager" are one folder
  }
  check_api(fields, *object);
  check_keys(fields, *object, known_keys, level.ignored);
  level.id = fields.text("id");
  level.title = fields.text("title");
  level.rank = static_cast<int>(fields.integer("rank", 0, 1000));
  level.language = fields.text("language");
  level.devices = list(fields, "devices", true, {"cpu", "cuda"});
  level.modes = list(fields, "modes", true, {"infer", "train"});
  level.precisions = list(fields, "precisions", true);
  level.models = list(fields, "models", false);
  level.start = list(fields, "start", true);
  level.prepare = list(fields, "prepare", false);
  level.environment = fields.flag("environment", true);
  level.needs = list(fields, "needs", false);
  level.peer = fields.flag("peer", false);
  level.harness = fields.flag("harness", false);
  level.reassociates = fields.flag("reassociates", false);
  level.bakes_weights = fields.flag("bakes_weights", false);
  level.dynamic = fields.flag("dynamic", false);
  level.huge_pages = fields.flag("huge_pages", false);
  level.to_maintain = list(fields, "to_maintain", false);
  level.operations = list(fields, "operations", false);
  level.generate = texts(fields, "generate", {"cpu", "cuda"});
  level.from = fields.text("from", "");
  level.changes = fields.text("changes", "");
  level.default_text = fields.text("default", "");
  level.variants = read_variants(fields, *object, level.ignored);
  if (takes_huge_pages(level)) {
    level.variants.push_back(huge_pages_variant());
  }
  if (!fields.error() && !good_id(level.id)) {
    fields.fail_with(fmt::format("{}: \"id\" is \"{}\"; allowed are up to 40 of a-z, 0-9 and _, a letter first",
                                 file.string(), level.id),
                     "");
  }
  check_placeholders(fields, "start", level.start);
  check_placeholders(fields, "prepare", level.prepare);
  read_requirements(fields, level);
  if (fields.error()) {
    return tl::unexpected<Error>(*fields.error());
  }
  return level;
}

Level as_variant(const Level& level, const Variant& variant) {
  Level changed = level;
  changed.variant = variant.name;
  changed.variants.clear();
  changed.default_text = variant.title;
  if (!variant.modes.empty()) {
    changed.modes = variant.modes;
  }
  if (!variant.devices.empty()) {
    changed.devices = variant.devices;
  }
  if (variant.generate.empty() && variant.name != kHugePages) {
    changed.generate.clear();
  }
  changed.generate_options = variant.generate;
  changed.bakes_weights = variant.bakes_weights.value_or(level.bakes_weights);
  changed.reassociates = variant.reassociates.value_or(level.reassociates);
  changed.on_data = variant.on_data;
  return changed;
}

void sort_by_rank(std::vector<Level>& levels) {
  std::sort(levels.begin(), levels.end(),
            [](const Level& a, const Level& b) { return a.rank != b.rank ? a.rank < b.rank : a.id < b.id; });
}

DiscoveredLevels discover(const std::vector<fs::path>& roots) {
  DiscoveredLevels result;
  std::set<fs::path> seen_folders;
  for (const fs::path& root : roots) {
    std::error_code error;
    if (!fs::is_directory(root, error)) {
      result.problems.push_back(
          {root, Error{fmt::format("{}: not a folder; levels are looked for there", root.string()),
                       "check STRATA_LEVEL_PATH", Exit::usage}});
      continue;
    }
    std::vector<fs::path> folders;
    walk(root, search_depth, folders);
    for (const fs::path& folder : folders) {
      if (!seen_folders.insert(fs::weakly_canonical(folder, error)).second) {
        continue;  // named twice: one level, no duplicate
      }
      auto level = read(folder);
      if (!level) {
        result.problems.push_back({folder / "level.json", level.error()});
        continue;
      }
      const auto same = std::find_if(result.levels.begin(), result.levels.end(),
                                     [&](const Level& other) { return other.id == level->id; });
      if (same != result.levels.end()) {
        result.problems.push_back({folder / "level.json", Error{fmt::format("{}: the id \"{}\" is taken by {}",
                                                                            (folder / "level.json").string(), level->id,
                                                                            same->folder.string()),
                                                                "give one of the two another id", Exit::usage}});
        continue;
      }
      result.levels.push_back(std::move(*level));
    }
  }
  sort_by_rank(result.levels);
  return result;
}

std::vector<fs::path> search_path(const fs::path& root) {
  std::vector<fs::path> roots = {root / "levels"};
  const char* more = std::getenv("STRATA_LEVEL_PATH");
  std::stringstream entries(more == nullptr ? "" : more);
  for (std::string entry; std::getline(entries, entry, ':');) {
    if (!entry.empty()) {
      roots.emplace_back(fs::absolute(entry));
    }
  }
  return roots;
}

namespace {
// Where a command starts an interpreter: in front, or behind /usr/bin/env and its assignments. Its size: nowhere.
std::size_t interpreter_at(const std::vector<std::string>& command) {
  std::size_t at = 0;
  if (!command.empty() && fs::path(command[0]).filename() == "env")
    while (++at < command.size() && command[at].find('=') != std::string::npos) {
    }
  const bool is_python = at < command.size() && (command[at] == "{python}" || command[at] == "{tools_python}" ||
                                                 command[at] == "{level_python}");
  return is_python ? at : command.size();
}
std::string python_of(const Level& level, const Places& places) {
  return has_own_environment(level) ? (own_environment(level, places) / "bin" / "python").string() : "";
}
}  // namespace

std::vector<std::string> expand(const std::vector<std::string>& command, const Level& level, const Places& places) {
  const std::map<std::string, std::string> meaning = {
      {"python", places.python}, {"tools_python", places.tools_python},      {"build", places.build},
      {"root", places.root},     {"level_python", python_of(level, places)}, {"level", level.folder.string()}};
  std::vector<std::string> out;
  const std::size_t interpreter = interpreter_at(command);
  for (const std::string& argument : command) out.push_back(fill_in(argument, meaning, '{', '}'));
  if (interpreter >= out.size()) return out;
  const auto at = out.begin() + static_cast<std::ptrdiff_t>(interpreter);
  const auto started = python_command(*at, places.root, {at + 1, out.end()});
  out.erase(at, out.end());
  out.insert(out.end(), started.begin(), started.end());
  return out;
}

std::optional<Error> left_out(const fs::path& program) {
  std::ifstream file(program.string() + ".missing");
  Error error;
  error.exit = Exit::environment;
  if (!std::getline(file, error.what)) return std::nullopt;
  std::getline(file, error.hint);
  return error;
}

std::map<std::string, std::string> environment(const Level& level, const Places& places, int threads,
                                               const fs::path& cache) {
  std::map<std::string, std::string> env = {
      {"STRATA_LEVEL_DIR", level.folder.string()},       {"OMP_NUM_THREADS", std::to_string(threads)},
      {"MKL_NUM_THREADS", std::to_string(threads)},      {"TORCHINDUCTOR_CACHE_DIR", (cache / "inductor").string()},
      {"TRITON_CACHE_DIR", (cache / "triton").string()},
  };
  if (level.variant == kHugePages || level.huge_pages) {
    env["GLIBC_TUNABLES"] = tunables_with_huge_pages();
  }
  env.merge(python_variables({fs::path(places.root) / "sdk" / "python"}));
  return env;
}

}  // namespace strata::level
