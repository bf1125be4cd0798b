// SPDX-License-Identifier: Apache-2.0
#include "kit/loading.hpp"

#include <omp.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "kit/safetensors.hpp"

namespace kit {
namespace {

std::string text_of(const std::vector<long>& shape) {
  std::string text;
  for (const long extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

// oneDNN's activations and maximum drop NaN, so that wrong results would look sound.
void refuse_nan(const float* data, Extent elements, const LoadedWeight& weight, const std::string& path) {
  int wrong = 0;  // no && of bools, which compilers do not turn into vectors
#pragma omp parallel for simd reduction(| : wrong)
  for (Extent i = 0; i < elements; ++i) wrong |= std::isnan(data[i]) ? 1 : 0;
  if (wrong != 0) throw std::runtime_error("the weight '" + weight.name + "' of " + path + " holds NaN");
}

const FileTensor& tensor_of(const SafeTensors& file, const std::string& name) {
  const FileTensor* tensor = file.find(name);
  if (tensor == nullptr) throw std::runtime_error(file.path() + " lacks the weight '" + name + "'");
  return *tensor;
}

const FileTensor& tensor_of(const SafeTensors& file, const std::string& name, Type type, const Shape& shape) {
  const FileTensor& stored = tensor_of(file, name);
  const std::vector<long> expected(shape.begin(), shape.end());
  if (stored.type != name_of(type) || stored.shape != expected)
    throw std::runtime_error("the weight '" + name + "' of " + file.path() + " is " + stored.type + " " +
                             text_of(stored.shape) + "; " + name_of(type) + " " + text_of(expected) + " is needed");
  return stored;
}

void read_weight(LoadedWeight& weight, const SafeTensors& file) {
  const FileTensor& stored = tensor_of(file, weight.name, Type::float32, weight.shape);
  weight.data = reinterpret_cast<const float*>(stored.data);
  if (reinterpret_cast<std::uintptr_t>(stored.data) % alignof(float) != 0) {
    weight.owned = allocate_unwritten(stored.bytes);
    std::memcpy(weight.owned.get(), stored.data, stored.bytes);
    weight.data = reinterpret_cast<const float*>(weight.owned.get());
  }
  refuse_nan(weight.data, weight.shape.elements(), weight, file.path());
}

// The number of what has this name; it is added if it is new.
template <class Loaded>
int number_of(std::vector<Loaded>& all, const char* name, bool is_constant) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& element) {
    return element.name == name && element.is_constant == is_constant;
  });
  const auto number = static_cast<int>(it - all.begin());
  if (it == all.end()) {
    all.emplace_back();
    all.back().name = name;
    all.back().is_constant = is_constant;
  }
  return number;
}

}  // namespace

void FreeBytes::operator()(std::byte* data) const {
#ifdef __linux__
  if (mapped > 0) {
    munmap(data, mapped);
    return;
  }
#endif
  std::free(data);
}

Bytes allocate(std::size_t bytes) {
#ifdef __linux__
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  if (bytes >= huge_page) {
    // with as much more as it takes to begin at a whole page
    const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page, more = whole + huge_page;
    void* mapped = mmap(nullptr, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    auto* first = static_cast<std::byte*>(mapped);
    const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(mapped) % huge_page) % huge_page;
    if (before > 0) munmap(first, before);
    munmap(first + before + whole, more - before - whole);
    madvise(first + before, whole, MADV_HUGEPAGE);  // advice: where it cannot be taken, pages are small as ever
    return Bytes(first + before, FreeBytes{whole});
  }
#endif
  auto zeros = allocate_unwritten(bytes);
  std::memset(zeros.get(), 0, bytes);
  return zeros;
}

Bytes allocate_unwritten(std::size_t bytes) {
  constexpr std::size_t line = 64;
  void* data = nullptr;
  if (posix_memalign(&data, line, (bytes + line) / line * line) != 0) throw std::bad_alloc();
  return Bytes(static_cast<std::byte*>(data));
}

int use_threads(int threads) {
  if (threads > 0) omp_set_num_threads(threads);
  return omp_get_max_threads();
}

Weight Loading::named(const char* name, Shape shape, bool is_constant) {
  const int number = number_of(weights, name, is_constant);
  weights[static_cast<std::size_t>(number)].shape = shape;
  return {number, shape};
}

Tensor Loading::named_list(const char* name, Type type, Shape shape, bool is_constant) {
  const int number = number_of(lists, name, is_constant);
  LoadedList& list = lists[static_cast<std::size_t>(number)];
  const Tensor tensor{Region::listed, number, shape, Layout::plain, type};
  if (!list.bytes) list.bytes = allocate(static_cast<std::size_t>(tensor.bytes()));
  list.type = type;
  list.shape = shape;
  return tensor;
}

float* Loading::allocate_computed(int weight) {
  auto& entry = weights.at(static_cast<std::size_t>(weight));
  entry.owned = allocate_unwritten(static_cast<std::size_t>(entry.shape.elements()) * sizeof(float));
  entry.data = reinterpret_cast<const float*>(entry.owned.get());
  return reinterpret_cast<float*>(entry.owned.get());
}

void Loading::add_load_step(LoadStep added) {
  for (const int weight : added.reads) ++weights.at(static_cast<std::size_t>(weight)).uses;
  load_steps.push_back(std::move(added));
}

void Loading::load_files(const char* weights_file, const char* constants_file,
                         const std::function<const float*(int)>& permanent) {
  const SafeTensors file(weights_file);
  std::unique_ptr<SafeTensors> second;
  const auto file_of = [&](const auto& element) -> const SafeTensors& {
    if (!element.is_constant) return file;
    if (constants_file == nullptr)
      throw std::runtime_error("a file of constants is needed, for '" + element.name + "'");
    if (!second) second = std::make_unique<SafeTensors>(constants_file);
    return *second;
  };
  for (auto& list : lists) {
    const FileTensor& stored = tensor_of(file_of(list), list.name, list.type, list.shape);
    std::memcpy(list.bytes.get(), stored.data, stored.bytes);
  }
  for (std::size_t number = 0; number < weights.size(); ++number) {
    auto& weight = weights[number];
    weight.left = weight.uses;
    if (weight.permanent) {
      weight.data = permanent(static_cast<int>(number));
    } else if (!weight.name.empty()) {
      read_weight(weight, file_of(weight));
    }
  }
  for (auto& [name, count] : training.counts)
    if (const FileTensor* tensor = file.find(name); tensor != nullptr && tensor->bytes == sizeof count)
      std::memcpy(&count, tensor->data, sizeof count);
  for (const auto& step : load_steps) {
    step.run();
    for (const int read : step.reads)
      if (auto& weight = weights[static_cast<std::size_t>(read)]; --weight.left == 0) weight.owned.reset();
  }
  for (auto& weight : weights) {
    weight.owned.reset();
    weight.data = nullptr;
  }
}

Weight Program::weight(const char* name, Shape shape) {
  return loading().named(name, shape, false);
}
Weight Program::constant(const char* name, Shape shape) {
  return loading().named(name, shape, true);
}

Tensor Program::listed(const char* name, Type type, Shape shape) {
  return loading().named_list(name, type, shape, false);
}
Tensor Program::constant_listed(const char* name, Type type, Shape shape) {
  return loading().named_list(name, type, shape, true);
}

Weight Program::parameter(const char* name, Shape shape) {
  const Weight weight = loading().named(name, shape, false);
  loading().weights[static_cast<std::size_t>(weight.number)].trained = true;
  return weight;
}
Weight Program::buffer(const char* name, Shape shape) {
  const Weight weight = loading().named(name, shape, false);
  loading().weights[static_cast<std::size_t>(weight.number)].changed = true;
  return weight;
}

void Program::save(const char* name, Weight weight) {
  loading().saved[name] = weight;
}
Weight Program::saved(const char* name) const {
  return loading().saved.at(name);
}

void Program::set_dropout(bool on) {
  loading().training.dropout = on;
}
bool Program::draws(std::uint64_t& count) const {
  count = loading().training.draws;
  return loading().training.dropouts > 0;
}
void Program::set_draws(std::uint64_t count) {
  loading().training.draws = count;
}
void Program::set_optimiser(const Sgd& sgd) {
  if (loading().training.is_adam) drop_momentum();
  loading().training.sgd = sgd;
  loading().training.is_adam = false;
}
void Program::set_clip_norm(double norm) {
  loading().training.clip_norm = norm;
}
void Program::drop_momentum() {
  for (auto& weight : loading().weights) weight.has_momentum = false;
  loading().training.steps = 0;
}
void Program::set_steps(std::int64_t done) {
  loading().training.steps = done;
}

}  // namespace kit
