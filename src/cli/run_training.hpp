// SPDX-License-Identifier: Apache-2.0
// What `train` does between its arguments and its report: data, capture, initial weights, a training of each scheme.
#pragma once

#include "cli/console.hpp"
#include "cli/train.hpp"
#include "common/interrupt.hpp"
#include "data/dataset.hpp"
#include "engine/stored_run.hpp"

namespace strata::cli {

// Every finished epoch is in the store. Error: nothing could be trained, or the store's.
Result<measure::Outcome> run_training(TrainArguments& a, engine::Prepared& ready, store::Store& store,
                                      engine::StoredRun& stored, engine::EventSink& events);

// Of a network that takes images alone; `inputs` as bundle.json lists them. Error: it takes something else.
Result<data::Shape> image_shape(const nlohmann::json& inputs, const std::string& model);

// What `get` gives of the network at the size of the data set's images where it takes that, else at its own; at that of
// --size alone, if there is one.
template <class Get>
auto at_size_of(const data::Shape& images, const measure::Setting& setting, const nlohmann::json& own, const Get& get) {
  if (!setting.options.size.empty() || images.height <= 0) return get(own);
  auto sized = own;
  sized["size"] = {images.height, images.width};
  auto got = get(sized);
  if (got || interrupted()) return got;
  auto otherwise = get(own);
  return otherwise ? otherwise : got;
}

}  // namespace strata::cli
