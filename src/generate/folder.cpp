// SPDX-License-Identifier: Apache-2.0
#include "generate/folder.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "common/staged_folder.hpp"

namespace strata::generate {
namespace fs = std::filesystem;

Result<std::string> read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail(fmt::format("cannot read {}", path.string()), "strata's own tree is damaged: get it again");
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

Result<void> write_text(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush())
    return fail(fmt::format("cannot write {}", path.string()), "is there space, and may you write there?");
  return {};
}

Result<void> copy_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  // as a new file would be: a cache may hold files that only their owner reads
  if (!error) fs::permissions(to, new_file_permissions(), error);
  if (error) return fail(fmt::format("cannot copy {} to {}: {}", from.string(), to.string(), error.message()));
  return {};
}

Result<void> copy_weights(const fs::path& bundle, const fs::path& folder) {
  return copy_to(bundle / "weights" / "timed.safetensors", folder / "weights.safetensors");
}

Result<void> copy_constants(const fs::path& bundle, const fs::path& folder) {
  const auto file = bundle / "graph_constants.safetensors";
  return fs::exists(file) ? copy_to(file, folder / "constants.safetensors") : Result<void>();
}

}  // namespace strata::generate
