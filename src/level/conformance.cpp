// SPDX-License-Identifier: Apache-2.0
#include "level/conformance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "common/text.hpp"
#include "core/bundle_info.hpp"
#include "level/conformance_session.hpp"
#include "worker/answer_line.hpp"
#include "worker/answers.hpp"
#include "worker/process.hpp"

namespace strata::level {

namespace fs = std::filesystem;

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

tl::unexpected<std::string> because(std::string why) {
  return tl::unexpected<std::string>(std::move(why));
}

namespace {
constexpr int most_told = 10'000;  // lines of progress that one request may have
}

Session::Session(const Subject& subject) : subject_(subject) {
  bundle_ = core::read_bundle_info(subject.bundle, false).value_or(Json::object());
}

Text Session::restart() {
  if (worker_) worker_->end();
  auto started = worker::Worker::start(subject_.launch);
  if (!started) return because(started.error().what);
  worker_ = std::move(*started);
  return {};
}

tl::expected<std::string, worker::Failure> Session::next_line(const Json& id, int times) {
  const auto number = outside::as_integer(id);
  auto line = worker_->receive_line(subject_.timeout * times);
  for (int progress_lines = 0; progress_lines < most_told && line && number && worker::progress_in(*line, number);
       ++progress_lines)
    line = worker_->receive_line(subject_.timeout * times);
  return line;
}

Or<Json> Session::raw(const std::string& line, const Json& expected_id) {
  if (!running()) return because("the worker is gone");
  auto answer = worker_->send_line(line, subject_.timeout);
  if (answer) answer = next_line(expected_id, line.find("\"op\":\"load\"") != std::string::npos ? 10 : 1);
  if (!answer) return because(answer.error().what);
  const std::string shown = worker::printable(*answer, 160);
  Json object = Json::parse(*answer, nullptr, false);
  if (!object.is_object()) return because(fmt::format("answered with a line that is no JSON object: {}", shown));
  if (!object.contains("id") || object["id"] != expected_id)
    return because(fmt::format("the answer must carry id {}: {}", expected_id.dump(), shown));
  if (!object.contains("ok") || !object["ok"].is_boolean())
    return because(fmt::format("the answer must have a boolean \"ok\": {}", shown));
  return object;
}

Or<Json> Session::ask(const std::string& op, Json fields) {
  const std::int64_t id = take_id();
  fields["id"] = id;
  fields["op"] = op;
  auto answer = raw(fields.dump(), id);
  if (!answer) return because(fmt::format("{}: {}", op, answer.error()));
  return answer;
}

Or<Json> Session::ask_ok(const std::string& op, Json fields) {
  auto answer = ask(op, std::move(fields));
  if (answer && !(*answer)["ok"].get<bool>())
    return because(fmt::format("{} failed with \"{}\": {}", op, text_of(*answer, "code"),
                               worker::printable(text_of(*answer, "what"), 300)));
  return answer;
}

Text Session::refused(const std::string& op, Json fields, const std::vector<std::string>& codes) {
  const auto answer = STRATA_TRY(ask(op, std::move(fields)));
  if (answer["ok"].get<bool>()) return because(fmt::format("{} was answered with ok; it must be refused", op));
  const auto code = answer.find("code");
  const bool known = code != answer.end() && std::find(codes.begin(), codes.end(), *code) != codes.end();
  if (!known)
    return because(fmt::format("{} was refused with code {}; allowed: {}", op,
                               code == answer.end() ? "none" : code->dump(), fmt::join(codes, ", ")));
  const auto what = answer.find("what");
  if (what == answer.end() || !what->is_string() || what->get<std::string>().empty())
    return because(fmt::format("{} was refused without a reason in \"what\"", op));
  return {};
}

Text Session::still_answers() {
  const auto answer = ask_ok("hello", {{"api", worker::protocol_api}});
  return answer ? Text() : because("afterwards: " + answer.error());
}

Or<Json> Session::give_inputs() {
  return ask_ok("inputs", {{"path", (subject_.bundle / "inputs.safetensors").string()}});
}

bool Session::offers(const char* operation) const {
  const auto ops = hello.find("ops");
  return ops != hello.end() && ops->is_array() && std::find(ops->begin(), ops->end(), operation) != ops->end();
}

Json Session::load_request(const std::string& weights) const {
  return {{"case", bundle_.value("case", Json::object())},
          {"bundle", subject_.bundle.string()},
          {"weights", weights},
          {"cache", (subject_.scratch / "cache").string()}};
}

Text Session::prepare() {
  std::error_code error;
  fs::create_directories(subject_.scratch / "cache", error);
  if (subject_.prepare.empty() || std::exchange(prepared_, true)) return {};
  worker::Launch launch = subject_.launch;
  launch.argv = subject_.prepare;
  for (const std::string& more : {std::string("--bundle"), subject_.bundle.string(), std::string("--cache"),
                                  (subject_.scratch / "cache").string()})
    launch.argv.push_back(more);
  const auto finished = worker::run_to_end(launch, subject_.timeout * 10);
  if (!finished) return because(finished.error().what);
  if (finished->timed_out) return because("the prepare command did not end in time");
  std::string rest;  // without lines of progress
  for (const auto& line : split(finished->stdout_text, '\n'))
    if (!line.empty() && !worker::progress_in(line, std::nullopt)) rest += line + "\n";
  const Json answer = Json::parse(rest, nullptr, false);
  if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean())
    return because(
        fmt::format("the prepare command must print exactly one JSON object with \"ok\" to standard output: {}",
                    worker::printable(rest, 160)));
  if (answer["ok"].get<bool>()) return {};
  const std::string code = text_of(answer, "code");
  const std::string what = worker::printable(text_of(answer, "what"), 300);
  if (code == "unsupported" || code == "unavailable") {
    not_loadable = fmt::format("{}: {}", code, what);
    return {};
  }
  return because(fmt::format("the prepare command failed with \"{}\": {}", code, what));
}

Text Session::load() {
  STRATA_TRY(restart());
  STRATA_TRY(ask_ok("load", load_request()));
  STRATA_TRY(give_inputs());
  return {};
}

namespace {

// A loose bound: this says that the protocol is kept; the proof of equal work is the driver's (a run of `strata
// compare`).
Text close_to(const TensorView& got, const TensorView& reference, const std::string& name) {
  if (got.shape != reference.shape)
    return because(fmt::format("{} has the shape [{}]; the reference has [{}]", name, fmt::join(got.shape, ", "),
                               fmt::join(reference.shape, ", ")));
  const auto values = to_doubles(got), truth = to_doubles(reference);
  double scale = 0.0;
  for (const double value : truth) scale = std::isfinite(value) ? std::max(scale, std::abs(value)) : scale;
  const double bound = is_floating(reference.dtype) ? 1e-3 * scale + 1e-9 : 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool same_special =
        !std::isfinite(truth[i]) && (std::isnan(truth[i]) ? std::isnan(values[i]) : values[i] == truth[i]);
    if (!same_special && !(std::abs(values[i] - truth[i]) <= bound))
      return because(fmt::format("{}: element {} is {:.6g}; the reference is {:.6g}, off by more than {:.2g}", name, i,
                                 values[i], truth[i], bound));
  }
  return {};
}

}  // namespace

Text Session::matches(const fs::path& path, const std::vector<int>& indices, const std::string& weights) const {
  const auto got = SafeTensors::open(path);
  if (!got) return because(got.error().what);
  const auto reference = SafeTensors::open(subject_.bundle / "reference" / (weights + ".safetensors"));
  if (!reference) return because(reference.error().what);
  std::set<std::string> expected;
  for (const int index : indices)
    for (const Json& output : bundle_["outputs"]) {
      const std::string name = text_of(output, "name");
      expected.insert(fmt::format("{}/{}", index, name));
      const TensorView* mine = got->find(fmt::format("{}/{}", index, name));
      const TensorView* theirs = reference->find(fmt::format("f64/{}/{}", index, name));
      if (mine == nullptr)
        return because(fmt::format("{} lacks the tensor {}/{}; it holds {}", path.filename().string(), index, name,
                                   fmt::join(got->names(), ", ")));
      if (theirs == nullptr) continue;
      STRATA_TRY(close_to(*mine, *theirs, fmt::format("{}/{} with weights {}", index, name, weights)));
    }
  for (const std::string& name : got->names())
    if (!expected.contains(name))
      return because(fmt::format("{} holds {}, which was not asked for", path.filename().string(), name));
  return {};
}

std::vector<Check> check_conformance(const Subject& subject, const std::function<void(const Check&)>& tell) {
  Session session(subject);
  std::vector<Check> checks;
  std::vector<Rule> rules = rules_of_the_stream();
  for (auto* more : {&rules_of_the_network, &rules_of_the_options})
    for (Rule& rule : more()) rules.push_back(std::move(rule));
  bool started = true;
  for (const Rule& rule : rules) {
    if (interrupted().load()) break;
    Outcome outcome;
    if (!started) {
      outcome = {Verdict::skip, "it does not start"};
    } else if (rule.needs_load && !session.not_loadable.empty()) {
      outcome = {Verdict::skip, "no network is loaded"};  // the check of load has said why
    } else {
      // One broken rule must not fail the next: a worker that is gone is replaced.
      const Text ready = session.running() ? Text() : rule.needs_load ? session.load() : session.restart();
      outcome = ready ? rule.run(session) : Outcome(ready);
    }
    checks.push_back({rule.name, outcome.verdict, outcome.why});
    tell(checks.back());
    if (checks.size() == 1) started = outcome.verdict == Verdict::pass;
  }
  return checks;
}

}  // namespace strata::level
