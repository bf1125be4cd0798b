// SPDX-License-Identifier: Apache-2.0
// The header of safetensors files (https://huggingface.co/docs/safetensors): 8 bytes of its length, JSON that says
// where each tensor lies, raw tensors. Strict: what lies about sizes or places is refused. For little-endian machines;
// errors are std::runtime_error and name the file. Needs nothing but the standard library.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace safetensors {

struct Entry {
  std::string dtype;  // F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, ...
  std::vector<std::int64_t> shape;
  std::size_t begin = 0, bytes = 0;  // from the file's begin on
};

// The JSON of a header: objects of strings, whole numbers and lists of them, and nothing else.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error(file_ + " is damaged: " + why + ", at byte " + std::to_string(8 + at_));
  }
  void end() {
    skip_space();
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
  // Calls member(key) for each member, which must read its value.
  template <class Member>
  void object(const Member& member) {
    expect('{');
    if (take('}')) return;
    do {
      const std::string key = word();
      expect(':');
      member(key);
    } while (take(','));
    expect('}');
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("'") + c + "' is missing");
  }
  std::string text(std::size_t bytes) {
    if (at_ + bytes > text_.size()) refuse("a text does not end");
    at_ += bytes;
    return std::string(text_.substr(at_ - bytes, bytes));
  }
  std::int64_t number() {
    skip_space();
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

  std::string_view text_;
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
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      throw std::runtime_error("its shape is too large");
  return bytes;
}

// A tensor's type, shape and place, which must lie within the `left` bytes that follow the header at `body`.
inline Entry read_entry(HeaderReader& json, const std::string& name, std::size_t body, std::size_t left,
                        const std::string& file) {
  Entry entry;
  std::vector<std::int64_t> span;
  json.object([&](const std::string& key) {
    if (key == "dtype")
      entry.dtype = json.word();
    else if (key == "shape")
      entry.shape = json.numbers();
    else if (key == "data_offsets")
      span = json.numbers();
    else
      json.refuse("the unknown field '" + key + "'");
  });
  try {
    if (span.size() != 2 || span[0] > span[1] || static_cast<std::uint64_t>(span[1]) > left)
      throw std::runtime_error("it lies outside the file");
    const auto needed = bytes_of(entry.dtype, entry.shape);
    entry.begin = body + static_cast<std::size_t>(span[0]);
    entry.bytes = static_cast<std::size_t>(span[1] - span[0]);
    if (entry.bytes != needed)
      throw std::runtime_error("it has " + std::to_string(entry.bytes) + " bytes, its type and shape take " +
                               std::to_string(needed));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file + ": the tensor '" + name + "' is damaged: " + error.what());
  }
  return entry;
}

// As the format says: tensors fill the file from the header at `body` to its end, none over another.
inline void check_places(const std::map<std::string, Entry>& entries, std::size_t body, std::size_t end,
                         const std::string& file) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const auto& [name, entry] : entries)
    if (entry.bytes > 0) places.emplace_back(entry.begin, entry.bytes);
  std::sort(places.begin(), places.end());
  std::size_t at = body;
  for (const auto& [begin, length] : places) {
    if (begin != at)
      throw std::runtime_error(file + " is damaged: " + (begin < at ? "two tensors overlap" : "no tensor holds") +
                               " its bytes from " + std::to_string(std::min(begin, at) - body) + " on");
    at += length;
  }
  if (at != end) throw std::runtime_error(file + " is damaged: no tensor holds its last bytes");
}

// Where each tensor lies among all bytes of a file, by name.
inline std::map<std::string, Entry> read_header(std::string_view all, const std::string& file) {
  std::uint64_t length = 0;
  if (all.size() >= 8) std::memcpy(&length, all.data(), 8);
  if (all.size() < 8 || length > all.size() - 8)
    throw std::runtime_error(file + " is no safetensors file, or not all of it is there");
  const std::size_t body = 8 + static_cast<std::size_t>(length);
  HeaderReader json(all.substr(8, body - 8), file);
  std::map<std::string, Entry> entries;
  json.object([&](const std::string& name) {
    if (name == "__metadata__")
      json.object([&](const std::string&) { json.word(); });
    else if (!entries.emplace(name, read_entry(json, name, body, all.size() - body, file)).second)
      json.refuse("the tensor '" + name + "' is there twice");
  });
  json.end();
  check_places(entries, body, all.size(), file);
  return entries;
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

// What a file begins with, whose tensors follow in the order in which they were added.
class HeaderWriter {
 public:
  void add(const std::string& name, const std::string& dtype, const std::vector<std::int64_t>& shape,
           std::size_t bytes) {
    std::string extents;
    for (const auto extent : shape) extents += (extents.empty() ? "" : ",") + std::to_string(extent);
    json_ += (json_.empty() ? "" : ",") + json_string(name) + ":{\"dtype\":\"" + dtype + "\",\"shape\":[" + extents +
             "],\"data_offsets\":[" + std::to_string(at_) + "," + std::to_string(at_ + bytes) + "]}";
    at_ += bytes;
  }
  std::string all() const {
    std::string json = "{" + json_ + "}";
    json.resize((json.size() + 7) / 8 * 8, ' ');  // so that the tensors begin aligned
    const std::uint64_t length = json.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + json;
  }

 private:
  std::string json_;
  std::size_t at_ = 0;
};

}  // namespace safetensors
