// SPDX-License-Identifier: Apache-2.0
#include "proof/train_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <sstream>

#include "common/outside.hpp"
#include "core/bundle_info.hpp"

namespace strata::proof {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

tl::unexpected<Error> damaged_training(const fs::path& path, const std::string& what) {
  return fail(fmt::format("{}: {}", path.string(), what),
              "The captured network is damaged; delete its folder and run again.");
}

// A JSON file whose size and depth may be parsed.
Result<std::string> bounded_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return damaged_training(path, "cannot be read");
  if (const auto fault = json_fault(text.str()); !fault.empty()) return damaged_training(path, fault);
  return text.str();
}

}  // namespace

Result<TrainReference> TrainReference::open(const fs::path& bundle) {
  TrainReference out;
  out.path_ = bundle;
  const fs::path description = bundle / "bundle.json", about_path = bundle / "reference" / "train.json";
  auto info = STRATA_TRY(core::read_bundle_info(bundle, false));
  const auto about_text = STRATA_TRY(bounded_text(about_path));
  ordered_json about;  // keeps the module's order of parameters
  try {
    out.bundle_ = std::move(info);
    out.question_ = STRATA_TRY(core::captured_case(out.bundle_, description.string()));
    if (!out.question_.recipe) return damaged_training(description, "is not of mode train");
    about = ordered_json::parse(about_text);
    out.probes_ =
        core::is_light(out.bundle_) ? std::vector<std::string>{"probe1"} : std::vector<std::string>{"probe1", "probe2"};
    for (const auto& set : out.sets()) STRATA_TRY(out.add_set(set, about.at(set)));
    for (const auto& [name, fault] : about.at("faults").items())
      out.faults_.push_back({name, fault.value("sentence", name),
                             fault.at("times_bound").is_number() ? fault["times_bound"].get<double>() : HUGE_VAL});
    out.weak_ = about.value("weak", std::string());
    if (about.contains("dropout")) out.add_dropout(about["dropout"]);
  } catch (const json::exception& error) {
    return damaged_training(about_path, fmt::format("is not what it should be ({})", error.what()));
  }
  if (!core::gives_loss(out.bundle_)) out.labels_ = STRATA_TRY(SafeTensors::map(bundle / "labels.safetensors"));
  if (out.precision() != "fp32") STRATA_TRY(out.add_mode());
  return out;
}

void TrainReference::add_dropout(const ordered_json& about) {
  dropout_layers_ = static_cast<int>(about.at("layers").size());
  dropout_losses_ = about.at("losses").get<std::vector<double>>();
  dropout_groups_ = about.value("groups", 0);
  if (dropout_groups_ > 0) {
    dropout_group_ = std::max(2, about.at("group").get<int>());
    dropout_variances_ = about.at("watched").get<Variances>();
  }
  for (const auto& layer : about.at("layers"))
    if (const double error = layer.value("visible", HUGE_VAL); error > dropout_visible_.error)
      dropout_visible_ = {error, layer.at("name").get<std::string>()};
}

Result<void> TrainReference::add_mode() {
  const fs::path path = path_ / "reference" / ("train." + precision() + ".json");
  const auto text = STRATA_TRY(bounded_text(path));
  try {
    const auto about = json::parse(text);
    for (auto& [name, set] : sets_) {
      const auto& envelope = about.at(name).at("envelope");
      for (auto& [what, error] : set.envelope) {
        const auto colon = what.find(':');
        error = (colon == std::string::npos ? envelope.at(what)
                                            : envelope.at(what.substr(0, colon)).at(what.substr(colon + 1)))
                    .get<double>();
      }
      set.least = about.at(name).at("least").get<decltype(set.least)>();
    }
  } catch (const json::exception& error) {
    return damaged_training(path, fmt::format("is not what it should be ({})", error.what()));
  }
  return {};
}

Result<void> TrainReference::add_set(const std::string& name, const ordered_json& about) {
  const fs::path file = path_ / "reference" / (name + ".train.safetensors");
  auto reference = STRATA_TRY(SafeTensors::map(file));
  auto weights = STRATA_TRY(SafeTensors::map(path_ / "weights" / (name + ".safetensors")));
  Set set{.reference = std::move(reference),
          .weights = std::move(weights),
          .grad_floor = about.at("grad_floor").get<double>(),
          .norm_error = about.value("norm", 0.0)};
  const auto& envelope = about.at("envelope");
  set.envelope["loss"] = envelope.at("loss").get<double>();
  for (const auto& [parameter, error] : envelope.at("grad").items()) {
    set.envelope["grad:" + parameter] = error.get<double>();
    if (name == "probe1") parameters_.push_back(parameter);
  }
  for (const auto& [buffer, error] : envelope.at("stat").items()) set.envelope["stat:" + buffer] = error.get<double>();
  for (const auto& [what, error] : set.envelope)
    if (!set.reference.find("0/" + what))
      return damaged_training(file, fmt::format("lacks '0/{}', which train.json lists", what));
  for (int i = 0; i < (name == "probe1" ? ring() : 1); ++i)
    if (const auto* loss = set.reference.find(fmt::format("{}/loss", i)); !loss || loss->elements() != 1)
      return damaged_training(file, fmt::format("lacks '{}/loss', or it is not one number", i));
  sets_.emplace(name, std::move(set));
  return {};
}

std::vector<std::string> TrainReference::sets() const {
  auto all = probes_;
  all.emplace_back("timed");
  return all;
}

const TensorView* TrainReference::expected(std::string_view set, std::string_view name) const {
  const auto it = sets_.find(set);
  return it == sets_.end() ? nullptr : it->second.reference.find(fmt::format("0/{}", name));
}

const TensorView* TrainReference::loss(int index) const {
  return sets_.find("probe1")->second.reference.find(fmt::format("{}/loss", index));
}

double TrainReference::envelope(std::string_view set, std::string_view name) const {
  constexpr double least = 8 * 0x1p-24;  // one lucky run would accuse its neighbours
  const auto it = sets_.find(set);
  if (it == sets_.end()) return least;
  const auto error = it->second.envelope.find(name);
  return error == it->second.envelope.end() ? least : std::max(least, error->second);
}

double TrainReference::least_error(std::string_view set, std::string_view parameter) const {
  const auto it = sets_.find(set);
  if (it == sets_.end()) return 0;
  const auto error = it->second.least.find(parameter);
  return error == it->second.least.end() ? 0 : error->second;
}

double TrainReference::grad_floor(std::string_view set) const {
  const auto it = sets_.find(set);
  return it == sets_.end() ? 0 : it->second.grad_floor;
}

double TrainReference::norm_error(std::string_view set) const {
  const auto it = sets_.find(set);
  return it == sets_.end() ? 0 : it->second.norm_error;
}

double TrainReference::widest_gradient_envelope() const {
  double widest = 0;
  for (const auto& set : probes_)
    for (const auto& parameter : parameters_) widest = std::max(widest, envelope(set, "grad:" + parameter));
  return widest;
}

std::vector<std::string> TrainReference::statistics(std::string_view set) const {
  std::vector<std::string> out;
  if (const auto it = sets_.find(set); it != sets_.end())
    for (const auto& [name, error] : it->second.envelope)
      if (name.starts_with("stat:")) out.push_back(name.substr(5));
  return out;
}

const TensorView* TrainReference::weight(std::string_view set, std::string_view name) const {
  const auto it = sets_.find(set);
  return it == sets_.end() ? nullptr : it->second.weights.find(name);
}

const TensorView* TrainReference::labels(int index) const {
  return labels_ ? labels_->find(fmt::format("{}/labels", index)) : nullptr;
}

}  // namespace strata::proof
