// SPDX-License-Identifier: Apache-2.0
// A generated program with memory of its own: what the level, or one of several clients, runs.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "generated.hpp"
#include "strata/level.hpp"

namespace strata::static_program {

// Opens a generated library. Throws Failure.
std::unique_ptr<Generated> opened(const std::filesystem::path& library);

// All throw Failure.
class Network : public Iterated {
 public:
  // `outputs`: of the bundle, to be found among the program's by name.
  Network(const Generated& program, int threads, const std::vector<Declared>& outputs);

  void load(const std::filesystem::path& weights, const std::filesystem::path& constants);
  void set_input(std::span<const HostTensor> inputs) override;
  void run() override;
  void record(Spans* spans) { spans_ = spans; }  // as TimesOperations says
  std::vector<OperationFacts> recorded() const;
  void outputs(std::vector<HostTensor>& results) override;
  ModelFacts facts() const { return program_->facts(model_.get()); }

  Model* model() const { return model_.get(); }
  Failure failure() const;  // why the last call failed

 private:
  const Generated* program_;
  std::unique_ptr<Model, void (*)(Model*)> model_;
  std::vector<std::pair<Declared, int>> outputs_;  // with their number in the program
  Spans* spans_ = nullptr;
};

}  // namespace strata::static_program
