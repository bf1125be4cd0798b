// SPDX-License-Identifier: Apache-2.0
// The protocol loop of a C++ level (docs/protocol.md): one JSON object a line in, one out.
#include "strata/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <utility>

#include "strata/timed_loop.hpp"

namespace strata {

using nlohmann::json;

namespace {

constexpr int api_version = 2;
constexpr std::size_t kept_warm_up = 4096;  // a null level does millions of iterations in 0.3 s

// Wall time since the process began, to the tick (10 ms) of /proc, and never below the CPU time that it has used.
std::int64_t since_start_ns() {
  timespec cpu{}, now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  clock_gettime(CLOCK_BOOTTIME, &now);
  const std::int64_t used = cpu.tv_sec * 1'000'000'000LL + cpu.tv_nsec;
  std::ifstream stat("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  const auto name_end = text.rfind(')');  // the second field is the program's name and may hold anything
  if (name_end == std::string::npos) return used;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  long long ticks = 0;
  if (!(fields >> ticks)) return used;
  const std::int64_t tick_ns = 1'000'000'000LL / sysconf(_SC_CLK_TCK);
  const std::int64_t wall = now.tv_sec * 1'000'000'000LL + now.tv_nsec - ticks * tick_ns - tick_ns / 2;
  return std::max(used, wall);
}

// An operation in which nothing is said: each of its iterations counts.
bool is_timed(const json& op) {
  return op == "measure" || op == "serve" || op == "profile" || op == "steps" || op == "evaluate" || op == "operations";
}

// 64 lower-case hexadecimal digits.
std::string sha256_of(const TensorView& tensor) {
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(tensor.data, tensor.bytes, digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("libcrypto cannot compute SHA-256");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

json failure_answer(const Failure& failure) {
  return {{"ok", false}, {"code", failure.code()}, {"what", failure.what()}, {"hint", failure.hint()}};
}

}  // namespace

std::int64_t count_field(const json& request, const char* name, std::int64_t least) {
  const auto it = request.find(name);
  if (it == request.end() || !it->is_number_integer() || it->get<std::int64_t>() < least ||
      it->get<std::int64_t>() > 1'000'000'000'000'000LL)
    throw Failure("bad_request", fmt::format("field '{}' must be an integer of at least {}, got {}", name, least,
                                             it == request.end() ? "nothing" : it->dump()));
  return it->get<std::int64_t>();
}

void write(const std::filesystem::path& path, const Named& named) {
  if (auto written = write_safetensors(path, named); !written)
    throw Failure("failed", written.error().what, written.error().hint);
}

Worker::Worker(std::function<std::unique_ptr<Level>()> make, Build build, int out)
    : make_(std::move(make)), build_(std::move(build)), out_(out), library_ns_(since_start_ns()) {}

const Worker::Operations& Worker::operations() {
  static const Operations table{{"hello", &Worker::hello},     {"load", &Worker::load},
                                {"weights", &Worker::weights}, {"read_weights", &Worker::read_weights},
                                {"inputs", &Worker::inputs},   {"prove", &Worker::prove},
                                {"warm_up", &Worker::warm_up}, {"measure", &Worker::measure},
                                {"memory", &Worker::memory},   {"report", &Worker::report},
                                {"unload", &Worker::unload},   {"serve", &Worker::serve_clients},
                                {"result", &Worker::result},   {"operations", &Worker::time_operations},
                                {"bye", &Worker::bye}};
  return table;
}

Level& Worker::level() {
  if (!level_) {
    level_ = make_();
    level_->said_to = [this](const std::string& what) { tell(what); };
  }
  return *level_;
}

const LevelJson& Worker::level_json() {
  if (!level_json_) level_json_.emplace(LevelJson::read());
  return *level_json_;
}

bool Worker::trains() {
  const auto modes = level_json().list("modes");
  return can<Trainable>() != nullptr && std::find(modes.begin(), modes.end(), "train") != modes.end();
}

bool Worker::offers(std::string_view op) {
  if (op == "serve") return can<Servable>() != nullptr;
  if (op == "read_weights") return can<ReadableWeights>() != nullptr && !level_json().flag("bakes_weights");
  if (op == "report") return can<Reporting>() != nullptr;
  if (op == "operations") return can<TimesOperations>() != nullptr;
  if (op == "profile" && can<Profiled>() == nullptr) return false;
  return !training_operations().contains(op) || trains();
}

Failure Worker::explain(const std::exception& error) const {
  // also before there is a level
  if (const auto* failure = dynamic_cast<const Failure*>(&error)) return *failure;
  return level_ ? level_->explain(error) : Failure("failed", error.what());
}

void Worker::need_loaded() const {
  if (!bundle_) throw Failure("bad_request", "nothing is loaded", "send load first");
}

void Worker::need_inputs() const {
  need_loaded();
  if (ring_.empty()) throw Failure("bad_request", "there are no inputs", "send inputs first");
  if (steps() && !labelled_ && !gives_loss(*bundle_))
    throw Failure("bad_request", "there are no labels", "send set_labels first");
}

json Worker::hello(const json&) {
  const About about = level().about();
  const LevelJson& declared = level_json();
  std::vector<std::string> names, modes, devices;
  for (const auto* table : {&operations(), &training_operations()})
    for (const auto& [name, operation] : *table)
      if (offers(name)) names.push_back(name);
  for (auto& mode : declared.list("modes"))
    if (mode != "train" || trains()) modes.push_back(std::move(mode));
  for (auto& device : declared.list("devices"))
    if (level().has_device(device)) devices.push_back(std::move(device));
  json answer = {{"api", api_version},
                 {"level", declared.id()},
                 {"language", "c++"},
                 {"versions", about.versions},
                 {"build", {{"type", build_.type}, {"flags", build_.flags}}},
                 {"devices", devices},
                 {"modes", modes},
                 {"precisions", declared.list("precisions")},
                 {"ops", names},
                 {"dynamic", declared.flag("dynamic")},
                 {"library_ns", library_ns_}};
  if (!about.operations.empty()) answer["operations"] = about.operations;
  return answer;
}

// Refuses what level.json does not declare, or the level does not implement, then asks the level itself.
void Worker::check_case(const Case& run_case) {
  const LevelJson& declared = level_json();
  const auto name = declared.id() + (run_case.variant == "default" ? "" : "@" + run_case.variant);
  const auto need = [](const std::string& who, const std::string& what, const std::string& value,
                       const std::vector<std::string>& allowed) {
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      throw Failure("unsupported", fmt::format("{} has no {} {}", who, what, value),
                    fmt::format("it has: {}", fmt::join(allowed, ", ")));
  };
  need(declared.id(), "variant", run_case.variant, declared.variants());
  need(name, "mode", run_case.mode, declared.list("modes", run_case.variant));
  need(name, "device", run_case.device, declared.list("devices", run_case.variant));
  need(name, "precision", run_case.precision, declared.list("precisions", run_case.variant));
  if (run_case.mode == "train" && !trains()) throw Failure("unsupported", name + " does not train");
  if (run_case.json.value("dynamic", json()).is_object() && !declared.flag("dynamic", run_case.variant))
    throw Failure("unsupported", name + " serves one batch size only", "leave --dynamic out");
  if (!level().has_device(run_case.device))
    throw Failure("unavailable", fmt::format("{} finds no device {} here", name, run_case.device),
                  "`strata doctor` says why");
  if (const auto why = level().supports(run_case); !why.empty()) throw Failure("unsupported", why);
}

json Worker::load(const json& request) {
  if (bundle_) throw Failure("bad_request", "a network is loaded already", "send unload first");
  Case run_case = read_case(field<json>(request, "case"));
  if (request.contains("variant")) run_case.variant = field<std::string>(request, "variant");
  const auto set = field<std::string>(request, "weights");
  const auto cache = field<std::string>(request, "cache");
  Bundle bundle = read_bundle(field<std::string>(request, "bundle"));
  try {
    check_case(run_case);
    const SafeTensors values = read_weight_set(bundle, set);
    const auto start = now_ns();
    level().copy_inputs = !bundle.json.value("writes_inputs", json::array()).empty();
    level().load(run_case, bundle, cache);
    const auto built = now_ns();
    level().load_weights(set, values);
    if (run_case.mode == "train") start_training(run_case);
    const auto done = now_ns();
    const Facts facts = level().facts();
    bundle_ = std::move(bundle);
    on_device_ = run_case.device != "cpu";
    first_ns_.reset();
    return {{"phases", {{"build_ns", built - start}, {"weights_ns", done - built}}},
            {"settings",
             {{"threads", facts.threads},
              {"precision", facts.precision},
              {"layout", facts.layout},
              {"inference_mode", facts.inference_mode},
              {"autotune", facts.autotune},
              {"freezing", facts.freezing},
              {"graph", facts.graph}}},
            {"parameters", facts.parameters},
            {"artefact_bytes", facts.artefact_bytes},
            {"deterministic", facts.deterministic}};
  } catch (const std::exception& error) {
    const Failure failure = explain(error);
    stepper_.reset();
    data_.reset();
    level_.reset();  // a half-loaded network must not answer the next request
    throw failure;
  }
}

json Worker::weights(const json& request) {
  need_loaded();
  const auto set = field<std::string>(request, "weights");
  level().load_weights(set, read_weight_set(*bundle_, set));
  if (stepper_) stepper_->restart();
  return json::object();
}

json Worker::read_weights(const json&) {
  need_loaded();
  const auto& readable = *can<ReadableWeights>();
  json hashes = json::object();
  for (const auto& name : readable.readable_weights()) hashes[name] = sha256_of(readable.weight(name).view);
  return {{"sha256", std::move(hashes)}};
}

json Worker::inputs(const json& request) {
  need_loaded();
  ring_ = read_inputs(*bundle_, field<std::string>(request, "path"));
  labelled_ = false;
  return {{"count", ring_.size()}};
}

std::vector<std::size_t> Worker::indices(const json& request) const {
  const auto it = request.find("indices");
  if (it == request.end() || !it->is_array() || it->empty())
    throw Failure("bad_request", "field 'indices' must be a list of ring indices");
  std::vector<std::size_t> result;
  for (const json& item : *it) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() >= ring_.size()) throw outside_ring("index", item);
    result.push_back(item.get<std::size_t>());
  }
  return result;
}

Failure Worker::outside_ring(std::string_view field, const json& index) const {
  return {"bad_request", fmt::format("{} {} is not within the ring: 0 to {}", field, index.dump(), ring_.size() - 1)};
}

std::vector<std::size_t> Worker::indices_for(const json& request, std::int64_t iterations) const {
  auto result = indices(request);
  if (result.size() != static_cast<std::size_t>(iterations))
    throw Failure("bad_request", fmt::format("{} indices for {} iterations", result.size(), iterations));
  return result;
}

void Worker::check_results(const std::vector<HostTensor>& results) const {
  if (results.size() == declared().size()) return;
  throw Failure("failed", fmt::format("the level gave {} outputs, {} {}", results.size(),
                                      steps() ? "a training step has" : "the bundle declares", declared().size()));
}

void Worker::name_results(Named& named, std::size_t index, const std::vector<HostTensor>& results) const {
  for (std::size_t i = 0; i < results.size(); ++i)
    named.emplace_back(fmt::format("{}/{}", index, declared()[i].name), results[i].view);
}

// Puts back what the network changed in the caller's inputs. Returns whether it had.
bool Worker::restore_inputs(std::size_t index, const std::vector<std::vector<std::byte>>& before) {
  bool changed = false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (std::memcmp(ring_[index][i].view.data, before[i].data(), before[i].size()) == 0) continue;
    std::memcpy(writable(ring_[index][i]), before[i].data(), before[i].size());
    changed = true;
  }
  return changed;
}

// One iteration that notices a network that writes into its inputs (an in-place ReLU in front): then the level copies.
// A training step is not repeated: it had the right inputs, and a second one would change the weights again.
void Worker::iterate_guarded(std::size_t index, std::vector<HostTensor>& results) {
  std::vector<std::vector<std::byte>> before;
  for (const auto& input : ring_[index]) before.emplace_back(input.view.data, input.view.data + input.view.bytes);
  const bool copied = level().copy_inputs;
  note_first(iterate(iterated(), ring_[index], results).wall_ns);
  if (!restore_inputs(index, before)) return;
  level().copy_inputs = true;
  if (steps() && !copied) return;
  iterate(iterated(), ring_[index], results);
  if (restore_inputs(index, before))
    throw Failure("failed", "running the network changes the caller's inputs",
                  "copy them in set_input() when copy_inputs is set");
}

json Worker::prove(const json& request) {
  need_inputs();
  const auto entries = indices(request);
  const auto out = field<std::string>(request, "out");
  std::vector<std::vector<HostTensor>> per_entry(entries.size());
  Named named;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    iterate_guarded(entries[i], per_entry[i]);
    check_results(per_entry[i]);
    name_results(named, entries[i], per_entry[i]);
  }
  write(out, named);
  json names = json::array();
  for (const auto& output : declared()) names.push_back(output.name);
  return {{"outputs", std::move(names)}};
}

json Worker::warm_up(const json& request) {
  need_inputs();
  const auto iterations = count_field(request, "iterations", 1);
  const auto min_ns = count_field(request, "min_ns", 0);
  std::vector<std::int64_t> wall_ns;
  std::vector<HostTensor> results;
  const auto start = now_ns();
  std::int64_t done = 0;
  if (!first_ns_) {  // what a level does to its inputs is seen before anything depends on them
    iterate_guarded(0, results);
    wall_ns.push_back(*first_ns_);
    done = 1;
  }
  for (; done < iterations || now_ns() - start < min_ns; ++done) {
    const auto times = iterate(iterated(), ring_[static_cast<std::size_t>(done) % ring_.size()], results);
    note_first(times.wall_ns);
    if (wall_ns.size() < kept_warm_up) wall_ns.push_back(times.wall_ns);
  }
  check_results(results);
  return {{"iterations", done}, {"first_ns", *first_ns_}, {"wall_ns", std::move(wall_ns)}};
}

json Worker::memory(const json&) {
  const auto peak = level().device_peak_bytes();
  return {{"device_peak_bytes", peak ? json(*peak) : json()}};
}

json Worker::report(const json&) {
  need_inputs();
  return {{"facts", can<Reporting>()->report()}};
}

json Worker::unload(const json&) {
  need_loaded();
  bundle_.reset();
  stepper_.reset();
  data_.reset();
  ring_.clear();
  retained_.clear();
  labelled_ = false;
  level_.reset();
  return json::object();
}

json Worker::bye(const json&) {
  ended_ = true;
  return json::object();
}

json Worker::run(const json& request) {
  const auto op = request.find("op");
  if (op == request.end() || !op->is_string()) return failure_answer({"bad_request", "the request has no string 'op'"});
  const auto name = op->get<std::string>();
  try {
    const bool for_training = training_operations().contains(name);
    const auto& table = for_training ? training_operations() : operations();
    const auto it = table.find(name);
    if (it == table.end()) return failure_answer({"unsupported", "no operation is called '" + name + "'"});
    if (!offers(name))
      return failure_answer({"unsupported", "this level has no operation '" + name + "'", "`hello` lists them"});
    json result = (this->*it->second)(request);
    result["ok"] = true;
    return result;
  } catch (const Failure& failure) {
    return failure_answer(failure);
  } catch (const std::exception& error) {
    return failure_answer(explain(error));
  }
}

json Worker::answer(const std::string& line) {
  const json request = json::parse(line, nullptr, false);
  const bool usable = request.is_object() && request.contains("id") && request["id"].is_number_integer();
  if (usable && !is_timed(request.value("op", json()))) telling_ = request["id"];
  json result = usable ? run(request) : failure_answer({"bad_request", "not a JSON object with an integer 'id'"});
  telling_.reset();
  result["id"] = usable ? request["id"] : json();
  return result;
}

void Worker::tell(const std::string& what) {
  if (telling_) send({{"id", *telling_}, {"progress", what}});
}

void Worker::send(const json& message) {
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const auto n = ::write(out_, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) std::_Exit(1);  // the driver is gone: nobody is left to tell
    sent += static_cast<std::size_t>(n);
  }
}

int Worker::serve() {
  std::string line;
  while (!ended_ && std::getline(std::cin, line)) send(answer(line));
  stepper_.reset();
  data_.reset();
  level_.reset();
  return 0;
}

Failure Level::explain(const std::exception& error) const {
  if (const auto* failure = dynamic_cast<const Failure*>(&error)) return *failure;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {"out_of_memory", "the host has no memory left (std::bad_alloc)"};
  return {"failed", error.what()};
}

int run_level(const std::function<std::unique_ptr<Level>()>& make, const Build& build) {
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    std::perror("strata: standard output cannot be duplicated");
    return 1;
  }
  std::signal(SIGPIPE, SIG_IGN);
  return Worker(make, build, out).serve();
}

}  // namespace strata
