// SPDX-License-Identifier: Apache-2.0
// How many floating-point operations a network takes: the one count that `compare`, `graph`, the machine's limit and
// the plausibility of times rest on. As PyTorch counts: products of matrices alone (convolutions, attention and
// recurrent layers among them), a multiply-add is two. What may hold products that no rule here knows is named and not
// counted.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "graph/operations.hpp"

namespace strata::graph {

// Of one call, also where the table of operations has no rule for its outputs; 0: it multiplies no matrices; nullopt:
// not known, or the call does not fit the rule. Saturates at the largest int64.
std::optional<std::int64_t> flops_of(const Call& call);

// Whether ATen's operation, which the table of operations lacks, multiplies no matrices: element by element,
// reductions, comparisons, moves, random numbers, pooling, interpolation. `name` as Node::operation(), without the
// underscore of an operation in place.
bool multiplies_no_matrices(std::string_view name);

struct Flops {
  std::int64_t total = 0;                         // of what is counted; saturates
  std::map<std::string, std::int64_t> uncounted;  // operation -> calls
};

// `times`: how often each node is called; once where it is empty.
Flops flops_of(const Graph& graph, const std::vector<std::int64_t>& times = {});

// Of a captured network: of its graph.json, else of its calls.json (docs/bundle.md). nullopt: it has neither, or
// nothing was seen of its work. Error: a file that is not as docs/bundle.md says.
Result<std::optional<Flops>> flops_in(const std::filesystem::path& bundle);

// "lstm", "nms (3 calls)".
std::vector<std::string> names_of(const std::map<std::string, std::int64_t>& uncounted);

}  // namespace strata::graph
