// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "strata/bundle.hpp"
#include "strata/drawing.hpp"

namespace strata::static_program {
namespace fs = std::filesystem;
namespace {

std::vector<std::int64_t> shape_of(const ModelTensor& tensor) {
  return {tensor.extents, tensor.extents + tensor.rank};
}

// Null where the file lacks it; a tensor of another type or shape throws.
const TensorView* fitting(const SafeTensors& file, const std::string& name, const std::vector<std::int64_t>& shape) {
  const auto* found = file.find(name);
  if (found != nullptr && (found->dtype != "F32" || found->shape != shape))
    throw Failure("failed", fmt::format("{}: '{}' is of another type or shape", file.where(), name));
  return found;
}

// A new file that ends with the object.
struct TemporaryFile {
  TemporaryFile() {
    auto pattern = (fs::temp_directory_path() / "strata_static_XXXXXX").string();
    const int handle = mkstemp(pattern.data());
    if (handle < 0)
      throw Failure("failed", fmt::format("cannot make {}", pattern), "is there space, and may you write there?");
    close(handle);
    path = pattern;
  }
  ~TemporaryFile() {
    std::error_code error;
    fs::remove(path, error);
  }
  fs::path path;
};

}  // namespace

GeneratedTraining::GeneratedTraining(const fs::path& file) : Generated(file) {
  find(state_count, "model_state_count");
  find(state, "model_state");
  find(state_is_count, "model_state_is_count");
  find(read, "model_read");
  find(write, "model_write");
  find(read_momentum, "model_read_momentum");
  find(write_momentum, "model_write_momentum");
  find(drop_momentum, "model_drop_momentum");
  find(set_optimiser, "model_set_optimiser");
  find(set_dropout, "model_set_dropout");
  find(read_draws, "model_read_draws");
  find(write_draws, "model_write_draws");
  find(set_labels, "model_set_labels");
  find(run_phase, "model_run_phase");
}

Training::Training(const fs::path& folder, int threads, std::vector<Declared> outputs)
    : program_(folder / "network.so"), folder_(folder), outputs_(std::move(outputs)), threads_(threads) {
  network_.emplace(program_, threads, std::vector<Declared>{});
}

void Training::load(const fs::path& weights, const fs::path& constants) {
  constants_ = constants;
  network_->load(weights, constants);
  program_.drop_momentum(network_->model());
  const auto file = SafeTensors::map(weights);
  if (!file) throw Failure("failed", file.error().what, file.error().hint);
  unread_.load(*file, [&](const std::string& name) { return changes(name); });
  if (!training_) evaluate_with_present_weights();
}

bool Training::changes(const std::string& name) const {
  for (int i = 0; i < program_.state_count(); ++i)
    if (name == program_.state(i)->name) return true;
  return false;
}

HostTensor Training::present(int number) const {
  const auto& tensor = *program_.state(number);
  auto made = allocate(program_.state_is_count(number) != 0 ? "I64" : "F32", shape_of(tensor));
  if (program_.read(network_->model(), tensor.name, writable(made)) != 0) throw network_->failure();
  return made;
}

State Training::state() const {
  State result;
  for (int i = 0; i < program_.state_count(); ++i) {
    const auto& tensor = *program_.state(i);
    if (program_.state_is_count(i) != 0) {
      result.emplace_back(count_prefix + std::string(tensor.name), present(i));
      continue;
    }
    result.emplace_back(weight_prefix + std::string(tensor.name), present(i));
    auto momentum = allocate("F32", shape_of(tensor));
    if (program_.read_momentum(network_->model(), tensor.name, reinterpret_cast<float*>(writable(momentum))) == 0)
      result.emplace_back(momentum_prefix + std::string(tensor.name), std::move(momentum));
  }
  unread_.add_to(result);
  std::uint64_t draws = 0;
  if (program_.read_draws(network_->model(), &draws) == 0) add_count(result, draws);
  return result;
}

// All of it fits, or nothing is changed.
void Training::load_state(const SafeTensors& state) {
  struct Fitting {
    const ModelTensor* tensor;
    const TensorView *weight, *momentum;
  };
  std::vector<Fitting> all;
  std::vector<std::pair<const char*, const TensorView*>> counts;
  for (int i = 0; i < program_.state_count(); ++i) {
    const auto* tensor = program_.state(i);
    if (program_.state_is_count(i) != 0) {
      const auto* count = state.find(count_prefix + std::string(tensor->name));
      if (count != nullptr && !is_count(*count))
        throw Failure("failed", fmt::format("{}: the count '{}' is not one I64", state.where(), tensor->name));
      if (count != nullptr) counts.emplace_back(tensor->name, count);
      continue;
    }
    const auto name = weight_prefix + std::string(tensor->name);
    const auto* weight = fitting(state, name, shape_of(*tensor));
    if (weight == nullptr) throw Failure("failed", fmt::format("{} lacks '{}'", state.where(), name));
    all.push_back({tensor, weight, fitting(state, momentum_prefix + std::string(tensor->name), shape_of(*tensor))});
  }
  unread_.check(state);
  for (const auto& name : state.names())
    if (name.starts_with(momentum_prefix) && !changes(name.substr(std::strlen(momentum_prefix))))
      throw Failure("failed", fmt::format("{}: '{}' is of nothing that the step changes", state.where(), name));
  const auto draws = count_in(state);
  program_.drop_momentum(network_->model());
  if (draws) program_.write_draws(network_->model(), *draws);
  for (const auto& [name, count] : counts)
    if (program_.write(network_->model(), name, count->data) != 0) throw network_->failure();
  for (const auto& [tensor, weight, momentum] : all) {
    if (program_.write(network_->model(), tensor->name, weight->data) != 0) throw network_->failure();
    if (momentum != nullptr)
      program_.write_momentum(network_->model(), tensor->name, reinterpret_cast<const float*>(momentum->data));
  }
  unread_.replace(state);
  if (!training_) evaluate_with_present_weights();
}

void Training::seed_dropout(std::uint64_t seed) {
  program_.write_draws(network_->model(), first_count(seed));
}

void Training::set_mode(bool training, bool dropout) {
  program_.set_dropout(network_->model(), dropout ? 1 : 0);
  training_ = training;
  if (!training && !constants_.empty()) evaluate_with_present_weights();
}

void Training::evaluate_with_present_weights() {
  if (!evaluation_) {
    evaluation_program_ = opened(folder_ / "evaluation.so");
    evaluation_.emplace(*evaluation_program_, threads_, outputs_);
  }
  State all;
  for (int i = 0; i < program_.state_count(); ++i) all.emplace_back(program_.state(i)->name, present(i));
  std::vector<std::pair<std::string, TensorView>> views;
  for (const auto& [name, tensor] : all) views.emplace_back(name, tensor.view);
  for (const auto& [name, tensor] : unread_.tensors()) views.emplace_back(name, tensor.view);
  const TemporaryFile file;
  if (auto done = write_safetensors(file.path, views); !done) throw Failure("failed", done.error().what);
  evaluation_->load(file.path, constants_);
}

void Training::set_optimiser(const Sgd& sgd) {
  sgd_ = sgd;
  send_optimiser();
  program_.drop_momentum(network_->model());
}

void Training::set_rate(double rate) {
  sgd_.rate = rate;
  send_optimiser();
}

void Training::send_optimiser() {
  program_.set_optimiser(network_->model(), static_cast<float>(sgd_.rate), static_cast<float>(sgd_.momentum),
                         static_cast<float>(sgd_.dampening), static_cast<float>(sgd_.weight_decay),
                         sgd_.nesterov ? 1 : 0);
}

void Training::set_input(std::span<const HostTensor> inputs) {
  const auto own = static_cast<std::size_t>(program_.input_count());
  if (!training_) return evaluation_->set_input(inputs.first(own));
  network_->set_input(inputs.first(own));
  program_.set_labels(network_->model(), reinterpret_cast<const std::int64_t*>(inputs[own].view.data));
}

void Training::run() {
  training_ ? network_->run() : evaluation_->run();
}

void Training::run_marked(const PhaseEnded& ended) {
  const char* names[] = {"forward", "loss", "backward"};
  for (int phase = 0; phase < 3; ++phase) {
    if (program_.run_phase(network_->model(), phase) != 0) throw network_->failure();
    ended(names[phase]);
  }
}

void Training::outputs(std::vector<HostTensor>& results) const {
  if (!training_) return evaluation_->outputs(results);
  results.assign(1, allocate("F32", {}));
  std::memcpy(writable(results.front()), program_.output(network_->model(), 0), sizeof(float));
}

}  // namespace strata::static_program
