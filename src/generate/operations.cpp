// SPDX-License-Identifier: Apache-2.0
#include "generate/operations.hpp"

#include <algorithm>

namespace strata::generate {

const Operations& operations() {
  static const Operations table = [] {
    Operations all;
    add_layers(all);
    add_poolings(all);
    add_images(all);
    add_calculations(all);
    add_elementwise(all);
    add_moves(all);
    add_recurrences(all);
    add_places(all);
    add_training(all);
    return all;
  }();
  return table;
}

std::vector<std::string> known_operations() {
  std::vector<std::string> all{"alpha_dropout", "dropout", "feature_dropout"};
  for (const auto& [name, emit] : operations())
    if (!name.starts_with("strata.")) all.emplace_back(name);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace strata::generate
