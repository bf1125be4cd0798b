// SPDX-License-Identifier: Apache-2.0
// A case: the question that a comparison answers, with named axes. What was captured to answer it (graph, weights by
// hash, files, versions) is no part of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "core/optimiser_json.hpp"

namespace strata::core {

enum class Mode { infer, train };
enum class Precision { fp32, tf32, bf16, amp_bf16 };
enum class Device { cpu, cuda };
inline constexpr Mode all_modes[] = {Mode::infer, Mode::train};
inline constexpr Precision all_precisions[] = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::amp_bf16};

std::string_view name_of(Mode mode);
std::string_view name_of(Precision precision);  // "amp-bf16"
std::string_view name_of(Device device);

// One input of the network, batch included. `low` and `high`: the range that its values were asked to be drawn from.
struct Input {
  std::string name, dtype = "float32";
  bool keyword = false;  // handed over by name; else by its place
  std::vector<std::int64_t> shape;
  std::optional<double> low, high;

  bool operator==(const Input&) const = default;
};

// A whole training on a data set, which Case::data names.
struct Training {
  int epochs = 1;
  std::string init = "torch";    // where the weights begin: torch (what the model's code makes), kaiming:..., ...
  std::string augment;           // "flip,crop"; empty: none
  std::int64_t most_images = 0;  // of each split; 0: all
  std::string data_sha256{};     // of pixels, labels and classes, in the splits' order; empty: part of strata

  bool operator==(const Training&) const = default;
};

// What --loss may name beside FILE.py:FUNCTION (docs/bundle.md, "Losses").
inline std::vector<std::string> loss_names() {
  return {"cross_entropy", "nll", "bce", "bce_with_logits", "mse", "l1", "smooth_l1", "output"};
}

// How a network is trained.
struct Recipe {
  Optimiser optimiser;
  std::string loss = "cross_entropy";  // a name, or file.py:function without its folder
  std::optional<Training> training;    // nullopt: a case is about single steps

  bool operator==(const Recipe&) const = default;
};

// Batch sizes that one artefact must serve (--dynamic).
struct OpenBatch {
  std::int64_t low = 1, high = 1;
  std::vector<std::int64_t> sizes;  // that are proven and timed

  bool operator==(const OpenBatch&) const = default;
};

struct Case {
  std::string model;  // resnet50; of a user's network file stem and function, as net:build, or what --name said
  Mode mode = Mode::infer;
  std::int64_t batch = 1;
  std::vector<Input> inputs;
  Precision precision = Precision::fp32;
  Device device = Device::cpu;
  int threads = 1;
  std::optional<Recipe> recipe;  // of mode train
  std::string data;              // where inputs come from: empty for the model's own, synthetic, file:NAME, folder:NAME
  std::string weights;  // the name of a file of weights; empty: those that the model's code makes from the seed
  std::int64_t seed = 0;
  std::optional<OpenBatch> open_batch;  // asked beside the question and no axis of it

  bool operator==(const Case&) const = default;

  // Every axis with its value, a line each, in a fixed order: what the key is a hash of.
  std::string canonical() const;
  // "resnet50/infer/b8/3x224x224/fp32/cpu/t2": what people read. What is not the default follows, so that no two cases
  // of different keys print alike.
  std::string id() const;
  // Name and value of every axis, in canonical()'s order; "height" and "width" of the first input that is an image.
  std::vector<std::pair<std::string, std::string>> axes() const;
  // The same question of any batch: batch 0, and inputs without their first extent where it is the batch.
  Case without_batch() const;
  // Extent of the image that the first input holds; nullopt where it holds none ([N, 1 or 3, height, width]).
  std::optional<std::pair<std::int64_t, std::int64_t>> image_size() const;
};

// A hash of canonical(): 16 hexadecimal digits, equal on every machine and in every year.
std::string key_of(const Case& question);

// "sgd:lr=0.1,schedule=step/30/0.1", "adamw": its name and what differs from the defaults; empty: SGD with all of them.
std::string words(const Optimiser& optimiser);

// The case of a captured network, out of bundle.json (docs/bundle.md). Absent fields have their defaults. Error: the
// first field that is not as that page says; `where` names the text.
Result<Case> captured_case(const nlohmann::json& info, const std::string& where);

// A case as the store and reports have it, and back; the same errors.
nlohmann::json to_json(const Case& question);
Result<Case> read_case(const nlohmann::json& fields, const std::string& where);

nlohmann::json to_json(const Training& training);

}  // namespace strata::core
