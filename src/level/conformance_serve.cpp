// SPDX-License-Identifier: Apache-2.0
// Conformance of the optional operation `serve`: several requests in flight, each with the result of its own input.
#include <fmt/format.h>

#include <algorithm>

#include "level/conformance_session.hpp"
#include "worker/answers.hpp"

namespace strata::level {
namespace {

constexpr int kClients = 3, kChecks = 3;

Json request_of(const Session& session, int clients) {
  return {{"clients", clients},
          {"threads", 1},
          {"min_ns", 50'000'000},
          {"max_requests", 1'000'000},
          {"samples", 64},
          {"checks", kChecks},
          {"seed", 5},
          {"begin_ns", nullptr},
          {"out", (session.subject().scratch / "serve").string()}};
}

// The times of one client fit each other, and its checked results are those of their inputs.
Text check_client(Session& session, const Json& client_json, int client) {
  const auto sampled =
      client_json.is_object() && client_json.contains("latency_ns") && client_json["latency_ns"].is_array()
          ? client_json["latency_ns"].size()
          : 0;
  if (sampled == 0 || sampled > 64)
    return because(fmt::format("client {}: latency_ns has {} entries; 1 to 64 were asked for", client, sampled));
  const auto latency = worker::read_integers(client_json, "latency_ns", sampled),
             done = worker::read_integers(client_json, "done_ns", sampled);
  if (!latency || !done) return because(latency ? done.error().what : latency.error().what);
  for (const char* key : {"requests", "start_ns", "wall_ns"})
    if (!client_json.contains(key) || !client_json[key].is_number_integer() || client_json[key].get<std::int64_t>() < 1)
      return because(fmt::format("client {}: \"{}\" must be an integer from 1", client, key));
  const auto wall = client_json["wall_ns"].get<std::int64_t>();
  if (client_json["requests"].get<std::int64_t>() < static_cast<std::int64_t>(sampled))
    return because(
        fmt::format("client {}: {} requests, and times of {}", client, client_json["requests"].dump(), sampled));
  for (std::size_t i = 0; i < sampled; ++i)
    if ((*latency)[i] > (*done)[i] || (*done)[i] > wall || (i > 0 && (*done)[i] < (*done)[i - 1] + (*latency)[i]))
      return because(
          fmt::format("client {}: request {} of {} ns ends at {} ns of {} ns, which cannot be in a closed loop", client,
                      i, (*latency)[i], (*done)[i], wall));
  const Json checked = client_json.value("checked", Json());
  if (!checked.is_array() || checked.empty())
    return because(fmt::format("client {}: \"checked\" must list the ring indices of kept results", client));
  for (std::size_t i = 0; i < checked.size() && !session.harness(); ++i) {
    if (!checked[i].is_number_integer())
      return because(fmt::format("client {}: \"checked\" holds {}", client, checked[i].dump()));
    const auto file = session.subject().scratch / fmt::format("serve-{}-{}.safetensors", client, i);
    if (auto good = session.matches(file, {checked[i].get<int>()}, "timed"); !good)
      return because(fmt::format("client {} of {}: {}", client, kClients, good.error()));
  }
  return {};
}

Outcome serves(Session& session) {
  if (!session.offers("serve")) return {Verdict::skip, not_offered};
  STRATA_TRY(session.load());
  const auto answer = STRATA_TRY(session.ask("serve", request_of(session, kClients)));
  if (!answer["ok"].get<bool>()) {
    const auto what = text_of(answer, "what");
    return text_of(answer, "code") == "unsupported" && !what.empty() ? Outcome(Verdict::skip, "unsupported: " + what)
                                                                     : Outcome(because("serve failed: " + what));
  }
  const Json clients = answer.value("clients", Json());
  if (!clients.is_array() || clients.size() != kClients)
    return {Verdict::fail, fmt::format("\"clients\" must have {} entries", kClients)};
  if (auto cpu = worker::read_optional_integer(answer, "cpu_ns"); !cpu) return {Verdict::fail, cpu.error().what};
  for (int client = 0; client < kClients; ++client)
    STRATA_TRY(check_client(session, clients[static_cast<std::size_t>(client)], client));
  return session.still_answers();
}

Outcome refuses_wrong_serving(Session& session) {
  if (!session.offers("serve")) return {Verdict::skip, not_offered};
  Json no_time = request_of(session, 1);
  no_time.erase("min_ns");
  for (const auto& [name, request] : {std::pair{"no clients", request_of(session, 0)},
                                      {"a negative number of clients", request_of(session, -1)},
                                      {"no min_ns", no_time}})
    if (auto refused = session.refused("serve", request, {"bad_request"}); !refused)
      return {Verdict::fail, fmt::format("with {}: {}", name, refused.error())};
  return session.still_answers();
}

}  // namespace

std::vector<Rule> rules_of_serving() {
  return {{"serves several clients at once, each with its own results", true, serves},
          {"refuses to serve what makes no sense", true, refuses_wrong_serving}};
}

}  // namespace strata::level
