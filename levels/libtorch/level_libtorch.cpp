// SPDX-License-Identifier: Apache-2.0
// The network written by hand in C++ with torch::nn: in eval mode under InferenceMode, or trained with
// torch::optim::SGD.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "network.hpp"
#include "strata/torch_level.hpp"

namespace {

using strata::Failure;

class LibtorchLevel final : public strata::TorchLevel {
 public:
  strata::About about() const override {
    auto about = torch_about("libtorch");
    about.serves = true;
    about.reads_weights = true;
    about.dynamic = true;
    about.modes = {"infer", "train"};
    about.maths = {"fp32", "tf32", "bf16", "amp-bf16"};
    about.variants = {"default", "channels_last"};
    return about;
  }

  std::string supports(const strata::Case& wanted) const override {
    const auto names = network_names();
    if (std::find(names.begin(), names.end(), wanted.model) != names.end()) return {};
    return fmt::format("'{}' is not written by hand in C++ here; there are {}", wanted.model, fmt::join(names, ", "));
  }

  void load_weights(const std::string& set, const strata::SafeTensors& weights) override {
    strata::copy_weights(tensors(), weights);
    facts_.artefact_bytes =
        static_cast<std::int64_t>(std::filesystem::file_size(folder_ / "weights" / (set + ".safetensors")));
  }

  std::vector<std::string> readable_weights() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors()) names.push_back(name);
    return names;
  }

  strata::HostTensor weight(const std::string& name) const override { return strata::to_host(tensors().at(name)); }

 protected:
  void build(const strata::Case& wanted, const strata::Bundle& bundle, const std::filesystem::path&) override {
    const Wanted input = input_of(wanted.model);
    const auto& shape = bundle.inputs.front().shape;
    if (bundle.inputs.size() != 1 || shape.size() != 4 || shape[1] != input.channels ||
        (input.side != 0 && (shape[2] != input.side || shape[3] != input.side)) || bundle.inputs.front().dtype != "F32")
      throw Failure("unsupported",
                    fmt::format("{} takes one float32 input [N, {}, {}], got {} [{}]", wanted.model, input.channels,
                                input.side != 0 ? fmt::format("{0}, {0}", input.side) : "H, W",
                                bundle.inputs.front().dtype, fmt::join(shape, ", ")));
    network_ = make_network(wanted.model);
    network_->to(device());
    if (wanted.maths == "bf16") strata::to_bfloat16(tensors());
    convert_around(wanted.maths);
    for (auto& parameter : network_->parameters()) parameter.set_requires_grad(case_trains());
    if (strata::variant() == "channels_last") {
      layout_ = at::MemoryFormat::ChannelsLast;
      strata::to_channels_last(parameters());
      facts_.layout = "channels_last";
    }
    for (const auto& module : network_->modules())
      if (const auto dropout = std::dynamic_pointer_cast<torch::nn::DropoutImpl>(module))
        dropouts_.emplace_back(dropout, dropout->options.p());
    folder_ = bundle.folder;
    deep_ = wanted.deep;
    outputs_ = bundle.outputs;
    for (const auto& parameter : network_->parameters()) facts_.parameters += parameter.numel();
  }

  std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) override {
    Taps tap(deep_);
    at::Tensor result = network_->forward(inputs.front(), tap);
    return deep_ ? with_taps(std::move(result), tap) : std::vector<at::Tensor>{std::move(result)};
  }

  strata::NamedTensors parameters() const override { return strata::named_tensors(network_->named_parameters()); }
  strata::NamedTensors buffers() const override { return strata::named_tensors(network_->named_buffers()); }

  void set_network_mode(bool training, bool dropout) override {
    network_->train(training);
    for (const auto& [module, given] : dropouts_) module->options.p(dropout ? given : 0.0);
  }

 private:
  strata::NamedTensors tensors() const {
    auto all = parameters();
    all.merge(buffers());
    return all;
  }

  // The result, then the taps in the bundle's order.
  std::vector<at::Tensor> with_taps(at::Tensor result, const Taps& tap) const {
    std::vector<at::Tensor> all{std::move(result)};
    for (std::size_t i = 1; i < outputs_.size(); ++i) {
      const auto found = tap.kept().find(outputs_[i].name);
      if (found == tap.kept().end())
        throw Failure("failed",
                      fmt::format("the bundle wants '{}', which this network does not record", outputs_[i].name));
      all.push_back(found->second);
    }
    return all;
  }

  std::shared_ptr<Network> network_;
  std::filesystem::path folder_;
  bool deep_ = false;
  std::vector<std::pair<std::shared_ptr<torch::nn::DropoutImpl>, double>> dropouts_;  // with the p that they were given
  std::vector<strata::Declared> outputs_;
};

}  // namespace

STRATA_LEVEL(LibtorchLevel)
