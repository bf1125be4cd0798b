// SPDX-License-Identifier: Apache-2.0
#include "session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <numeric>

#include "common/file_lock.hpp"
#include "common/interrupt.hpp"
#include "common/monotonic.hpp"
#include "common/places.hpp"
#include "core/bundle_info.hpp"
#include "probe/usage.hpp"
#include "stats/schedule.hpp"
#include "worker/answer_line.hpp"
#include "worker/answers.hpp"

namespace strata::session {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
namespace {

constexpr auto kLongestNs = static_cast<double>(worker::longest_ns);
constexpr std::int64_t kMost = std::int64_t{1} << 53;  // of anything that is counted
constexpr int kPlaces = 8;  // three bits each: 16 million iterations of a process before a number returns

// What the main thread of a process, or ours, has waited for a core so far; 0 where the kernel does not tell.
double waited_ns_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/schedstat");
  double running = 0, waited = 0;
  return file >> running >> waited ? waited : 0;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

Try<Json> Session::call(std::string_view op, Json fields, std::chrono::milliseconds lasts) {
  asked_ns_ = monotonic_ns();
  // several processes serve at once, each in a thread that must not write the line of progress
  const auto& shown = op == "serve" || quiet_ ? worker::ProgressCallback() : job_->progress;
  auto answer = worker_->call(op, std::move(fields), job_->timeout + lasts, shown);
  waited_ns_ = monotonic_ns() - asked_ns_;
  return answer;
}

Failure Session::impossible(std::string_view op, const std::string& why) const {
  return {.state = State::mistrusted,
          .what = fmt::format("{}: {}", op, why),
          .hint = "the level's clock is not the driver's (CLOCK_MONOTONIC), or it reports other times than it measured",
          .log_tail = worker_->log_tail()};
}

Failure Session::bad_answer(std::string_view op, std::string_view why) const {
  return {.state = State::failed,
          .what = fmt::format("level {}: its answer to {} breaks the protocol: {}", job_->level.name(), op, why),
          .hint = fmt::format("run `strata level check {}`", job_->level.folder.string()),
          .log_tail = worker_->log_tail()};
}

outside::Fields Session::fields(const Json& answer, std::string_view op) const {
  return {answer, fmt::format("level {}: its answer to {}", job_->level.name(), op),
          fmt::format("the level breaks docs/protocol.md: run `strata level check {}`", job_->level.folder.string())};
}

Failure Session::broken(const outside::Fields& fields) const {
  Failure failure = worker::broken_answer(fields);
  failure.log_tail = worker_->log_tail();
  return failure;
}

bool Session::offers(std::string_view op) const {
  return std::find(ops_.begin(), ops_.end(), op) != ops_.end();
}

void Session::name_out() {
  static std::atomic<int> count{0};
  out_ = job_->scratch / fmt::format("{}-{}.safetensors", job_->level.name(), count++);
}

void Session::bind(const Job& job) {
  job_ = &job;
  fresh_ = false;
  name_out();
}

namespace {

// Folders of kernels that a level compiles as it runs; each case has its own, and a process keeps that of its first.
constexpr const char* kKernelFolders[] = {"TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"};

// Runs a process of the job, and a second one if the first was refused a file. A library may create one in the home
// when it is first imported, above the references: what is readable is settled when a process starts, so that the first
// cannot read it and the second can.
template <class Run>
auto twice_if_refused_a_file(const Job& job, const Run& run) {
  auto result = run();
  if (result || job.launch.hidden.empty()) return result;
  const Failure& failure = result.error();
  constexpr std::string_view refused = "ermission denied";  // with a small or a capital letter before
  const bool is_refused =
      failure.what.find(refused) != std::string::npos || failure.log_tail.find(refused) != std::string::npos;
  if (!is_refused || (failure.state != State::failed && failure.state != State::crashed)) return result;
  return run();
}

bool has_kernels(const std::map<std::string, std::string>& env) {
  return std::any_of(std::begin(kKernelFolders), std::end(kKernelFolders), [&](const char* name) {
    const auto folder = env.find(name);
    return folder != env.end() && holds_files(folder->second);  // PyTorch makes the folder, whether it compiles or not
  });
}

std::map<std::string, std::string> without_kernel_folders(std::map<std::string, std::string> env) {
  for (const char* name : kKernelFolders) env.erase(name);
  return env;
}

}  // namespace

bool Session::can_serve(const Job& job, const std::vector<int>& cpus) const {
  const auto& other = job.launch;
  const bool same_env =
      launch_.env == other.env ||
      (!has_kernels(launch_.env) && without_kernel_folders(launch_.env) == without_kernel_folders(other.env));
  return variant_ == job.level.told_variant() && launch_.argv == other.argv && same_env && launch_.cpus == cpus &&
         launch_.data_limit_bytes == other.data_limit_bytes && launch_.writable == other.writable &&
         launch_.hidden == other.hidden;
}

Session::Session(const Job& job) : job_(&job) {
  stats::Random random(static_cast<std::uint64_t>(monotonic_ns()));  // no level can have seen them
  for (int i = 0; i < kPlaces; ++i) places_.push_back(random.below(std::uint64_t{1} << 31));
}

Try<std::unique_ptr<Session>> Session::launch(const Job& job, const std::vector<int>& cpus) {
  std::unique_ptr<Session> session(new Session(job));
  session->name_out();
  session->launch_ = job.launch;
  session->variant_ = job.level.told_variant();
  session->launch_.cpus = cpus;
  session->launched_ns_ = monotonic_ns();
  session->worker_ = STRATA_TRY(worker::Worker::start(session->launch_));
  return session;
}

Try<void> Session::greet() {
  const auto answer = STRATA_TRY(call("hello", {{"api", worker::protocol_api}}));
  const auto hello = STRATA_TRY(worker::read_hello(answer, job_->allow_debug));
  ops_ = hello.ops;
  const double total = 1e-6 * static_cast<double>(monotonic_ns() - launched_ns_);
  start_up_.library_ms = std::min(total, static_cast<double>(hello.library_ns) * 1e-6);
  start_up_.process_ms = total - start_up_.library_ms;
  return {};
}

Try<std::unique_ptr<Session>> Session::open(const Job& job, const std::vector<int>& cpus) {
  return twice_if_refused_a_file(job, [&]() -> Try<std::unique_ptr<Session>> {
    auto session = launch(job, cpus);
    if (session) STRATA_TRY((*session)->greet());
    return session;
  });
}

Try<void> Session::unload() {
  if (loaded_from_.empty()) return {};
  loaded_from_.clear();
  STRATA_TRY(call("unload", Json::object()));
  return {};
}

Try<void> Session::load(const std::string& weights_name) {
  if (loaded_from_ == job_->bundle->folder) {
    STRATA_TRY(weights(weights_name));
    return give_ring();
  }
  STRATA_TRY(unload());
  start_up_.cold = !there_is(job_->cache / "warm.json");
  const auto start = Clock::now();
  loading_since_ns_ = monotonic_ns();
  Json request{{"case", outside::field(job_->bundle->info, "case")},
               {"bundle", job_->bundle->folder.string()},
               {"weights", weights_name},
               {"cache", job_->cache.string()}};
  if (!variant_.empty()) request["variant"] = variant_;
  auto loaded = STRATA_TRY(call("load", std::move(request)));
  loaded_from_ = job_->bundle->folder;
  proven_ = false;
  start_up_.load_ms = ms_since(start);
  auto reader = fields(loaded, "load");
  outside::Fields phases(reader.object_or_empty("phases"), reader.where() + ": \"phases\"", reader.hint());
  start_up_.build_ms = std::min(start_up_.load_ms, phases.number("build_ns", 0, kLongestNs, 0) * 1e-6);
  start_up_.weights_ms = std::min(start_up_.load_ms, phases.number("weights_ns", 0, kLongestNs, 0) * 1e-6);
  reader.object_or_empty("settings");
  reader.flag("deterministic", true);
  reader.integer("parameters", 0, kMost, 0);
  reader.integer("artefact_bytes", 0, kMost, 0);
  if (reader.error() || phases.error()) return tl::unexpected(broken(reader.error() ? reader : phases));
  loaded_ = std::move(loaded);
  steps_ = 0;
  return give_ring();
}

Try<void> Session::give_ring() {
  const int ring = job_->bundle->info.value("ring", 0);
  STRATA_TRY(inputs(job_->bundle->folder / "inputs.safetensors", ring));
  if (job_->bundle->question.mode != core::Mode::train || core::gives_loss(job_->bundle->info)) return {};
  return labels(job_->bundle->folder / "labels.safetensors", ring);
}

Try<void> Session::counts(const Json& answer, std::string_view op, int ring) const {
  auto reader = fields(answer, op);
  reader.integer("count", ring, ring);
  if (reader.error()) return tl::unexpected(broken(reader));
  return {};
}

Try<void> Session::inputs(const fs::path& path, int ring) {
  auto inputs = STRATA_TRY(call("inputs", {{"path", path.string()}}));
  return counts(inputs, "inputs", ring);
}

Try<void> Session::weights(const std::string& weights) {
  STRATA_TRY(call("weights", {{"weights", weights}}));
  steps_ = 0;
  return {};
}

Try<void> Session::prove_into(const std::vector<int>& indices, const fs::path& out) {
  std::error_code ec;
  fs::remove(out, ec);
  STRATA_TRY(call("prove", {{"indices", indices}, {"out", out.string()}}));
  steps_ += static_cast<std::int64_t>(indices.size());
  return {};
}

Try<SafeTensors> Session::prove(const std::vector<int>& indices) {
  STRATA_TRY(prove_into(indices, out_));
  return take_output("prove", indices.size());
}

Try<SafeTensors> Session::take_output(std::string_view op, std::size_t iterations) {
  auto tensors = SafeTensors::open(out_);
  std::error_code ec;
  if (const auto bytes = fs::file_size(out_, ec); !ec && iterations > 0)
    result_bytes_ = static_cast<double>(bytes) / static_cast<double>(iterations);
  fs::remove(out_, ec);  // right answers lie about for no other level to find
  if (!tensors) return tl::unexpected(bad_answer(op, tensors.error().what));
  return std::move(*tensors);
}

Try<Json> Session::read_weights() {
  if (!offers("read_weights") || job_->level.bakes_weights) return Json();
  auto answer = STRATA_TRY(call("read_weights", Json::object()));
  auto reader = fields(answer, "read_weights");
  Json hashes = reader.object("sha256");
  for (const auto& [name, hash] : hashes.items())
    if (!hash.is_string()) reader.complain("sha256", hashes, "an object of strings");
  if (reader.error()) return tl::unexpected(broken(reader));
  return hashes;
}

Try<std::vector<std::int64_t>> Session::warm_up(int iterations, std::chrono::nanoseconds at_least) {
  auto answer = STRATA_TRY(call("warm_up", {{"iterations", iterations}, {"min_ns", at_least.count()}}));
  const auto result = STRATA_TRY(worker::read_integers(answer, "wall_ns", std::nullopt));
  if (result.empty()) return tl::unexpected(bad_answer("warm_up", "wall_ns is empty"));
  auto reader = fields(answer, "warm_up");
  const auto count = reader.integer_or_null("iterations"), first = reader.integer_or_null("first_ns");
  if (reader.error()) return tl::unexpected(broken(reader));
  const double since_load = static_cast<double>(asked_ns_ + waited_ns_ - loading_since_ns_);
  if (const auto why = proof::impossible_sum("the first iteration took",
                                             static_cast<double>(first.value_or(result.front())), since_load);
      start_up_.first_iteration_ms == 0 && !why.empty())
    return tl::unexpected(impossible("warm_up", why));
  steps_ += std::clamp<std::int64_t>(count.value_or(0), static_cast<std::int64_t>(result.size()), kMost);
  if (start_up_.first_iteration_ms == 0)
    start_up_.first_iteration_ms = static_cast<double>(first.value_or(result.front())) * 1e-6;
  return result;
}

double Session::waited_for_core_ns() const {
  return waited_ns_of(std::to_string(worker_->pid())) + waited_ns_of("thread-self");
}

void Session::note_timed(std::size_t iterations, double reported_ns, double queued_before_ns) {
  const auto waited_ns = static_cast<double>(waited_ns_);
  const double queuing = std::clamp(waited_for_core_ns() - queued_before_ns, 0.0, waited_ns);
  timed_ = {static_cast<int>(iterations), reported_ns, waited_ns - queuing, queuing};
}

Try<store::Block> Session::measure(const BlockPlan& plan) {
  const double queued = waited_for_core_ns();
  Json request = {{"iterations", plan.iterations},
                  {"head", plan.head},
                  {"indices", plan.indices},
                  {"retain", plan.retain},
                  {"region", "end_to_end"}};
  if (plan.fresh) {
    request["fresh"] = {{"first", next_number_}, {"places", places_}};
    if (plan.exchange) request["fresh"].update({{"exchange", plan.exchange->input}, {"at", plan.exchange->at}});
    if (plan.exchange && !plan.exchange->entry.empty()) request["fresh"]["entry"] = plan.exchange->entry.string();
  }
  auto answer = call("measure", std::move(request));
  next_number_ += static_cast<std::uint64_t>(plan.iterations);
  if (!answer) return tl::unexpected(answer.error());
  auto reader = fields(*answer, "measure");
  store::Block block;
  block.wall_ns = reader.integers("wall_ns", plan.indices.size(), job_->level.harness ? 0 : 1, worker::longest_ns);
  block.latency_ns = reader.integers("latency_ns", plan.indices.size(), 0, worker::longest_ns);
  block.cpu_ns = reader.integer_or_null("cpu_ns");
  block.runq_ns = reader.integer_or_null("runq_ns");
  block.start_ns = reader.integer_or_null("start_ns").value_or(0);
  copy_ns_ = static_cast<double>(reader.integer("copy_ns", 0, worker::longest_ns, 0));
  outside::Fields changed(reader.object_or_empty("fresh"), reader.where() + ": \"fresh\"", reader.hint());
  new_inputs_ = changed.integer("places", 0, kMost, 0) > 0;
  if (changed.error()) return tl::unexpected(broken(changed));
  timed_inputs_ = plan.indices;
  if (plan.exchange && answer->contains("fresh"))
    timed_inputs_[static_cast<std::size_t>(plan.exchange->at)] = plan.exchange->input;
  if (reader.error()) return tl::unexpected(broken(reader));
  steps_ += plan.head + plan.iterations;
  const double reported_ns = std::accumulate(block.wall_ns.begin(), block.wall_ns.end(), 0.0);
  const auto waited_ns = static_cast<double>(waited_ns_);
  note_timed(plan.indices.size(), reported_ns, queued);
  if (const auto why = proof::impossible_times(block.wall_ns, block.latency_ns, waited_ns); !why.empty())
    return tl::unexpected(impossible("measure", why));
  if (block.start_ns < asked_ns_ || block.start_ns > asked_ns_ + waited_ns_) block.start_ns = asked_ns_;
  if (block.cpu_ns && !probe::can_have_worked(1e-9 * static_cast<double>(*block.cpu_ns), 1e-9 * waited_ns))
    block.cpu_ns = std::nullopt;
  if (block.runq_ns && *block.runq_ns < 0) block.runq_ns = std::nullopt;
  return block;
}

Try<Session::Answer> Session::result(int iteration) {
  STRATA_TRY(call("result", {{"iteration", iteration}, {"out", out_.string()}}));
  auto output = STRATA_TRY(take_output("result", 1));
  return Answer{timed_inputs_[static_cast<std::size_t>(iteration)], std::move(output)};
}

Try<Json> Session::memory() {
  if (!offers("memory")) return Json::object();
  auto answer = call("memory", Json::object());
  if (!answer) return answer;
  auto reader = fields(*answer, "memory");
  if (reader.find("device_peak_bytes")) reader.integer_or_null("device_peak_bytes");
  if (reader.error()) return tl::unexpected(broken(reader));
  return answer;
}

Try<Json> Session::report() {
  if (!offers("report")) return Json();
  auto answer = STRATA_TRY(call("report", Json::object()));
  auto reader = fields(answer, "report");
  Json facts = reader.object("facts");
  outside::Fields known(facts, reader.where() + ": \"facts\"", reader.hint());  // others are kept as they are
  for (const char* number : {"guards", "guard_us", "graphs", "recompiles", "bailouts"})
    if (known.find(number)) known.number(number, 0, kLongestNs);
  known.texts("recompile_reasons", {});
  if (reader.error() || known.error()) return tl::unexpected(broken(reader.error() ? reader : known));
  return facts;
}

fs::path Session::new_file() const {
  static std::atomic<int> count{0};
  return job_->scratch / fmt::format("{}-{}-state-{}.safetensors", job_->level.name(), worker_->pid(), count++);
}

Try<void> Session::set_mode(const std::string& mode, bool dropout) {
  STRATA_TRY(call("set_mode", {{"mode", mode}, {"dropout", dropout}}));
  return {};
}

Try<void> Session::set_optimiser(const core::Optimiser& optimiser) {
  STRATA_TRY(call("set_optimiser", {{"optimiser", to_json(optimiser)}}));
  steps_ = 0;
  return {};
}

Try<TrainState> Session::state(const std::vector<std::string>& names) {
  TrainState state;
  state.file = std::shared_ptr<const fs::path>(new fs::path(new_file()), [](const fs::path* path) {
    std::error_code ec;
    fs::remove(*path, ec);
    delete path;
  });
  Json arguments = {{"out", state.file->string()}};
  if (!names.empty()) arguments["names"] = names;
  const double queued = waited_for_core_ns();
  auto done = STRATA_TRY(call("state", std::move(arguments)));
  state_ns_ = std::max(0.0, static_cast<double>(waited_ns_) - (waited_for_core_ns() - queued));
  auto reader = fields(done, "state");
  state.step = reader.integer("step", 0, kMost);
  state.lr = reader.number("lr", -HUGE_VAL, HUGE_VAL);
  if (reader.error()) return tl::unexpected(broken(reader));
  auto tensors = SafeTensors::open(*state.file);
  if (!tensors) return tl::unexpected(bad_answer("state", tensors.error().what));
  state.tensors = std::move(*tensors);
  return state;
}

Try<void> Session::load_state(const fs::path& path, std::int64_t step, std::optional<std::int64_t> seed) {
  Json arguments = {{"path", path.string()}, {"step", step}};
  if (seed) arguments["seed"] = *seed;
  STRATA_TRY(call("load_state", std::move(arguments)));
  steps_ = step;
  return {};
}

Try<Profile> Session::profile(const std::vector<int>& indices) {
  const auto answer = call("profile", {{"iterations", indices.size()}, {"indices", indices}});
  Profile out;
  if (!answer && worker_->alive()) {
    out.refusal = answer.error().what;
    return out;
  }
  if (!answer) return tl::unexpected(answer.error());
  steps_ += static_cast<std::int64_t>(indices.size());
  auto reader = fields(*answer, "profile");
  const Json& phases = reader.object("phases");
  if (phases.empty()) reader.complain("phases", phases, "an object of one list of times for each phase");
  outside::Fields times(phases, reader.where() + ": \"phases\"", reader.hint());
  const Json& joined = reader.object_or_empty("joined");
  outside::Fields held(joined, reader.where() + ": \"joined\"", reader.hint());
  for (const auto& [phase, list] : phases.items())
    out.phases[phase] = times.integers(phase.c_str(), indices.size(), 0, worker::longest_ns);
  for (const auto& [phase, list] : joined.items()) out.joined[phase] = held.texts(phase.c_str());
  for (const auto* part : {&reader, &times, &held})
    if (part->error()) return tl::unexpected(broken(*part));
  double reported_ns = 0;
  for (const auto& [phase, list] : out.phases) reported_ns = std::accumulate(list.begin(), list.end(), reported_ns);
  if (const auto why = proof::impossible_sum("the phases took", reported_ns, static_cast<double>(waited_ns_));
      !why.empty())
    return tl::unexpected(impossible("profile", why));
  return out;
}

namespace {

// Milliseconds.
Try<double> run_prepare_command(const Job& job, const std::vector<std::string>& command) {
  worker::Launch launch = job.launch;
  launch.argv = command;
  launch.argv.insert(launch.argv.end(), {"--bundle", job.bundle->folder.string(), "--cache", job.cache.string()});
  if (const auto variant = job.level.told_variant(); !variant.empty())
    launch.argv.insert(launch.argv.end(), {"--variant", variant});
  const auto start = Clock::now();
  const auto ran = STRATA_TRY(
      worker::run_to_end(launch, std::max(job.timeout, std::chrono::milliseconds(3600000)), [&](std::string_view line) {
        const auto doing = worker::progress_in(line, std::nullopt);
        if (doing && job.progress) job.progress(*doing);
      }));
  const auto answer = worker::last_line(ran);
  if (outside::flag_or(answer, "ok", false) && ran.exit_code == 0 && !ran.signal) return ms_since(start);
  if (const auto what = outside::text_or(answer, "what"); !what.empty() && !outside::flag_or(answer, "ok", false))
    return tl::unexpected(Failure{.state = worker::failure_state(outside::text_or(answer, "code")),
                                  .what = what,
                                  .hint = outside::text_or(answer, "hint"),
                                  .log_tail = ran.log_tail});
  const auto how = ran.timed_out ? std::string("took too long")
                   : ran.signal  ? fmt::format("was killed by signal {}", *ran.signal)
                                 : fmt::format("ended with exit code {}", ran.exit_code);
  return tl::unexpected(Failure{.state = ran.timed_out ? State::timeout
                                         : ran.signal  ? State::crashed
                                                       : State::failed,
                                .what = fmt::format("level {}: preparing its artefact {}", job.level.name(), how),
                                .hint = fmt::format("the whole log is {}", job.launch.log_path),
                                .log_tail = ran.log_tail});
}

}  // namespace

Try<double> prepare(const Job& job, const std::vector<std::string>& command) {
  if (command.empty()) return 0.0;
  const fs::path mark = job.cache / "prepared.json";
  if (there_is(mark)) return 0.0;
  const FileLock lock(job.cache / "lock", [&] {
    if (job.progress) job.progress("waiting for another strata that prepares the same artefact");
  });
  if (interrupted()) return tl::unexpected(Failure{.state = State::failed, .what = "interrupted"});
  if (there_is(mark)) return 0.0;
  const double ms = STRATA_TRY(twice_if_refused_a_file(job, [&] { return run_prepare_command(job, command); }));
  std::ofstream(mark) << Json{{"ms", ms}}.dump() << '\n';
  return ms;
}

}  // namespace strata::session
