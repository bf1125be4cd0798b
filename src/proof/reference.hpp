// SPDX-License-Identifier: Apache-2.0
// A bundle as the proof sees it: float64 outputs, the envelope of legitimate runs in the case's precision, and whether
// both together have the power to see a fault. Rules and formulas: docs/proof.md. Opened once per case; not safe for
// use from two threads.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/safetensors.hpp"
#include "core/case.hpp"

namespace strata::proof {

// Bounds, in units of the envelope. Measured reasons: docs/proof.md.
inline constexpr double strict_limit = 8;           // of the tensor's error
inline constexpr double reassociated_limit = 64;    // the same for levels that declare Winograd, FFT, ...
inline constexpr double element_factor = 2;         // the largest element's bound is this times the tensor's: 16, 128
inline constexpr double power_limit = 1;            // planted faults must reach this many times the strict bound
inline constexpr double training_power_limit = 10;  // those of a training, else it is weak
inline constexpr double widest_envelope = 4;        // two draws of noise differ by 1.4 times their size
inline constexpr double spread_limit = 0.10;        // spread across inputs over spread across classes

struct OutputSpec {
  std::string name;
  std::string dtype;  // as safetensors writes it, "F32"
  std::vector<std::int64_t> shape;
  bool tap;  // of a leaf module (deep bundles): locates a difference, is never required
};

// What legitimate runs of eager in the bundle's precision differ by from the reference.
struct Envelope {
  double error = 0;    // E0: relative error of the tensor (2-norm)
  double largest = 0;  // M0: largest element's error over the largest element
};

class Reference {
 public:
  // Reads bundle.json and maps the tensors; E0 is computed when first asked for. Error: something is missing or
  // damaged.
  static Result<Reference> open(const std::filesystem::path& bundle);

  const nlohmann::json& bundle() const { return bundle_; }
  const std::filesystem::path& folder() const { return path_; }
  const std::vector<OutputSpec>& outputs() const {
    return outputs_;
  }  // real ones first, then taps in order of execution
  bool has_set(std::string_view set) const { return sets_.contains(set); }
  std::vector<std::string> sets() const;
  std::vector<std::string> generic_sets() const;  // generic1, generic2 and what more was asked for
  bool weaker() const { return weaker_; }         // no float64: the reference is the mean of eager's float32 runs
  int ring() const { return ring_; }
  const core::Case& question() const { return question_; }
  std::string precision() const {
    return std::string(name_of(question_.precision));
  }  // the mode that the envelope is of
  std::string shown_precision() const {
    return precision() == "fp32" ? "float32" : precision();
  }  // the same for people

  // The reference tensor; nullptr: the bundle does not have it.
  const TensorView* expected(std::string_view set, int index, std::string_view output) const;
  std::vector<const TensorView*> legitimate(std::string_view set, int index, std::string_view output) const;
  // What eager gives with subnormal numbers taken for zero; nullptr: nothing else.
  const TensorView* flushed(std::string_view set, int index, std::string_view output) const;
  std::vector<int> indices(std::string_view set) const;  // that the set has references for
  // Of the timed weights: inputs behind the ring, which no level sees before it is timed on them. expected() has them.
  std::vector<int> unseen() const;
  // Writes one of them as a ring of one entry.
  Result<void> write_unseen(int index, const std::filesystem::path& path) const;
  Envelope envelope(std::string_view set, std::string_view output) const;
  // True if input `index` has a reference that differs from every other input's by more than twice the strict bound, so
  // that an output which matches it was computed from that input.
  bool distinct(std::string_view set, int index) const;
  double floor_scale(
      std::string_view set) const;  // unit roundoff times the median magnitude over all outputs of the set
  double unit() const;              // the mode's unit roundoff: 2^-24 in float32, 2^-11 in TF32, 2^-9 in bfloat16
  // The least error of any single legitimate run, averaged over its inputs; 0 for a set without runs.
  double least_error(std::string_view set, std::string_view output) const;

  // Planted fault -> its outputs under generic1 for input 0.
  std::vector<std::string> faults() const;
  const TensorView* faulty(std::string_view fault, std::string_view output) const;

 private:
  struct Set {
    SafeTensors reference;
    std::optional<SafeTensors> envelope, flushed;
    std::vector<std::string> variants;
    std::vector<int> indices;
    mutable std::optional<double> floor_scale;
    mutable std::map<std::string, Envelope, std::less<>> known;
    mutable std::map<int, bool> distinct;
  };
  Result<void> add_set(const std::string& name);
  Result<void> check_whole() const;
  const Set* set_of(std::string_view name) const;

  std::filesystem::path path_;
  nlohmann::json bundle_;
  std::vector<OutputSpec> outputs_;
  std::map<std::string, Set, std::less<>> sets_;
  std::optional<SafeTensors> faults_, unseen_;
  bool weaker_ = false;
  int ring_ = 0;
  core::Case question_;
};

// SHA-256 of each tensor of a weight set's file.
Result<std::map<std::string, std::string>> weight_hashes(const std::filesystem::path& bundle, std::string_view set);

// Whether this reference can show a fault at all; computed from generic sets and planted faults.
struct Power {
  struct Fault {
    std::string name;
    double times_bound;  // largest over the outputs; infinite for a wrong integer output
  };
  double input_spread = 0;  // across inputs over across classes: the best output of the worse generic set
  std::vector<Fault> faults;
  bool weak = false;
  std::string reason;  // why it is weak
};
Power power(const Reference& reference);

// The planted fault that shows least; nullptr: none was planted.
template <class Fault>
const Fault* least_fault(const std::vector<Fault>& all) {
  const auto least = std::ranges::min_element(all, {}, &Fault::times_bound);
  return least == all.end() ? nullptr : &*least;
}

}  // namespace strata::proof
