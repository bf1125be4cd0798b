// SPDX-License-Identifier: Apache-2.0
// Makes the input of every timed iteration one that the level has not seen before, so that an answer which it keeps is
// no answer to the next question: the iteration's number stands in the last bits of a few values of an input.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strata/level.hpp"

namespace strata {

class Nonce {
 public:
  // `first`: the number of the first iteration. `places`: drawn by the driver, each taken modulo the number of values
  // of an entry's first input of float32 or float64, and on to the next value that is neither zero nor tiny nor
  // infinite. Each place holds three bits. The ring and what is given outlive it; on its end every value is as it was.
  Nonce(std::vector<std::vector<HostTensor>>& ring, std::uint64_t first, std::span<const std::uint64_t> places);
  ~Nonce();
  Nonce(const Nonce&) = delete;
  Nonce& operator=(const Nonce&) = delete;

  void put(std::size_t entry);  // the next number into the entry's input
  // Places in use, at most as many as were given, the fewest of all entries that had a number; 0: some entry has none.
  std::size_t places() const;

 private:
  struct Place {
    std::byte* low;        // the byte with the value's last bits
    std::uint8_t was = 0;  // that byte
  };
  const std::vector<Place>& places_of(std::size_t entry);

  std::vector<std::vector<HostTensor>>& ring_;
  std::uint64_t next_;
  std::span<const std::uint64_t> wanted_;
  std::vector<std::optional<std::vector<Place>>> found_;  // by entry
};

}  // namespace strata
