// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <fmt/format.h>

#include <cstring>

#include "builder.hpp"
#include "kit_cuda/kernels/descent.hpp"
#include "kit_cuda/kernels/move.hpp"
#include "operations.hpp"

namespace strata::cudnn {
namespace {

// Runs `make` and turns what it throws into an error without its place.
template <class Make>
Result<void> guarded(const Make& make) {
  try {
    make();
    return {};
  } catch (const Unsupported& refused) {
    return fail(refused.what());
  }
}

kit_cuda::Rates rates_of(const core::Optimiser& how, std::int64_t step, bool has_buffers) {
  if (const auto* sgd = how.sgd())
    return kit_cuda::rates_of(kit_cuda::Sgd{.rate = how.lr,
                                            .momentum = sgd->momentum,
                                            .dampening = sgd->dampening,
                                            .weight_decay = how.weight_decay,
                                            .nesterov = sgd->nesterov},
                              has_buffers);
  const auto& adam = *how.adam();
  return kit_cuda::rates_of(kit_cuda::Adam{.rate = how.lr,
                                           .beta1 = adam.beta1,
                                           .beta2 = adam.beta2,
                                           .eps = adam.eps,
                                           .weight_decay = how.weight_decay,
                                           .decoupled = adam.decoupled},
                            step - 1, has_buffers);
}

class OneUpdate final : public primitives::Update {
 public:
  OneUpdate(Library& library, Tensor parameter, Tensor gradient, Tensor first)
      : library_(library),
        parameter_(std::move(parameter)),
        gradient_(std::move(gradient)),
        buffers_{std::move(first)} {}

  void prepare(const core::Optimiser& optimiser) override {
    while (buffers_.size() < core::buffer_prefixes(optimiser).size())
      buffers_.push_back(library_.allocate(parameter_.view));
    starts_at_zero_ = optimiser.adam() != nullptr;
  }
  void execute(const core::Optimiser& optimiser, std::int64_t step, float) override {
    const auto rates = rates_of(optimiser, step, has_buffers_);
    float* second = rates.adam != 0 ? buffers_[1].data() : nullptr;
    kit_cuda::descend(library_.stream(), rates, {parameter_.data(), buffers_[0].data(), second}, gradient_.data(),
                      parameter_.view.count());
    has_buffers_ = has_buffers_ || rates.plain == 0;
  }
  bool has_buffers() const override { return has_buffers_; }
  void drop_buffers() override { has_buffers_ = false; }
  void read_buffer(std::size_t which, std::byte* into) const override { library_.download(buffers_[which], into); }
  void write_buffer(std::size_t which, const std::byte* data) override {
    if (!has_buffers_ && starts_at_zero_)  // the other may not follow
      for (const auto& buffer : buffers_) kit_cuda::clear(buffer.data(), buffer.bytes(), library_.stream());
    library_.upload(buffers_[which], data);
    has_buffers_ = true;
  }

 private:
  Library& library_;
  Tensor parameter_, gradient_;
  std::vector<Tensor> buffers_;  // of SGD one, of Adam two
  bool has_buffers_ = false, starts_at_zero_ = false;
};

}  // namespace

std::vector<std::string> known_operations() {
  std::vector<std::string> names;
  for (const auto& [name, make] : operations()) names.emplace_back(name);
  return names;
}

primitives::Description reorder(const Tensor& from, const Tensor& to) {
  const auto name = [&](const Tensor& tensor) {
    return layout_name(tensor.view) + (from.type == to.type           ? ""
                                       : tensor.type == Type::float32 ? " float32"
                                                                      : " bfloat16");
  };
  return {.operation = "reorder",
          .kernel = "strata",
          .layouts = fmt::format("{} -> {}", name(from), name(to)),
          .moves_only = true,
          .bytes_moved = static_cast<std::int64_t>(to.bytes())};
}

Library::Library(Layouts layouts, Precision precision)
    : layouts_(layouts),
      precision_(precision),
      stream_(kit_cuda::make_stream()),
      calls_(make_calls(stream_.get(), precision == Precision::tf32)) {}

Result<void> Library::declare(const graph::Graph& graph, int value) {
  const auto& described = graph.value(value);
  const bool integers = described.type == graph::Type::int64, is_input = described.origin == graph::Origin::input;
  if (described.type != graph::Type::float32 && !integers) return {};  // an error only for an operation that reads it
  return guarded([&] {
    const bool image = layouts_ == Layouts::channels_last && described.shape.size() > 3 && !integers;
    Tensor tensor = allocate(image ? channels_last(described.shape) : row_major(described.shape),
                             integers ? Type::int64 : Type::float32);
    if (!is_input) {
      homes_[value] = tensor;
      held_.buffer_bytes -= static_cast<std::int64_t>(tensor.bytes());
      held_.weight_bytes += static_cast<std::int64_t>(tensor.bytes());
    }
    tensor.constant = !is_input && graph.mode == graph::Mode::infer;
    tensors_[value] = std::move(tensor);
  });
}

Result<void> Library::create(const graph::Graph& graph, const graph::Node& node, primitives::Steps& steps) {
  return guarded([&] {
    Builder builder(*this, graph, node, steps);
    cudnn::operations().find(builder.operation())->second(builder);
  });
}

Result<void> Library::publish(const graph::Graph& graph, int value, primitives::Steps& steps) {
  return guarded([&] {
    const Tensor& output = tensor(graph, value);
    if (!is_row_major(output.view)) set_tensor(value, reordered(output, row_major(output.dims()), steps));
  });
}

void Library::finish() {
  held_.buffer_bytes += static_cast<std::int64_t>(calls_->finish());
}

void Library::bind(int value, const std::byte* data) {
  if (const auto it = tensors_.find(value); it != tensors_.end()) upload(it->second, data);
}

void Library::upload(const Tensor& tensor, const std::byte* data) const {
  const auto bytes = tensor.bytes();
  if (tensor.type == Type::int64 || is_row_major(tensor.view)) {
    kit_cuda::copy_to_device(tensor.begin(), data, bytes, stream());
  } else {
    const auto staged = kit_cuda::memory(bytes);
    kit_cuda::copy_to_device(staged.get(), data, bytes, stream());
    kit_cuda::copy(stream(), {reinterpret_cast<float*>(staged.get()), row_major(tensor.dims())}, tensor.target());
    kit_cuda::wait_for(stream());  // before the staged bytes go
  }
}

void Library::download(const Tensor& tensor, std::byte* into) const {
  const auto bytes = tensor.bytes();
  kit_cuda::Memory staged;
  const std::byte* from = tensor.begin();
  if (tensor.type != Type::int64 && !is_row_major(tensor.view)) {
    staged = kit_cuda::memory(bytes);
    kit_cuda::copy(stream(), tensor.source(), {reinterpret_cast<float*>(staged.get()), row_major(tensor.dims())});
    from = staged.get();
  }
  kit_cuda::copy_to_host(into, from, bytes, stream());
  kit_cuda::wait_for(stream());
}

void Library::read(int value, std::byte* into) const {
  download(tensors_.at(value), into);
  check_faults();
}

Index* Library::fault(Tensor indices, std::function<std::string(std::int64_t)> what) {
  auto* place = reinterpret_cast<Index*>(hold(sizeof(Index)));
  kit_cuda::clear(place, sizeof(Index), stream());
  faults_.push_back({indices, std::move(what), place});
  return place;
}

void Library::check_faults() const {
  for (const auto& [indices, what, place] : faults_) {
    Index position = 0;
    std::int64_t index = 0;
    kit_cuda::copy_to_host(&position, place, sizeof position, stream());
    kit_cuda::wait_for(stream());
    if (position == 0) continue;
    kit_cuda::copy_to_host(&index, indices.int64_data() + position - 1, sizeof index, stream());
    kit_cuda::clear(place, sizeof position, stream());
    kit_cuda::wait_for(stream());
    throw std::out_of_range(what(index));
  }
}

const Tensor& Library::tensor(const graph::Graph& graph, int value) const {
  const auto& described = graph.value(value);
  if (described.type != graph::Type::float32)
    throw Unsupported(fmt::format("the tensor '{}' is of type {}, calculations are in float32", described.name,
                                  name_of(described.type)));
  return tensors_.at(value);
}

const Tensor& Library::integers(const graph::Graph& graph, int value) const {
  const auto& described = graph.value(value);
  const auto it = tensors_.find(value);
  if (described.type != graph::Type::int64 || it == tensors_.end())
    throw Unsupported(fmt::format("the tensor '{}' of type {} as a list of rows; int64, not computed, is needed",
                                  described.name, name_of(described.type)));
  return it->second;
}

std::byte* Library::hold(std::size_t bytes) {
  return memory_.emplace_back(kit_cuda::memory(bytes)).get();
}

Tensor Library::allocate(const View& view, Type type) {
  Tensor tensor{.memory = nullptr, .offset = 0, .view = view, .type = type, .constant = false};
  tensor.memory = hold(tensor.bytes());
  held_.buffer_bytes += static_cast<std::int64_t>(tensor.bytes());
  return tensor;
}

Library::Left Library::allocate_bytes(const View& view) {
  held_.buffer_bytes += view.count();
  return {reinterpret_cast<std::uint8_t*>(hold(static_cast<std::size_t>(view.count()))), view};
}

Tensor Library::reordered(const Tensor& tensor, const View& to, primitives::Steps& steps, Type type) {
  for (const auto& [from, converted] : forms_)
    if (from.memory == tensor.memory && from.offset == tensor.offset && same_layout(from.view, tensor.view) &&
        same_layout(converted.view, to) && converted.type == type)
      return converted;
  Tensor converted = allocate(to, type);
  converted.constant = tensor.constant;
  const auto call = [stream = stream(), tensor, converted] { copy(stream, tensor, converted); };
  (tensor.constant ? steps.at_load : steps.in_run)
      .push_back(std::make_unique<primitives::FunctionCall>(reorder(tensor, converted), call));
  forms_.push_back({tensor, converted});
  return converted;
}

Result<void> Library::assign(const graph::Graph&, int to, int from, primitives::Steps& steps) {
  return guarded([&] {
    const Tensor value = tensors_.at(from), target = homes_.at(to);
    primitives::Description what{.operation = "copy",
                                 .kernel = "strata",
                                 .layouts = "a buffer",
                                 .moves_only = true,
                                 .bytes_moved = static_cast<std::int64_t>(target.bytes())};
    steps.in_run.push_back(
        std::make_unique<primitives::FunctionCall>(std::move(what), [stream = stream(), value, target] {
          if (target.type == Type::int64)
            kit_cuda::copy_on_device(target.int64_data(), value.int64_data(), target.bytes(), stream);
          else
            kit_cuda::copy(stream, value.source(), target.target());
        }));
  });
}

Result<std::unique_ptr<primitives::Update>> Library::update(const graph::Graph&, int parameter, int gradient,
                                                            primitives::Steps& steps) {
  std::unique_ptr<primitives::Update> update_call;
  STRATA_TRY(guarded([&] {
    const Tensor home = homes_.at(parameter);
    Tensor gradient_tensor = tensors_.at(gradient);
    if (!same_layout(gradient_tensor.view, home.view)) gradient_tensor = reordered(gradient_tensor, home.view, steps);
    update_call = std::make_unique<OneUpdate>(*this, home, gradient_tensor, allocate(home.view));
  }));
  return update_call;
}

const Library::Left& Library::left(int value) const {
  const auto it = left_.find(value);
  if (it == left_.end()) throw Unsupported("a backward call whose forward call is not this level's");
  return it->second;
}

const kit_cuda::DropoutState* Library::dropout(primitives::Steps& steps) {
  if (dropout_ != nullptr) return dropout_;
  dropout_ = reinterpret_cast<kit_cuda::DropoutState*>(hold(sizeof(kit_cuda::DropoutState)));
  set_dropout_state({});
  steps.in_run.push_back(std::make_unique<primitives::FunctionCall>(
      primitives::Description{
          .operation = "dropout", .kernel = "strata", .layouts = "counts steps", .moves_only = false, .bytes_moved = 0},
      [stream = stream(), state = dropout_] { kit_cuda::count_step(stream, state); }));
  return dropout_;
}

kit_cuda::DropoutState Library::dropout_state() const {
  kit_cuda::DropoutState state;
  kit_cuda::copy_to_host(&state, dropout_, sizeof state, stream());
  kit_cuda::wait_for(stream());
  return state;
}

void Library::set_dropout_state(const kit_cuda::DropoutState& state) {
  kit_cuda::copy_to_device(dropout_, &state, sizeof state, stream());
  kit_cuda::wait_for(stream());
}

void Library::set_dropout(bool on) {
  if (dropout_ == nullptr) return;
  auto state = dropout_state();
  state.on = on ? 1 : 0;
  set_dropout_state(state);
}

std::optional<std::uint64_t> Library::draws() const {
  if (dropout_ == nullptr) return std::nullopt;
  return dropout_state().step;
}

void Library::set_draws(std::uint64_t count) {
  if (dropout_ == nullptr) return;
  auto state = dropout_state();
  state.step = count;
  set_dropout_state(state);
}

}  // namespace strata::cudnn
