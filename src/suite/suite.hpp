// SPDX-License-Identifier: Apache-2.0
// A suite: a text file (TOML) that says what to run (docs/suites.md). Here it is read; what its keys mean is for the
// verbs to say.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::suite {

// A key with its value or values, as words. `flag`: it was true or false.
struct Setting {
  std::string key;
  std::vector<std::string> values;
  bool is_list = false;
  std::optional<bool> flag;
  int line = 0;
};

struct Entry {
  std::string verb;
  std::vector<Setting> settings;  // in the file's order, without the defaults
  int line = 0;
};

struct Suite {
  std::filesystem::path path;
  std::string title, about, source;
  std::string hash;               // of the file's bytes
  std::vector<Setting> defaults;  // of every entry whose verb has such an option
  std::vector<Entry> entries;
};

// The file that is meant: a path, or a suite of strata's own by its name, as paper-2020/mnist. Error: there is none,
// with the names of those that there are.
Result<std::filesystem::path> find(const std::string& name, const std::filesystem::path& root);

// Error: it cannot be read, is no TOML, or holds something that no suite has; with file and line.
Result<Suite> read(const std::filesystem::path& path);

// "suites/digits.toml:12: ..."
Error at_line(const std::filesystem::path& path, int line, const std::string& what, std::string hint);

}  // namespace strata::suite
