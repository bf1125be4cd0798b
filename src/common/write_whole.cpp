// SPDX-License-Identifier: Apache-2.0
#include "common/write_whole.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace strata {

Result<void> write_whole(const std::filesystem::path& path, const std::string& content) {
  std::error_code code;
  // A device or a pipe is written to; only a file may be replaced by another.
  const bool beside = !code && (!std::filesystem::exists(path, code) || std::filesystem::is_regular_file(path, code));
  auto part = path;
  if (beside) part += fmt::format(".part{}", getpid());
  std::ofstream out(part, std::ios::binary);
  out << content;
  out.close();
  code.clear();
  if (out && beside) std::filesystem::rename(part, path, code);
  if (out && !code) return {};
  std::error_code ignored;
  if (beside) std::filesystem::remove(part, ignored);
  return fail(
      fmt::format("cannot write {} ({} bytes){}", path.string(), content.size(), code ? ": " + code.message() : ""),
      "choose another place with -o, or free some space");
}

}  // namespace strata
