// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors files: 8 bytes of header length, a JSON header, raw tensors
// (https://huggingface.co/docs/safetensors). Strict: what lies about sizes or places is refused. For little-endian
// machines; errors are std::runtime_error and name the file. Needs nothing but the standard library.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "printable.hpp"

struct RawTensor {
  std::string dtype;  // F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, ...
  std::vector<std::int64_t> shape;
  std::string bytes;  // contiguous
};
using RawTensors = std::map<std::string, RawTensor>;

// The JSON of a header: objects of strings, whole numbers and lists of them, and nothing else.
class HeaderReader {
 public:
  HeaderReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error(file_ + " is damaged: " + why + ", at byte " + std::to_string(8 + at_));
  }
  bool take(char c) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("'") + c + "' is missing");
  }
  void end() {
    take(' ');
    if (at_ != text_.size()) refuse("something follows the header");
  }
  std::string word() {
    std::string out;
    for (expect('"'); at_ < text_.size() && text_[at_] != '"';) out += text_[at_] == '\\' ? escaped() : text(1);
    expect('"');
    return out;
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> out;
    expect('[');
    if (take(']')) return out;
    do out.push_back(number());
    while (take(','));
    expect(']');
    return out;
  }

 private:
  std::string text(std::size_t bytes) {
    if (at_ + bytes > text_.size()) refuse("a text does not end");
    at_ += bytes;
    return text_.substr(at_ - bytes, bytes);
  }
  std::int64_t number() {
    take(' ');
    const auto begin = text_.data() + at_, end = text_.data() + text_.size();
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || value < 0) refuse("a number from 0 on is missing");
    at_ += static_cast<std::size_t>(stop - begin);
    return value;
  }
  std::uint32_t four_digits() {
    const std::string digits = text(4);
    std::uint32_t code = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + 4, code, 16);
    if (error != std::errc() || stop != digits.data() + 4) refuse("an escape is none");
    return code;
  }
  // UTF-8 of what a backslash begins.
  std::string escaped() {
    const char kind = text(2)[1];
    const std::string from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (const auto position = from.find(kind); position != std::string::npos) return to.substr(position, 1);
    if (kind != 'u') refuse("an escape is none");
    std::uint32_t code = four_digits();
    if (code >= 0xD800 && code < 0xDC00) {
      if (text(2) != "\\u") refuse("half a character");
      code = 0x10000 + ((code - 0xD800) << 10) + ((four_digits() - 0xDC00) & 0x3FF);
    }
    const auto rest = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), rest(0)};
    if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), rest(6), rest(0)};
    return {static_cast<char>(0xF0 | code >> 18), rest(12), rest(6), rest(0)};
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

// Bytes that a tensor of this type and shape takes.
inline std::uint64_t bytes_of(const std::string& dtype, const std::vector<std::int64_t>& shape) {
  static const std::map<std::string, std::uint64_t> sizes{{"F64", 8},  {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4},
                                                          {"U32", 4},  {"F16", 2}, {"I16", 2}, {"U16", 2}, {"BF16", 2},
                                                          {"BOOL", 1}, {"I8", 1},  {"U8", 1}};
  const auto size = sizes.find(dtype);
  if (size == sizes.end()) throw std::runtime_error("its type '" + dtype + "' is unknown");
  std::uint64_t bytes = size->second;
  for (const auto extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      throw std::runtime_error("its shape is too large");
  return bytes;
}

// Where each tensor of a header lies. Strict, as the format says: tensors fill the file from the header to the end,
// each with as many bytes as its type and shape take, none over another.
class Spans {
 public:
  Spans(const std::string& file, std::uint64_t bytes) : file_(file), bytes_(bytes) {}

  std::size_t add(const std::string& name, const RawTensor& tensor, const std::vector<std::int64_t>& span) try {
    if (span.size() != 2 || span[0] > span[1] || static_cast<std::uint64_t>(span[1]) > bytes_)
      throw std::runtime_error("it lies outside the file");
    const auto begin = static_cast<std::uint64_t>(span[0]), length = static_cast<std::uint64_t>(span[1]) - begin;
    if (length != bytes_of(tensor.dtype, tensor.shape))
      throw std::runtime_error("it has " + std::to_string(length) + " bytes, its type and shape take " +
                               std::to_string(bytes_of(tensor.dtype, tensor.shape)));
    if (length > 0 && !taken_.emplace(begin, length).second) throw std::runtime_error("it lies over another one");
    return static_cast<std::size_t>(length);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file_ + ": the tensor '" + name + "' is damaged: " + error.what());
  }

  void finish() const {
    std::uint64_t at = 0;
    for (const auto& [begin, length] : taken_) {
      if (begin != at)
        throw std::runtime_error(file_ + " is damaged: " + (begin < at ? "two tensors overlap" : "no tensor holds") +
                                 " its bytes from " + std::to_string(std::min(begin, at)) + " on");
      at += length;
    }
    if (at != bytes_) throw std::runtime_error(file_ + " is damaged: no tensor holds its last bytes");
  }

 private:
  const std::string& file_;
  std::uint64_t bytes_;
  std::map<std::uint64_t, std::uint64_t> taken_;
};

// The type, shape and place of a tensor; metadata are texts alone.
inline void read_entry(HeaderReader& json, bool is_metadata, RawTensor& tensor, std::vector<std::int64_t>& span) {
  json.expect('{');
  if (json.take('}')) return;
  do {
    const std::string key = json.word();
    json.expect(':');
    if (!is_metadata && key == "shape")
      tensor.shape = json.numbers();
    else if (!is_metadata && key == "data_offsets")
      span = json.numbers();
    else
      tensor.dtype = json.word();
  } while (json.take(','));
  json.expect('}');
}

inline RawTensors read_safetensors(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error(file + " cannot be read");
  const std::string all{std::istreambuf_iterator<char>(stream), {}};
  std::uint64_t length = 0;
  if (all.size() >= 8) std::memcpy(&length, all.data(), 8);
  if (all.size() < 8 || length > all.size() - 8)
    throw std::runtime_error(file + " is no safetensors file, or not all of it is there");
  const std::string header = all.substr(8, length);
  const std::size_t body = 8 + length;
  HeaderReader json(header, file);
  Spans spans(file, all.size() - body);
  RawTensors tensors;
  json.expect('{');
  bool more = !json.take('}');
  while (more) {
    const std::string name = json.word();
    std::vector<std::int64_t> span;
    RawTensor tensor;
    json.expect(':');
    read_entry(json, name == "__metadata__", tensor, span);
    if (name != "__metadata__") {
      const auto bytes = spans.add(name, tensor, span);
      tensor.bytes = all.substr(body + static_cast<std::size_t>(span[0]), bytes);
      if (!tensors.emplace(name, std::move(tensor)).second) json.refuse("the tensor '" + name + "' is there twice");
    }
    more = json.take(',');
    if (!more) json.expect('}');
  }
  json.end();
  spans.finish();
  return tensors;
}

inline std::string json_string(const std::string& text) {
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

inline void write_safetensors(const std::string& file, const RawTensors& tensors) {
  std::string header = "{", body;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const auto extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    header += (header.size() > 1 ? "," : "") + json_string(name) + ":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" +
              shape + "],\"data_offsets\":[" + std::to_string(body.size()) + ",";
    body += tensor.bytes;
    header += std::to_string(body.size()) + "]}";
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(&length), 8);
  stream << header << body << std::flush;
  if (!stream) throw std::runtime_error(file + " cannot be written");
}

// Each tensor's name, type, shape and first numbers.
inline void print(const RawTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    std::cout << printable(name) << " " << tensor.dtype << " [";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) std::cout << (i ? ", " : "") << tensor.shape[i];
    std::cout << "]";
    const auto show = [&](auto value) {
      for (std::size_t at = 0; at + sizeof value <= tensor.bytes.size() && at < 8 * sizeof value; at += sizeof value) {
        std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
        std::cout << " " << value;
      }
    };
    if (tensor.dtype == "F32") show(float{});
    if (tensor.dtype == "F64") show(double{});
    if (tensor.dtype == "I32") show(std::int32_t{});
    if (tensor.dtype == "I64") show(std::int64_t{});
    std::cout << "\n";
  }
}
