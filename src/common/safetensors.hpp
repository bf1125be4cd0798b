// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors files: 8 bytes of little-endian header length, a JSON header, raw
// tensors. Strict: a header that lies about sizes, offsets, types or names is refused, never read past. Little-endian
// hosts only. Format: https://huggingface.co/docs/safetensors. Self-contained (result.hpp, nlohmann json); sdk/cpp
// compiles it as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace strata {

// One tensor, borrowed from a SafeTensors or from the caller. `data` need not be aligned: read it with value_at or
// memcpy.
struct TensorView {
  std::string dtype;  // "F64","F32","F16","BF16","I64","I32","I16","I8","U64","U32","U16","U8","BOOL"
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;

  std::int64_t elements() const;  // product of the shape; 1 for a scalar
};

// Bytes of one element of a dtype; 0: no such dtype.
std::size_t element_bytes(std::string_view dtype);
bool is_floating(std::string_view dtype);

// Element i (row-major) as a double. 64-bit integers beyond 2^53 are rounded. `i` must lie within the tensor.
double value_at(const TensorView& tensor, std::size_t i);
std::vector<double> to_doubles(const TensorView& tensor);
// Elements first, first+1, ... into `out`: for tensors too large to copy whole. They must lie within the tensor.
void read_doubles(const TensorView& tensor, std::size_t first, std::span<double> out);

// An opened file. Movable and copyable; copies share the bytes, and views live as long as one of them does.
class SafeTensors {
 public:
  // Copies a regular file into memory: what becomes of the file afterwards does not matter. Refuses one larger than
  // half of the machine's memory.
  static Result<SafeTensors> open(const std::filesystem::path& path);
  // Maps a regular file that nobody else writes: whoever truncates it in place ends this process by SIGBUS
  // (write_safetensors replaces, never truncates).
  static Result<SafeTensors> map(const std::filesystem::path& path);
  // Reads `file` in place: the caller keeps the bytes alive. `where` names it in errors.
  static Result<SafeTensors> parse(std::span<const std::byte> file, std::string where);

  const TensorView* find(std::string_view name) const;  // nullptr: no such tensor
  std::vector<std::string> names() const;               // sorted
  std::size_t size() const { return tensors_.size(); }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::shared_ptr<const void> memory_;  // freed or unmapped with the last copy
};

// Writes the tensors to a temporary file beside `path` and renames it, so that a reader never sees half a file.
// Errors: a name twice, a dtype or size that does not fit the shape, no space, no permission.
Result<void> write_safetensors(const std::filesystem::path& path,
                               const std::vector<std::pair<std::string, TensorView>>& tensors);

}  // namespace strata
