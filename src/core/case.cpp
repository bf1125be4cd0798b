// SPDX-License-Identifier: Apache-2.0
#include "core/case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata::core {
namespace {

std::string shape_words(const std::vector<std::int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

// ":0..100"; empty where no range was asked for.
std::string range_words(const Input& input) {
  return input.low && input.high ? fmt::format(":{}..{}", *input.low, *input.high) : "";
}

// "3x224x224", "int64:128:0..30521": what differs from float32 of any value is said, the batch is not.
std::string input_words(const Input& input) {
  auto shape = input.shape.size() > 1 ? shape_words({input.shape.begin() + 1, input.shape.end()}) : std::string("1");
  return (input.dtype == "float32" ? "" : input.dtype + ":") + shape + range_words(input);
}

std::string schedule_words(const Schedule& schedule) {
  if (schedule.kind == Schedule::Kind::cosine) return fmt::format("cosine/{}", schedule.steps);
  return fmt::format("step/{}/{}", schedule.steps, schedule.gamma);
}

// Every setting, so that a default that changes one day makes another case.
std::string all_words(const Optimiser& optimiser) {
  auto schedule = optimiser.schedule ? schedule_words(*optimiser.schedule) : "none";
  // a setting of later on, said where it is used, so that keys of before stay
  if (optimiser.clip_norm > 0) schedule += fmt::format(" clip_norm={}", optimiser.clip_norm);
  if (const auto* sgd = optimiser.sgd())
    return fmt::format("sgd lr={} momentum={} dampening={} weight_decay={} nesterov={} schedule={}", optimiser.lr,
                       sgd->momentum, sgd->dampening, optimiser.weight_decay, sgd->nesterov, schedule);
  const auto& adam = *optimiser.adam();
  return fmt::format("{} lr={} beta1={} beta2={} eps={} weight_decay={} schedule={}", name_of(optimiser), optimiser.lr,
                     adam.beta1, adam.beta2, adam.eps, optimiser.weight_decay, schedule);
}

}  // namespace

std::string_view name_of(Mode mode) {
  return mode == Mode::train ? "train" : "infer";
}

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::amp_bf16:
      return "amp-bf16";
    default:
      return "fp32";
  }
}

std::string_view name_of(Device device) {
  return device == Device::cuda ? "cuda" : "cpu";
}

std::string words(const Optimiser& optimiser) {
  const auto name = name_of(optimiser);
  const auto usual = *usual_optimiser(name);
  std::vector<std::string> parts;
  const auto add = [&](const char* setting, double value, double otherwise) {
    if (value != otherwise) parts.push_back(fmt::format("{}={}", setting, value));
  };
  const auto *sgd = optimiser.sgd(), *usual_sgd = usual.sgd();
  if (const auto* adam = optimiser.adam(), *usual_adam = usual.adam(); adam != nullptr) {
    add("beta1", adam->beta1, usual_adam->beta1);
    add("beta2", adam->beta2, usual_adam->beta2);
    add("eps", adam->eps, usual_adam->eps);
  }
  add("clip_norm", optimiser.clip_norm, 0);
  if (sgd != nullptr) add("dampening", sgd->dampening, usual_sgd->dampening);
  add("lr", optimiser.lr, usual.lr);
  if (sgd != nullptr) add("momentum", sgd->momentum, usual_sgd->momentum);
  if (sgd != nullptr && sgd->nesterov) parts.emplace_back("nesterov=true");
  if (optimiser.schedule) parts.push_back("schedule=" + schedule_words(*optimiser.schedule));
  add("weight_decay", optimiser.weight_decay, usual.weight_decay);
  if (parts.empty()) return sgd != nullptr ? "" : std::string(name);
  return fmt::format("{}:{}", name, fmt::join(parts, ","));
}

std::vector<std::pair<std::string, std::string>> Case::axes() const {
  std::vector<std::pair<std::string, std::string>> named{
      {"model", model}, {"mode", std::string(name_of(mode))}, {"batch", fmt::format("{}", batch)}};
  if (const auto size = image_size()) {
    named.emplace_back("height", fmt::format("{}", size->first));
    named.emplace_back("width", fmt::format("{}", size->second));
  }
  for (const auto& input : inputs)
    named.emplace_back("input", fmt::format("{}{} {}{}", input.keyword ? input.name + "=" : "", input.dtype,
                                            shape_words(input.shape), range_words(input)));
  named.emplace_back("precision", name_of(precision));
  named.emplace_back("device", name_of(device));
  named.emplace_back("threads", fmt::format("{}", threads));
  if (recipe) {
    named.emplace_back("optimiser", all_words(recipe->optimiser));
    named.emplace_back("loss", recipe->loss);
    if (const auto& training = recipe->training) {
      named.emplace_back("epochs", fmt::format("{}", training->epochs));
      named.emplace_back("init", training->init);
      named.emplace_back("augment", training->augment);
      named.emplace_back("most_images", fmt::format("{}", training->most_images));
      if (!training->data_sha256.empty()) named.emplace_back("data_sha256", training->data_sha256);
    }
  }
  named.emplace_back("data", data);
  named.emplace_back("weights", weights);
  named.emplace_back("seed", fmt::format("{}", seed));
  return named;
}

std::string Case::canonical() const {
  std::string text;
  for (const auto& [name, value] : axes()) {
    text += name + ' ';
    for (const char c : value) text += c == '\n' ? ' ' : c;  // a line each, whatever a file is called
    text += '\n';
  }
  return text;
}

std::string Case::id() const {
  std::vector<std::string> shapes;
  for (const auto& input : inputs) shapes.push_back(input_words(input));
  auto text = fmt::format("{}/{}/b{}/{}/{}/{}/t{}", model, name_of(mode), batch, fmt::join(shapes, "+"),
                          name_of(precision), name_of(device), threads);
  const auto add = [&](const std::string& words) {
    if (!words.empty()) text += '/' + words;
  };
  if (recipe) {
    add(words(recipe->optimiser));
    if (recipe->loss != Recipe().loss) add(recipe->loss);
  }
  const auto sha256 = recipe && recipe->training ? recipe->training->data_sha256.substr(0, 8) : std::string();
  add(sha256.empty() ? data : data + ":" + sha256);
  if (recipe && recipe->training) {
    add(fmt::format("e{}", recipe->training->epochs));
    if (recipe->training->init != Training().init) add("init:" + recipe->training->init);
    add(recipe->training->augment);
    if (recipe->training->most_images > 0) add(fmt::format("n{}", recipe->training->most_images));
  }
  if (!weights.empty()) add("weights:" + weights);
  if (seed != 0) add(fmt::format("seed{}", seed));
  return text;
}

Case Case::without_batch() const {
  Case any = *this;
  any.batch = 0;
  for (auto& input : any.inputs)
    if (!input.shape.empty() && input.shape.front() == batch) input.shape.front() = 0;
  return any;
}

std::optional<std::pair<std::int64_t, std::int64_t>> Case::image_size() const {
  if (inputs.empty()) return std::nullopt;
  const auto& shape = inputs.front().shape;
  if (shape.size() != 4 || (shape[1] != 1 && shape[1] != 3)) return std::nullopt;
  return std::pair{shape[2], shape[3]};
}

}  // namespace strata::core
