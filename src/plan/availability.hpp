// SPDX-License-Identifier: Apache-2.0
// Whether a level can be started here, whatever the case: decided in this one place for compare, doctor and list.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/places.hpp"
#include "level/level.hpp"

namespace strata::plan {

// What matters of a Python interpreter, however it was learnt (asked, or read from its files).
struct Interpreter {
  std::string python, torch;  // torch empty: no PyTorch there
  std::string why_not;        // it does not work; empty: it does
  std::function<bool(const std::string& module)> has;
  bool own = false;  // strata's own, which set-up makes on first use
};

enum class UnavailableReason { interpreter, torch, module, environment, left_out, program };

struct Unavailable {
  UnavailableReason reason;
  std::string what, hint;
};

// What must lie on the disk: its program, or the environment that it brings. nullopt: it is there.
std::optional<Unavailable> missing_files(const level::Level& level, const Installation& place);

// All that it needs to start: its interpreter with PyTorch and modules, and its files. nullopt: it has everything.
std::optional<Unavailable> why_unavailable(const level::Level& level, const Interpreter& measured,
                                           const Interpreter& tools, const Installation& place);

}  // namespace strata::plan
