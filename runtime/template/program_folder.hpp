// SPDX-License-Identifier: Apache-2.0
// Where the program's files lie, wherever it was moved or copied to: beside it, as `cmake --install` puts them, or in
// the folder above, as a build folder has them.
#pragma once

#include <filesystem>
#include <string>

inline std::string program_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return ".";
  for (const auto& operand : {own, own.parent_path()})
    if (fs::exists(operand / "weights.safetensors", error)) return operand.string();
  return own.string();
}
