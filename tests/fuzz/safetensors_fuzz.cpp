// SPDX-License-Identifier: Apache-2.0
// Any bytes are refused with a message or read without leaving them; what is accepted is what the format says.
#include <cstdlib>

#include "common/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = strata::SafeTensors::parse(bytes, "fuzz");
  if (!file) {
    if (file.error().what.empty() || file.error().what.size() > 1000) std::abort();
    for (char c : file.error().what)
      if (c < 0x20 || c > 0x7e) std::abort();
    return 0;
  }
  double sum = 0;
  std::size_t covered = 0;
  for (const std::string& name : file->names()) {
    const strata::TensorView& tensor = *file->find(name);
    if (tensor.data < bytes.data() || tensor.data + tensor.bytes > bytes.data() + size) std::abort();
    if (static_cast<std::size_t>(tensor.elements()) * strata::element_bytes(tensor.dtype) != tensor.bytes) std::abort();
    for (double value : strata::to_doubles(tensor)) sum += value;
    covered += tensor.bytes;
  }
  if (covered > size) std::abort();
  volatile double read = sum;
  (void)read;
  return 0;
}
