// SPDX-License-Identifier: Apache-2.0
#include "worker/log_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "worker/process.hpp"

namespace strata::worker {

std::string tail_of_file(const std::string& path, std::size_t lines) {
  constexpr std::streamoff longest = 64 * 1024;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (path.empty() || !file) {
    return {};
  }
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - longest));
  std::string text(static_cast<std::size_t>(std::clamp<std::streamoff>(size, 0, longest)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  std::size_t begin = text.size();
  for (std::size_t i = 0; i < lines && begin != std::string::npos && begin > 0; ++i) {
    begin = text.rfind('\n', begin - 1);
  }
  return printable(begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1), text.size());
}

void shorten_log(int log) {
  struct stat status = {};
  if (log < 0 || ::fstat(log, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size <= static_cast<off_t>(longest_log_bytes)) {
    return;
  }
  std::string end(kept_log_bytes, '\0');
  const ssize_t got = ::pread(log, end.data(), end.size(), status.st_size - static_cast<off_t>(end.size()));
  end.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  if (::ftruncate(log, static_cast<off_t>(kept_log_bytes)) != 0) {
    return;
  }
  const std::string text = fmt::format("\n[{} bytes are left out here]\n",
                                       static_cast<std::size_t>(status.st_size) - kept_log_bytes - end.size()) +
                           end;
  [[maybe_unused]] const ssize_t written = ::write(log, text.data(), text.size());  // a full disk: the beginning stays
}

}  // namespace strata::worker
