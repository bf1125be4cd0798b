// SPDX-License-Identifier: Apache-2.0
// PyTorch's operators called from C++, by a network written by hand or a generated program: in eval mode under
// InferenceMode, or trained with torch::optim::SGD.
#include <fmt/format.h>

#include "names.hpp"
#include "runnable.hpp"
#include "strata/torch_level.hpp"
#include "strata/torch_operations.hpp"

namespace {

class LibtorchLevel final : public strata::TrainableTorchLevel,
                            public strata::ReadableWeights,
                            public strata::TorchOperations {
 public:
  std::string supports(const strata::Case& run_case) const override {
    if (is_hand_written(run_case.model) || !run_case.json.contains("dynamic")) return {};
    return one_batch_only(run_case.model);
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
  void build(const strata::Case& run_case, const strata::Bundle& bundle, const std::filesystem::path& cache) override {
    const bool written = is_hand_written(run_case.model);
    network_ = written ? make_hand_written(run_case, bundle) : make_generated(bundle, cache);
    if (!written) facts_.graph = "exported";
    network_->to(device());
    if (run_case.precision == "bf16") strata::to_bfloat16(tensors());
    convert_around(run_case.precision);
    for (auto& [name, parameter] : network_->parameters())
      parameter.set_requires_grad(case_trains() && !network_->is_frozen(name));
    if (run_case.variant == "channels_last") {
      layout_ = at::MemoryFormat::ChannelsLast;
      strata::to_channels_last(parameters());
      facts_.layout = "channels_last";
    }
    folder_ = bundle.folder;
    facts_.parameters = strata::elements_once(parameters());
  }

  std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) override { return network_->forward(inputs); }
  strata::NamedTensors parameters() const override { return network_->parameters(); }
  strata::NamedTensors buffers() const override { return network_->buffers(); }
  void set_network_mode(bool training, bool dropout) override { network_->set_mode(training, dropout); }

 private:
  strata::NamedTensors tensors() const {
    auto all = parameters();
    all.merge(buffers());
    return all;
  }

  std::unique_ptr<Runnable> network_;
  std::filesystem::path folder_;
};

}  // namespace

STRATA_LEVEL(LibtorchLevel)
