// SPDX-License-Identifier: Apache-2.0
#include "store/samples.hpp"

#include <algorithm>

#include "store/statement.hpp"

namespace strata::store {
namespace {

using Pointer = Json::json_pointer;

bool is_samples(const std::string& name, const Json& value) {
  return name.ends_with("_ns") && value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& element) { return element.is_number_integer(); });
}

void take_from(Json& value, const Pointer& place, Samples& samples) {
  if (!value.is_structured()) return;
  for (auto& [name, part] : value.items()) {
    const auto here = value.is_array() ? place / static_cast<std::size_t>(std::stoull(name)) : place / name;
    if (value.is_object() && is_samples(name, part)) {
      samples.emplace_back(here.to_string(), part.get<std::vector<std::int64_t>>());
      part = nullptr;
    } else {
      take_from(part, here, samples);
    }
  }
}

}  // namespace

Samples take_samples(Json& info) {
  Samples samples;
  take_from(info, Pointer(), samples);
  return samples;
}

bool write_samples(sqlite3* handle, std::int64_t row_id, const Samples& samples) {
  if (!execute(handle, "DELETE FROM samples WHERE row_id=?", row_id)) return false;
  return std::all_of(samples.begin(), samples.end(), [&](const auto& sample) {
    return execute(handle, "INSERT INTO samples(row_id,place,ns) VALUES(?,?,?)", row_id, sample.first, sample.second);
  });
}

bool put_back(Json& info, const std::string& place, const std::vector<std::int64_t>& values) {
  try {
    const Pointer here(place);
    if (!info.contains(here) || !info[here].is_null()) return false;
    info[here] = values;
    return true;
  } catch (const Json::exception&) {  // no place at all
    return false;
  }
}

}  // namespace strata::store
