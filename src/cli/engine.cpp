// SPDX-License-Identifier: Apache-2.0
// `strata engine`: requests, events and results as JSON lines on standard input and output (docs/engine.md), for
// Python, notebooks and other programs.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/request_queue.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "engine/export_runner.hpp"
#include "engine/generate_runner.hpp"
#include "engine/measure_request.hpp"
#include "engine/queries.hpp"
#include "requests/codec.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

void say(const Json& id, Json line) {
  line["id"] = id;
  answer_json(line, -1);
  if (answer_was_lost()) cancel_running();  // whoever asked is gone
}

void say_error(const Json& id, const Error& error, const std::string& run_id = {}) {
  Json object{{"what", error.what}, {"fix", error.hint}, {"exit_code", static_cast<int>(error.exit)}};
  const auto& [where, got, allowed] = error.facts;
  for (const auto& [name, fact] : {std::pair("where", &where), {"got", &got}, {"allowed", &allowed}})
    if (!fact->empty()) object[name] = *fact;
  say(id, {{"error", std::move(object)}, {"run", run_id.empty() ? Json() : Json(run_id)}});
}

class EventLines final : public engine::EventSink {
 public:
  explicit EventLines(Json id) : id_(std::move(id)) {}
  void note(const std::string& sentence) override { say(id_, {{"event", "note"}, {"text", sentence}}); }
  void progress(const std::string& doing, double seconds_left, std::string_view) override {
    if (!pace_.is_due(doing)) return;
    say(id_,
        {{"event", "progress"}, {"doing", doing}, {"seconds_left", seconds_left >= 0 ? Json(seconds_left) : Json()}});
  }
  void planned(const engine::PlannedSweep& plan) override {
    Json points = Json::array();
    for (const auto& point : plan.points)
      points.push_back(
          {{"point", point.point}, {"seconds", point.seconds}, {"bytes", point.bytes ? Json(*point.bytes) : Json()}});
    say(id_, {{"event", "plan"}, {"points", points}, {"text", plan.summary}});
  }
  void restart_ended(const engine::EndedRestart& restart) override {
    say(id_, {{"event", "restart"}, {"run", restart.run_id}, {"done", restart.done}, {"planned", restart.planned}});
  }

 private:
  Json id_;
  engine::ProgressPace pace_{std::chrono::milliseconds(500)};
};

struct EngineArguments {
  std::string store, python;
  std::vector<plan::NamedPython> named;
  std::vector<std::string> levels;  // that requests will name; empty: any

  fs::path store_path() const { return store::Store::path_of(store); }
};

tl::unexpected<Error> other_interpreter() {
  return fail("the request names another interpreter than this engine was started with",
              "start one with it: ./strata engine --python PATH, or --env NAME=PATH", Exit::usage);
}

tl::unexpected<Error> one_environment(const std::string& verb) {
  return fail(fmt::format("{} runs in one environment, and this engine was started with --env", verb),
              "start one with its interpreter: ./strata engine --python PATH", Exit::usage);
}

// What levels need was built for the interpreters that the engine was started with: programs of another one would
// measure that one's PyTorch under this name.
Result<void> set_environments(requests::Request& request, const EngineArguments& a) {
  auto& common = requests::common_of(request);
  const auto& asked = common.options.environments;
  if ((!common.python.empty() && common.python != a.python) || (!asked.empty() && asked != a.named))
    return other_interpreter();
  const bool takes_several = std::holds_alternative<requests::CompareRequest>(request) ||
                             std::holds_alternative<requests::SweepRequest>(request);
  if (!a.named.empty() && !takes_several) return one_environment(requests::verb_of(request));
  common.python = a.python;
  common.options.environments = a.named;
  return {};
}

// What was measured before an error or a cancel is a result, too.
Result<void> say_measured(const Json& id, const engine::MeasuredRun& done, const EngineArguments& a) {
  const bool cancelled = interrupted();
  if (!done.has_case && done.failed) return tl::unexpected(*done.failed);
  if (!done.has_case) return fail("cancelled: nothing was measured", "", Exit::failed);
  auto result = engine::kept_result(a.store_path(), done.run_id);
  if (!result) {
    say_error(id, result.error(), done.run_id);
    return {};
  }
  const int code = cancelled     ? interrupt_exit_code()
                   : done.failed ? static_cast<int>(done.failed->exit)
                                 : done.exit_code;
  say(id, {{"result", std::move(*result)},
           {"run", done.run_id},
           {"exit_code", code},
           {"cancelled", cancelled},
           {"failed", done.failed ? Json(done.failed->what) : Json()}});
  return {};
}

// What makes no run has no id of one, and nothing of it is there before its end.
void say_result(const Json& id, Json result, int code = 0) {
  say(id, {{"result", std::move(result)},
           {"run", nullptr},
           {"exit_code", code},
           {"cancelled", false},
           {"failed", nullptr}});
}

Result<void> carry_out(const RequestQueue::Entry& entry, requests::Request request, const EngineArguments& a) {
  const auto& id = entry.id;
  STRATA_TRY(set_environments(request, a));
  engine::RunContext context{
      .command = requests::command_of(request, a.store), .resumed = {}, .suite = {}, .dry_run = false};
  if (!entry.shard.empty()) context.command += " --shard " + entry.shard;
  EventLines events(id);
  if (const auto* generate = std::get_if<requests::GenerateRequest>(&request)) {
    const auto done = STRATA_TRY(engine::run_generate(*generate, events));
    say_result(
        id, {{"folder", done.folder.string()}, {"summary", done.summary}, {"build", done.build}, {"test", done.test}});
    return {};
  }
  if (const auto* exported = std::get_if<requests::ExportRequest>(&request)) {
    const auto done = STRATA_TRY(engine::run_export(*exported, a.store_path(), events));
    say_result(id, {{"folder", done.folder.string()},
                    {"build", done.build},
                    {"test", done.test},
                    {"certificate", done.evidence.certificate},
                    {"note", done.evidence.certificate.is_object() ? done.evidence.note : done.evidence.why_not},
                    {"prove", done.proving}});
    return {};
  }
  const auto done = STRATA_TRY(engine::measure_request(request, context, a.store, {entry.shard, true}, events));
  return say_measured(id, done, a);
}

Result<void> carry_out_suite(const Json& id, requests::SuiteRequest request, const EngineArguments& a) {
  if (!request.python.empty() && request.python != a.python) return other_interpreter();
  if (!a.named.empty()) return one_environment("run");
  request.python = a.python;
  EventLines events(id);
  const auto done = STRATA_TRY(engine::measure_suite(request, a.store, events));
  return say_measured(id, done, a);
}

Result<void> answer_run(const RequestQueue::Entry& entry, const EngineArguments& a) {
  plan::forget_fresh_captures();
  const auto& asked = entry.request;
  if (requests::is_suite(asked)) {
    const auto suite = STRATA_TRY(requests::read_suite_request(asked));
    return carry_out_suite(entry.id, suite, a);
  }
  const auto request = STRATA_TRY(requests::read_request(asked));
  auto done = carry_out(entry, request, a);
  if (!done) done.error().facts.where = requests::member_at(request, done.error().facts.where);
  return done;
}

void answer_request(const RequestQueue::Entry& entry, const EngineArguments& a) try {
  if (entry.error) return say_error(entry.id, *entry.error);
  if (entry.cancelled) return say_error(entry.id, {"cancelled before it began", "", Exit::failed});
  const Error cancelled{"cancelled: nothing was measured or written", ""};
  const auto verb = outside::text_or(entry.request, "verb");
  if (!entry.shard.empty() && verb != "sweep" && verb != "train")
    return say_error(entry.id, {fmt::format("\"shard\": {} is not split into shards", outside::shown(verb)),
                                "leave \"shard\" out; sweep and train have parts: points and repeats",
                                Exit::usage,
                                {"shard", outside::shown(entry.shard), {}}});
  if (requests::is_query(entry.request)) {
    const auto query = requests::read_query(entry.request);
    if (!query) return say_error(entry.id, query.error());
    EventLines events(entry.id);
    auto answer = engine::answer_query(*query, a.store_path(), events);
    if (answer) return say_result(entry.id, std::move(answer->result), answer->exit_code);
    return say_error(entry.id, interrupted() ? cancelled : answer.error());
  }
  const auto done = answer_run(entry, a);
  if (!done && interrupted()) return say_error(entry.id, cancelled);
  if (!done) say_error(entry.id, done.error());
} catch (const std::exception& error) {  // what no check foresaw costs this answer, and no other
  say_error(entry.id, {std::string("unforeseen: ") + error.what(), "what was measured is stored", Exit::failed});
}

int serve(const EngineArguments& a) {
  const auto queue = std::make_shared<RequestQueue>(cancel_running);
  std::thread([queue] { queue->read_all(STDIN_FILENO); }).detach();  // it waits for a client that may never end
  while (const auto entry = queue->next()) {
    answer_request(*entry, a);
    queue->done();
    cancel_over();
    if (answer_was_lost()) return 0;  // finish() knows why
  }
  return interrupted() ? interrupt_exit_code() : 0;
}

}  // namespace

void add_engine(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand(
      "engine", "answer requests as JSON lines on standard input and output: the door for programs (docs/engine.md)");
  const auto a = std::make_shared<EngineArguments>();
  add_store(*verb, a->store);
  add_members(
      *verb, {requests::member_of_python(a->python), requests::member_of_environments(a->named),
              requests::member_of_levels(
                  a->levels,
                  "levels that are got ready before it answers; none: of questions that run no level (default: all)")});
  verb->footer(
      "Exit codes: 0 standard input ended and all requests are answered, each with a code of its own; 130, 143, 129 "
      "ended by Ctrl-C, SIGTERM or SIGHUP; 141 the reader of the output went away.");
  set_action(
      *verb, exit_code,
      [a]() -> Result<int> {
        STRATA_TRY(plan::check_alone(a->named, a->python));
        return serve(*a);
      },
      [a] { return engine::needs_of_any(a->python, a->named, a->levels); });
}

}  // namespace strata::cli
