// SPDX-License-Identifier: Apache-2.0
#include "level/line_count.hpp"

#include <fmt/format.h>

#include <fstream>

namespace strata::level {
namespace fs = std::filesystem;
namespace {

std::string trimmed(const std::string& line) {
  const auto begin = line.find_first_not_of(" \t\r");
  return begin == std::string::npos ? std::string() : line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

// Whether a line is comment alone; `open` is what ends the comment that it stands in, empty outside.
bool is_comment(const std::string& line, bool hash, std::string& open) {
  const std::string quotes = "\"\"\"";
  if (!open.empty()) {
    const auto end = line.find(open);
    if (end == std::string::npos) return true;
    const bool alone = end + open.size() == line.size();
    open.clear();
    return alone;
  }
  if (hash && line.starts_with(quotes)) {
    const auto end = line.find(quotes, quotes.size());
    if (end == std::string::npos) open = quotes;
    return end == std::string::npos || end + quotes.size() == line.size();
  }
  if (hash) return line.starts_with('#');
  if (!line.starts_with("/*")) return line.starts_with("//");
  const auto end = line.find("*/");
  if (end == std::string::npos) open = "*/";
  return end == std::string::npos || end + 2 == line.size();
}

}  // namespace

std::optional<int> code_lines(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  const auto extension = file.extension();
  const bool hash = extension == ".py" || extension == ".cmake" || extension == ".txt";
  int lines = 0;
  std::string open;
  for (std::string line; std::getline(in, line);) {
    const auto text = trimmed(line);
    if (!text.empty() && !is_comment(text, hash, open)) ++lines;
  }
  return lines;
}

Result<std::vector<MaintainedFile>> to_maintain(const Level& level, const Places& places, const std::string& model) {
  std::vector<MaintainedFile> files;
  for (const auto& entry : level.to_maintain) {
    const auto condition = entry.find(" if ");
    if (condition != std::string::npos && !model.starts_with(entry.substr(condition + 4))) continue;
    const fs::path file = expand({entry.substr(0, condition)}, level, places).front();
    const auto lines = code_lines(file);
    if (!lines)
      return fail(fmt::format("level {}: \"to_maintain\" names {}, which cannot be read", level.id, file.string()),
                  "fix its level.json; docs/protocol.md shows the field");
    files.push_back({file.filename().string(), *lines});
  }
  return files;
}

}  // namespace strata::level
