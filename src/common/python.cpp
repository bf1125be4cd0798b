// SPDX-License-Identifier: Apache-2.0
#include "common/python.hpp"

#include <cstdlib>
#include <sstream>

namespace strata {
namespace fs = std::filesystem;

std::vector<std::string> python_command(const std::string& interpreter, const fs::path& root,
                                        const std::vector<std::string>& words) {
  std::vector<std::string> command{interpreter};
  auto word = words.begin();
  while (word != words.end() && word->starts_with('-') && *word != "-m" && *word != "-c") {
    const bool has_value = *word == "-W" || *word == "-X";
    command.push_back(*word++);
    if (has_value && word != words.end()) command.push_back(*word++);
  }
  if (word == words.end()) return command;
  command.push_back((root / "sdk" / "python" / "start_python.py").string());
  command.insert(command.end(), word, words.end());
  return command;
}

std::map<std::string, std::string> python_variables(const std::vector<fs::path>& folders) {
  std::string path;
  const auto add = [&](const std::string& folder) { path += (path.empty() ? "" : ":") + folder; };
  for (const auto& folder : folders) add(folder.string());
  const char* before = std::getenv("PYTHONPATH");
  std::stringstream entries(before == nullptr ? "" : before);
  for (std::string entry; std::getline(entries, entry, ':');)
    if (entry.starts_with('/')) add(entry);
  return {{"PYTHONPATH", path}, {"PYTHONSAFEPATH", "1"}};
}

}  // namespace strata
