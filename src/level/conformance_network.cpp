// SPDX-License-Identifier: Apache-2.0
// Conformance with a network loaded: load, weights, inputs, prove, warm_up, measure, unload. Each function is one
// check.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "common/hash.hpp"
#include "common/monotonic.hpp"
#include "level/conformance_session.hpp"
#include "worker/answers.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::int64_t kept_warm_up = 4096;  // a level may leave out the times of later iterations

bool is_count(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() && it->get<double>() >= 0;
}

// The settings that the ledger compares (docs/protocol.md, load).
Text check_settings(const Json& settings) {
  if (!settings.is_object()) return because("\"settings\" must be an object");
  for (const char* key : {"inference_mode", "autotune", "freezing"})
    if (!settings.contains(key) || !settings[key].is_boolean())
      return because(fmt::format("settings.{} must be true or false", key));
  if (!is_count(settings, "threads")) return because("settings.threads must be an integer");
  if (text_of(settings, "precision").empty()) return because("settings.precision must be a string");
  const auto one_of = [&](const char* key, const std::vector<std::string>& allowed) -> Text {
    const std::string got = text_of(settings, key);
    if (std::find(allowed.begin(), allowed.end(), got) == allowed.end())
      return because(fmt::format("settings.{} is \"{}\"; allowed are {}", key, got, fmt::join(allowed, ", ")));
    return {};
  };
  STRATA_TRY(one_of("layout", {"contiguous", "channels_last", "blocked", "any"}));
  return one_of("graph", {"none", "traced", "scripted", "exported", "compiled"});
}

Outcome loads(Session& session) {
  const auto give_up = [&](std::string why) {
    session.not_loadable = "the network did not load";
    return Outcome(Verdict::fail, std::move(why));
  };
  if (auto prepared = session.prepare(); !prepared) return give_up(prepared.error());
  if (!session.not_loadable.empty()) return {Verdict::skip, session.not_loadable};
  if (auto fresh = session.restart(); !fresh) return give_up(fresh.error());
  const auto answer = session.ask("load", session.load_request());
  if (!answer) return give_up(answer.error());
  if (!(*answer)["ok"].get<bool>()) {
    const std::string code = text_of(*answer, "code"), what = text_of(*answer, "what");
    if ((code != "unsupported" && code != "unavailable") || what.empty())
      return give_up(fmt::format("load failed with \"{}\": {}", code, what));
    if (auto alive = session.still_answers(); !alive) return give_up(alive.error());
    session.not_loadable = fmt::format("{}: {}", code, what);
    return {Verdict::skip, session.not_loadable};
  }
  const Json& loaded = *answer;
  if (!loaded.contains("phases") || !is_count(loaded["phases"], "build_ns") ||
      !is_count(loaded["phases"], "weights_ns"))
    return {Verdict::fail, "\"phases\" must hold the integers build_ns and weights_ns"};
  if (!is_count(loaded, "artefact_bytes")) return {Verdict::fail, "\"artefact_bytes\" must be an integer"};
  if (!loaded.contains("deterministic") || !loaded["deterministic"].is_boolean())
    return {Verdict::fail, "\"deterministic\" must be true or false"};
  const Json& parameters = session.bundle()["parameters"];
  if (!is_count(loaded, "parameters")) return {Verdict::fail, "\"parameters\" must be an integer"};
  if (loaded["parameters"] != 0 && loaded["parameters"] != parameters)
    return {Verdict::fail,
            fmt::format("it holds {} parameters; the network has {}", loaded["parameters"].dump(), parameters.dump())};
  return Outcome(check_settings(loaded.value("settings", Json())));
}

Outcome needs_inputs(Session& session) {
  const std::string out = session.out("early").string();
  if (auto refused = session.refused("prove", {{"indices", {0}}, {"out", out}}, {"bad_request"}); !refused)
    return {Verdict::fail, "before inputs, " + refused.error()};
  return session.still_answers();
}

Outcome takes_inputs(Session& session) {
  const auto missing = STRATA_TRY(session.ask("inputs", {{"path", session.out("no_such_file").string()}}));
  if (missing["ok"].get<bool>()) return {Verdict::fail, "a file of inputs that does not exist was answered with ok"};
  const auto answer = STRATA_TRY(session.give_inputs());
  if (!answer.contains("count") || answer["count"] != session.ring())
    return {Verdict::fail,
            fmt::format("the ring has {} inputs; it counted {}", session.ring(), answer.value("count", Json()).dump())};
  return {};
}

// prove over `indices`, and its file against the reference of `weights`.
Text prove(Session& session, const std::vector<int>& indices, const std::string& weights) {
  const fs::path out = session.out("prove");
  std::error_code ignored;
  fs::remove(out, ignored);
  const auto answer = STRATA_TRY(session.ask_ok("prove", {{"indices", indices}, {"out", out.string()}}));
  const auto names = answer.find("outputs");
  if (names == answer.end() || !names->is_array()) return because("prove must answer with the list \"outputs\"");
  if (session.harness()) return {};
  std::vector<std::string> expected;
  for (const Json& output : session.bundle()["outputs"]) expected.push_back(text_of(output, "name"));
  if (*names != Json(expected))
    return because(
        fmt::format("prove names the outputs {}; the bundle's are {}", names->dump(), fmt::join(expected, ", ")));
  return session.matches(out, indices, weights);
}

std::vector<int> whole_ring(const Session& session) {
  std::vector<int> indices(static_cast<std::size_t>(session.ring()));
  std::iota(indices.rbegin(), indices.rend(), 0);  // last first: an answer by position instead of by index shows
  return indices;
}

Outcome proves(Session& session) {
  return Outcome(prove(session, whole_ring(session), "timed"));
}

Outcome refuses_wrong_indices(Session& session) {
  for (const Json& indices : {Json{session.ring()}, Json{-1}, Json{0.5}, Json("text")})
    if (auto refused =
            session.refused("prove", {{"indices", indices}, {"out", session.out("wrong").string()}}, {"bad_request"});
        !refused)
      return {Verdict::fail, fmt::format("with indices {}: {}", indices.dump(), refused.error())};
  return session.still_answers();
}

Outcome changes_weights(Session& session) {
  for (const std::string set : {"generic1", "generic2", "timed"}) {
    STRATA_TRY(session.ask_ok("weights", {{"weights", set}}));
    if (auto proven = prove(session, {1, 0}, set); !proven)
      return because(fmt::format("after the change to {}: {}", set, proven.error()));
  }
  return {};
}

Outcome refuses_missing_weights(Session& session) {
  const auto answer = STRATA_TRY(session.ask("weights", {{"weights", "zz_no_such_set"}}));
  if (answer["ok"].get<bool>() && !session.harness())
    return {Verdict::fail, "a weight set that does not exist was answered with ok"};
  if (auto back = session.ask_ok("weights", {{"weights", "timed"}}); !back)
    return because("afterwards: " + back.error());
  return Outcome(prove(session, {0}, "timed"));
}

Outcome reads_weights_back(Session& session) {
  if (!session.offers("read_weights")) return {Verdict::skip, not_offered};
  const auto answer = STRATA_TRY(session.ask_ok("read_weights"));
  const auto hashes = answer.find("sha256");
  if (hashes == answer.end() || !hashes->is_object())
    return {Verdict::fail, "read_weights must answer with the object \"sha256\""};
  const auto weights = SafeTensors::map(session.subject().bundle / "weights" / "timed.safetensors");
  if (!weights) return {Verdict::fail, weights.error().what};
  for (const auto& [name, hash] : hashes->items()) {
    const TensorView* tensor = weights->find(name);
    if (tensor == nullptr) return {Verdict::fail, fmt::format("it read back {}, which the bundle does not have", name)};
    if (hash != sha256_hex({reinterpret_cast<const char*>(tensor->data), tensor->bytes}))
      return {Verdict::fail, fmt::format("the SHA-256 of {} differs from the bundle's", name)};
  }
  return {Verdict::pass, fmt::format("{} of {} tensors", hashes->size(), weights->size())};
}

Outcome warms_up(Session& session) {
  const auto answer = STRATA_TRY(session.ask_ok("warm_up", {{"iterations", 3}, {"min_ns", 1'000'000}}));
  if (!is_count(answer, "iterations") || !is_count(answer, "first_ns"))
    return {Verdict::fail, "warm_up must answer with the integers iterations and first_ns"};
  const auto iterations = answer["iterations"].get<std::int64_t>();
  if (iterations < 3) return {Verdict::fail, fmt::format("3 iterations were asked for; {} were run", iterations)};
  const auto walls_json = answer.find("wall_ns");
  const auto least = static_cast<std::size_t>(std::min(iterations, kept_warm_up));
  const bool enough = walls_json != answer.end() && walls_json->is_array() && walls_json->size() >= least &&
                      walls_json->size() <= static_cast<std::size_t>(iterations);
  const auto walls = worker::read_integers(answer, "wall_ns", enough ? walls_json->size() : least);
  return walls ? Outcome() : Outcome(Verdict::fail, walls.error().what);
}

Json measure_request(int head, const std::vector<int>& indices, const std::vector<int>& retain) {
  return {{"iterations", indices.size()},
          {"head", head},
          {"indices", indices},
          {"retain", retain},
          {"region", "end_to_end"}};
}

Json result_request(const Session& session, int iteration) {
  return {{"iteration", iteration}, {"out", session.out("result").string()}};
}

// The result of an iteration that was retained is that of its input.
Text result(Session& session, const std::vector<int>& indices, int iteration) {
  std::error_code ignored;
  fs::remove(session.out("result"), ignored);
  STRATA_TRY(session.ask_ok("result", result_request(session, iteration)));
  return session.matches(session.out("result"), {indices[static_cast<std::size_t>(iteration)]}, "timed");
}

// One block: its times fit each other and the driver's clock, and the results that stay are those of its inputs.
Text measure(Session& session, int head, const std::vector<int>& indices, const std::vector<int>& retain) {
  const std::int64_t before = monotonic_ns();
  const auto answer = STRATA_TRY(session.ask_ok("measure", measure_request(head, indices, retain)));
  const std::int64_t after = monotonic_ns();
  const auto walls = worker::read_integers(answer, "wall_ns", indices.size(), session.harness() ? 0 : 1);
  const auto latencies = worker::read_integers(answer, "latency_ns", indices.size());
  if (!walls || !latencies) return because(walls ? latencies.error().what : walls.error().what);
  for (std::size_t i = 0; i < walls->size(); ++i)
    if ((*latencies)[i] > (*walls)[i])
      return because(fmt::format("iteration {}: latency {} ns is longer than the wall time {} ns of which it is a part",
                                 i, (*latencies)[i], (*walls)[i]));
  const std::int64_t total = std::accumulate(walls->begin(), walls->end(), std::int64_t{0});
  if (total > after - before)
    return because(
        fmt::format("its iterations took {} ns together, but the request only {} ns", total, after - before));
  for (const char* key : {"cpu_ns", "runq_ns"})
    if (auto value = worker::read_optional_integer(answer, key); !value) return because(value.error().what);
  if (!is_count(answer, "start_ns")) return because("\"start_ns\" must be an integer");
  const auto start = answer["start_ns"].get<std::int64_t>();
  if (start < before || start > after)
    return because(
        fmt::format("start_ns is {}, outside the request ({} to {} of CLOCK_MONOTONIC)", start, before, after));
  if (session.harness()) return {};
  for (const int iteration : retain) STRATA_TRY(result(session, indices, iteration));
  return {};
}

Outcome measures(Session& session) {
  std::vector<int> indices;
  for (int i = 0; i < 7; ++i) indices.push_back((3 * i + 2) % session.ring());
  return measure(session, 2, indices, {0, 3, 6});
}

Outcome measures_one(Session& session) {
  return measure(session, 0, {session.ring() - 1}, {0});
}

Outcome refuses_wrong_blocks(Session& session) {
  Json short_of_one = measure_request(0, {0, 1}, {0});
  short_of_one["iterations"] = 3;
  const Json retained_outside = measure_request(0, {0, 1}, {2});
  const Json index_outside = measure_request(0, {0, session.ring()}, {0});
  for (const auto& [name, request] : {std::pair{"two indices for three iterations", short_of_one},
                                      {"a result behind the last iteration to retain", retained_outside},
                                      {"an index outside the ring", index_outside}})
    if (auto refused = session.refused("measure", request, {"bad_request"}); !refused)
      return {Verdict::fail, fmt::format("with {}: {}", name, refused.error())};
  if (auto refused = session.refused("result", result_request(session, 2), {"bad_request"}); !refused)
    return {Verdict::fail, "for the result of an iteration that was not: " + refused.error()};
  return session.still_answers();
}

Outcome does_the_same_after_measuring(Session& session) {
  session.worker().pause();
  return Outcome(prove(session, whole_ring(session), "timed"));
}

Outcome unloads(Session& session) {
  STRATA_TRY(session.ask_ok("unload"));
  if (auto refused =
          session.refused("prove", {{"indices", {0}}, {"out", session.out("late").string()}}, {"bad_request"});
      !refused)
    return {Verdict::fail, "after unload, " + refused.error()};
  if (auto again = session.ask_ok("load", session.load_request("generic1")); !again)
    return {Verdict::fail, "again after unload: " + again.error()};
  STRATA_TRY(session.give_inputs());
  return Outcome(prove(session, {0, 1}, "generic1"));
}

Outcome ends_loaded(Session& session) {
  STRATA_TRY(session.still_answers());
  session.worker().close_input();
  if (!session.worker().wait_exit(5s))
    return {Verdict::fail, "its input closed while a network was loaded, and it lived on for more than 5 s"};
  return {};
}

}  // namespace

std::vector<Rule> rules_of_the_network() {
  std::vector<Rule> rules{
      {"loads the network and reports how", true, loads},
      {"refuses to run before it has inputs", true, needs_inputs},
      {"takes the ring of inputs, and refuses a file that does not exist", true, takes_inputs},
      {"computes what the reference says, each input under its own index", true, proves},
      {"refuses indices outside the ring", true, refuses_wrong_indices},
      {"computes with other weights after weights", true, changes_weights},
      {"refuses a weight set that does not exist and continues with the old one", true, refuses_missing_weights},
      {"reads its weights back", true, reads_weights_back},
      {"warms up as long as asked", true, warms_up},
      {"measures blocks whose times fit and whose results are right", true, measures},
      {"measures a single iteration", true, measures_one},
      {"refuses blocks that do not fit together", true, refuses_wrong_blocks},
      {"computes the same after it was measured and stopped", true, does_the_same_after_measuring}};
  for (auto& rule : rules_of_serving()) rules.push_back(std::move(rule));
  for (auto& rule : rules_of_operations()) rules.push_back(std::move(rule));
  const std::vector<Rule> last{{"unloads, and loads again", true, unloads},
                               {"ends within 5 s when its input closes, with a network loaded", true, ends_loaded}};
  rules.insert(rules.end(), last.begin(), last.end());
  return rules;
}

}  // namespace strata::level
