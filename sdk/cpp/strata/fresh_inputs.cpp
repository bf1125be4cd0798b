// SPDX-License-Identifier: Apache-2.0
#include "strata/fresh_inputs.hpp"

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
std::vector<std::byte*> find_places(std::byte* data, std::size_t count, std::span<const std::uint64_t> places) {
  std::vector<std::byte*> result;
  for (const auto place : places) {
    for (std::size_t i = 0; i < std::min(count, kLooks); ++i) {
      std::byte* at = data + (place % count + i) % count * sizeof(Value);
      if (!can_hold<Value>(at) || std::find(result.begin(), result.end(), at) != result.end()) continue;
      result.push_back(at);
      break;
    }
  }
  return result;
}

}  // namespace

static_assert(std::endian::native == std::endian::little);  // the first byte of a value has its last bits

FreshInputs::FreshInputs(Ring& ring, std::span<const std::size_t> indices, std::uint64_t first,
                         std::span<const std::uint64_t> places)
    : ring_(ring), indices_(indices), first_(first), wanted_(places) {}

void FreshInputs::exchange_at(std::size_t at, Entry& other) {
  exchange_at_ = at;
  other_ = &other;
}

FreshInputs::~FreshInputs() {
  if (exchanged_) exchange();
  for (const auto& [entry, spots] : spots_)
    for (const auto& place : spots) *place.low = std::byte{place.was};
}

const std::vector<FreshInputs::Place>& FreshInputs::places_of(Entry& entry) {
  const auto [at, is_new] = spots_.try_emplace(&entry);
  auto& spots = at->second;
  if (!is_new) return spots;
  for (auto& input : entry) {
    const auto count = static_cast<std::size_t>(input.view.elements());
    if (count == 0 || (input.view.dtype != "F32" && input.view.dtype != "F64")) continue;
    const auto bytes = input.view.dtype == "F32" ? find_places<float>(writable(input), count, wanted_)
                                                 : find_places<double>(writable(input), count, wanted_);
    for (std::byte* low : bytes) spots.push_back({low, std::to_integer<std::uint8_t>(*low)});
    break;
  }
  return spots;
}

void FreshInputs::number(Entry& entry, std::uint64_t value) {
  for (const auto& place : places_of(entry)) {
    *place.low = std::byte(static_cast<std::uint8_t>((place.was & ~kMask) | (value & kMask)));
    value >>= kBits;
  }
}

// Entries of a ring have the same shapes.
void FreshInputs::exchange() {
  auto& one = ring_[indices_[*exchange_at_]];
  for (std::size_t i = 0; i < one.size(); ++i)
    std::swap_ranges(writable(one[i]), writable(one[i]) + one[i].view.bytes, writable((*other_)[i]));
  exchanged_ = !exchanged_;
}

void FreshInputs::put(std::size_t iteration) {
  if (exchanged_) exchange();
  auto& entry = ring_[indices_[iteration]];
  const bool exchanges = exchange_at_ == iteration && other_ != &entry;
  number(exchanges ? *other_ : entry, first_ + iteration);
  if (exchanges) exchange();
}

std::size_t FreshInputs::places() const {
  std::optional<std::size_t> fewest;
  for (const auto& [entry, spots] : spots_) fewest = std::min(fewest.value_or(spots.size()), spots.size());
  return fewest.value_or(0);
}

}  // namespace strata
