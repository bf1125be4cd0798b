// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors files: 8 bytes of header length, a JSON header, raw tensors
// (https://huggingface.co/docs/safetensors). For little-endian machines; errors are std::runtime_error and name the
// file. Needs nothing but the standard library.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct RawTensor {
  std::string dtype;  // F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL
  std::vector<std::int64_t> shape;
  std::string bytes;  // contiguous
};
using RawTensors = std::map<std::string, RawTensor>;

// The JSON of a header: objects of strings, whole numbers and lists of them, and nothing else.
class HeaderReader {
 public:
  HeaderReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  bool take(char c) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw std::runtime_error(file_ + ": its header is damaged at byte " + std::to_string(8 + at_));
  }
  std::string word() {
    std::string out;
    for (expect('"'); at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' &&
          (++at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\\' && text_[at_] != '/')))
        throw std::runtime_error(file_ + ": a name holds an escape that this reader does not know");
      out += text_[at_];
    }
    expect('"');
    return out;
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> out;
    expect('[');
    if (take(']')) return out;
    do {
      take(' ');
      std::size_t used = 0;
      if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9') expect('0');
      out.push_back(std::stoll(text_.substr(at_, 20), &used));
      at_ += used;
    } while (take(','));
    expect(']');
    return out;
  }

 private:
  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

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
  RawTensors tensors;
  json.expect('{');
  if (json.take('}')) return tensors;
  do {
    const std::string name = json.word();
    std::vector<std::int64_t> span;
    RawTensor tensor;
    json.expect(':');
    json.expect('{');
    if (!json.take('}')) {
      do {
        const std::string key = json.word();
        json.expect(':');
        if (name != "__metadata__" && key == "shape")
          tensor.shape = json.numbers();
        else if (name != "__metadata__" && key == "data_offsets")
          span = json.numbers();
        else
          tensor.dtype = json.word();
      } while (json.take(','));
      json.expect('}');
    }
    if (name == "__metadata__") continue;
    if (span.size() != 2 || span[0] > span[1] || static_cast<std::uint64_t>(span[1]) > all.size() - body)
      throw std::runtime_error(file + ": the tensor " + name + " lies outside the file");
    tensor.bytes = all.substr(body + static_cast<std::size_t>(span[0]), static_cast<std::size_t>(span[1] - span[0]));
    tensors.emplace(name, std::move(tensor));
  } while (json.take(','));
  json.expect('}');
  return tensors;
}

inline void write_safetensors(const std::string& file, const RawTensors& tensors) {
  std::string header = "{", body;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const auto extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    header += (header.size() > 1 ? ",\"" : "\"");
    for (const char c : name) header += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    header += "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              std::to_string(body.size()) + ",";
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

// The tensor `<entry>/<name>`, or an error that says which one the file lacks.
inline const RawTensor& input_of(const RawTensors& tensors, int entry, const std::string& name) {
  const auto found = tensors.find(std::to_string(entry) + "/" + name);
  if (found == tensors.end()) throw std::runtime_error("the inputs lack '" + std::to_string(entry) + "/" + name + "'");
  return found->second;
}

// Each tensor's name, type, shape and first numbers.
inline void print(const RawTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    std::cout << name << " " << tensor.dtype << " [";
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
