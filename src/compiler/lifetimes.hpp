// SPDX-License-Identifier: Apache-2.0
// How long each storage of the arena must keep its bytes.
#pragma once

#include "compiler/program.hpp"

namespace strata::compiler {

constexpr std::int64_t alignment = 64;  // of storages in the arena, bytes: a cache line and an AVX-512 register

// From the step that first writes the storage to the last that reads one of its values, both included; to the end for
// what is kept. Bytes are rounded up to `alignment`.
struct Lifetime {
  int storage = -1;
  std::int64_t bytes = 0;
  int first = -1, last = -1;
};

// Of the storages in the arena that a step writes, by first step.
std::vector<Lifetime> lifetimes_of(const Program& program);

inline bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The largest sum of bytes alive at one step.
std::int64_t most_at_once(const std::vector<Lifetime>& lifetimes);

}  // namespace strata::compiler
