// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "libtorch/aten_network.hpp"
#include "runnable.hpp"
#include "strata/load_library.hpp"

namespace {

namespace fs = std::filesystem;
using strata::Failure;

constexpr const char* kMadeAgain = "remove its folder; it is made again";

// The library stays open: its network's code is there.
std::unique_ptr<AtenNetwork> open_network(const fs::path& file) {
  if (!fs::exists(file))
    throw Failure("failed", fmt::format("{} is missing", file.string()), "the level's prepare command makes it");
  void* handle = strata::load_library(file, kMadeAgain);
  auto* make = reinterpret_cast<decltype(make_generated_network)*>(dlsym(handle, "make_generated_network"));
  if (make == nullptr) throw Failure("failed", fmt::format("{} holds no network", file.string()), kMadeAgain);
  return std::unique_ptr<AtenNetwork>(make());
}

strata::SafeTensors opened(const fs::path& file) {
  auto tensors = strata::SafeTensors::map(file);
  if (!tensors) throw Failure("failed", tensors.error().what, tensors.error().hint);
  return *std::move(tensors);
}

class Generated final : public Runnable {
 public:
  Generated(const strata::Bundle& bundle, const fs::path& cache) : network_(open_network(cache / "network.so")) {
    const auto weights = opened(bundle.folder / "weights" / "timed.safetensors");
    std::set<std::string> known;
    for (const auto& parameter : network_->parameters) known.insert(parameter.name);
    for (const auto& buffer : network_->buffers)
      if (weights.find(buffer.name) != nullptr)
        known.insert(buffer.name);
      else
        network_->constants.push_back(buffer);  // a buffer that is not persistent
    for (const auto& name : weights.names())    // what no operation reads is kept, and can be read back
      if (!known.contains(name)) unused_.emplace(name, strata::borrow(*weights.find(name)).clone());
    if (!network_->constants.empty()) fill_constants(bundle.folder / "graph_constants.safetensors");
    order_outputs(bundle);
  }

  void to(at::Device device) override {
    for (const auto* list : {&network_->parameters, &network_->buffers, &network_->constants})
      for (const auto& named : *list) *named.tensor = named.tensor->to(device);
    for (auto& [name, tensor] : unused_) tensor = tensor.to(device);
  }

  std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) override {
    auto all = network_->forward(inputs);
    std::vector<at::Tensor> results;
    for (const auto i : order_) results.push_back(all[i]);
    return results;
  }

  strata::NamedTensors parameters() const override {
    strata::NamedTensors all;
    for (const auto& parameter : network_->parameters) all.emplace(parameter.name, *parameter.tensor);
    return all;
  }
  strata::NamedTensors buffers() const override {
    auto all = unused_;
    for (const auto& buffer : network_->buffers)
      if (!is_constant(buffer)) all.emplace(buffer.name, *buffer.tensor);
    return all;
  }
  bool is_frozen(const std::string& parameter) const override {
    return std::any_of(network_->parameters.begin(), network_->parameters.end(),
                       [&](const auto& weight) { return weight.frozen && weight.name == parameter; });
  }
  void set_mode(bool training, bool dropout) override {
    network_->training = training;
    network_->dropout = dropout;
  }

 private:
  bool is_constant(const NamedTensor& buffer) const {
    return std::any_of(network_->constants.begin(), network_->constants.end(),
                       [&](const auto& constant) { return constant.tensor == buffer.tensor; });
  }

  void fill_constants(const fs::path& file) {
    const auto tensors = opened(file);
    for (const auto& constant : network_->constants) {
      const auto* tensor = tensors.find(constant.name);
      if (tensor == nullptr)
        throw Failure("failed", fmt::format("{} lacks '{}'", file.string(), constant.name), kMadeAgain);
      const auto value = strata::borrow(*tensor);
      if (value.sizes() != constant.tensor->sizes() || value.scalar_type() != constant.tensor->scalar_type())
        throw Failure("failed",
                      fmt::format("{}: '{}' is not what the program was made for", file.string(), constant.name),
                      kMadeAgain);
      constant.tensor->copy_(value);
    }
  }

  void order_outputs(const strata::Bundle& bundle) {
    for (const auto& expected : bundle.outputs) {
      const auto& own = network_->outputs;
      const auto it =
          std::find_if(own.begin(), own.end(), [&](const auto& port) { return expected.name == port.name; });
      if (it == own.end())
        throw Failure("unsupported", fmt::format("the captured graph does not give '{}'", expected.name),
                      "leave --deep out for this level");
      order_.push_back(static_cast<std::size_t>(it - own.begin()));
    }
    const auto& inputs = network_->inputs;
    const bool fits = inputs.size() == bundle.inputs.size() &&
                      std::equal(inputs.begin(), inputs.end(), bundle.inputs.begin(),
                                 [](const auto& port, const auto& input) { return input.name == port.name; });
    if (!fits) throw Failure("failed", "the generated program was made for other inputs", kMadeAgain);
  }

  std::unique_ptr<AtenNetwork> network_;
  strata::NamedTensors unused_;
  std::vector<std::size_t> order_;  // of the bundle's outputs among the program's
};

}  // namespace

std::unique_ptr<Runnable> make_generated(const strata::Bundle& bundle, const fs::path& cache) {
  return std::make_unique<Generated>(bundle, cache);
}
