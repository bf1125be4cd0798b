// SPDX-License-Identifier: Apache-2.0
// Keeps a level from answering a timed iteration with what it kept (docs/protocol.md, measure): each iteration's number
// stands in the last bits of a few values of its input, so that no input was seen before, and one
// iteration finds the input of another entry in its memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "strata/level.hpp"

namespace strata {

class FreshInputs {
 public:
  using Ring = std::vector<std::vector<HostTensor>>;  // labels of a training belong to an entry, too

  // The block's ring indices. `first`: the number of its first iteration. `places`: drawn by the driver, each taken
  // modulo the number of values of an entry's first input of float32 or float64, and on to the next value that is
  // finite and neither zero nor tiny; each holds three bits. What is given outlives it; at its end the ring is as it
  // was.
  FreshInputs(Ring& ring, std::span<const std::size_t> indices, std::uint64_t first,
              std::span<const std::uint64_t> places);
  // In iteration `at` the entry holds what `other` does: another entry of the ring, or one of no ring, which
  // outlives this. Not in training, where a level keeps labels by itself.
  void exchange_at(std::size_t at, std::vector<HostTensor>& other);
  ~FreshInputs();
  FreshInputs(const FreshInputs&) = delete;
  FreshInputs& operator=(const FreshInputs&) = delete;

  void put(std::size_t iteration);  // before it, outside of its time
  // Places in use, the fewest of all entries that had a number; 0: some entry has none.
  std::size_t places() const;

 private:
  struct Place {
    std::byte* low;        // the byte with the value's last bits
    std::uint8_t was = 0;  // that byte
  };
  using Entry = std::vector<HostTensor>;
  const std::vector<Place>& places_of(Entry& entry);
  void number(Entry& entry, std::uint64_t value);
  void exchange();

  Ring& ring_;
  std::span<const std::size_t> indices_;
  std::uint64_t first_;
  std::span<const std::uint64_t> wanted_;
  std::map<const Entry*, std::vector<Place>> spots_;
  std::optional<std::size_t> exchange_at_;
  Entry* other_ = nullptr;
  bool exchanged_ = false;
};

}  // namespace strata
