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
#include "engine/request_json.hpp"
#include "engine/run_request.hpp"
#include "report/render/render.hpp"
#include "report/sweep.hpp"
#include "report/view.hpp"

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
  Json object{{"what", error.what}, {"hint", error.hint}, {"exit_code", static_cast<int>(error.exit)}};
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

// As --format json of the verb prints it; the list of runs gets its verdicts.
Result<Json> result_of(store::Store& store, const std::string& run_id, bool of_sweep) {
  const auto run = STRATA_TRY(store.load_run(run_id));
  if (of_sweep) {
    const auto document = report::sweep_document(run);
    engine::keep_verdict(store, run, document.summary);
    return Json::parse(STRATA_TRY(document::render(document, "json", {}, {})));
  }
  auto result = report::view(run);
  engine::keep_verdicts(store, run_id, result);
  return result;
}

// Prepares, runs, and says its result; what was measured before an error or a cancel is a result, too.
Result<void> carry_out(const Json& id, engine::Request request, const fs::path& path) {
  EventLines events(id);
  const engine::RunContext context{
      .words = engine::command_words(request), .resumed = {}, .suite = {}, .dry_run = false};
  auto* swept = std::get_if<engine::SweepRequest>(&request);
  const engine::CompareRequest& asked = swept ? *swept : std::get<engine::CompareRequest>(request);
  const auto kind = swept ? engine::sweep(*swept, context) : engine::comparison();
  auto ready = STRATA_TRY(engine::prepare_run(asked, context, path, kind, events));
  auto store = STRATA_TRY(store::Store::open(path));
  const auto ended = STRATA_TRY(engine::run_prepared(ready, asked, context, store, kind, events));
  if (!ended.has_case && ended.failed) return tl::unexpected(*ended.failed);
  if (!ended.has_case) return fail("cancelled: nothing was measured", "", Exit::failed);
  const auto& run_id = ready.setting.run_id;
  auto result = STRATA_TRY(result_of(store, run_id, swept != nullptr));
  const int code = interrupted()  ? interrupt_exit_code()
                   : ended.failed ? static_cast<int>(ended.failed->exit)
                                  : ended.exit_code();
  say(id, {{"result", std::move(result)},
           {"run", run_id},
           {"exit_code", code},
           {"cancelled", interrupted().load()},
           {"failed", ended.failed ? Json(ended.failed->what) : Json()}});
  return {};
}

void answer_request(const RequestQueue::Entry& entry, const fs::path& path) {
  if (entry.error) return say_error(entry.id, *entry.error);
  if (entry.cancelled) return say_error(entry.id, {"cancelled before it began", "", Exit::failed});
  auto request = engine::read_request(entry.request);
  if (!request) return say_error(entry.id, request.error());
  const auto done = carry_out(entry.id, std::move(*request), path);
  if (!done && interrupted()) return say_error(entry.id, {"cancelled: nothing was measured", "", Exit::failed});
  if (!done) say_error(entry.id, done.error());
}

int serve(const fs::path& path) {
  const auto queue = std::make_shared<RequestQueue>();
  std::thread([queue] { queue->read_all(STDIN_FILENO); }).detach();  // it waits for a client that may never end
  while (auto entry = queue->next()) {
    answer_request(*entry, path);
    queue->done();
    if (answer_was_lost()) break;
  }
  return interrupted() && !answer_was_lost() ? interrupt_exit_code() : 0;
}

}  // namespace

void add_engine(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand(
      "engine", "answer requests as JSON lines on standard input and output: the door for programs (docs/engine.md)");
  const auto store = std::make_shared<std::string>();
  add_store(*verb, *store);
  verb->footer(
      "Exit codes: 0 standard input ended and all requests are answered, each with a code of its own; 130, 143, 129 "
      "ended by Ctrl-C, SIGTERM or SIGHUP; 141 the reader of the output went away.");
  verb->callback(
      [store, &exit_code] { exit_code = serve(store->empty() ? store::Store::default_path() : fs::path(*store)); });
}

}  // namespace strata::cli
