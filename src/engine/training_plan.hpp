// SPDX-License-Identifier: Apache-2.0
// What the request of a training comes to: its initialisations read, --scale taken off, all of it checked.
#pragma once

#include <string>
#include <vector>

#include "common/interrupt.hpp"
#include "data/cache.hpp"
#include "engine/prepare.hpp"
#include "plan/training_time.hpp"
#include "training/initial_weights.hpp"

namespace strata::engine {

// The request with epochs and repeats as --scale leaves them, and with the options that engine::prepare reads.
struct TrainingPlan : TrainRequest {
  std::vector<training::Initial> initials;  // a training each
  double images_share = 1;                  // that --scale leaves, of each split
  std::string scaled;                       // what it cut, in words
  std::vector<int> own_repeats;             // of a shard, from 0; empty: all
  nlohmann::json asked;                     // the request as JSON
};

// Errors: what can be wrong of the request before a level or the network is looked at.
Result<TrainingPlan> plan_training(const TrainRequest& request, const RunContext& context,
                                   std::vector<int> own_repeats = {});

// Where no level is named: those that do not train. They would fill the table with what they were never made for.
void drop_untrained(Prepared& ready);

// `repeats` of them from each initialisation, on a set of so many images. `plan` gets how many --scale leaves of these.
plan::TrainingWork work_of(TrainingPlan& plan, int repeats, std::int64_t train, std::int64_t test);

data::OpenOptions open_options(const TrainingPlan& plan, const std::filesystem::path& cache);

// The data set as the case names it: a part of it is another one.
std::string data_name(const TrainingPlan& plan, const std::string& set);

// Of a network that takes images alone; `inputs` as bundle.json lists them. Error: it takes something else.
Result<data::Shape> image_shape(const nlohmann::json& inputs, const std::string& model);

// What `get` gives of the network at the size of the data set's images where it takes that, else at its own; at that of
// --size alone, if there is one.
template <class Get>
auto at_size_of(const data::Shape& images, const measure::Setting& setting, const core::CaseSpec& own, const Get& get) {
  if (!setting.options.size.empty() || images.height <= 0) return get(own);
  auto sized = own;
  sized.size = {images.height, images.width};
  auto got = get(sized);
  if (got || interrupted()) return got;
  auto otherwise = get(own);
  return otherwise ? otherwise : got;
}

}  // namespace strata::engine
