// SPDX-License-Identifier: Apache-2.0
// What a capture is asked for: a case of which the network is not known yet. Its JSON is docs/bundle.md's spec.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "core/case.hpp"

namespace strata::core {

struct CaseSpec {
  std::string model;  // a name, "timm:name", "/abs/net.py:build", or the absolute path of a model file
  Mode mode = Mode::infer;
  std::optional<std::int64_t> batch;                          // nullopt: the model's own
  std::optional<std::pair<std::int64_t, std::int64_t>> size;  // height and width of images; nullopt: the model's own
  std::vector<Input> inputs;                                  // empty: the model's own
  Precision precision = Precision::fp32;
  Device device = Device::cpu;
  int threads = 1;
  std::optional<Optimiser> optimiser;           // of mode train; nullopt: the model's own
  std::string loss;                             // the same; empty: the model's own
  std::string weights, input_from, input_file;  // absolute paths; empty: none
  bool synthetic = false;                       // inputs are noise
  std::int64_t seed = 0;
  int ring = 4;                         // inputs that a worker holds at once (docs/proof.md)
  int generic_sets = 2;                 // weights that are drawn for the proof
  bool deep = false;                    // with the outputs of layers
  bool light = false;                   // with what a point of a sweep is proven by, and not the whole
  bool all_runs = false;                // of eager in the envelope of a light capture
  std::optional<OpenBatch> open_batch;  // the same network over a range of batches beside it

  bool operator==(const CaseSpec&) const = default;
};

// Every field is written. Of what is read, absent ones have their defaults. Error: the first that is not as that page
// says; `where` names the text, `hint` says what to do about it.
nlohmann::json to_json(const CaseSpec& spec);
Result<CaseSpec> read_spec(const nlohmann::json& value, const std::string& where, const std::string& hint = {});

nlohmann::json to_json(const Input& input);

// "224", or "224x320" of an image that is no square.
std::string size_words(const std::pair<std::int64_t, std::int64_t>& size);

// The case that it asks for, as far as it is known before the network is. `model`: as the case names it.
Case question_of(const CaseSpec& spec, std::string model);

}  // namespace strata::core
