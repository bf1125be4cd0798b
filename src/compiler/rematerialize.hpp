// SPDX-License-Identifier: Apache-2.0
// A training step that keeps fewer results of its forward phase and repeats the steps that gave them in its backward
// phase: each at most once, right before the first step there that reads its result, bit by bit as before and without
// its effects. What a choice of steps does to memory is found without making the program, since the pass `recompute`
// asks for thousands of choices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/program.hpp"

namespace strata::compiler {

// The step as it can be repeated: the same results, those that it can give again, and no effects. nullopt: it cannot.
std::optional<Step> repetition_of(const Program& program, const Step& step);

// By step: whether it is repeated.
using Choice = std::vector<bool>;

class Rematerialization {
 public:
  // `program`: before in_place. It must outlive this.
  explicit Rematerialization(const Program& program);

  // One step of the changed program.
  struct Turn {
    int step = -1;
    bool again = false;
  };
  // The changed program in time. Lives are those of what the step itself writes, not its repetition.
  struct Profile {
    std::vector<Turn> turns;
    std::vector<std::int64_t> bytes;  // that live at each turn, with results in place
    std::vector<int> first, last;     // turns, by storage as given_again() numbers them
    std::int64_t most() const;
  };
  // False: a step would be repeated after something that it reads has changed.
  bool profile(const Choice& choice, Profile& into) const;

  // Storages of the arena, numbered anew, that a repetition gives again; none: the step cannot be repeated.
  const std::vector<int>& given_again(std::size_t step) const { return calls_[step].gives_again; }
  // What a repetition takes, as bytes that could be moved meanwhile.
  double cost(std::size_t step) const { return calls_[step].cost; }

  Program program_with(const Choice& choice) const;

 private:
  // A step, with the storages of the arena that it touches.
  struct Call {
    std::vector<int> from;           // steps whose results it reads
    std::vector<int> reads, writes;  // storages, numbered anew
    std::vector<int> over;           // those that it may write its result over
    std::vector<int> reads_again, gives_again;
    int until = -1;  // the first step that changes something it reads; the number of steps: none does
    double cost = 0;
  };
  void add_call(const Step& step, const std::vector<int>& changed_at);
  int storage(int value);  // -1: not in the arena
  bool turns_of(const Choice& choice, std::vector<Turn>& turns) const;
  bool add_again(const Choice& choice, int step, int before, Choice& repeated, std::vector<Turn>& turns) const;
  bool is_backward(std::size_t step) const { return p_.steps[step].phase == Phase::backward; }

  const Program& p_;
  std::vector<int> producer_;        // by value
  std::vector<int> root_;            // by step: the one that computes what a view shows; otherwise itself
  std::vector<Call> calls_;          // by step
  std::vector<int> numbers_;         // by value: of its storage
  std::vector<std::int64_t> bytes_;  // by storage
  std::vector<int> renewed_by_;      // by storage: the step whose repetition gives it again; -1: none
};

}  // namespace strata::compiler
