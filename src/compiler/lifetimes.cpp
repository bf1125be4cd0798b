// SPDX-License-Identifier: Apache-2.0
#include "compiler/lifetimes.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "compiler/use_def.hpp"

namespace strata::compiler {

std::vector<Lifetime> lifetimes_of(const Program& program) {
  std::vector<Lifetime> result;
  std::map<int, std::size_t> index;  // by storage
  const auto touch = [&](int value, int step) {
    const int storage = program.place(value).storage;
    if (program.place(storage).in != Place::In::arena) return;
    const auto [it, fresh] = index.emplace(storage, result.size());
    if (fresh) {
      const auto bytes = program.place(storage).bytes;
      const auto most = std::numeric_limits<std::int64_t>::max();
      result.push_back({.storage = storage,
                        .bytes = bytes > most - alignment ? most : (bytes + alignment - 1) / alignment * alignment,
                        .first = step,
                        .last = step});
    }
    result[it->second].last = std::max(result[it->second].last, step);
  };
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for (const int value : operands_of(program.steps[s])) touch(value, static_cast<int>(s));
    for (const int value : program.steps[s].node.outputs) touch(value, static_cast<int>(s));
  }
  for (const auto* list : {&program.graph.outputs, &program.graph.updates})
    for (const auto& named : *list) touch(named.value, static_cast<int>(program.steps.size()));
  return result;
}

std::int64_t most_at_once(const std::vector<Lifetime>& lifetimes) {
  std::map<int, std::int64_t> change;
  for (const auto& lifetime : lifetimes) {
    change[lifetime.first] += lifetime.bytes;
    change[lifetime.last + 1] -= lifetime.bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace strata::compiler
