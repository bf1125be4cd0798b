// SPDX-License-Identifier: Apache-2.0
// The file that a child's standard error goes to: its last lines, and a bound on its size.
#pragma once

#include <cstddef>
#include <string>

namespace strata::worker {

constexpr std::size_t longest_log_bytes = std::size_t{8} << 20;
constexpr std::size_t kept_log_bytes = std::size_t{1} << 20;  // of the beginning, and of the end

// The last lines of a file, valid UTF-8, control characters as spaces; empty if it cannot be read.
std::string tail_of_file(const std::string& path, std::size_t lines);

// Leaves the beginning and the end of a log that has grown beyond longest_log_bytes, and a line between them that says
// how much is missing. `log`: a descriptor open for reading and appending, as the child's; anything but a regular file
// is left alone. What the child writes at that very moment may be lost.
void shorten_log(int log);

}  // namespace strata::worker
