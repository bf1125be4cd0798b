// SPDX-License-Identifier: Apache-2.0
#include "kit/safetensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace kit {
namespace {

// As much of JSON as a header has: objects, strings, lists of numbers.
class Header {
 public:
  Header(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error(path_ + " is no sound safetensors file: " + why + ", at byte " + std::to_string(at_ + 8));
  }
  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char expected) {
    if (peek() != expected) refuse(std::string("'") + expected + "' is missing");
    ++at_;
  }
  bool take(char expected) {
    if (peek() != expected) return false;
    ++at_;
    return true;
  }

  std::string string() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"')
      out += text_[at_] == '\\' ? escaped() : std::string(1, text_[at_++]);
    expect('"');
    return out;
  }

  long number() {
    if (peek() < '0' || peek() > '9') refuse("a number is missing");
    long value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, 10L, &value) || __builtin_add_overflow(value, long{text_[at_] - '0'}, &value))
        refuse("a number is too large");
    return value;
  }

  std::vector<long> numbers() {
    std::vector<long> all;
    expect('[');
    if (take(']')) return all;
    do all.push_back(number());
    while (take(','));
    expect(']');
    return all;
  }

  // Calls member(key) for each member, which must read its value.
  template <class Member>
  void object(const Member& member) {
    expect('{');
    if (take('}')) return;
    do {
      const std::string key = string();
      expect(':');
      member(key);
    } while (take(','));
    expect('}');
  }

 private:
  std::string escaped() {
    if (++at_ >= text_.size()) refuse("a string does not end");
    const char kind = text_[at_++];
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (const auto position = from.find(kind); position != std::string_view::npos) return std::string(1, to[position]);
    if (kind != 'u' || at_ + 4 > text_.size()) refuse("an unknown escape");
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const auto digit = std::string_view("0123456789abcdef").find(static_cast<char>(text_[at_++] | 0x20));
      if (digit == std::string_view::npos) refuse("an unknown escape");
      code = code * 16 + static_cast<unsigned>(digit);
    }
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    return {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

std::size_t element_bytes(const std::string& type) {
  if (type == "F64" || type == "I64" || type == "U64") return 8;
  if (type == "F32" || type == "I32" || type == "U32") return 4;
  if (type == "F16" || type == "BF16" || type == "I16" || type == "U16") return 2;
  return type == "I8" || type == "U8" || type == "BOOL" ? 1 : 0;
}

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

// One tensor's entry: its type, shape and place among `bytes` of data.
FileTensor read_entry(Header& header, const std::byte* data, std::size_t bytes) {
  FileTensor tensor;
  std::vector<long> place;
  header.object([&](const std::string& field) {
    if (field == "dtype")
      tensor.type = header.string();
    else if (field == "shape")
      tensor.shape = header.numbers();
    else if (field == "data_offsets")
      place = header.numbers();
    else
      header.refuse("the unknown field '" + field + "'");
  });
  long needed = static_cast<long>(element_bytes(tensor.type));
  if (needed == 0) header.refuse("the unknown type '" + tensor.type + "'");
  for (const long extent : tensor.shape)
    if (__builtin_mul_overflow(needed, extent, &needed)) header.refuse("a shape is too large");
  if (place.size() != 2 || place[0] > place[1] || static_cast<std::size_t>(place[1]) > bytes ||
      place[1] - place[0] != needed)
    header.refuse("a tensor's place does not fit its shape and the file");
  tensor.data = data + place[0];
  tensor.bytes = static_cast<std::size_t>(needed);
  return tensor;
}

// As the format says: tensors fill the file from the header to the end, none over another.
void check_places(const std::map<std::string, FileTensor>& tensors, const std::byte* data, std::size_t bytes,
                  const std::string& path) {
  std::vector<std::pair<const std::byte*, std::size_t>> places;
  for (const auto& [name, tensor] : tensors)
    if (tensor.bytes > 0) places.emplace_back(tensor.data, tensor.bytes);
  std::sort(places.begin(), places.end());
  const std::byte* at = data;
  for (const auto& [begin, length] : places) {
    if (begin != at)
      throw std::runtime_error(path + " is no sound safetensors file: " +
                               (begin < at ? "two tensors overlap" : "no tensor holds some of its bytes"));
    at = begin + length;
  }
  if (at != data + bytes)
    throw std::runtime_error(path + " is no sound safetensors file: no tensor holds its last bytes");
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += c == '"' || c == '\\'                  ? std::string("\\") + c
           : static_cast<unsigned char>(c) < 0x20 ? std::string(code)
                                                  : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

SafeTensors::SafeTensors(const std::string& path) : path_(path) {
  const auto [mapping, bytes] = map_file(path);
  mapping_ = mapping;
  const auto* start = static_cast<const std::byte*>(mapping.get());
  std::uint64_t length = 0;
  std::memcpy(&length, start, sizeof length);
  if (length > bytes - 8) throw std::runtime_error(path + " is no sound safetensors file: its header does not fit in");
  Header header({reinterpret_cast<const char*>(start) + 8, length}, path_);
  const std::byte* data = start + 8 + length;
  const std::size_t left = bytes - 8 - length;
  header.object([&](const std::string& name) {
    if (name == "__metadata__")
      header.object([&](const std::string&) { header.string(); });
    else if (!tensors_.emplace(name, read_entry(header, data, left)).second)
      header.refuse("the tensor '" + name + "' is there twice");
  });
  if (header.peek() != '\0') header.refuse("something follows the header");
  check_places(tensors_, data, left, path_);
}

void write_safetensors(const std::string& path, const std::map<std::string, FileTensor>& tensors) {
  std::string header = "{";
  std::size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const long extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    header += (header.size() == 1 ? "" : ",") + json_string(name) + ":{\"dtype\":\"" + tensor.type + "\",\"shape\":[" +
              shape + "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + tensor.bytes) + "]}";
    at += tensor.bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream out(path, std::ios::binary);
  const auto length = static_cast<std::uint64_t>(header.size());
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << header;
  for (const auto& [name, tensor] : tensors)
    out.write(reinterpret_cast<const char*>(tensor.data), static_cast<std::streamsize>(tensor.bytes));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

const FileTensor* SafeTensors::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace kit
