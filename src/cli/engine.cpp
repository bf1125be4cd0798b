// SPDX-License-Identifier: Apache-2.0
// `strata engine`: requests, events and results as JSON lines on standard input and output (docs/engine.md), for
// Python, notebooks and other programs.
#include <chrono>
#include <memory>
#include <thread>

#include "cli/console.hpp"
#include "cli/members.hpp"
#include "cli/option.hpp"
#include "cli/request_queue.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "engine/export_runner.hpp"
#include "engine/generate_runner.hpp"
#include "engine/queries.hpp"
#include "engine/run_request.hpp"
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

 private:
  Json id_;
  engine::ProgressPace pace_{std::chrono::milliseconds(500)};
};

// The result of a run; the list of runs gets its verdicts.
Result<Json> kept_result(store::Store& store, const std::string& run_id) {
  const auto run = STRATA_TRY(store.load_run(run_id));
  auto shown = STRATA_TRY(engine::result_of(run, store));
  if (shown.verdict)
    engine::keep_verdict(store, run, *shown.verdict);
  else
    engine::keep_verdicts(store, run_id, shown.result);
  return std::move(shown.result);
}

struct EngineArguments {
  std::string store, python;
  std::vector<plan::NamedPython> named;

  fs::path store_path() const { return store::Store::path_of(store); }
};

// What levels need was built for the interpreters that the engine was started with: programs of another one would
// measure that one's PyTorch under this name.
Result<void> set_environments(requests::Request& request, const EngineArguments& a) {
  auto& common = requests::common_of(request);
  const auto& asked = common.options.environments;
  if ((!common.python.empty() && common.python != a.python) || (!asked.empty() && asked != a.named))
    return fail("the request names another interpreter than this engine was started with",
                "start one with it: ./strata engine --python PATH, or --env NAME=PATH", Exit::usage);
  const bool takes_several = std::holds_alternative<requests::CompareRequest>(request) ||
                             std::holds_alternative<requests::SweepRequest>(request);
  if (!a.named.empty() && !takes_several)
    return fail(
        fmt::format("{} runs in one environment, and this engine was started with --env", requests::verb_of(request)),
        "start one with its interpreter: ./strata engine --python PATH", Exit::usage);
  common.python = a.python;
  common.options.environments = a.named;
  return {};
}

// Runs, and says its result; what was measured before an error or a cancel is a result, too.
Result<void> measure(const Json& id, const requests::CompareRequest& asked, const engine::RunContext& context,
                     engine::RunKind kind, const EngineArguments& a) {
  EventLines events(id);
  const auto path = a.store_path();
  if (!a.store.empty()) kind.settings["store"] = a.store;
  auto ready = STRATA_TRY(engine::prepare_run(asked, context, path, kind, events));
  auto store = STRATA_TRY(store::Store::open(path));
  const auto ended = STRATA_TRY(engine::run_prepared(ready, asked, context, store, kind, events));
  const bool cancelled = interrupted();
  if (!ended.has_case && ended.failed) return tl::unexpected(*ended.failed);
  if (!ended.has_case) return fail("cancelled: nothing was measured", "", Exit::failed);
  const auto& run_id = ready.setting.run_id;
  auto result = kept_result(store, run_id);
  if (!result) {
    say_error(id, result.error(), run_id);
    return {};
  }
  const int code = cancelled      ? interrupt_exit_code()
                   : ended.failed ? static_cast<int>(ended.failed->exit)
                                  : ended.exit_code();
  say(id, {{"result", std::move(*result)},
           {"run", run_id},
           {"exit_code", code},
           {"cancelled", cancelled},
           {"failed", ended.failed ? Json(ended.failed->what) : Json()}});
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

Result<void> carry_out(const Json& id, requests::Request request, const EngineArguments& a) {
  STRATA_TRY(set_environments(request, a));
  const engine::RunContext context{
      .command = requests::command_of(request), .resumed = {}, .suite = {}, .dry_run = false};
  if (const auto* compare = std::get_if<requests::CompareRequest>(&request))
    return measure(id, *compare, context, engine::comparison(*compare), a);
  if (const auto* sweep = std::get_if<requests::SweepRequest>(&request))
    return measure(id, *sweep, context, engine::sweep(*sweep, context), a);
  if (const auto* train = std::get_if<requests::TrainRequest>(&request)) {
    auto plan = STRATA_TRY(engine::plan_training(*train, context));
    return measure(id, plan, context, engine::training(plan, context), a);
  }
  EventLines events(id);
  if (const auto* generate = std::get_if<requests::GenerateRequest>(&request)) {
    const auto done = STRATA_TRY(engine::run_generate(*generate, events));
    say_result(
        id, {{"folder", done.folder.string()}, {"summary", done.summary}, {"build", done.build}, {"test", done.test}});
    return {};
  }
  const auto done = STRATA_TRY(engine::run_export(std::get<requests::ExportRequest>(request), a.store_path(), events));
  say_result(id, {{"folder", done.folder.string()},
                  {"build", done.build},
                  {"test", done.test},
                  {"certificate", done.evidence.certificate},
                  {"note", done.evidence.certificate.is_object() ? done.evidence.note : done.evidence.why_not},
                  {"prove", done.proving}});
  return {};
}

void answer_request(const RequestQueue::Entry& entry, const EngineArguments& a) try {
  if (entry.error) return say_error(entry.id, *entry.error);
  if (entry.cancelled) return say_error(entry.id, {"cancelled before it began", "", Exit::failed});
  if (requests::is_query(entry.request)) {
    const auto query = requests::read_query(entry.request);
    if (!query) return say_error(entry.id, query.error());
    auto answer = engine::answer_query(*query, a.store_path());
    return answer ? say_result(entry.id, std::move(answer->result), answer->exit_code)
                  : say_error(entry.id, answer.error());
  }
  auto request = requests::read_request(entry.request);
  if (!request) return say_error(entry.id, request.error());
  plan::forget_fresh_captures();
  auto done = carry_out(entry.id, *request, a);
  if (!done && interrupted())
    return say_error(entry.id, {"cancelled: nothing was measured or written", "", Exit::failed});
  if (done) return;
  done.error().facts.where = requests::member_at(*request, done.error().facts.where);
  say_error(entry.id, done.error());
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

Result<int> start(const EngineArguments& a) {
  STRATA_TRY(plan::check_alone(a.named, a.python));
  return serve(a);
}

}  // namespace

void add_engine(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand(
      "engine", "answer requests as JSON lines on standard input and output: the door for programs (docs/engine.md)");
  const auto a = std::make_shared<EngineArguments>();
  add_store(*verb, a->store);
  add_members(*verb, {requests::member_of_python(a->python), requests::member_of_environments(a->named)});
  verb->footer(
      "Exit codes: 0 standard input ended and all requests are answered, each with a code of its own; 130, 143, 129 "
      "ended by Ctrl-C, SIGTERM or SIGHUP; 141 the reader of the output went away.");
  verb->callback([a, &exit_code] {
    const auto code = start(*a);
    exit_code = code ? *code : print_error(code.error());
  });
}

}  // namespace strata::cli
