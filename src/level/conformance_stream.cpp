// SPDX-License-Identifier: Apache-2.0
// Conformance without a network: hello, the stream's rules, refusals, the end. Each function is one check.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "level/conformance_session.hpp"
#include "worker/answers.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::vector<std::string> out_of_order = {"bad_request", "unsupported"};

Outcome starts(Session& session) {
  STRATA_TRY(session.restart());
  auto answer = session.ask_ok("hello", {{"api", worker::protocol_api}});
  if (!answer) {
    const std::string log = session.worker().log_tail(5);
    return {Verdict::fail, answer.error() + (log.empty() ? "" : "; the end of its log:\n" + log)};
  }
  session.hello = std::move(*answer);
  return {};
}

Outcome describes_itself(Session& session) {
  const auto hello = worker::read_hello(session.hello, true);
  if (!hello) return {Verdict::fail, hello.error().what};
  for (const char* op :
       {"hello", "load", "weights", "inputs", "prove", "warm_up", "measure", "result", "memory", "unload", "bye"})
    if (std::find(hello->ops.begin(), hello->ops.end(), op) == hello->ops.end())
      return {Verdict::fail, fmt::format("\"ops\" lacks {}", op)};
  if (!worker::read_hello(session.hello, false))
    return {Verdict::pass,
            fmt::format("a \"{}\" build: `strata compare` refuses it without --allow-debug", hello->build_type)};
  return {};
}

Outcome agrees_with_level_json(Session& session) {
  if (!session.subject().level) return {Verdict::skip, "no level.json: a bare program is checked"};
  const auto hello = worker::read_hello(session.hello, true);
  if (!hello) return {Verdict::fail, "hello is not complete"};
  const Level& level = *session.subject().level;
  if (hello->level != level.id)
    return {Verdict::fail, fmt::format("hello says \"{}\", level.json says \"{}\"", hello->level, level.id)};
  for (const auto& [name, listed, declared] : {std::tuple{"devices", &hello->devices, &level.devices},
                                               {"modes", &hello->modes, &level.modes},
                                               {"precisions", &hello->precisions, &level.precisions}})
    for (const std::string& value : *listed)
      if (std::find(declared->begin(), declared->end(), value) == declared->end())
        return {Verdict::fail,
                fmt::format("hello's {} hold \"{}\"; level.json's are {}", name, value, fmt::join(*declared, ", "))};
  if (!level.ignored.empty())
    return {Verdict::pass,
            fmt::format("level.json has fields that this version ignores: {}", fmt::join(level.ignored, ", "))};
  return {};
}

Outcome answers_another_version(Session& session) {
  const auto answer = STRATA_TRY(session.ask_ok("hello", {{"api", 99}}));
  if (!answer.contains("api") || answer["api"] != session.hello["api"])
    return {Verdict::fail, "asked as version 99, it must still answer with its own api"};
  return {};
}

Outcome ignores_unknown_fields(Session& session) {
  STRATA_TRY(session.ask_ok("hello", {{"api", worker::protocol_api}, {"zz_unknown", {{"a", {1, 2, nullptr}}}}}));
  return {};
}

Outcome keeps_ids(Session& session) {
  for (const std::int64_t id :
       {std::int64_t{0}, std::int64_t{12345}, std::int64_t{4294967301}, std::int64_t{9007199254740991}})
    STRATA_TRY(session.raw(Json{{"id", id}, {"op", "memory"}}.dump(), id));
  return {};
}

Outcome refuses_unknown_ops(Session& session) {
  STRATA_TRY(session.refused("zz_no_such_op", Json::object(), {"unsupported"}));
  return session.still_answers();
}

Outcome refuses_junk(Session& session) {
  const std::string deep(3000, '[');
  for (const std::string& line : {std::string("this is no JSON"), std::string("[1, 2]"), std::string("\"text\""),
                                  std::string("{\"id\": 1, \"op\""), std::string("\xff\xfe{}"), deep}) {
    const auto answer = session.raw(line, nullptr);
    if (!answer) return {Verdict::fail, fmt::format("to a line that is no JSON object: {}", answer.error())};
    if ((*answer)["ok"].get<bool>() || text_of(*answer, "code") != "bad_request")
      return {Verdict::fail, "a line that is no JSON object must be answered with code bad_request"};
  }
  return session.still_answers();
}

Outcome refuses_malformed_requests(Session& session) {
  const std::int64_t id = session.take_id();
  for (const Json& request : {Json{{"id", id}}, Json{{"id", id}, {"op", 5}}, Json{{"id", id}, {"op", nullptr}}}) {
    const auto answer = session.raw(request.dump(), id);
    if (!answer) return {Verdict::fail, fmt::format("to {}: {}", request.dump(), answer.error())};
    if ((*answer)["ok"].get<bool>()) return {Verdict::fail, fmt::format("{} was answered with ok", request.dump())};
  }
  const auto nameless = session.raw("{\"op\":\"memory\"}", nullptr);
  if (!nameless) return {Verdict::fail, fmt::format("to a request without id: {}", nameless.error())};
  if ((*nameless)["ok"].get<bool>()) return {Verdict::fail, "a request without id was answered with ok"};
  return session.still_answers();
}

Outcome answers_in_order(Session& session) {
  const std::int64_t first = session.take_id(), second = session.take_id(), third = session.take_id();
  const std::string lines = fmt::format(
      "{{\"id\":{},\"op\":\"memory\"}}\n{{\"id\":{},\"op\":\"hello\",\"api\":2}}\n{{\"id\":{},\"op\":\"zz_unknown\"}}",
      first, second, third);
  auto answer = session.raw(lines, first);
  for (const std::int64_t id : {second, third}) {
    STRATA_TRY(answer);
    const auto line = session.next_line(id);
    if (!line) return {Verdict::fail, "three requests lay in the pipe at once: " + line.error().what};
    const Json parsed = Json::parse(*line, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("id") || parsed["id"] != id)
      return {Verdict::fail,
              fmt::format("three requests lay in the pipe at once; the answer to id {} did not come in its turn", id)};
  }
  return {};
}

Outcome reads_long_lines(Session& session) {
  const auto answer =
      session.ask_ok("hello", {{"api", worker::protocol_api}, {"zz_unknown", std::string(1 << 20, 'x')}});
  return answer ? Outcome() : Outcome(because("a request of 1 MiB: " + answer.error()));
}

Outcome protects_the_stream(Session& session) {
  const auto target = [&](int fd) {
    std::error_code error;
    return fs::read_symlink(fmt::format("/proc/{}/fd/{}", session.worker().pid(), fd), error).string();
  };
  const std::string first = target(1), second = target(2);
  if (first.empty() || second.empty()) return {Verdict::skip, "/proc shows no descriptors of it"};
  if (first != second)
    return {Verdict::fail, "fd 1 is not a copy of fd 2: what a library prints would corrupt the stream (rule 2)"};
  return {};
}

Outcome refuses_operations_before_load(Session& session) {
  STRATA_TRY(session.restart());
  const std::string out = session.out("early").string();
  const std::vector<std::pair<std::string, Json>> requests = {
      {"weights", {{"weights", "timed"}}},
      {"read_weights", Json::object()},
      {"inputs", {{"path", (session.subject().bundle / "inputs.safetensors").string()}}},
      {"prove", {{"indices", {0}}, {"out", out}}},
      {"warm_up", {{"iterations", 1}, {"min_ns", 0}}},
      {"measure", {{"iterations", 1}, {"head", 0}, {"indices", {0}}, {"region", "end_to_end"}}},
      {"result", {{"iteration", 0}, {"out", out}}}};
  for (const auto& [op, fields] : requests)
    if (auto refused = session.refused(op, fields, out_of_order); !refused)
      return {Verdict::fail, "before load, " + refused.error()};
  return session.still_answers();
}

Outcome refuses_requests_without_fields(Session& session) {
  for (const char* op : {"load", "weights", "inputs", "prove", "measure"})
    if (auto refused = session.refused(op, Json::object(), out_of_order); !refused)
      return {Verdict::fail, "without its fields, " + refused.error()};
  if (auto refused =
          session.refused("load", {{"case", "text"}, {"bundle", 5}, {"weights", nullptr}, {"cache", Json::array()}},
                          {"bad_request", "unsupported", "failed"});
      !refused)
    return {Verdict::fail, "with fields of wrong types, " + refused.error()};
  return session.still_answers();
}

Outcome reports_memory(Session& session) {
  const auto answer = STRATA_TRY(session.ask_ok("memory"));
  const auto bytes = worker::read_optional_integer(answer, "device_peak_bytes");
  return bytes ? Outcome() : Outcome(Verdict::fail, bytes.error().what);
}

Outcome survives_a_stop(Session& session) {
  session.worker().pause();
  std::this_thread::sleep_for(100ms);
  return session.still_answers();
}

Outcome knows_training_requests(Session& session) {
  const Json& modes = session.hello["modes"];
  const bool trains = modes.is_array() && std::find(modes.begin(), modes.end(), "train") != modes.end();
  const std::string out = session.out("state").string();
  const std::vector<std::pair<std::string, Json>> requests = {
      {"set_mode", {{"mode", "train"}}}, {"set_optimiser", {{"optimiser", {{"name", "sgd"}, {"lr", 0.1}}}}},
      {"set_labels", {{"path", out}}},   {"state", {{"out", out}}},
      {"load_state", {{"path", out}}},   {"steps", {{"split", "train"}, {"order", out}}},
      {"profile", {{"iterations", 1}}}};
  for (const auto& [op, fields] : requests) {
    if (trains) {
      STRATA_TRY(session.ask(op, fields));
    } else if (auto refused = session.refused(op, fields, {"unsupported"}); !refused) {
      return {Verdict::fail, "hello lists no mode train, and " + refused.error()};
    }
  }
  return session.still_answers();
}

Outcome refuses_a_missing_bundle(Session& session) {
  Json request = session.load_request();
  request["bundle"] = (session.subject().scratch / "no_such_bundle").string();
  const auto answer = STRATA_TRY(session.ask("load", request));
  if (answer["ok"].get<bool>() && !session.harness())
    return {Verdict::fail, "load of a bundle that does not exist was answered with ok"};
  if (answer["ok"].get<bool>()) return session.restart();
  return session.still_answers();
}

Outcome refuses_cases_that_it_cannot_run(Session& session) {
  Json with_variant = session.load_request();
  with_variant["variant"] = "zz_variant";
  std::vector<std::pair<std::string, Json>> requests{{"variant zz_variant", std::move(with_variant)}};
  for (const std::string field : {"mode", "precision", "device"}) {
    Json request = session.load_request();
    request["case"][field] = "zz_" + field;
    requests.emplace_back(fmt::format("{0} zz_{0}", field), std::move(request));
  }
  for (const auto& [what, request] : requests)
    if (auto refused = session.refused("load", request, {"unsupported", "unavailable"}); !refused)
      return {Verdict::fail, fmt::format("with the unknown {}: {}", what, refused.error())};
  return session.still_answers();
}

Outcome says_goodbye(Session& session) {
  STRATA_TRY(session.restart());
  STRATA_TRY(session.ask_ok("bye"));
  const auto exited = session.worker().wait_exit(5s);
  if (!exited) return {Verdict::fail, "it answered bye but did not exit within 5 s"};
  if (exited->signal || exited->code != 0)
    return {Verdict::fail, fmt::format("after bye it must exit with code 0; it was {}", worker::describe(*exited))};
  return session.restart();
}

Outcome ends_with_its_input(Session& session) {
  STRATA_TRY(session.restart());
  STRATA_TRY(session.still_answers());
  session.worker().close_input();
  if (!session.worker().wait_exit(5s)) return {Verdict::fail, "its input closed, and it lived on for more than 5 s"};
  return session.restart();
}

}  // namespace

std::vector<Rule> rules_of_the_stream() {
  return {{"starts and answers hello", false, starts},
          {"says in hello what it is and can do", false, describes_itself},
          {"agrees with its level.json", false, agrees_with_level_json},
          {"points fd 1 at fd 2", false, protects_the_stream},
          {"answers hello of another protocol version with its own", false, answers_another_version},
          {"ignores unknown fields", false, ignores_unknown_fields},
          {"carries the id of every request", false, keeps_ids},
          {"answers several waiting requests in order", false, answers_in_order},
          {"reads a request of 1 MiB", false, reads_long_lines},
          {"answers an unknown operation with unsupported", false, refuses_unknown_ops},
          {"answers a line that is no JSON object with bad_request", false, refuses_junk},
          {"refuses requests without id or operation", false, refuses_malformed_requests},
          {"refuses requests without their fields", false, refuses_requests_without_fields},
          {"refuses what needs a network before load", false, refuses_operations_before_load},
          {"refuses a bundle that does not exist", false, refuses_a_missing_bundle},
          {"refuses a mode, precision, device and variant that it lacks", false, refuses_cases_that_it_cannot_run},
          {"reports its memory", false, reports_memory},
          {"knows the training operations, if only to refuse them", false, knows_training_requests},
          {"continues after it was stopped and resumed", false, survives_a_stop},
          {"answers bye and exits with 0", false, says_goodbye},
          {"ends within 5 s when its input closes", false, ends_with_its_input}};
}

}  // namespace strata::level
