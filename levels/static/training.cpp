// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "common/scratch_folder.hpp"
#include "strata/bundle.hpp"
#include "strata/drawing.hpp"

namespace strata::static_program {
namespace fs = std::filesystem;
namespace {

std::vector<std::int64_t> shape_of(const ModelTensor& tensor) {
  return {tensor.extents, tensor.extents + tensor.rank};
}

// Whether the tensor counts steps, which all else of a training's state does not.
bool counts_steps(const ModelTensor& tensor) {
  return std::string_view(tensor.type) == "I64";
}

// Null where the file lacks it; a tensor of another type or shape throws.
const TensorView* fitting(const SafeTensors& file, const std::string& name, const std::vector<std::int64_t>& shape) {
  const auto* tensor = file.find(name);
  if (tensor != nullptr && (tensor->dtype != "F32" || tensor->shape != shape))
    throw Failure("failed", fmt::format("{}: '{}' is of another type or shape", file.where(), name));
  return tensor;
}

}  // namespace

GeneratedTraining::GeneratedTraining(const fs::path& file) : Generated(file) {
  find(state_count, "model_state_count");
  find(state, "model_state");
  find(read, "model_read");
  find(write, "model_write");
  find(read_momentum, "model_read_momentum");
  find(write_momentum, "model_write_momentum");
  find(read_square, "model_read_square");
  find(write_square, "model_write_square");
  find(drop_momentum, "model_drop_momentum");
  find(set_optimiser, "model_set_optimiser");
  find(set_adam, "model_set_adam");
  find(set_clip_norm, "model_set_clip_norm");
  find(set_steps, "model_set_steps");
  find(set_dropout, "model_set_dropout");
  find(read_draws, "model_read_draws");
  find(write_draws, "model_write_draws");
  find(set_labels, "model_set_labels");
  find(run_phase, "model_run_phase");
}

Training::Training(const fs::path& folder, int threads, std::vector<Declared> outputs,
                   std::map<std::string, std::string> tied)
    : program_(folder / "network.so"),
      folder_(folder),
      outputs_(std::move(outputs)),
      threads_(threads),
      unused_(std::move(tied)) {
  network_.emplace(program_, threads, std::vector<Declared>{});
}

void Training::load(const fs::path& weights, const fs::path& constants) {
  constants_ = constants;
  network_->load(weights, constants);
  program_.drop_momentum(network_->model());
  const auto file = SafeTensors::map(weights);
  if (!file) throw Failure("failed", file.error().what, file.error().hint);
  unused_.load(*file, [&](const std::string& name) { return changes(name); });
  if (!training_) evaluate_with_present_weights();
}

bool Training::changes(const std::string& name) const {
  for (int i = 0; i < program_.state_count(); ++i)
    if (name == program_.state(i)->name) return true;
  return false;
}

HostTensor Training::present(int number) const {
  const auto& tensor = *program_.state(number);
  auto values = allocate(tensor.type, shape_of(tensor));
  if (program_.read(network_->model(), tensor.name, writable(values)) != 0) throw network_->failure();
  return values;
}

int Training::read_buffer(std::size_t which, const char* name, float* data) const {
  return (which == 0 ? program_.read_momentum : program_.read_square)(network_->model(), name, data);
}

int Training::write_buffer(std::size_t which, const char* name, const float* data) {
  return (which == 0 ? program_.write_momentum : program_.write_square)(network_->model(), name, data);
}

State Training::state() const {
  State result;
  const auto prefixes = core::buffer_prefixes(optimiser_);
  for (int i = 0; i < program_.state_count(); ++i) {
    const auto& tensor = *program_.state(i);
    if (counts_steps(tensor)) {
      result.emplace_back(count_prefix + std::string(tensor.name), present(i));
      continue;
    }
    result.emplace_back(weight_prefix + std::string(tensor.name), present(i));
    for (std::size_t which = 0; which < prefixes.size(); ++which) {
      auto buffer = allocate("F32", shape_of(tensor));
      if (read_buffer(which, tensor.name, reinterpret_cast<float*>(writable(buffer))) == 0)
        result.emplace_back(std::string(prefixes[which]) + tensor.name, std::move(buffer));
    }
  }
  unused_.add_to(result);
  std::uint64_t draws = 0;
  if (program_.read_draws(network_->model(), &draws) == 0) add_count(result, draws);
  return result;
}

// All of it fits, or nothing is changed.
void Training::load_state(const SafeTensors& state, std::int64_t step) {
  struct Fitting {
    const ModelTensor* tensor;
    const TensorView* weight;
    std::vector<const TensorView*> buffers;
  };
  std::vector<Fitting> all;
  std::vector<std::pair<const char*, const TensorView*>> counts;
  std::set<std::string> known;
  const auto prefixes = core::buffer_prefixes(optimiser_);
  for (int i = 0; i < program_.state_count(); ++i) {
    const auto* tensor = program_.state(i);
    if (counts_steps(*tensor)) {
      const auto* count = state.find(count_prefix + std::string(tensor->name));
      if (count != nullptr && !is_count(*count))
        throw Failure("failed", fmt::format("{}: the count '{}' is not one I64", state.where(), tensor->name));
      if (count != nullptr) counts.emplace_back(tensor->name, count);
      continue;
    }
    const auto name = weight_prefix + std::string(tensor->name);
    const auto* weight = fitting(state, name, shape_of(*tensor));
    if (weight == nullptr) throw Failure("failed", fmt::format("{} lacks '{}'", state.where(), name));
    all.push_back({tensor, weight, {}});
    for (const auto prefix : prefixes) {
      known.insert(std::string(prefix) + tensor->name);
      all.back().buffers.push_back(fitting(state, std::string(prefix) + tensor->name, shape_of(*tensor)));
    }
  }
  unused_.check(state);
  for (const auto& name : state.names())
    for (const auto prefix : core::all_buffer_prefixes)
      if (name.starts_with(prefix) && !known.contains(name))
        throw Failure("failed", fmt::format("{}: '{}' is of nothing that the step changes by {}", state.where(), name,
                                            name_of(optimiser_)));
  const auto draws = count_in(state);
  program_.drop_momentum(network_->model());
  if (draws) program_.write_draws(network_->model(), *draws);
  for (const auto& [name, count] : counts)
    if (program_.write(network_->model(), name, count->data) != 0) throw network_->failure();
  for (const auto& [tensor, weight, buffers] : all) {
    if (program_.write(network_->model(), tensor->name, weight->data) != 0) throw network_->failure();
    for (std::size_t which = 0; which < buffers.size(); ++which)
      if (buffers[which] != nullptr)
        write_buffer(which, tensor->name, reinterpret_cast<const float*>(buffers[which]->data));
  }
  program_.set_steps(network_->model(), step);
  unused_.replace(state);
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
  for (const auto& [name, tensor] : unused_.tensors()) views.emplace_back(name, tensor.view);
  const ScratchFolder folder("static");
  if (folder.path().empty())
    throw Failure("failed", fmt::format("cannot make a folder in {}", fs::temp_directory_path().string()),
                  "is there space, and may you write there?");
  const auto file = folder.path() / "weights.safetensors";
  if (auto done = write_safetensors(file, views); !done) throw Failure("failed", done.error().what);
  evaluation_->load(file, constants_);
}

void Training::set_optimiser(const Optimiser& optimiser) {
  optimiser_ = optimiser;
  send_optimiser();
  program_.drop_momentum(network_->model());
}

void Training::set_rate(double rate) {
  optimiser_.lr = rate;
  send_optimiser();
}

void Training::send_optimiser() {
  const auto narrow = [](double value) { return static_cast<float>(value); };
  if (program_.set_clip_norm(network_->model(), optimiser_.clip_norm) != 0)
    throw Failure("unsupported", "the program was generated for a case that does not clip gradients");
  if (const auto* sgd = optimiser_.sgd())
    return program_.set_optimiser(network_->model(), narrow(optimiser_.lr), narrow(sgd->momentum),
                                  narrow(sgd->dampening), narrow(optimiser_.weight_decay), sgd->nesterov ? 1 : 0);
  const auto& adam = *optimiser_.adam();
  if (program_.set_adam(network_->model(), optimiser_.lr, adam.beta1, adam.beta2, adam.eps, optimiser_.weight_decay,
                        adam.decoupled ? 1 : 0) != 0)
    throw network_->failure();
}

void Training::set_input(std::span<const HostTensor> inputs) {
  const auto own = static_cast<std::size_t>(program_.input_count());
  if (!training_) return evaluation_->set_input(inputs.first(own));
  network_->set_input(inputs.first(own));
  if (inputs.size() > own)
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

void Training::outputs(std::vector<HostTensor>& results) {
  if (!training_) return evaluation_->outputs(results);
  results.assign(1, allocate("F32", {}));
  std::memcpy(writable(results.front()), program_.output(network_->model(), 0), sizeof(float));
}

}  // namespace strata::static_program
