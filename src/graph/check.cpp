// SPDX-License-Identifier: Apache-2.0
#include "graph/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "graph/flops.hpp"

namespace strata::graph {
namespace {

constexpr auto most = std::numeric_limits<std::int64_t>::max();

std::string text_of(const Described& described) {
  return fmt::format("{} {}", name_of(described.type), to_string(described.shape));
}

void check_outputs(const Operation& operation, const Call& call) {
  const auto expected = operation.outputs(call);
  const auto& node = call.node();
  if (expected.size() != node.outputs.size())
    throw ShapeError(fmt::format("it gives {} outputs, the graph records {}", expected.size(), node.outputs.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Described recorded{call.out(i).type, call.out(i).shape};
    if (recorded != expected[i])
      throw ShapeError(fmt::format("output {} is recorded as {}, the operation gives {}", i, text_of(recorded),
                                   text_of(expected[i])));
  }
}

// The sum, or the largest number when it does not fit.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return a > most - b ? most : a + b;
}

std::int64_t bytes_of_arguments(const Graph& graph, const Node& node) {
  std::set<int> seen;
  std::int64_t total = 0;
  for (const auto& argument : node.args)
    for (const int index : argument.values)
      if (index >= 0 && seen.insert(index).second) total = plus(total, graph.value(index).bytes());
  return total;
}

Work work_of(const Graph& graph, const Node& node, const Operation* operation) {
  const Call call(graph, node);
  Work work;
  work.known = operation != nullptr;
  work.aliasing = operation == nullptr ? Aliasing::none : operation->aliasing;
  const auto flops = flops_of(call);
  work.counted = flops.has_value();
  work.flops = flops.value_or(0);
  if (work.aliasing != Aliasing::none) return work;
  work.bytes_read = operation != nullptr && operation->bytes_read != nullptr ? operation->bytes_read(call)
                                                                             : bytes_of_arguments(graph, node);
  for (const int output : node.outputs) work.bytes_written = plus(work.bytes_written, graph.value(output).bytes());
  return work;
}

}  // namespace

Result<Checked> check(const Graph& graph) {
  Checked checked;
  checked.total.known = checked.total.counted = true;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    const auto* operation = find_operation(node.operation());
    try {
      if (operation != nullptr) check_outputs(*operation, Call(graph, node));
      const auto& work = checked.nodes.emplace_back(work_of(graph, node, operation));
      auto& total = checked.total;
      if (!work.counted) ++checked.uncounted[node.operation()];
      total.counted = checked.uncounted.empty();
      total.flops = plus(total.flops, work.flops);
      total.bytes_read = plus(total.bytes_read, work.bytes_read);
      total.bytes_written = plus(total.bytes_written, work.bytes_written);
      if (std::max({total.flops, total.bytes_read, total.bytes_written}) == most)
        throw ShapeError("the work up to here is more than 64 bits can count");
    } catch (const ShapeError& error) {
      return fail(fmt::format("{}: {}", node.where(), error.what()), "remove the bundle's folder; it is made again");
    } catch (const ArgumentError& error) {
      return fail(error.what(), "remove the bundle's folder; it is made again");
    }
    if (operation == nullptr) {
      checked.unknown.push_back(static_cast<int>(n));
      checked.total.known = false;
    }
  }
  return checked;
}

}  // namespace strata::graph
