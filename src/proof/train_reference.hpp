// SPDX-License-Identifier: Apache-2.0
// A bundle of mode train as the proof sees it (docs/bundle.md): loss, gradients and BatchNorm statistics of one float64
// step for each weight set, the envelopes of legitimate float32 steps, planted faults and eager's losses with dropout.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/safetensors.hpp"
#include "core/case.hpp"

namespace strata::proof {

inline constexpr double weak_gradient = 1e-3;  // gradients whose envelope is wider make the proof weak (PROOF.md)

class TrainReference {
 public:
  // Reads bundle.json and reference/train.json and maps the tensors; of a case in another precision than float32 the
  // envelopes are those of reference/train.<mode>.json. Error: something is missing or damaged.
  static Result<TrainReference> open(const std::filesystem::path& bundle);

  const nlohmann::json& bundle() const { return bundle_; }
  const std::filesystem::path& folder() const { return path_; }
  const core::Case& question() const { return question_; }
  std::string precision() const { return std::string(name_of(question_.precision)); }
  const core::Optimiser& optimiser() const { return question_.recipe->optimiser; }
  bool has_set(std::string_view set) const { return sets_.contains(set); }
  std::vector<std::string> sets() const;  // probe1, probe2 (not of a light capture), timed

  // The reference tensor for input 0: "loss", "grad:<parameter>", "stat:<buffer>"; nullptr: the set has none.
  const TensorView* expected(std::string_view set, std::string_view name) const;
  const TensorView* loss(int index) const;                             // of an entry of the ring, on `probe1`
  double envelope(std::string_view set, std::string_view name) const;  // E0 of the same names
  // The least error that eager's runs have in the gradient of a parameter, in the case's precision where that is not
  // float32; 0: not known.
  double least_error(std::string_view set, std::string_view parameter) const;
  double grad_floor(std::string_view set) const;  // root mean square of all gradients of the set
  // How far eager's own norm of all gradients is from that in float64, relatively; 0: the case does not clip them.
  double norm_error(std::string_view set) const;
  double widest_gradient_envelope() const;  // over the probe sets
  const std::vector<std::string>& parameters() const {
    return parameters_;
  }  // that have a gradient, in the module's order
  std::vector<std::string> statistics(std::string_view set) const;
  const TensorView* weight(std::string_view set, std::string_view name) const;  // of weights/<set>.safetensors
  const TensorView* labels(int index) const;
  int ring() const { return bundle_.value("ring", 0); }

  struct Fault {
    std::string name, sentence;
    double times_bound;
  };
  const std::vector<Fault>& faults() const { return faults_; }
  const std::string& weak() const { return weak_; }  // the capture's own doubt; empty: none

  bool has_dropout() const { return dropout_layers_ > 0; }
  const std::vector<double>& dropout_losses() const { return dropout_losses_; }  // eager's, input 0, set `timed`
  // Variances of gradients of the same batch, which only the masks make differ, each over a group of steps: eager's, of
  // the parameters that show the layers' probabilities; how many groups a level is asked for, and of how many steps.
  using Variances = std::map<std::string, std::vector<double>>;
  const Variances& dropout_variances() const { return dropout_variances_; }
  int dropout_groups() const { return dropout_groups_; }
  int dropout_group() const { return dropout_group_; }
  // The least error of its probability that is found at every layer; infinite: at some layer none is. `layer`: which.
  struct Visible {
    double error = 0;
    std::string layer;
  };
  const Visible& dropout_visible() const { return dropout_visible_; }

 private:
  struct Set {
    SafeTensors reference, weights;
    std::map<std::string, double, std::less<>> envelope, least;
    double grad_floor = 0, norm_error = 0;
  };
  Result<void> add_set(const std::string& name, const nlohmann::ordered_json& about);
  Result<void> add_mode();
  void add_dropout(const nlohmann::ordered_json& about);

  std::filesystem::path path_;
  core::Case question_;
  nlohmann::json bundle_;
  std::map<std::string, Set, std::less<>> sets_;
  std::optional<SafeTensors> labels_;
  std::vector<std::string> parameters_;
  std::vector<std::string> probes_;
  std::vector<Fault> faults_;
  std::string weak_;
  int dropout_layers_ = 0;
  std::vector<double> dropout_losses_;
  Variances dropout_variances_;
  int dropout_groups_ = 0, dropout_group_ = 0;
  Visible dropout_visible_;
};

}  // namespace strata::proof
