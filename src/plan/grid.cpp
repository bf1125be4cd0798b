// SPDX-License-Identifier: Apache-2.0
#include "plan/grid.hpp"

#include <fmt/format.h>

#include <iterator>

namespace strata::plan {
namespace {

template <class Value>
bool is_end(const std::set<Value>& values, const Value& value) {
  return value == *values.begin() || value == *values.rbegin();
}

template <class Value>
bool is_middle(const std::set<Value>& values, const Value& value) {
  return value == *std::next(values.begin(), static_cast<std::ptrdiff_t>(values.size() / 2));
}

}  // namespace

GridPoint point_of(const core::CaseSpec& spec) {
  return {.batch = spec.batch,
          .mode = name_of(spec.mode),
          .precision = name_of(spec.precision),
          .size = spec.size,
          .threads = spec.threads};
}

std::string words(const GridPoint& point) {
  std::string text;
  if (point.batch) text += fmt::format("batch {}, ", *point.batch);
  if (point.size) text += fmt::format("size {}, ", core::size_words(*point.size));
  return text + fmt::format("mode {}, precision {}, threads {}", point.mode, point.precision, point.threads);
}

Grid::Grid(const std::vector<core::CaseSpec>& specs) {
  for (const auto& spec : specs) {
    const auto point = point_of(spec);
    batches_.insert(point.batch);
    modes_.insert(point.mode);
    precisions_.insert(point.precision);
    sizes_.insert(point.size);
    threads_.insert(point.threads);
  }
}

bool Grid::is_corner(const core::CaseSpec& spec) const {
  const auto point = point_of(spec);
  return is_end(batches_, point.batch) && is_end(modes_, point.mode) && is_end(precisions_, point.precision) &&
         is_end(sizes_, point.size) && is_end(threads_, point.threads);
}

bool Grid::is_on_line(const core::CaseSpec& spec) const {
  return is_middle(batches_, spec.batch) || is_middle(sizes_, spec.size);
}

}  // namespace strata::plan
