// SPDX-License-Identifier: Apache-2.0
// A part of a sweep's points, or of a training's repeats, that one process does: which ones follows from the whole
// alone, so that machines that know nothing of each other do all of them and none twice.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace strata::cluster {

// Of a list in its fixed order it has the entries number, number + count, number + 2 count, ...; from 1.
struct Shard {
  int number = 1, count = 1;

  bool operator==(const Shard&) const = default;
  bool has(std::size_t place) const {  // an entry by its place from 0
    return place % static_cast<std::size_t>(count) == static_cast<std::size_t>(number - 1);
  }
  std::string text() const;  // "2/8"
};

constexpr int most_shards = 10'000;
constexpr const char* point_without_result = "W009";  // the warning about it (docs/warnings.md)

// "2/8". Error (usage): another form, or a number that is not from 1 to the count.
Result<Shard> read_shard(const std::string& text);

template <class T>
std::vector<T> part_of(std::vector<T> all, const Shard& shard) {
  std::vector<T> own;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (shard.has(i)) own.push_back(std::move(all[i]));
  return own;
}

// The same for everybody who asks the same, wherever files lie: of a path only the last part counts.
std::string id_of_whole(const nlohmann::json& question);

}  // namespace strata::cluster
