// SPDX-License-Identifier: Apache-2.0
// What training changes: parameters and buffers in the layout that their first reader likes (a convolution's forward
// call), the optimiser, and copies of new statistics into their buffers.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "guarded.hpp"
#include "library.hpp"
#include "typed.hpp"

namespace strata::onednn {
namespace {

bool is_float32(const Storage& storage) {
  return storage.home.get_data_type() == memory::data_type::f32;
}

// A reorder at once, outside of any run.
void copy(const dnnl::engine& engine, const memory::desc& from, const std::byte* source, const memory::desc& to,
          std::byte* target) {
  memory a(from, engine, const_cast<std::byte*>(source)), b(to, engine, target);
  dnnl::stream stream(engine);
  dnnl::reorder(a, b).execute(stream, a, b);
  stream.wait();
}

// The optimiser's step in one pass over the parameter, where calls of oneDNN would take four and more. Padding of
// blocks is zero in all tensors and stays so.
class OneUpdate final : public primitives::Update {
 public:
  OneUpdate(dnnl::engine engine, Storage& parameter, memory gradient, Tensor first,
            std::function<Tensor(const memory::desc&)> allocate)
      : engine_(std::move(engine)),
        parameter_(parameter),
        gradient_(std::move(gradient)),
        buffers_{std::move(first)},
        allocate_(std::move(allocate)),
        count_(static_cast<std::int64_t>(parameter.home.get_size() / sizeof(float))) {}

  void prepare(const core::Optimiser& optimiser) override {
    const auto count = core::buffer_prefixes(optimiser).size();
    while (buffers_.size() < count) buffers_.push_back(allocate_(parameter_.home));
    starts_at_zero_ = optimiser.adam() != nullptr;
  }

  void execute(const core::Optimiser& optimiser, std::int64_t step, float clipped) override {
    if (optimiser.adam() != nullptr)
      descend(primitives::AdamStep(optimiser, step), clipped);
    else
      descend(optimiser, *optimiser.sgd(), clipped);
  }
  std::optional<double> gradient_squares() const override {
    const auto* g = static_cast<const float*>(gradient_.get_data_handle());
    double squares = 0;
#pragma omp parallel for simd reduction(+ : squares) schedule(static)
    for (std::int64_t i = 0; i < count_; ++i) squares += static_cast<double>(g[i]) * static_cast<double>(g[i]);
    return squares;
  }

  bool has_buffers() const override {
    return has_buffers_;
  }
  void drop_buffers() override {
    has_buffers_ = false;
  }
  void read_buffer(std::size_t which, std::byte* into) const override {
    copy(engine_, parameter_.home, buffers_[which].storage->data, row_major(parameter_.home.get_dims()), into);
  }
  void write_buffer(std::size_t which, const std::byte* data) override {
    if (!has_buffers_ && starts_at_zero_) clear();  // the other may not follow
    copy(engine_, row_major(parameter_.home.get_dims()), data, parameter_.home, buffers_[which].storage->data);
    has_buffers_ = true;
  }

 private:
  float* floats(std::size_t which) const {
    return reinterpret_cast<float*>(buffers_[which].storage->data);
  }
  void clear() const {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      std::memset(floats(i), 0, static_cast<std::size_t>(count_) * sizeof(float));
  }

  void descend(const core::Optimiser& optimiser, const core::Sgd& sgd, float clipped) {
    auto* w = reinterpret_cast<float*>(parameter_.data);
    auto* v = floats(0);
    const auto* g = static_cast<const float*>(gradient_.get_data_handle());
    const auto rate = static_cast<float>(optimiser.lr), decay = static_cast<float>(optimiser.weight_decay),
               momentum = static_cast<float>(sgd.momentum),
               share = has_buffers_ ? static_cast<float>(1 - sgd.dampening) : 1.0F,
               before = has_buffers_ ? momentum : 0.0F;
    if (momentum == 0) {
#pragma omp parallel for simd schedule(static)
      for (std::int64_t i = 0; i < count_; ++i) w[i] -= rate * (clipped * g[i] + decay * w[i]);
      return;
    }
    const float of_v = sgd.nesterov ? momentum : 1.0F, of_d = sgd.nesterov ? 1.0F : 0.0F;
    if (!has_buffers_) std::memset(v, 0, static_cast<std::size_t>(count_) * sizeof(float));
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = 0; i < count_; ++i) {
      const float d = clipped * g[i] + decay * w[i];
      v[i] = before * v[i] + share * d;
      w[i] -= rate * (of_d * d + of_v * v[i]);
    }
    has_buffers_ = true;
  }

  void descend(const primitives::AdamStep& a, float clipped) {
    if (!has_buffers_) clear();
    auto *w = reinterpret_cast<float*>(parameter_.data), *m = floats(0), *v = floats(1);
    const auto* g = static_cast<const float*>(gradient_.get_data_handle());
#pragma omp parallel for simd schedule(static)
    for (std::int64_t i = 0; i < count_; ++i) {
      const float d = clipped * g[i] + a.decay * w[i];
      m[i] = a.beta1 * m[i] + a.share1 * d;
      v[i] = a.beta2 * v[i] + a.share2 * d * d;
      w[i] = a.decay_factor * w[i] - a.rate * m[i] / (std::sqrt(v[i]) / a.root + a.eps);
    }
    has_buffers_ = true;
  }

  dnnl::engine engine_;
  Storage& parameter_;
  memory gradient_;
  std::vector<Tensor> buffers_;  // of SGD one, of Adam two
  std::function<Tensor(const memory::desc&)> allocate_;
  std::int64_t count_;
  bool has_buffers_ = false, starts_at_zero_ = false;
};

}  // namespace

Result<void> Library::declare_trained(const graph::Graph& graph, int value) {
  const auto& described = graph.value(value);
  return guarded([&] {
    const auto desc = typed_desc(described.type, described.shape);
    auto& storage = storages_.emplace_back(std::make_shared<Storage>());
    storage->row_major_dims = desc.get_dims();
    if (described.type != graph::Type::float32) settle(*storage, desc);
    tensors_[value] = {.desc = desc, .storage = storage, .offset = 0, .weight = false, .trained = true};
  });
}

void Library::settle(Storage& storage, const memory::desc& desc) {
  if (storage.owned) return;
  storage.owned = aligned_bytes(desc.get_size());
  storage.data = storage.owned.get();
  storage.home = desc;
  std::memset(storage.data, 0, desc.get_size());
  held_.weight_bytes += static_cast<std::int64_t>(desc.get_size());
}

Tensor Library::fetched(const Tensor& tensor, const memory::desc& to, primitives::Steps& steps) {
  Storage& storage = *tensor.storage;
  const auto& own = storage.row_major_dims;
  const bool whole = tensor.offset == 0 && is_row_major(tensor.desc) && product(tensor.dims()) == product(own);
  if (!storage.owned) settle(storage, whole && product(to.get_dims()) == product(own) ? to : row_major(own));
  if (whole && storage.home == to)
    return {.desc = to, .storage = tensor.storage, .offset = 0, .weight = false, .trained = false};
  Tensor plain{.desc = storage.home, .storage = tensor.storage, .offset = 0, .weight = false, .trained = false};
  if (!is_row_major(storage.home)) {
    if (whole && storage.home.get_dims() == to.get_dims()) return form_of(plain, to, steps);
    plain = form_of(plain, row_major(storage.home.get_dims()), steps);
  }
  plain.desc = tensor.desc;
  plain.offset += tensor.offset;
  return plain.desc == to ? plain : form_of(plain, to, steps);
}

void Library::write_trained(int value, const std::byte* data) {
  const Storage& storage = *tensors_.at(value).storage;
  if (!is_float32(storage)) {
    std::memcpy(storage.data, data, storage.home.get_size());
    return;
  }
  copy(engine_, row_major(storage.home.get_dims()), data, storage.home, storage.data);
}

void Library::read_trained(int value, std::byte* into) const {
  const Storage& storage = *tensors_.at(value).storage;
  if (!is_float32(storage)) {
    std::memcpy(into, storage.data, storage.home.get_size());
    return;
  }
  copy(engine_, storage.home, storage.data, row_major(storage.home.get_dims()), into);
}

Result<void> Library::assign(const graph::Graph&, int to, int from, primitives::Steps& steps) {
  return guarded([&] {
    const Tensor& value = tensors_.at(from);
    auto target = tensors_.at(to).storage;
    settle(*target, row_major(target->row_major_dims, value.desc.get_data_type()));
    const Tensor source = value.desc == target->home ? value : reordered(value, target->home, steps);
    const auto bytes = target->home.get_size();
    const memory read = handle(source);
    steps.in_run.push_back(std::make_unique<primitives::FunctionCall>(
        primitives::Description{.operation = "copy",
                                .kernel = "strata",
                                .layouts = "a buffer",
                                .moves_only = true,
                                .bytes_moved = static_cast<std::int64_t>(bytes)},
        [=] { std::memcpy(target->data, read.get_data_handle(), bytes); }));
  });
}

Result<std::unique_ptr<primitives::Update>> Library::update(const graph::Graph&, int parameter, int gradient,
                                                            primitives::Steps& steps) {
  std::unique_ptr<primitives::Update> update_call;
  STRATA_TRY(guarded([&] {
    Storage& storage = *tensors_.at(parameter).storage;
    settle(storage, row_major(storage.row_major_dims));
    Tensor gradient_tensor = tensors_.at(gradient);
    if (gradient_tensor.dims() != storage.home.get_dims()) {
      // groups are a dimension of their own in one of them: the row-major order is the same
      if (!is_row_major(gradient_tensor.desc))
        gradient_tensor = reordered(gradient_tensor, row_major(gradient_tensor.dims()), steps);
      gradient_tensor.desc = row_major(storage.home.get_dims());
    }
    if (gradient_tensor.desc != storage.home) gradient_tensor = reordered(gradient_tensor, storage.home, steps);
    update_call = std::make_unique<OneUpdate>(engine_, storage, handle(gradient_tensor), allocate(storage.home),
                                              [this](const memory::desc& desc) { return allocate(desc); });
  }));
  return update_call;
}

const Library::Left& Library::left(int value) const {
  const auto it = left_.find(value);
  if (it == left_.end()) throw Unsupported("a backward call whose forward call is not this level's");
  return it->second;
}

}  // namespace strata::onednn
