// SPDX-License-Identifier: Apache-2.0
// An optimiser: what all have in common, and the settings of its rule. Types and the learning rate of a step alone, so
// that the SDK and levels on libraries of primitives have the same; its JSON is in optimiser_json.hpp, its words are in
// case.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace strata::core {

// The learning rate over optimiser steps, as torch.optim.lr_scheduler has it.
struct Schedule {
  enum class Kind { step, cosine } kind = Kind::step;
  std::int64_t steps = 1;  // step: after so many the rate is multiplied by gamma; cosine: after so many it is 0
  double gamma = 1;

  bool operator==(const Schedule&) const = default;
};

// torch.optim.SGD's own settings.
struct Sgd {
  double momentum = 0.9, dampening = 0;
  bool nesterov = false;

  bool operator==(const Sgd&) const = default;
};

// torch.optim.Adam's own settings; where the weight decay is decoupled from the gradient, AdamW's.
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool decoupled = false;

  bool operator==(const Adam&) const = default;
};

// With the defaults of docs/bundle.md; usual_optimiser() has those of the other rules.
struct Optimiser {
  double lr = 0.01, weight_decay = 0.0001;
  double clip_norm = 0;  // of all gradients together, as torch.nn.utils.clip_grad_norm_ clips it; 0: as it is
  std::optional<Schedule> schedule;
  std::variant<Sgd, Adam> rule;

  const Sgd* sgd() const { return std::get_if<Sgd>(&rule); }
  const Adam* adam() const { return std::get_if<Adam>(&rule); }
  bool operator==(const Optimiser&) const = default;
};

inline constexpr std::array<std::string_view, 3> optimiser_names{"sgd", "adam", "adamw"};

inline std::string_view name_of(const Optimiser& optimiser) {
  return optimiser.sgd() ? "sgd" : optimiser.adam()->decoupled ? "adamw" : "adam";
}

// By its name, with that one's defaults, which are PyTorch's but for SGD; nullopt: there is none of this name.
inline std::optional<Optimiser> usual_optimiser(std::string_view name) {
  if (name == "sgd") return Optimiser{};
  if (name == "adam") return Optimiser{.lr = 0.001, .weight_decay = 0, .rule = Adam{}};
  if (name == "adamw") return Optimiser{.lr = 0.001, .weight_decay = 0.01, .rule = Adam{.decoupled = true}};
  return std::nullopt;
}

// What precedes a parameter's name in a state (docs/protocol.md, state), of each buffer that the rule has beside it.
inline std::span<const std::string_view> buffer_prefixes(const Optimiser& optimiser) {
  static constexpr std::array<std::string_view, 1> of_sgd{"momentum:"};
  static constexpr std::array<std::string_view, 2> of_adam{"exp_avg:", "exp_avg_sq:"};
  if (optimiser.adam()) return of_adam;
  return of_sgd;
}
// All that there are.
inline constexpr std::array<std::string_view, 3> all_buffer_prefixes{"momentum:", "exp_avg:", "exp_avg_sq:"};

// What every gradient is multiplied by, where all of them together have this norm.
inline double clipped_share(const Optimiser& optimiser, double norm) {
  return optimiser.clip_norm > 0 ? std::min(optimiser.clip_norm / (norm + 1e-6), 1.0) : 1.0;
}

// The learning rate of the step after `step` others: lr; lr gamma^floor(step/steps); lr (1 + cos(pi step/steps))/2.
inline double learning_rate(const Optimiser& optimiser, std::int64_t step) {
  if (!optimiser.schedule) return optimiser.lr;
  const auto& schedule = *optimiser.schedule;
  if (schedule.kind == Schedule::Kind::step) {
    const std::int64_t decays = step / schedule.steps;
    return optimiser.lr * std::pow(schedule.gamma, static_cast<double>(decays));
  }
  const auto done = static_cast<double>(step) / static_cast<double>(schedule.steps);
  return optimiser.lr * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace strata::core
