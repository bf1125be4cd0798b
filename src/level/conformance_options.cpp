// SPDX-License-Identifier: Apache-2.0
// Conformance of what is optional: `report`, and one network for several batch sizes.
#include <fmt/format.h>

#include <algorithm>

#include "core/bundle_info.hpp"
#include "level/conformance_session.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;

Outcome reports(Session& session) {
  if (!session.offers("report")) return {Verdict::skip, not_offered};
  STRATA_TRY(session.ask_ok("prove", {{"indices", {0}}, {"out", session.out("report").string()}}));
  const auto before = STRATA_TRY(session.ask_ok("report"));
  const auto after = STRATA_TRY(session.ask_ok("report"));
  for (const auto* answer : {&before, &after})
    if (!answer->contains("facts") || !(*answer)["facts"].is_object())
      return {Verdict::fail, "report must answer with the object \"facts\""};
  const Json &was = before["facts"], &is = after["facts"];
  for (const char* number : {"guards", "guard_us", "graphs", "recompiles", "bailouts"})
    if (is.contains(number) && !is[number].is_number())
      return {Verdict::fail, fmt::format("facts.{} must be a number, got {}", number, is[number].dump())};
  if (was.contains("recompiles") && is.value("recompiles", 0.0) < was["recompiles"].get<double>())
    return {Verdict::fail, "facts.recompiles fell from one report to the next"};
  return {Verdict::pass, is.dump()};
}

// A worker of its own for the bundle's open part; every size is given as another ring, then the first one again.
Outcome serves_batches(Session& session) {
  const bool says = session.hello.value("dynamic", Json(false)) == true,
             declares = session.subject().level ? session.subject().level->dynamic : says;
  if (says != declares) return {Verdict::fail, fmt::format("hello says dynamic {}, level.json {}", says, declares)};
  if (!declares) return {Verdict::skip, "optional, and it does not offer it"};
  Subject open = session.subject();
  open.bundle /= "dynamic";
  open.scratch /= "dynamic";
  if (!fs::exists(open.bundle / "bundle.json")) return {Verdict::skip, "the bundle has no open part (docs/bundle.md)"};
  Session other(open);
  STRATA_TRY(other.prepare());
  if (!other.not_loadable.empty()) return {Verdict::skip, other.not_loadable};
  STRATA_TRY(other.restart());
  STRATA_TRY(other.ask_ok("load", other.load_request()));
  const auto question = core::case_in(open.bundle);
  if (!question || !question->open_batch) return because("its bundle names no range of batches");
  auto sizes = question->open_batch->sizes;
  sizes.push_back(sizes.front());
  for (const auto size : sizes) {
    Subject part = open;
    part.bundle = open.bundle / "sizes" / std::to_string(size);
    const Session about(part);
    const auto inputs = other.ask_ok("inputs", {{"path", (part.bundle / "inputs.safetensors").string()}});
    if (!inputs) return because(fmt::format("batch {}: {}", size, inputs.error()));
    if (inputs->value("count", Json()) != about.ring())
      return {Verdict::fail, fmt::format("batch {}: the ring has {} inputs; it counted {}", size, about.ring(),
                                         inputs->value("count", Json()).dump())};
    const auto proven = other.ask_ok("prove", {{"indices", {1, 0}}, {"out", other.out("prove").string()}});
    if (!proven) return because(fmt::format("batch {}: {}", size, proven.error()));
    if (auto same = about.matches(other.out("prove"), {1, 0}, "timed"); !same)
      return because(fmt::format("batch {}: {}", size, same.error()));
  }
  other.worker().end();
  return {};
}

}  // namespace

std::vector<Rule> rules_of_the_options() {
  return {{"reports facts once it has run", true, reports},
          {"serves other batches with one network", true, serves_batches}};
}

}  // namespace strata::level
