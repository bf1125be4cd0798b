// SPDX-License-Identifier: Apache-2.0
// A small made-up bundle on disk, and outputs of a made-up level for it. For the proof's tests only.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>

#include "common/safetensors.hpp"
#include "stats/schedule.hpp"

namespace strata::proof::testing {

namespace fs = std::filesystem;

inline const std::vector<int> all{0, 1, 2, 3}, two{0, 1};  // entries of a ring

inline double normal(stats::Random& random) {
  const double u = (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// Tensors by name, kept alive until they are written.
class Tensors {
 public:
  template <class T>
  void add(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
           const std::vector<T>& values) {
    auto& bytes = data_.emplace_back(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    list_.emplace_back(name, TensorView{dtype, std::move(shape), bytes.data(), bytes.size()});
  }
  // Values rounded to `dtype`, one of F64, F32, I64.
  void add_as(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
              const std::vector<double>& values) {
    if (dtype == "F64") return add(name, dtype, std::move(shape), values);
    if (dtype == "F32") return add(name, dtype, std::move(shape), std::vector<float>(values.begin(), values.end()));
    if (dtype == "I64")
      return add(name, dtype, std::move(shape), std::vector<std::int64_t>(values.begin(), values.end()));
    throw std::invalid_argument(dtype);
  }
  void write(const fs::path& path) const {
    if (auto done = write_safetensors(path, list_); !done) throw std::runtime_error(done.error().what);
  }

 private:
  std::deque<std::vector<std::byte>> data_;
  std::vector<std::pair<std::string, TensorView>> list_;
};

// One output of the made-up network.
struct Output {
  std::string name, torch_dtype = "float32", dtype = "F32";
  std::vector<std::int64_t> shape{2, 10};
};

struct Bundle {
  using Values = std::vector<double>;
  // "<set>/<index>/<output>" -> exact values
  std::map<std::string, Values> exact;
  std::vector<Output> outputs{{"output"}};
  std::map<std::string, std::map<std::string, Values>> faults;  // fault -> output -> values
  int ring = 4, batch = 2;
  std::string reference = "float64";
  double rounding = 2e-6;  // relative noise of a legitimate run, of the output's root mean square
  fs::path path;

  explicit Bundle(std::uint64_t seed = 1) : random(seed) {
    path = fs::temp_directory_path() / fmt::format("strata_proof_{}_{}", ::getpid(), count()++);
    fs::create_directories(path / "reference");
    fs::create_directories(path / "weights");
  }
  ~Bundle() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  std::vector<int> indices(const std::string& set) const {
    return set == "timed" ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 1};
  }

  // Values around 1, so that classes, inputs, sets and batch elements all differ well.
  void draw() {
    for (const char* set : {"timed", "generic1", "generic2"})
      for (int index : indices(set))
        for (const Output& output : outputs) {
          Values values(elements(output));
          for (double& value : values)
            value = output.dtype == "I64" ? static_cast<double>(random.below(10)) : normal(random);
          exact[key(set, index, output.name)] = values;
        }
    for (const Output& output : outputs) {
      Values faulty = exact[key("generic1", 0, output.name)];
      for (double& value : faulty) value *= 1.1;
      if (output.dtype != "I64") faults["relu_dropped"][output.name] = faulty;
    }
  }

  void write() {
    nlohmann::json listed = nlohmann::json::array();
    for (const Output& output : outputs)
      listed.push_back({{"name", output.name}, {"dtype", output.torch_dtype}, {"shape", output.shape}});
    const nlohmann::json bundle{{"bundle", 2},
                                {"outputs", listed},
                                {"ring", ring},
                                {"reference", reference},
                                {"reference_note", "no float64 kernel"},
                                {"parameters", 100},
                                {"flops", 2e6},
                                {"case", {{"batch", batch}, {"threads", 2}, {"precision", "fp32"}}}};
    std::ofstream(path / "bundle.json") << bundle;
    for (const char* set : {"timed", "generic1", "generic2"}) {
      Tensors reference_tensors, envelope, weights;
      for (int index : indices(set))
        for (const Output& output : outputs) {
          const Values& values = exact[key(set, index, output.name)];
          const std::string place = fmt::format("{}/{}", index, output.name);
          reference_tensors.add_as("f64/" + place, output.dtype == "I64" ? "I64" : "F64", output.shape, values);
          for (const char* variant : {"default", "channels_last", "one_thread", "plain_kernels", "input_ulp"})
            envelope.add_as(fmt::format("{}/{}", variant, place), output.dtype, output.shape,
                            output.dtype == "I64" ? values : rounded(values, rounding));
        }
      reference_tensors.write(path / "reference" / fmt::format("{}.safetensors", set));
      envelope.write(path / "reference" / fmt::format("{}.envelope.safetensors", set));
      weights.add_as("fc.weight", "F32", {3}, {1, 2, static_cast<double>(random.below(1000))});
      weights.add_as("fc.bias", "F32", {1}, {4});
      weights.write(path / "weights" / fmt::format("{}.safetensors", set));
    }
    Tensors planted;
    for (const auto& [fault, of_outputs] : faults)
      for (const auto& [output, values] : of_outputs)
        planted.add_as(fmt::format("{}/0/{}", fault, output), "F64", shape_of(output), values);
    planted.write(path / "reference" / "faults.safetensors");
  }

  // Values as a legitimate run has them: noise of `relative` times their root mean square.
  Values rounded(Values values, double relative) {
    double squares = 0;
    for (double value : values) squares += std::abs(value) < 1e30 ? value * value : 0;
    const double scale = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(values.size(), 1)));
    for (double& value : values) value += relative * scale * normal(random);
    return values;
  }

  // What a level would write for `of` inputs: exact values, as `change` makes them, with rounding noise.
  SafeTensors level(const std::string& set, const std::vector<int>& of,
                    const std::function<Values(int, const Output&, Values)>& change = {},
                    const std::function<void(Tensors&)>& also = {}) {
    Tensors tensors;
    for (int index : of)
      for (const Output& output : outputs) {
        Values values = exact.at(key(set, index, output.name));
        if (change) values = change(index, output, values);
        if (values.empty() && elements(output) > 0) continue;  // left out
        tensors.add_as(fmt::format("{}/{}", index, output.name), output.dtype, output.shape,
                       output.dtype == "I64" ? values : rounded(values, rounding));
      }
    if (also) also(tensors);
    const fs::path file = path / "level.safetensors";
    tensors.write(file);
    auto opened = SafeTensors::open(file);
    if (!opened) throw std::runtime_error(opened.error().what);
    return *opened;
  }

  static std::string key(const std::string& set, int index, const std::string& output) {
    return fmt::format("{}/{}/{}", set, index, output);
  }
  static std::size_t elements(const Output& output) {
    std::size_t n = 1;
    for (auto size : output.shape) n *= static_cast<std::size_t>(size);
    return n;
  }
  std::vector<std::int64_t> shape_of(const std::string& name) const {
    for (const Output& output : outputs)
      if (output.name == name) return output.shape;
    throw std::invalid_argument(name);
  }
  static int& count() {
    static int folders = 0;
    return folders;
  }

  stats::Random random;
};

}  // namespace strata::proof::testing
