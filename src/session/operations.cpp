// SPDX-License-Identifier: Apache-2.0
// The request `operations` (docs/protocol.md) as a typed call.
#include <fmt/format.h>

#include <algorithm>

#include "session/session.hpp"
#include "worker/answers.hpp"

namespace strata::session {

Try<RecordedOperations> Session::operations(const std::vector<int>& indices) {
  const auto answer = call("operations", {{"iterations", indices.size()}, {"indices", indices}});
  RecordedOperations out;
  if (!answer && worker_->alive()) {
    out.refusal = answer.error().what;
    return out;
  }
  if (!answer) return tl::unexpected(answer.error());
  steps_ += static_cast<std::int64_t>(indices.size());
  auto reader = fields(*answer, "operations");
  const Json& operations = reader.array("operations");
  out.wall_ns = reader.integers("wall_ns", indices.size(), 1, worker::longest_ns);
  out.after_ns = reader.integers("after_ns", indices.size(), 0, worker::longest_ns);
  if (reader.error()) return tl::unexpected(broken(reader));
  auto sums = out.after_ns;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    outside::Fields each(operations[i], fmt::format("{}: operation {}", reader.where(), i), reader.hint());
    RecordedOperation operation{.operation = each.text("operation"), .kernel = each.text("kernel", "")};
    if (const auto* layer = each.find("layer"); layer != nullptr && !layer->is_null())
      operation.layer = each.text("layer");
    operation.moves_only = each.flag("moves_only", false);
    operation.ns = each.integers("ns", indices.size(), 0, worker::longest_ns);
    operation.gap_ns = each.integers("gap_ns", indices.size(), 0, worker::longest_ns);
    if (const auto* shapes = each.find("shapes"); shapes != nullptr && shapes->is_array())
      for (const auto& shape : *shapes) {
        if (!shape.is_array() ||
            !std::all_of(shape.begin(), shape.end(), [](const auto& n) { return n.is_number_integer(); }))
          each.complain("shapes", *shapes, "a list of lists of whole numbers");
        else
          operation.shapes.push_back(shape.template get<std::vector<std::int64_t>>());
      }
    if (each.error()) return tl::unexpected(broken(each));
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += operation.ns[k] + operation.gap_ns[k];
    out.operations.push_back(std::move(operation));
  }
  double reported_ns = 0;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    reported_ns += static_cast<double>(out.wall_ns[k]);
    if (sums[k] != out.wall_ns[k])
      return tl::unexpected(impossible(
          "operations",
          fmt::format("operations and gaps of iteration {} take {} ns, all of it {}", k, sums[k], out.wall_ns[k])));
  }
  if (const auto why = proof::impossible_sum("the iterations took", reported_ns, static_cast<double>(waited_ns_));
      !why.empty())
    return tl::unexpected(impossible("operations", why));
  return out;
}

}  // namespace strata::session
