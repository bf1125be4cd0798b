// SPDX-License-Identifier: Apache-2.0
#include "plan/states.hpp"

#include <algorithm>
#include <string>

namespace strata::plan {
namespace fs = std::filesystem;
namespace {

// The file that is written last in a capture; its time is when the capture was used last.
fs::path stamp_of(const fs::path& state) {
  return state / "bundle.json";
}

}  // namespace

std::vector<fs::path> states_of(const fs::path& out) {
  std::error_code ec;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  const auto begin = out.filename().string() + ".";
  for (const auto& entry : fs::directory_iterator(out.parent_path(), ec)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(begin) || name.size() != begin.size() + 16 ||
        name.find_first_not_of("0123456789abcdef", begin.size()) != std::string::npos)
      continue;
    std::error_code missing;  // of a capture that is not whole: the oldest
    const auto used = fs::last_write_time(stamp_of(entry.path()), missing);
    files.emplace_back(missing ? fs::file_time_type::min() : used, entry.path());
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a > b; });
  std::vector<fs::path> states;
  for (auto& [used, folder] : files) states.push_back(std::move(folder));
  return states;
}

void mark_used(const fs::path& state) {
  std::error_code ec;  // a cache that cannot be written is one that nobody prunes
  fs::last_write_time(stamp_of(state), fs::file_time_type::clock::now(), ec);
}

std::size_t prune_states(const fs::path& out) {
  std::size_t removed = 0;
  const auto states = states_of(out);
  for (std::size_t i = kept_states; i < states.size(); ++i) {
    std::error_code ec;
    fs::remove_all(states[i], ec);
    removed += !ec;
  }
  return removed;
}

}  // namespace strata::plan
