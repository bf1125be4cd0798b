// SPDX-License-Identifier: Apache-2.0
// Reads safetensors files (https://huggingface.co/docs/safetensors), memory-mapped, and writes them. A header that lies
// about sizes or offsets, or whose tensors overlap, is refused.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kit {

// Borrowed from the file that it came from.
struct FileTensor {
  std::string type;  // "F32", "F64", "I64", ...
  std::vector<long> shape;
  const std::byte* data = nullptr;  // need not be aligned
  std::size_t bytes = 0;
};

class SafeTensors {
 public:
  // Throws std::runtime_error with the file's name.
  explicit SafeTensors(const std::string& path);
  const FileTensor* find(const std::string& name) const;  // nullptr: no such tensor
  const std::map<std::string, FileTensor>& all() const { return tensors_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::shared_ptr<const void> mapping_;
  std::map<std::string, FileTensor> tensors_;
};

// Writes the tensors, contiguous as they are. Throws std::runtime_error.
void write_safetensors(const std::string& path, const std::map<std::string, FileTensor>& tensors);

}  // namespace kit
