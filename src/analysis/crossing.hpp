// SPDX-License-Identifier: Apache-2.0
// What the points of a sweep say together: where a level takes over from another, where it is alone the fastest, how
// far behind the fastest it is. Pure functions of a grid. Each claim is wrong with a probability of at most 1%, however
// the points of a sweep hang together; what the intervals leave open is counted as open.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/surface.hpp"

namespace strata::analysis {

inline constexpr double kNear = 0.1, kFar = 1;  // "within 10% of the fastest", "more than 100% behind"

// Whether an axis is one of numbers, along which there is a before and an after.
bool is_ordered(const GridAxis& axis);

enum class FasterLevel { undecided, first, second };

// Which of two levels is the faster at each point of a line, by intervals that hold for all of its points at once (99%,
// Bonferroni), and by more than `minimum_effect`. A comparison is that of the second over the first, as compare() has
// it; nullptr: one of the two has no number at that point.
std::vector<FasterLevel> ahead_along(const std::vector<const stats::Comparison*>& line, double minimum_effect);

// Two neighbours among the decided points of a line, with another level ahead: the crossing lies between them.
struct Bracket {
  std::size_t from = 0, to = 0;  // places on the line
};
std::vector<Bracket> brackets_of(const std::vector<FasterLevel>& line);

struct Crossing {
  std::size_t axis = 0;         // place in the grid's axes
  std::vector<std::string> at;  // the line: values of the grid's axes, "" at `axis`
  std::string before, after;    // level that is ahead up to `from`, and the one that is from `to` on
  std::string from, to;         // values of the axis; in between nobody can tell
  bool of_the_fastest = false;  // each may be the fastest of all levels where it is ahead
};
// Along every axis of numbers, all others fixed: of each two levels. Those of the fastest first, then by axis and line.
std::vector<Crossing> crossings_of(const Grid& grid);

// A level is alone the fastest at every point whose value of `axis` is one of the places `first` to `last`.
struct Stretch {
  std::string level;
  std::optional<std::size_t> axis;  // none: at every point of the grid
  std::size_t first = 0, last = 0;
};
// From each end of an axis of numbers as far as it goes, and single values of the other axes. A value at which a
// combination of the other axes is missing, or at which any field has no single fastest level, ends a stretch. No
// correction is needed: within a value every field has to exclude all other levels, and values are taken in a fixed
// order up to the first that fails.
std::vector<Stretch> stretches_of(const Grid& grid);

enum class Gap { within, between, far, unknown };

// How far a level is behind the fastest: within kNear, more than kFar, surely between these, or the intervals do not
// tell. Comparisons are those of the other levels over this one; their intervals hold at once (99%, Bonferroni).
Gap gap_of(const std::vector<const stats::Comparison*>& others);

struct Standing {
  std::string level;
  std::size_t points = 0;           // at which it has a number
  std::size_t alone = 0, open = 0;  // it is alone the fastest; it is one of several that may be
  std::size_t within = 0, between = 0, far = 0, unknown = 0;
  std::size_t without = 0;  // points at which it has no number
};
// One for each of the grid's levels.
std::vector<Standing> standings_of(const Grid& grid);

}  // namespace strata::analysis
