// SPDX-License-Identifier: Apache-2.0
#include "suite/suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "common/hash.hpp"
#include "common/nearest.hpp"
#include "common/text.hpp"

namespace strata::suite {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kMostBytes = 1 << 20;
constexpr std::ptrdiff_t kMostDots = 500;

int line_of(const toml::node& node) {
  return static_cast<int>(node.source().begin.line);
}

std::optional<std::string> word_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(const fs::path& path) : path_(path) {}

  Result<Suite> suite(const toml::table& table) {
    Suite out;
    out.path = path_;
    for (auto& [name, target] : {std::pair{"title", &out.title}, {"about", &out.about}, {"source", &out.source}})
      if (const auto* node = table.get(name)) {
        if (!node->is_string()) return wrong(*node, fmt::format("{} is no text", name), "");
        *target = node->as_string()->get();
      }
    for (const auto& [key, node] : table)
      STRATA_TRY(check_key(std::string(key.str()), node, {"title", "about", "source", "defaults", "entry"}));
    if (out.title.empty())
      return tl::unexpected(at_line(path_, 1, "a suite has a title", "start with: title = \"what it runs\""));
    std::optional<std::string> verb;
    if (const auto* node = table.get("defaults")) {
      const auto* defaults = node->as_table();
      if (defaults == nullptr) return wrong(*node, "defaults is no table", "write [defaults] and its keys below");
      out.defaults = STRATA_TRY(settings(*defaults, verb));
    }
    const auto* entries = table.get("entry");
    if (entries == nullptr || !entries->is_array_of_tables())
      return tl::unexpected(at_line(path_, entries ? line_of(*entries) : 1, "a suite has entries",
                                    "write [[entry]] and its keys below, for each"));
    for (const auto& node : *entries->as_array()) STRATA_TRY(add_entry(out, *node.as_table(), verb));
    return out;
  }

 private:
  tl::unexpected<Error> wrong(const toml::node& node, const std::string& what, std::string hint) const {
    return tl::unexpected(at_line(path_, line_of(node), what, std::move(hint)));
  }

  Result<void> check_key(const std::string& key, const toml::node& node, std::vector<std::string> known) const {
    if (std::find(known.begin(), known.end(), key) != known.end()) return {};
    const auto near = nearest(key, known);
    return wrong(node,
                 fmt::format("unknown key '{}'{}; allowed: {}", key,
                             near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(known, ", ")),
                 "options of a verb belong in [defaults] or in an [[entry]]");
  }

  Result<void> add_entry(Suite& out, const toml::table& table, const std::optional<std::string>& verb) const {
    std::optional<std::string> own;
    auto read = STRATA_TRY(settings(table, own));
    if (!own) own = verb;
    if (!own) return wrong(table, "an entry without a verb", "add verb = \"train\" to it, or to [defaults]");
    out.entries.push_back({*own, std::move(read), line_of(table)});
    return {};
  }

  // In the order of the file, whatever that of the table is; `verb` stands by itself.
  Result<std::vector<Setting>> settings(const toml::table& table, std::optional<std::string>& verb) const {
    std::vector<std::pair<toml::source_position, Setting>> read_settings;
    for (const auto& [key, node] : table) {
      if (key.str() == "verb") {
        if (!node.is_string()) return wrong(node, "verb is no text", "");
        verb = node.as_string()->get();
        continue;
      }
      auto parsed = STRATA_TRY(setting(std::string(key.str()), node));
      read_settings.emplace_back(key.source().begin, std::move(parsed));
    }
    std::sort(read_settings.begin(), read_settings.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first.line, a.first.column) < std::tie(b.first.line, b.first.column);
    });
    std::vector<Setting> all;
    for (auto& [position, parsed] : read_settings) all.push_back(std::move(parsed));
    return all;
  }

  Result<Setting> setting(const std::string& key, const toml::node& node) const {
    constexpr const char* allowed = "allowed: a text, a number, true, false, or a list of texts and numbers";
    Setting result{.key = key, .line = line_of(node)};
    if (const auto* flag = node.as_boolean()) {
      result.flag = flag->get();
    } else if (const auto* list = node.as_array()) {
      result.is_list = true;
      for (const auto& each : *list) {
        auto word = value_of(each);
        if (!word) return wrong(each, fmt::format("{} holds what is no option's value", key), allowed);
        if (std::find(result.values.begin(), result.values.end(), *word) != result.values.end())
          return wrong(each, fmt::format("{}: {} is given twice", key, *word), "name each once");
        result.values.push_back(*word);
      }
      if (result.values.empty()) return wrong(node, fmt::format("{} is an empty list", key), "leave it out");
    } else if (const auto word = value_of(node)) {
      result.values = {*word};
    } else {
      return wrong(node, fmt::format("{} is no option's value", key), allowed);
    }
    return result;
  }

  // A text that begins with {here} lies beside the suite's file, wherever strata is called.
  std::optional<std::string> value_of(const toml::node& node) const {
    constexpr std::string_view here = "{here}/";
    auto word = word_of(node);
    if (word && word->starts_with(here))
      word = (path_.parent_path() / word->substr(here.size())).lexically_normal().string();
    return word;
  }

  const fs::path& path_;
};

// As they are named: "digits", "paper-2020/mnist".
std::vector<std::string> names_of_suites(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ec))
    if (entry.path().extension() == ".toml")
      names.push_back(entry.path().lexically_relative(folder).replace_extension().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Each dot of a key is a table in a table, and the parser nests calls as deep; a key and what is inline are one line.
Result<void> check_depth(const fs::path& path, std::string_view text) {
  int number = 0;
  for (const auto& line : split(text, '\n')) {
    ++number;
    if (const auto dots = std::count(line.begin(), line.end(), '.'); dots > kMostDots)
      return tl::unexpected(at_line(path, number, fmt::format("{} dots in one line; allowed are {}", dots, kMostDots),
                                    "a key of a suite has none; break a long list into lines"));
  }
  return {};
}

}  // namespace

Error at_line(const fs::path& path, int line, const std::string& what, std::string hint) {
  const auto place = fmt::format("{}:{}", path.string(), line);
  return {fmt::format("{}: {}", place, what), std::move(hint), Exit::usage, {.where = place}};
}

Result<fs::path> find(const std::string& name, const fs::path& root) {
  const auto folder = root / "suites";
  const auto names = names_of_suites(folder);
  const auto own = std::find(names.begin(), names.end(), name);
  if (own != names.end()) return folder / (*own + ".toml");
  std::error_code ec;
  if (fs::is_regular_file(name, ec)) return fs::path(name);
  const auto near = nearest(name, names);
  return fail(fmt::format("there is no suite '{}'{}: it is neither a file nor one of: {}", name,
                          near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(names, ", ")),
              "docs/suites.md describes the format", Exit::usage, among("suite", name, names));
}

Result<Suite> read(const fs::path& path) {
  std::error_code ec;
  const auto bytes = fs::file_size(path, ec);  // of a pipe it has none
  std::ifstream file;
  if (!ec) file.open(path, std::ios::binary);
  if (ec || !file)
    return fail(fmt::format("{}: cannot be read", path.string()), "", Exit::usage, {.where = path.string()});
  if (bytes > kMostBytes)
    return fail(fmt::format("{}: {} bytes are no suite", path.string(), bytes), "name a suite's file", Exit::usage);
  std::stringstream text;
  text << file.rdbuf();
  STRATA_TRY(check_depth(path, text.view()));
  const auto parsed = toml::parse(text.view(), path.string());
  if (!parsed)
    return tl::unexpected(at_line(path, static_cast<int>(parsed.error().source().begin.line),
                                  std::string(parsed.error().description()), "a suite is TOML: docs/suites.md"));
  auto suite = Reader(path).suite(parsed.table());
  if (suite) suite->hash = sha256_hex(text.view());
  return suite;
}

}  // namespace strata::suite
