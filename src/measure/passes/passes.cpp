// SPDX-License-Identifier: Apache-2.0
#include "measure/passes/pass.hpp"

namespace strata::measure {

const std::vector<std::unique_ptr<Pass>>& passes() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Pass>> list;
    list.push_back(prove_pass());
    list.push_back(tune_pass());
    list.push_back(layers_pass());
    list.push_back(interleaved_pass());
    list.push_back(open_batch_pass());
    list.push_back(serve_pass());
    list.push_back(score_pass());
    return list;
  }();
  return all;
}

}  // namespace strata::measure
