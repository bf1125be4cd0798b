// SPDX-License-Identifier: Apache-2.0
#include "strata/nonce.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "strata/bundle.hpp"

namespace strata {

namespace {

constexpr unsigned kBits = 3;  // of a place: at most seven units in the last place of its value
constexpr std::uint8_t kMask = (1U << kBits) - 1;
constexpr std::size_t kLooks = 512;  // values that are looked at from a place on

// Zero would become denormal, which some processors compute slowly; infinite values would become none.
template <class Value>
bool can_hold(const std::byte* at) {
  Value value;
  std::memcpy(&value, at, sizeof value);
  return std::isfinite(value) && std::abs(value) > Value(1e-30);
}

template <class Value>
std::vector<std::byte*> find(std::byte* data, std::size_t count, std::span<const std::uint64_t> places) {
  std::vector<std::byte*> found;
  for (const auto place : places) {
    for (std::size_t i = 0; i < std::min(count, kLooks); ++i) {
      std::byte* at = data + (place + i) % count * sizeof(Value);
      if (!can_hold<Value>(at)) continue;
      if (std::find(found.begin(), found.end(), at) != found.end()) continue;
      found.push_back(at);
      break;
    }
  }
  return found;
}

}  // namespace

static_assert(std::endian::native == std::endian::little);  // the first byte of a value has its last bits

Nonce::Nonce(std::vector<std::vector<HostTensor>>& ring, std::uint64_t first, std::span<const std::uint64_t> places)
    : ring_(ring), next_(first), wanted_(places), found_(ring.size()) {}

Nonce::~Nonce() {
  for (const auto& entry : found_)
    if (entry)
      for (const auto& place : *entry) *place.low = std::byte{place.was};
}

const std::vector<Nonce::Place>& Nonce::places_of(std::size_t entry) {
  auto& found = found_[entry];
  if (found) return *found;
  found.emplace();
  for (auto& input : ring_[entry]) {
    const auto count = static_cast<std::size_t>(input.view.elements());
    if (count == 0 || (input.view.dtype != "F32" && input.view.dtype != "F64")) continue;
    const auto at = input.view.dtype == "F32" ? find<float>(writable(input), count, wanted_)
                                              : find<double>(writable(input), count, wanted_);
    for (std::byte* low : at) found->push_back({low, std::to_integer<std::uint8_t>(*low)});
    break;
  }
  return *found;
}

void Nonce::put(std::size_t entry) {
  auto number = next_++;
  for (const auto& place : places_of(entry)) {
    *place.low = std::byte(static_cast<std::uint8_t>((place.was & ~kMask) | (number & kMask)));
    number >>= kBits;
  }
}

std::size_t Nonce::places() const {
  std::optional<std::size_t> fewest;
  for (const auto& entry : found_)
    if (entry) fewest = std::min(fewest.value_or(entry->size()), entry->size());
  return fewest.value_or(0);
}

}  // namespace strata
