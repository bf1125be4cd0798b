// SPDX-License-Identifier: Apache-2.0
#include "generate/graph_of.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/load.hpp"

namespace strata::generate {
namespace {

tl::unexpected<Error> no_graph(const std::filesystem::path& bundle) {
  std::ifstream in(bundle / "bundle.json");
  const auto info = nlohmann::json::parse(in, nullptr, false);
  const auto why = info.is_object() ? info.value("graph", nlohmann::json::object()) : nlohmann::json::object();
  return fail(
      fmt::format("the network has no captured graph: {}", why.value("what", std::string("it does not export"))),
      why.value("where", std::string()), Exit::environment);
}

}  // namespace

Result<graph::Graph> graph_of(const std::filesystem::path& bundle) {
  if (!std::filesystem::exists(bundle / "graph.json")) return no_graph(bundle);
  return graph::load(bundle);
}

}  // namespace strata::generate
