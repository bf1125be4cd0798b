// SPDX-License-Identifier: Apache-2.0
#include "kit/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "kit/safetensors_header.hpp"

namespace kit {
namespace {

std::pair<std::shared_ptr<const void>, std::size_t> map_file(const std::string& path) {
  const auto failed = [&] { return std::runtime_error("cannot read " + path + ": " + std::strerror(errno)); };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw failed();
  struct stat about {};
  if (::fstat(file, &about) != 0 || about.st_size < 8) {
    ::close(file);
    throw std::runtime_error(path + " is no safetensors file: it is shorter than 8 bytes");
  }
  const auto bytes = static_cast<std::size_t>(about.st_size);
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  errno = error;
  if (data == MAP_FAILED) throw failed();
  return {std::shared_ptr<const void>(data, [bytes](const void* p) { ::munmap(const_cast<void*>(p), bytes); }), bytes};
}

}  // namespace

SafeTensors::SafeTensors(const std::string& path) : path_(path) {
  const auto [mapping, bytes] = map_file(path);
  mapping_ = mapping;
  const auto* start = static_cast<const char*>(mapping.get());
  for (auto& [name, entry] : safetensors::read_header({start, bytes}, path))
    tensors_[name] = {.type = entry.dtype,
                      .shape = {entry.shape.begin(), entry.shape.end()},
                      .data = reinterpret_cast<const std::byte*>(start + entry.begin),
                      .bytes = entry.bytes};
}

void write_safetensors(const std::string& path, const std::map<std::string, FileTensor>& tensors) {
  safetensors::HeaderWriter header;
  for (const auto& [name, tensor] : tensors)
    header.add(name, tensor.type, {tensor.shape.begin(), tensor.shape.end()}, tensor.bytes);
  std::ofstream out(path, std::ios::binary);
  out << header.all();
  for (const auto& [name, tensor] : tensors)
    out.write(reinterpret_cast<const char*>(tensor.data), static_cast<std::streamsize>(tensor.bytes));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

const FileTensor* SafeTensors::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace kit
