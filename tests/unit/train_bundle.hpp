// SPDX-License-Identifier: Apache-2.0
// A made-up bundle of mode train on disk, and states that a made-up level writes for it. For the proof's tests only.
#pragma once

#include "proof/train_checks.hpp"
#include "unit/proof_bundle.hpp"

namespace strata::proof::testing {

using Values = std::vector<double>;

inline Values in_float32(Values values) {
  for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  return values;
}

// A state as a level writes it: name -> values, by "weight:" and "momentum:".
using State = std::map<std::string, Values>;

struct TrainBundle {
  std::map<std::string, std::vector<std::int64_t>> shapes{
      {"conv.weight", {40, 30}}, {"conv.bias", {40}}, {"fc.weight", {5, 40}}, {"fc.bias", {5}}};
  std::vector<std::string> order{"conv.weight", "conv.bias", "fc.weight", "fc.bias"};
  std::vector<std::string> statistics{"bn.running_mean", "bn.running_var"};
  std::map<std::string, State> weights, gradients,
      moved;  // by set: parameters and buffers; gradients; statistics after a step
  std::vector<std::vector<double>> labels{{0, 1, 2, 3, 4, 0, 1, 1}, {4, 4, 4, 2, 2, 1, 3, 0}};
  core::Optimiser optimiser{.weight_decay = 0.01};
  nlohmann::json faults{{"loss_summed", {{"times_bound", 1e5}, {"sentence", "the loss summed"}}}};
  std::string weak;
  double envelope = 1e-5;
  std::string precision = "fp32";
  double mode_envelope = 0.02, least = 0.01;  // of eager in `precision`, where that is another
  fs::path path, last_file;                   // last_file: of file()

  explicit TrainBundle(std::uint64_t seed = 1) : random(seed) {
    path = fs::temp_directory_path() / fmt::format("strata_train_{}_{}", ::getpid(), count()++);
    fs::create_directories(path / "reference");
    fs::create_directories(path / "weights");
    for (const char* set : {"timed", "probe1", "probe2"}) {
      for (const auto& name : order) {
        weights[set][name] = draw(name, 0.3);
        gradients[set][name] = draw(name, 0.05);
      }
      for (const auto& name : statistics) {
        shapes[name] = {40};
        for (int i = 0; i < 40; ++i) weights[set][name].push_back(static_cast<float>(0.5 + std::abs(normal(random))));
        for (const double old : weights[set][name])
          moved[set][name].push_back(static_cast<float>(0.9 * old + 0.1 * (1 + std::abs(normal(random)))));
      }
    }
  }
  ~TrainBundle() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TrainBundle(const TrainBundle&) = delete;
  TrainBundle& operator=(const TrainBundle&) = delete;

  std::unique_ptr<TrainReference> open() {
    nlohmann::ordered_json about;
    for (const char* set : {"timed", "probe1", "probe2"}) {
      Tensors held, reference;
      nlohmann::ordered_json grads, stats;
      double squares = 0, n = 0;
      reference.add_as("0/loss", "F32", {}, {1.5});
      if (std::string_view(set) == "probe1") reference.add_as("1/loss", "F32", {}, {2.5});
      for (const auto& name : order) {
        reference.add_as("0/grad:" + name, "F32", shapes[name], gradients[set][name]);
        grads[name] = envelope;
        for (const double g : gradients[set][name]) squares += g * g, ++n;
      }
      for (const auto& name : statistics) {
        reference.add_as("0/stat:" + name, "F32", {40}, moved[set][name]);
        stats[name] = envelope;
      }
      for (const auto& [name, values] : weights[set]) held.add_as(name, "F32", shapes[name], values);
      held.write(path / "weights" / fmt::format("{}.safetensors", set));
      reference.write(path / "reference" / fmt::format("{}.train.safetensors", set));
      about[set] = {{"envelope", {{"loss", envelope}, {"grad", grads}, {"stat", stats}}},
                    {"grad_floor", std::sqrt(squares / n)}};
    }
    if (precision != "fp32") {
      nlohmann::json in_mode;
      for (const char* set : {"timed", "probe1", "probe2"}) {
        auto& one = in_mode[set];
        one["envelope"]["loss"] = mode_envelope;
        for (const auto& name : order) one["envelope"]["grad"][name] = mode_envelope, one["least"][name] = least;
        for (const auto& name : statistics) one["envelope"]["stat"][name] = mode_envelope;
      }
      std::ofstream(path / "reference" / fmt::format("train.{}.json", precision)) << in_mode;
    }
    about["faults"] = faults;
    about["weak"] = weak;
    about["dropout"] = {{"layers", nlohmann::json::array()}, {"losses", nlohmann::json::array()}};
    std::ofstream(path / "reference" / "train.json") << about;
    Tensors of_labels;
    for (std::size_t i = 0; i < labels.size(); ++i)
      of_labels.add_as(fmt::format("{}/labels", i), "I64", {static_cast<std::int64_t>(labels[i].size())}, labels[i]);
    of_labels.write(path / "labels.safetensors");
    std::ofstream(path / "bundle.json") << nlohmann::json{
        {"bundle", 2},
        {"ring", 2},
        {"parameters", 1445},
        {"flops", 2e6},
        {"case", {{"mode", "train"}, {"threads", 2}, {"precision", precision}, {"optimiser", to_json(optimiser)}}}};
    auto opened = TrainReference::open(path);
    if (!opened) throw std::runtime_error(opened.error().what);
    return std::make_unique<TrainReference>(std::move(*opened));
  }

  // The state after one probe step (lr 1, momentum 0.9) that found these gradients; `noise`: relative error of each
  // gradient.
  State after_probe(const std::string& set, double noise = 0) {
    State out;
    for (const auto& name : order) {
      Values g = gradients[set][name];
      for (double& v : g) v += noise * 0.05 * normal(random);
      out["momentum:" + name] = in_float32(g);
      Values w = weights[set][name];
      for (std::size_t i = 0; i < w.size(); ++i) w[i] -= out["momentum:" + name][i];
      out["weight:" + name] = in_float32(w);
    }
    for (const auto& name : statistics) out["weight:" + name] = moved[set][name];
    return out;
  }

  // Written and read back, as a worker's file is.
  SafeTensors file(const State& state) {
    Tensors tensors;
    for (const auto& [name, values] : state) {
      const auto colon = name.find(':');
      const auto shape = name.find('/') != name.npos ? std::vector<std::int64_t>{} : shapes[name.substr(colon + 1)];
      tensors.add_as(name, "F32", shape, values);
    }
    last_file = path / fmt::format("state{}.safetensors", count()++);
    tensors.write(last_file);
    auto opened = SafeTensors::open(last_file);
    if (!opened) throw std::runtime_error(opened.error().what);
    return *opened;
  }
  SafeTensors loss(double value = 1.5) { return file({{"0/loss", {value}}}); }

  // One step of `rule` (the case's optimiser, or a faulty one) on weights with buffers, rounded to float32 as PyTorch
  // does.
  static State step(const State& before, const State& gradient, const std::vector<std::string>& names,
                    const core::Optimiser& how, double lr) {
    State out = before;
    const auto& rule = *how.sgd();
    const double mu = rule.momentum, damp = rule.dampening, decay = how.weight_decay;
    for (const auto& name : names) {
      const Values &w = before.at("weight:" + name), &g = gradient.at("momentum:" + name);
      Values d(w.size()), next(w.size());
      for (std::size_t i = 0; i < w.size(); ++i) d[i] = static_cast<float>(g[i] + decay * w[i]);
      const auto v = before.find("momentum:" + name);
      Values buffer = d;
      if (v != before.end() && mu > 0)
        for (std::size_t i = 0; i < w.size(); ++i)
          buffer[i] = static_cast<float>(mu * v->second[i] + (1 - damp) * d[i]);
      for (std::size_t i = 0; i < w.size(); ++i)
        next[i] = static_cast<float>(w[i] - lr * (rule.nesterov ? d[i] + mu * buffer[i] : buffer[i]));
      out["weight:" + name] = next;
      if (mu > 0) out["momentum:" + name] = buffer;
    }
    return out;
  }

  Values draw(const std::string& name, double size) {
    std::size_t n = 1;
    for (const auto extent : shapes[name]) n *= static_cast<std::size_t>(extent);
    Values out(n);
    for (double& v : out) v = static_cast<float>(size * normal(random));
    return out;
  }
  static int& count() {
    static int folders = 0;
    return folders;
  }

  stats::Random random;
};

}  // namespace strata::proof::testing
