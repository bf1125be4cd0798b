// SPDX-License-Identifier: Apache-2.0
#include "measure/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "common/file_lock.hpp"
#include "worker/answers.hpp"

namespace strata::measure {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
namespace {

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

Failure Session::bad_answer(std::string_view op, std::string_view why) const {
  return {State::failed, fmt::format("level {}: its answer to {} breaks the protocol: {}", job_.level.name(), op, why),
          fmt::format("run `strata level check {}`", job_.level.folder.string()), worker_->log_tail()};
}

bool Session::offers(std::string_view op) const {
  return std::find(ops_.begin(), ops_.end(), op) != ops_.end();
}

Try<std::unique_ptr<Session>> Session::open(const Job& job, const std::vector<int>& cpus) {
  static std::atomic<int> count{0};
  std::unique_ptr<Session> session(new Session(job));
  session->out_ = job.scratch / fmt::format("{}-{}.safetensors", job.level.name(), count++);
  worker::Launch launch = job.launch;
  launch.cpus = cpus;
  const auto start = Clock::now();
  auto process = worker::Worker::start(launch);
  if (!process) return tl::unexpected(process.error());
  session->worker_ = std::move(*process);
  auto hello = session->call("hello", {{"api", worker::protocol_api}});
  if (!hello) return tl::unexpected(hello.error());
  session->hello_ = std::move(*hello);
  const auto said = worker::read_hello(session->hello_, job.allow_debug);
  if (!said) return tl::unexpected(said.error());
  session->ops_ = said->ops;
  const double total = ms_since(start);
  session->start_up_.library_ms = std::min(total, static_cast<double>(said->library_ns) * 1e-6);
  session->start_up_.process_ms = total - session->start_up_.library_ms;
  return session;
}

Try<void> Session::load(const std::string& weights) {
  start_up_.cold = !fs::exists(job_.cache / "warm.json");
  const auto start = Clock::now();
  auto loaded = call("load", {{"case", job_.bundle->info["case"]},
                              {"bundle", job_.bundle->folder.string()},
                              {"weights", weights},
                              {"cache", job_.cache.string()}});
  if (!loaded) return tl::unexpected(loaded.error());
  loaded_ = std::move(*loaded);
  start_up_.load_ms = ms_since(start);
  const auto phases = loaded_.value("phases", Json::object());
  start_up_.build_ms = phases.value("build_ns", 0.0) * 1e-6;
  start_up_.weights_ms = phases.value("weights_ns", 0.0) * 1e-6;
  const int ring = job_.bundle->info.value("ring", 0);
  if (auto given = inputs(job_.bundle->folder / "inputs.safetensors", ring); !given) return given;
  steps_ = 0;
  if (job_.bundle->info["case"].value("mode", "infer") != "train") return {};
  auto labels = call("set_labels", {{"path", (job_.bundle->folder / "labels.safetensors").string()}});
  if (!labels) return tl::unexpected(labels.error());
  if (labels->value("count", -1) != ring)
    return tl::unexpected(bad_answer(
        "set_labels", fmt::format("count is {}, the ring has {}", labels->value("count", Json()).dump(), ring)));
  return {};
}

Try<void> Session::inputs(const fs::path& path, int ring) {
  auto inputs = call("inputs", {{"path", path.string()}});
  if (!inputs) return tl::unexpected(inputs.error());
  if (inputs->value("count", -1) != ring)
    return tl::unexpected(
        bad_answer("inputs", fmt::format("count is {}, the ring has {}", inputs->value("count", Json()).dump(), ring)));
  return {};
}

Try<void> Session::weights(const std::string& weights) {
  auto done = call("weights", {{"weights", weights}});
  if (!done) return tl::unexpected(done.error());
  steps_ = 0;
  return {};
}

Try<void> Session::prove_into(const std::vector<int>& indices, const fs::path& out) {
  std::error_code ec;
  fs::remove(out, ec);
  auto done = call("prove", {{"indices", indices}, {"out", out.string()}});
  if (!done) return tl::unexpected(done.error());
  steps_ += static_cast<std::int64_t>(indices.size());
  return {};
}

Try<SafeTensors> Session::prove(const std::vector<int>& indices) {
  if (auto done = prove_into(indices, out_); !done) return tl::unexpected(done.error());
  auto tensors = SafeTensors::open(out_);
  if (!tensors) return tl::unexpected(bad_answer("prove", tensors.error().what));
  return std::move(*tensors);
}

Try<Json> Session::read_weights() {
  if (!offers("read_weights")) return Json();
  auto answer = call("read_weights", Json::object());
  if (!answer) return tl::unexpected(answer.error());
  return answer->value("sha256", Json());
}

Try<std::vector<std::int64_t>> Session::warm_up(int iterations, std::chrono::nanoseconds at_least) {
  auto answer = call("warm_up", {{"iterations", iterations}, {"min_ns", at_least.count()}});
  if (!answer) return tl::unexpected(answer.error());
  const auto wall = answer->find("wall_ns");
  const auto found =
      worker::read_integers(*answer, "wall_ns", wall != answer->end() && wall->is_array() ? wall->size() : 0);
  if (!found) return tl::unexpected(found.error());
  if (found->empty()) return tl::unexpected(bad_answer("warm_up", "wall_ns is empty"));
  const auto count = worker::read_optional_integer(*answer, "iterations");
  if (!count) return tl::unexpected(count.error());
  steps_ += count->value_or(static_cast<std::int64_t>(found->size()));
  const auto first = worker::read_optional_integer(*answer, "first_ns");
  if (!first) return tl::unexpected(first.error());
  if (start_up_.first_iteration_ms == 0)
    start_up_.first_iteration_ms = static_cast<double>(first->value_or(found->front())) * 1e-6;
  return *found;
}

Try<store::Block> Session::measure(const BlockPlan& plan) {
  auto answer = call("measure", {{"iterations", plan.iterations},
                                 {"head", plan.head},
                                 {"indices", plan.indices},
                                 {"check", plan.check},
                                 {"out", out_.string()},
                                 {"region", "end_to_end"}});
  if (!answer) return tl::unexpected(answer.error());
  const auto wall = worker::read_integers(*answer, "wall_ns", plan.indices.size());
  const auto latency = worker::read_integers(*answer, "latency_ns", plan.indices.size());
  const auto cpu = worker::read_optional_integer(*answer, "cpu_ns");
  const auto runq = worker::read_optional_integer(*answer, "runq_ns");
  const auto began = worker::read_optional_integer(*answer, "start_ns");
  if (!wall) return tl::unexpected(wall.error());
  if (!latency) return tl::unexpected(latency.error());
  if (!cpu) return tl::unexpected(cpu.error());
  if (!runq) return tl::unexpected(runq.error());
  if (!began) return tl::unexpected(began.error());
  steps_ += plan.head + plan.iterations;
  store::Block block;
  block.wall_ns = *wall;
  block.latency_ns = *latency;
  block.cpu_ns = *cpu;
  block.runq_ns = *runq;
  block.start_ns = began->value_or(0);
  return block;
}

Try<SafeTensors> Session::checked_output() const {
  auto tensors = SafeTensors::open(out_);
  if (!tensors) return tl::unexpected(bad_answer("measure", tensors.error().what));
  return std::move(*tensors);
}

Try<Json> Session::memory() {
  if (!offers("memory")) return Json::object();
  return call("memory", Json::object());
}

Try<Json> Session::report() {
  if (!offers("report")) return Json();
  auto answer = call("report", Json::object());
  if (!answer) return tl::unexpected(answer.error());
  const auto facts = answer->find("facts");
  if (facts == answer->end() || !facts->is_object())
    return tl::unexpected(bad_answer("report", "facts is missing or no object"));
  return *facts;
}

fs::path Session::new_file() const {
  static std::atomic<int> count{0};
  return job_.scratch / fmt::format("{}-{}-state-{}.safetensors", job_.level.name(), worker_->pid(), count++);
}

Try<void> Session::set_mode(const std::string& mode, bool dropout) {
  auto done = call("set_mode", {{"mode", mode}, {"dropout", dropout}});
  if (!done) return tl::unexpected(done.error());
  return {};
}

Try<void> Session::set_optimiser(const Json& optimiser) {
  auto done = call("set_optimiser", {{"optimiser", optimiser}});
  if (!done) return tl::unexpected(done.error());
  steps_ = 0;
  return {};
}

Try<TrainState> Session::state() {
  TrainState state;
  state.file = std::shared_ptr<const fs::path>(new fs::path(new_file()), [](const fs::path* path) {
    std::error_code ec;
    fs::remove(*path, ec);
    delete path;
  });
  auto done = call("state", {{"out", state.file->string()}});
  if (!done) return tl::unexpected(done.error());
  const auto step = done->find("step"), lr = done->find("lr");
  if (step == done->end() || !step->is_number_integer())
    return tl::unexpected(bad_answer("state", "step is missing or not a whole number"));
  if (lr == done->end() || !lr->is_number())
    return tl::unexpected(bad_answer("state", "lr is missing or not a number"));
  auto tensors = SafeTensors::open(*state.file);
  if (!tensors) return tl::unexpected(bad_answer("state", tensors.error().what));
  state.tensors = std::move(*tensors);
  state.step = step->get<std::int64_t>();
  state.lr = lr->get<double>();
  return state;
}

Try<void> Session::load_state(const fs::path& path, std::int64_t step) {
  auto done = call("load_state", {{"path", path.string()}, {"step", step}});
  if (!done) return tl::unexpected(done.error());
  steps_ = step;
  return {};
}

Try<Profile> Session::profile(const std::vector<int>& indices) {
  auto answer = call("profile", {{"iterations", indices.size()}, {"indices", indices}});
  if (!answer) return tl::unexpected(answer.error());
  steps_ += static_cast<std::int64_t>(indices.size());
  const auto phases = answer->find("phases");
  if (phases == answer->end() || !phases->is_object() || phases->empty())
    return tl::unexpected(bad_answer("profile", "phases is missing or empty"));
  Profile out;
  for (const auto& [phase, times] : phases->items()) {
    const auto read = worker::read_integers(*phases, phase.c_str(), indices.size());
    if (!read) return tl::unexpected(read.error());
    out.phases[phase] = *read;
  }
  const auto joined = answer->value("joined", Json::object());
  for (const auto& [phase, held] : joined.items())
    for (const auto& one : held)
      if (one.is_string()) out.joined[phase].push_back(one);
  return out;
}

Try<double> prepare(const Job& job, const std::vector<std::string>& command) {
  if (command.empty()) return 0.0;
  const fs::path mark = job.cache / "prepared.json";
  if (fs::exists(mark)) return 0.0;
  const FileLock lock(job.cache / "lock");  // another run may be preparing the same artefact
  if (fs::exists(mark)) return 0.0;
  worker::Launch launch = job.launch;
  launch.argv = command;
  launch.argv.insert(launch.argv.end(), {"--bundle", job.bundle->folder.string(), "--cache", job.cache.string()});
  const auto start = Clock::now();
  const auto ran = worker::run_to_end(launch, std::max(job.timeout, std::chrono::milliseconds(3600000)));
  if (!ran) return tl::unexpected(ran.error());
  const auto last = ran->stdout_text.find_last_not_of("\n ");
  const auto begin = last == std::string::npos ? 0 : ran->stdout_text.rfind('\n', last) + 1;
  const auto answer = Json::parse(ran->stdout_text.substr(begin), nullptr, false);
  if (answer.is_object() && answer.value("ok", false) && ran->exit_code == 0) {
    const double ms = ms_since(start);
    std::ofstream(mark) << Json{{"ms", ms}}.dump() << '\n';
    return ms;
  }
  if (answer.is_object() && answer.contains("what")) {
    const auto state = state_from(answer.value("code", "failed")).value_or(State::failed);
    return tl::unexpected(Failure{state, answer.value("what", ""), answer.value("hint", ""), ran->log_tail});
  }
  const auto how = ran->timed_out ? std::string("took too long")
                   : ran->signal  ? fmt::format("was killed by signal {}", *ran->signal)
                                  : fmt::format("ended with exit code {}", ran->exit_code);
  return tl::unexpected(Failure{ran->timed_out ? State::timeout
                                : ran->signal  ? State::crashed
                                               : State::failed,
                                fmt::format("level {}: preparing its artefact {}", job.level.name(), how),
                                fmt::format("the whole log is {}", job.launch.log_path), ran->log_tail});
}

}  // namespace strata::measure
