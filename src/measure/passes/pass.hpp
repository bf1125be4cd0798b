// SPDX-License-Identifier: Apache-2.0
// One way of looking at a case: a file of this folder each. They run in the order of passes(), on the participants that
// are still active.
#pragma once

#include <memory>

#include "measure/case_run.hpp"

namespace strata::measure {

class Pass {
 public:
  virtual ~Pass() = default;
  // What is done, in the words of a plan that is printed before it runs.
  virtual std::vector<std::string> name(const Setting& setting) const = 0;
  virtual bool applies(const Setting& setting, const core::Case& question) const = 0;
  virtual bool in_every_visit() const { return false; }  // of a case that is visited several times (VisitedCase)
  // Error: the store's, or a bundle that cannot be read. What fails in a level becomes its row.
  virtual Result<void> run(CaseRun& point) const = 0;
};

// All there are, in the order in which they run.
const std::vector<std::unique_ptr<Pass>>& passes();

// One function a file of this folder.
std::unique_ptr<Pass> prove_pass();
std::unique_ptr<Pass> tune_pass();
std::unique_ptr<Pass> layers_pass();
std::unique_ptr<Pass> interleaved_pass();
std::unique_ptr<Pass> open_batch_pass();
std::unique_ptr<Pass> serve_pass();
std::unique_ptr<Pass> score_pass();

}  // namespace strata::measure
