// SPDX-License-Identifier: Apache-2.0
#include "common/outside.hpp"
#include "core/case.hpp"
#include "core/case_spec.hpp"

namespace strata::core {
namespace {

using outside::Fields;
using outside::Json;

Result<Training> read_training(const Json& about, const std::string& where) {
  Fields fields(about, where);
  Training training{.epochs = static_cast<int>(fields.integer("epochs", 1, 1'000'000)),
                    .init = fields.text("init", "torch"),
                    .augment = fields.text("augment", ""),
                    .most_images = fields.integer("most_images", 0, outside::most_whole, 0),
                    .data_sha256 = fields.text("data_sha256", "")};
  if (fields.error()) return tl::unexpected(*fields.error());
  return training;
}

}  // namespace

Json to_json(const Training& training) {
  return {{"epochs", training.epochs},
          {"init", training.init},
          {"augment", training.augment},
          {"most_images", training.most_images},
          {"data_sha256", training.data_sha256}};
}

Result<Case> captured_case(const Json& info, const std::string& where) {
  const auto spec = STRATA_TRY(read_spec(outside::field(info, "case"), where + ": case"));
  return question_of(spec, outside::text_or(outside::field(info, "model"), "name", spec.model));
}

Result<Case> read_case(const Json& value, const std::string& where) {
  const auto spec = STRATA_TRY(read_spec(value, where));
  Fields fields(value, where);
  auto question = question_of(spec, fields.text("model"));
  question.data = fields.text("data", "");
  if (fields.error()) return tl::unexpected(*fields.error());
  if (const Json& training = outside::field(value, "training"); question.recipe && !training.is_null()) {
    question.recipe->training = STRATA_TRY(read_training(training, where + ": training"));
  }
  return question;
}

Json to_json(const Case& question) {
  Json inputs = Json::array();
  for (const auto& input : question.inputs) inputs.push_back(to_json(input));
  return {{"model", question.model},
          {"mode", name_of(question.mode)},
          {"batch", question.batch},
          {"inputs", std::move(inputs)},
          {"precision", name_of(question.precision)},
          {"device", name_of(question.device)},
          {"threads", question.threads},
          {"optimiser", question.recipe ? to_json(question.recipe->optimiser) : Json()},
          {"loss", question.recipe ? Json(question.recipe->loss) : Json()},
          {"training", question.recipe && question.recipe->training ? to_json(*question.recipe->training) : Json()},
          {"data", question.data},
          {"weights", question.weights},
          {"seed", question.seed}};
}

}  // namespace strata::core
