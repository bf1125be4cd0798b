// SPDX-License-Identifier: Apache-2.0
#include "strata/drawing.hpp"

#include <fmt/format.h>

#include <cstring>

#include "strata/bundle.hpp"

namespace strata {
namespace {

const std::string kName = std::string(generator_prefix) + "count";

}  // namespace

// splitmix64 (Steele, Lea and Flood 2014)
std::uint64_t first_count(std::uint64_t seed) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

void add_count(State& state, std::optional<std::uint64_t> count) {
  if (!count) return;
  auto& [name, tensor] = state.emplace_back(kName, allocate("I64", {}));
  std::memcpy(writable(tensor), &*count, sizeof *count);
}

std::optional<std::uint64_t> count_in(const SafeTensors& state) {
  const auto* tensor = state.find(kName);
  if (tensor == nullptr) return std::nullopt;
  std::uint64_t count = 0;
  if (tensor->dtype != "I64" || tensor->bytes != sizeof count)
    throw Failure("failed", fmt::format("{}: '{}' is of another type or shape", state.where(), kName),
                  "it is one I64, as `state` writes it");
  std::memcpy(&count, tensor->data, sizeof count);
  return count;
}

}  // namespace strata
