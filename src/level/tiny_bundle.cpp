// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "common/safetensors.hpp"
#include "level/conformance.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t batch = 2, features = 8, hidden = 16, classes = 4, ring = 4;
constexpr std::array<const char*, 3> weight_sets = {"timed", "generic1", "generic2"};
using Values = std::vector<float>;

// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers with every standard library.
class Source {
 public:
  explicit Source(std::uint64_t seed) : state_(seed) {}
  Values draw(std::size_t count) {  // uniform in [-1, 1)
    Values out(count);
    for (float& value : out) value = static_cast<float>(static_cast<double>(next() >> 40) / 8388608.0 - 1.0);
    return out;
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

struct Network {
  Values first_weight, first_bias, second_weight, second_bias;
};

// One linear layer in double precision: rows x in -> rows x out; weight is out x in.
std::vector<double> linear(const std::vector<double>& x, const Values& weight, const Values& bias) {
  const std::size_t out = bias.size(), in = weight.size() / out, rows = x.size() / in;
  std::vector<double> y(rows * out);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < out; ++o) {
      double sum = static_cast<double>(bias[o]);
      for (std::size_t i = 0; i < in; ++i) sum += x[r * in + i] * static_cast<double>(weight[o * in + i]);
      y[r * out + o] = sum;
    }
  return y;
}

std::vector<double> run(const Network& network, const Values& input) {
  auto inner = linear({input.begin(), input.end()}, network.first_weight, network.first_bias);
  for (double& value : inner) value = value > 0.0 ? value : 0.0;
  return linear(inner, network.second_weight, network.second_bias);
}

template <class T>
TensorView view(const char* dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  return {dtype, std::move(shape), reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

Result<void> write_weights(const fs::path& path, const Network& network) {
  return write_safetensors(path, {{"first.weight", view("F32", {hidden, features}, network.first_weight)},
                                  {"first.bias", view("F32", {hidden}, network.first_bias)},
                                  {"second.weight", view("F32", {classes, hidden}, network.second_weight)},
                                  {"second.bias", view("F32", {classes}, network.second_bias)}});
}

Result<void> write_entries(const fs::path& folder, const std::vector<Values>& inputs, std::size_t rows) {
  std::vector<std::pair<std::string, TensorView>> named;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    named.emplace_back(fmt::format("{}/arg0", i), view("F32", {static_cast<std::int64_t>(rows), features}, inputs[i]));
  return write_safetensors(folder / "inputs.safetensors", named);
}

Result<void> write_outputs(const fs::path& folder, const std::string& set, const Network& network,
                           const std::vector<Values>& inputs, std::size_t rows) {
  std::deque<std::vector<double>> outputs;  // keeps the addresses that the views hold
  std::vector<std::pair<std::string, TensorView>> reference;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    outputs.push_back(run(network, inputs[i]));
    reference.emplace_back(fmt::format("f64/{}/output", i),
                           view("F64", {static_cast<std::int64_t>(rows), classes}, outputs.back()));
  }
  return write_safetensors(folder / "reference" / (set + ".safetensors"), reference);
}

// Writes inputs, weights and references of the bundle; returns the timed network.
Result<Network> write_tensors(const fs::path& folder) {
  Source source(20261121);
  std::vector<Values> inputs;
  Network timed;
  for (std::size_t i = 0; i < ring; ++i) inputs.push_back(source.draw(batch * features));
  STRATA_TRY(write_entries(folder, inputs, batch));
  for (const std::string set : weight_sets) {
    const Network network = {.first_weight = source.draw(hidden * features),
                             .first_bias = source.draw(hidden),
                             .second_weight = source.draw(classes * hidden),
                             .second_bias = source.draw(classes)};
    STRATA_TRY(write_weights(folder / "weights" / (set + ".safetensors"), network));
    if (set == "timed") timed = network;
    const auto shown = set == "timed" ? inputs : std::vector<Values>(inputs.begin(), inputs.begin() + 2);
    STRATA_TRY(write_outputs(folder, set, network, shown, batch));
  }
  return timed;
}

Json describe(const std::string& model) {
  const Json shape = {batch, features};
  const Json input = {{"name", "arg0"}, {"keyword", false}, {"dtype", "float32"}, {"shape", shape}};
  const std::size_t parameters = hidden * features + hidden + classes * hidden + classes;
  const Json network_case = {
      {"model", model},        {"mode", "infer"},   {"batch", batch},       {"inputs", {input}}, {"precision", "fp32"},
      {"device", "cpu"},       {"threads", 1},      {"optimiser", nullptr}, {"seed", 0},         {"weights", nullptr},
      {"input_from", nullptr}, {"synthetic", true}, {"ring", ring},         {"deep", false}};
  return {
      {"bundle", 2},
      {"spec", network_case},
      {"case", network_case},
      {"id", "tiny_mlp/infer/b2/8/fp32/cpu/t1"},
      {"model",
       {{"name", "tiny_mlp"}, {"kind", "user"}, {"source", "two linear layers, made by the conformance suite"}}},
      {"inputs", {input}},
      {"input_source", "seeded"},
      {"outputs", {{{"name", "output"}, {"dtype", "float32"}, {"shape", {batch, classes}}}}},
      {"ring", ring},
      {"parameters", parameters},
      {"weight_bytes", 4 * parameters},
      {"input_bytes", 4 * batch * features},
      {"flops", 2 * batch * (features * hidden + hidden * classes)},
      {"activation_bytes", 4 * batch * (2 * hidden + classes)},
      {"reference", "float64"},
      {"reference_note", ""},
      {"export",
       {{"ok", false}, {"what", "this bundle was made without PyTorch and holds no exported graph"}, {"where", ""}}},
      {"graph", {{"ok", true}, {"what", ""}, {"where", ""}}},
      {"weight_source", "seeded"},
      {"faults", Json::array()},
      {"torch", ""}};
}

// The network as levels on the captured graph read it (docs/bundle.md, "The graph").
Json captured() {
  const auto value = [](const char* name, Json shape) {
    return Json{{"name", name}, {"dtype", "float32"}, {"shape", std::move(shape)}};
  };
  const auto node = [](const char* op, const char* name, Json args, int output, const char* module, const char* type) {
    return Json{{"op", op},
                {"name", name},
                {"args", std::move(args)},
                {"outputs", {output}},
                {"module", module},
                {"module_type", type},
                {"source", ""}};
  };
  const auto tensor = [](int index) { return Json{{"value", index}}; };
  Json parameters = Json::array();
  for (const char* name : {"first.weight", "first.bias", "second.weight", "second.bias"})
    parameters.push_back({{"value", 1 + parameters.size()}, {"name", name}});
  return {{"graph", 1},
          {"mode", "infer"},
          {"values",
           {value("arg0", {batch, features}), value("first.weight", {hidden, features}), value("first.bias", {hidden}),
            value("second.weight", {classes, hidden}), value("second.bias", {classes}),
            value("linear", {batch, hidden}), value("relu", {batch, hidden}), value("linear_1", {batch, classes})}},
          {"inputs", {{{"value", 0}, {"name", "arg0"}}}},
          {"parameters", parameters},
          {"buffers", Json::array()},
          {"constants", Json::array()},
          {"nodes",
           {node("aten.linear.default", "linear", {{"input", tensor(0)}, {"weight", tensor(1)}, {"bias", tensor(2)}}, 5,
                 "first", "Linear"),
            node("aten.relu.default", "relu", {{"self", tensor(5)}}, 6, "", "Network"),
            node("aten.linear.default", "linear_1", {{"input", tensor(6)}, {"weight", tensor(3)}, {"bias", tensor(4)}},
                 7, "second", "Linear")}},
          {"outputs", {{{"name", "output"}, {"value", 7}}}},
          {"updates", Json::array()}};
}

// The same network with an open batch (docs/bundle.md): the bundle's own files, and inputs and references of each size.
Result<void> write_open_part(const fs::path& folder, const Network& timed, const std::string& model) {
  const fs::path open = folder / "dynamic";
  Json about = describe(model);
  std::error_code error;
  for (const std::size_t size : {std::size_t{1}, batch, std::size_t{3}}) {
    const fs::path place = open / "sizes" / std::to_string(size);
    fs::create_directories(place / "reference", error);
    if (error)
      return fail(fmt::format("cannot make the folder {}: {}", place.string(), error.message()),
                  "check its permissions and the disk's space");
    Source source(size);
    const std::vector<Values> inputs{source.draw(size * features), source.draw(size * features)};
    STRATA_TRY(write_entries(place, inputs, size));
    STRATA_TRY(write_outputs(place, "timed", timed, inputs, size));
    Json part = about;
    part["ring"] = inputs.size();
    part["case"]["batch"] = size;
    part["inputs"][0]["shape"][0] = part["outputs"][0]["shape"][0] = size;
    std::ofstream(place / "bundle.json") << part.dump(1) << '\n';
  }
  for (const char* shared : {"weights", "reference", "inputs.safetensors"}) {
    fs::create_symlink(fs::path("..") / shared, open / shared, error);
    if (error)
      return fail(fmt::format("cannot make the link {}: {}", (open / shared).string(), error.message()),
                  "check its permissions");
  }
  about["case"]["dynamic"] = {{"low", 1}, {"high", 3}, {"sizes", {1, batch, 3}}};
  std::ofstream(open / "bundle.json") << about.dump(1) << '\n';
  return {};
}

}  // namespace

Result<void> write_tiny_bundle(const fs::path& folder, const std::string& model) {
  std::error_code error;
  for (const char* part : {"weights", "reference"}) {
    fs::create_directories(folder / part, error);
    if (error)
      return fail(fmt::format("cannot make the folder {}: {}", (folder / part).string(), error.message()),
                  "check its permissions and the disk's space");
  }
  const auto timed = STRATA_TRY(write_tensors(folder));
  STRATA_TRY(write_open_part(folder, timed, model));
  std::ofstream file(folder / "bundle.json");
  file << describe(model).dump(1) << '\n';
  std::ofstream(folder / "graph.json") << captured().dump(1) << '\n';
  std::ofstream(folder / "graph.txt") << "output = second(relu(first(arg0)))\n";
  file.close();
  if (!file)
    return fail(fmt::format("cannot write {}", (folder / "bundle.json").string()),
                "check its permissions and the disk's space");
  return {};
}

}  // namespace strata::level
