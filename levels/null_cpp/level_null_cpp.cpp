// SPDX-License-Identifier: Apache-2.0
// Runs nothing: what the harness itself costs a C++ level. Its results are zeros of the declared shapes, made once.
#include <cstring>

#include "strata/bundle.hpp"
#include "strata/level.hpp"

namespace {

class NullLevel : public strata::Level {
 public:
  void load(const strata::Case& run_case, const strata::Bundle& bundle, const std::filesystem::path&) override {
    facts_.threads = run_case.threads;
    facts_.layout = "any";
    for (const auto& output : bundle.outputs) {
      zeros_.push_back(strata::allocate(output.dtype, output.shape));
      std::memset(strata::writable(zeros_.back()), 0, zeros_.back().view.bytes);
    }
  }

  void load_weights(const std::string&, const strata::SafeTensors&) override {}
  strata::Facts facts() const override { return facts_; }
  void set_input(std::span<const strata::HostTensor> inputs) override { inputs_ = inputs; }
  void run() override {}
  void outputs(std::vector<strata::HostTensor>& results) override { results = zeros_; }

 private:
  strata::Facts facts_;
  std::span<const strata::HostTensor> inputs_;
  std::vector<strata::HostTensor> zeros_;
};

}  // namespace

STRATA_LEVEL(NullLevel)
