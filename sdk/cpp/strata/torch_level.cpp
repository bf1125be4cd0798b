// SPDX-License-Identifier: Apache-2.0
#include "strata/torch_level.hpp"

#include <ATen/autocast_mode.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>
#ifdef STRATA_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include "strata/bundle.hpp"

namespace strata {

namespace {

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 10> dtypes{{{"F32", at::kFloat},
                                                                              {"F64", at::kDouble},
                                                                              {"F16", at::kHalf},
                                                                              {"BF16", at::kBFloat16},
                                                                              {"I64", at::kLong},
                                                                              {"I32", at::kInt},
                                                                              {"I16", at::kShort},
                                                                              {"I8", at::kChar},
                                                                              {"U8", at::kByte},
                                                                              {"BOOL", at::kBool}}};

at::ScalarType to_torch(std::string_view dtype) {
  for (const auto& [name, type] : dtypes)
    if (name == dtype) return type;
  throw Failure("unsupported", fmt::format("PyTorch's C++ levels have no dtype {}", dtype));
}

std::string_view from_torch(at::ScalarType type) {
  for (const auto& [name, torch_type] : dtypes)
    if (torch_type == type) return name;
  throw Failure("unsupported", fmt::format("an output has dtype {}", c10::toString(type)));
}

// Moves what the network gave into host results; of a reduced precision in the caller's type.
void to_hosts(std::vector<at::Tensor>& tensors, std::vector<HostTensor>& results, bool reduced) {
  results.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    results[i] = to_host(reduced && tensors[i].scalar_type() == at::kBFloat16 ? tensors[i].to(at::kFloat) : tensors[i]);
  tensors.clear();
}

// Code that AOTInductor generated carries its number of threads; without nested levels OpenMP gives it one all the
// same. Looked up, since only PyTorch's own OpenMP is the right one.
void allow_one_openmp_thread() {
  const auto set_levels = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_max_active_levels"));
  if (set_levels != nullptr) set_levels(0);
}

// What float32 operations are computed in: IEEE float32, no TF32 in cuBLAS and cuDNN, no bf16 or TF32 in oneDNN; in the
// mode tf32 TF32 on CUDA. The same settings as the Python SDK's.
void set_float32(const std::string& precision) {
  auto& context = at::globalContext();
  const auto ieee = at::Float32Precision::IEEE;
  const auto cuda = precision == "tf32" ? at::Float32Precision::TF32 : ieee;
  context.setFloat32Precision(at::Float32Backend::GENERIC, at::Float32Op::ALL, ieee);
  for (const auto& [backend, value] : {std::pair{at::Float32Backend::CUDA, cuda}, {at::Float32Backend::MKLDNN, ieee}})
    for (const auto op : {at::Float32Op::CONV, at::Float32Op::RNN, at::Float32Op::MATMUL})
      context.setFloat32Precision(backend, op, value);
}

// Autocast to bfloat16 while it lives.
class Autocast {
 public:
  explicit Autocast(at::DeviceType device) : device_(device), before_(at::autocast::is_autocast_enabled(device)) {
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, before_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool before_;
};

}  // namespace

class TorchClient final : public Client {
 public:
  TorchClient(TorchLevel& level, int threads) : level_(level), threads_(threads) {}

  void enter() override {
    at::set_num_threads(threads_);  // OpenMP keeps it by thread
    if (threads_ == 1) allow_one_openmp_thread();
#ifdef STRATA_CUDA
    if (level_.device_.is_cuda())
      c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(false, level_.device_.index()));
#endif
  }
  void set_input(std::span<const HostTensor> inputs) override {
    inputs_ = level_.take(inputs);
  }
  void run() override {
    results_ = level_.infer(inputs_);
  }
  void wait() override {
#ifdef STRATA_CUDA
    if (level_.device_.is_cuda()) c10::cuda::getCurrentCUDAStream(level_.device_.index()).synchronize();
#endif
  }
  void outputs(std::vector<HostTensor>& results) override {
    to_hosts(results_, results, level_.bfloat16_ || level_.autocast_);
  }

 private:
  TorchLevel& level_;
  int threads_;
  std::vector<at::Tensor> inputs_, results_;
};

at::Tensor borrow(const TensorView& view) {
  return at::from_blob(const_cast<std::byte*>(view.data), view.shape, at::TensorOptions().dtype(to_torch(view.dtype)));
}

HostTensor to_host(const at::Tensor& tensor) {
  // the tensor itself owns the bytes; one small allocation carries it
  auto copy = std::make_shared<const at::Tensor>(tensor.detach().to(at::kCPU).contiguous());
  HostTensor result;
  result.view.dtype = from_torch(copy->scalar_type());
  result.view.shape = copy->sizes().vec();
  result.view.data = static_cast<const std::byte*>(copy->const_data_ptr());
  result.view.bytes = copy->nbytes();
  result.owner = std::move(copy);
  return result;
}

NamedTensors named_tensors(const torch::OrderedDict<std::string, at::Tensor>& items) {
  NamedTensors result;
  for (const auto& item : items) result.emplace(item.key(), item.value());
  return result;
}

std::int64_t elements_once(const NamedTensors& tensors) {
  std::set<std::tuple<const void*, std::vector<std::int64_t>, std::vector<std::int64_t>>> seen;
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : tensors)
    if (seen.emplace(tensor.const_data_ptr(), tensor.sizes().vec(), tensor.strides().vec()).second)
      elements += tensor.numel();
  return elements;
}

void to_channels_last(const NamedTensors& parameters) {
  for (const auto& [name, parameter] : parameters)
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
}

void to_bfloat16(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    if (tensor.is_floating_point()) tensor.set_data(tensor.to(at::kBFloat16));
}

void copy_weights(const NamedTensors& into, const SafeTensors& weights,
                  const std::function<bool(const std::string&)>& belongs) {
  for (const auto& name : weights.names())
    if (belongs(name) && !into.contains(name))
      throw Failure("failed", fmt::format("{} holds '{}', which this level's network has not", weights.where(), name));
  c10::InferenceMode guard;
  for (const auto& [name, tensor] : into) {
    const TensorView* view = weights.find(name);
    if (view == nullptr)
      throw Failure("failed", fmt::format("{} lacks '{}' of this level's network", weights.where(), name));
    const bool rounds = tensor.scalar_type() == at::kBFloat16 && view->dtype == "F32";
    if (tensor.sizes() != at::IntArrayRef(view->shape) || (!rounds && tensor.scalar_type() != to_torch(view->dtype)))
      throw Failure("failed", fmt::format("{}: '{}' is {} [{}], the level's network needs {} [{}]", weights.where(),
                                          name, view->dtype, fmt::join(view->shape, ", "),
                                          from_torch(tensor.scalar_type()), fmt::join(tensor.sizes(), ", ")));
    if (tensor.is_cpu() && tensor.is_contiguous() && !rounds)
      std::memcpy(tensor.data_ptr(), view->data, view->bytes);  // safetensors promises no alignment, memcpy needs none
    else
      tensor.detach().copy_(borrow(*view).clone());
  }
}

About TorchLevel::about() const {
  return {.versions = {{"torch", TORCH_VERSION}}, .operations = {}};
}

bool TorchLevel::has_device(const std::string& device) const {
#ifdef STRATA_CUDA
  if (device == "cuda") return torch::cuda::is_available();
#endif
  return device == "cpu";
}

void TorchLevel::load(const Case& run_case, const Bundle& bundle, const std::filesystem::path& cache) {
  at::set_num_threads(run_case.threads);
  set_float32(run_case.precision);
  bfloat16_ = autocast_ = false;
  input_count_ = bundle.inputs.size();
  case_trains_ = run_case.mode == "train";
  const auto loss = run_case.json.value("loss", nlohmann::json());
  log_probabilities_ = loss == "nll";
  gives_loss_ = case_trains_ && gives_loss(bundle);
  if (case_trains_ && !gives_loss_ && !loss.is_null() && loss != "nll" && loss != "cross_entropy")
    throw Failure("unsupported", fmt::format("loss {} is not one of: \"cross_entropy\", \"nll\"", loss.dump()));
  device_ = at::Device(run_case.device);
  if (device_.is_cuda()) device_ = at::Device(at::kCUDA, 0);
  facts_ = Facts{};
  facts_.threads = at::get_num_threads();
  facts_.inference_mode = !case_trains_;
  const auto float32 = at::globalContext().float32Precision(
      device_.is_cuda() ? at::Float32Backend::CUDA : at::Float32Backend::MKLDNN, at::Float32Op::CONV);
  facts_.precision = float32 == at::Float32Precision::IEEE   ? "fp32"
                     : float32 == at::Float32Precision::TF32 ? "tf32"
                                                             : "unknown";
  facts_.autotune = device_.is_cuda() && at::globalContext().benchmarkCuDNN();
  build(run_case, bundle, cache);
  if (autocast_) facts_.precision = "amp-bf16";
  const auto held = parameters();
  if (std::any_of(held.begin(), held.end(),
                  [](const auto& parameter) { return parameter.second.scalar_type() == at::kBFloat16; }))
    facts_.precision = "bf16";
}

void TorchLevel::convert_around(const std::string& precision) {
  bfloat16_ = precision == "bf16";
  autocast_ = precision == "amp-bf16";
}

// The caller's tensors on the device and in the layout that the network wants.
std::vector<at::Tensor> TorchLevel::take(std::span<const HostTensor> inputs) const {
  std::vector<at::Tensor> taken(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor tensor = borrow(inputs[i].view);
    if (!device_.is_cpu())
      tensor = tensor.to(device_);
    else if (copy_inputs)
      tensor = tensor.clone();
    if (bfloat16_ && tensor.is_floating_point()) tensor = tensor.to(at::kBFloat16);
    if (layout_ != at::MemoryFormat::Contiguous && tensor.dim() == 4) tensor = tensor.contiguous(layout_);
    taken[i] = std::move(tensor);
  }
  return taken;
}

void TorchLevel::set_input(std::span<const HostTensor> inputs) {
  inputs_ = take(inputs);
  if (inputs_.size() == input_count_) return;
  labels_ = std::move(inputs_.back());
  inputs_.pop_back();
}

std::vector<std::unique_ptr<Client>> TorchLevel::clients(int count, int threads) {
  at::set_num_threads(threads);
  std::vector<std::unique_ptr<Client>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<TorchClient>(*this, threads));
  return all;
}

void TorchLevel::run() {
  results_ = infer(inputs_);
}

std::vector<at::Tensor> TorchLevel::in_mode(std::vector<at::Tensor>& inputs) {
  std::optional<Autocast> mixed;
  if (autocast_) mixed.emplace(device_.type());
  return forward(inputs);
}

std::vector<at::Tensor> TorchLevel::infer(std::vector<at::Tensor>& inputs) {
  c10::InferenceMode guard;
  return in_mode(inputs);
}

void TorchLevel::wait() {
#ifdef STRATA_CUDA
  if (device_.is_cuda()) c10::cuda::device_synchronize();
#endif
}

void TorchLevel::outputs(std::vector<HostTensor>& results) {
  to_hosts(results_, results, bfloat16_ || autocast_);
}

std::optional<std::int64_t> TorchLevel::device_peak_bytes() const {
#ifdef STRATA_CUDA
  if (device_.is_cuda()) {
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return c10::cuda::CUDACachingAllocator::getDeviceStats(device_.index()).allocated_bytes[all].peak;
  }
#endif
  return std::nullopt;
}

namespace {

// An operator that PyTorch's readers of programs do not know, which then no package has registered; empty: none.
std::string unknown_operator(const std::string& what) {
  for (const std::string_view before : {"Unknown builtin op: ", "Could not find schema for "}) {
    const auto at = what.find(before);
    if (at == std::string::npos) continue;
    auto name = what.substr(at + before.size());
    name = name.substr(0, name.find_first_of(" \n,;"));
    if (name.ends_with('.')) name.pop_back();
    return name;
  }
  return {};
}

}  // namespace

Failure TorchLevel::explain(const std::exception& error) const {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string what = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  // the host allocator throws a plain c10::Error
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
      what.find("DefaultCPUAllocator") != std::string::npos)
    return {"out_of_memory", what};
  if (const auto name = unknown_operator(what); !name.empty())
    return {"unsupported", fmt::format("the operator {} belongs to a package that a C++ program does not load", name),
            "levels that run the Python module can run it"};
  return torch_error != nullptr ? Failure("failed", what) : Level::explain(error);
}

}  // namespace strata
