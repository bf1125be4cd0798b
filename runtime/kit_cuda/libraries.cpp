// SPDX-License-Identifier: Apache-2.0
#include "kit_cuda/libraries.hpp"

#include <cublasLt.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <unordered_map>
#include <variant>
#include <vector>

namespace kit_cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph, fe::graph::Tensor_attributes, fe::graph::Pointwise_attributes;
using Numbers = std::vector<std::int64_t>;
using TensorOf = std::shared_ptr<Tensor_attributes>;

// Of a graph's tensors.
enum Name : std::int64_t { image = 1, filter, result, bias, summand };

void check(cudnnStatus_t status, const char* tried) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuDNN, ") + tried + ": " + cudnnGetErrorString(status));
}
void check(cublasStatus_t status, const char* tried) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuBLAS, ") + tried + ": " + cublasLtGetStatusString(status));
}

// With a height of 1 where there is but a width, since cuDNN knows images of four dimensions or more.
struct Dims {
  Numbers extents, strides;
};
Dims dims_of(const View& view) {
  Dims dims{{view.extents, view.extents + view.rank}, {view.strides, view.strides + view.rank}};
  if (view.rank == 3) {
    dims.extents.insert(dims.extents.begin() + 2, 1);
    dims.strides.insert(dims.strides.begin() + 2, view.extents[2] * view.strides[2]);
  }
  return dims;
}
Numbers spatial(const Index* numbers, int rank, Index missing) {
  Numbers result(numbers, numbers + rank - 2);
  if (rank == 3) result.insert(result.begin(), missing);
  return result;
}

Tensor_attributes attributes(const View& view, Name name) {
  const auto dims = dims_of(view);
  return Tensor_attributes().set_uid(name).set_dim(dims.extents).set_stride(dims.strides);
}
void is_result(const TensorOf& tensor, const View& view, Name name) {
  const auto dims = dims_of(view);
  tensor->set_output(true).set_uid(name).set_dim(dims.extents).set_stride(dims.strides);
}

template <class Attributes>
Attributes window_of(const Convolution& how) {
  const int rank = how.image.rank;
  return Attributes()
      .set_padding(spatial(how.window.before, rank, 0))
      .set_stride(spatial(how.window.stride, rank, 1))
      .set_dilation(spatial(how.window.dilation, rank, 1));
}

// A bias of one element a channel, beside images.
Tensor_attributes channels_of(const View& image_like) {
  const auto dims = dims_of(image_like);
  Numbers extents(dims.extents.size(), 1), strides(dims.extents.size(), dims.extents[1]);
  extents[1] = dims.extents[1];
  strides[1] = 1;
  return Tensor_attributes().set_uid(bias).set_dim(extents).set_stride(strides);
}

TensorOf with_epilogue(Graph& graph, TensorOf tensor, const Convolution& how) {
  const auto mode = [](fe::PointwiseMode_t which) { return Pointwise_attributes().set_mode(which); };
  const Epilogue& then = how.then;
  if (then.bias)
    tensor = graph.pointwise(tensor, graph.tensor(channels_of(how.result)), mode(fe::PointwiseMode_t::ADD));
  if (then.summand)
    tensor = graph.pointwise(tensor, graph.tensor(attributes(how.result, summand)), mode(fe::PointwiseMode_t::ADD));
  if (!then.clamps()) return tensor;
  auto clamp = mode(fe::PointwiseMode_t::RELU_FWD);
  if (then.low != 0) clamp.set_relu_lower_clip(then.low);
  if (then.high < std::numeric_limits<float>::infinity()) clamp.set_relu_upper_clip(then.high);
  return graph.pointwise(tensor, clamp);
}

void describe(Graph& graph, const Convolution& how) {
  if (how.direction == Direction::forward)
    return is_result(with_epilogue(graph,
                                   graph.conv_fprop(graph.tensor(attributes(how.image, image)),
                                                    graph.tensor(attributes(how.filter, filter)),
                                                    window_of<fe::graph::Conv_fprop_attributes>(how)),
                                   how),
                     how.result, result);
  const auto gradient = graph.tensor(attributes(how.result, result));
  if (how.direction == Direction::data)
    return is_result(graph.conv_dgrad(gradient, graph.tensor(attributes(how.filter, filter)),
                                      window_of<fe::graph::Conv_dgrad_attributes>(how)),
                     how.image, image);
  is_result(graph.conv_wgrad(gradient, graph.tensor(attributes(how.image, image)),
                             window_of<fe::graph::Conv_wgrad_attributes>(how)),
            how.filter, filter);
}

// A matrix of cuBLAS, whose columns lie one behind the other: a row-major one transposed.
struct Matrix {
  Index rows, columns, leading;
  bool transposed;  // the wanted matrix is this one transposed
};
Matrix matrix_of(const View& view) {
  const Index rows = view.extents[view.rank - 2], columns = view.extents[view.rank - 1];
  const Index row_step = view.strides[view.rank - 2], column_step = view.strides[view.rank - 1];
  if (column_step == 1 || columns == 1) return {columns, rows, std::max(rows == 1 ? 0 : row_step, columns), false};
  return {rows, columns, std::max(column_step, rows), true};
}

struct Layout {
  cublasLtMatrixLayout_t handle = nullptr;
  Layout(const Matrix& matrix, cudaDataType_t type, int batch, Index step) {
    check(cublasLtMatrixLayoutCreate(&handle, type, static_cast<std::uint64_t>(matrix.rows),
                                     static_cast<std::uint64_t>(matrix.columns), matrix.leading),
          "a matrix");
    check(cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
          "a batch");
    check(cublasLtMatrixLayoutSetAttribute(handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
          "a batch");
  }
  ~Layout() {
    if (handle != nullptr) (void)cublasLtMatrixLayoutDestroy(handle);
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
};

View outer_dims(View view) {
  view.rank -= 2;
  return view;
}

// right^T left^T, which is the result's transpose, for each matrix of the innermost dimension of a batch.
struct ProductPlan {
  Walk<3> batch;
  Index inner = 1;  // matrices of one call
  Index steps[3] = {};
  std::size_t element = sizeof(float), result_element = sizeof(float);
  std::unique_ptr<Layout> left, right, result;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  ~ProductPlan() {
    if (operation != nullptr) (void)cublasLtMatmulDescDestroy(operation);
  }
  void set(cublasLtMatmulDescAttributes_t what, const void* value, std::size_t bytes) const {
    check(cublasLtMatmulDescSetAttribute(operation, what, value, bytes), "a product");
  }
};

cublasLtEpilogue_t epilogue_of(const Epilogue& then) {
  if (then.clamps()) return then.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return then.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

std::unique_ptr<ProductPlan> describe(const Product& how, bool tf32) {
  auto plan = std::make_unique<ProductPlan>();
  plan->batch = walk<3>({outer_dims(how.left), outer_dims(how.right), outer_dims(how.result)});
  if (const int last = plan->batch.rank - 1; last >= 0) {
    plan->inner = plan->batch.extents[last];
    for (int n = 0; n < 3; ++n) plan->steps[n] = plan->batch.strides[n][last];
  }
  const auto left = matrix_of(how.left), right = matrix_of(how.right);
  const auto count = static_cast<int>(plan->inner);
  const bool narrow = how.bfloat16 && !how.gives_float32;
  const auto type = how.bfloat16 ? CUDA_R_16BF : CUDA_R_32F, result_type = narrow ? CUDA_R_16BF : CUDA_R_32F;
  if (how.bfloat16) plan->element /= 2;
  if (narrow) plan->result_element /= 2;
  plan->left = std::make_unique<Layout>(left, type, count, plan->steps[0]);
  plan->right = std::make_unique<Layout>(right, type, count, plan->steps[1]);
  plan->result = std::make_unique<Layout>(matrix_of(how.result), result_type, count, plan->steps[2]);
  check(cublasLtMatmulDescCreate(&plan->operation,
                                 tf32 && !how.bfloat16 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "a product");
  const auto order = [](const Matrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto first = order(right), second = order(left);
  const auto epilogue = epilogue_of(how.then);
  plan->set(CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
  plan->set(CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
  plan->set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  return plan;
}

}  // namespace

struct Libraries::Plans {
  Stream stream;
  cudnnHandle_t cudnn = nullptr;
  cublasLtHandle_t cublas = nullptr;
  bool tf32 = false;
  std::string refusal;
  std::vector<std::variant<std::shared_ptr<Graph>, std::unique_ptr<ProductPlan>>> all;
  std::size_t workspace_bytes = 0;
  Memory workspace;

  template <class Plan>
  int keep(Plan plan, std::size_t bytes) {
    all.emplace_back(std::move(plan));
    workspace_bytes = std::max(workspace_bytes, bytes);
    return static_cast<int>(all.size()) - 1;
  }
};

Libraries::Libraries(Stream stream) : plans_(std::make_unique<Plans>()) {
  plans_->stream = stream;
  check(cudnnCreate(&plans_->cudnn), "its start");
  check(cudnnSetStream(plans_->cudnn, stream), "its stream");
  check(cublasLtCreate(&plans_->cublas), "its start");
}

Libraries::~Libraries() {
  plans_->all.clear();
  (void)cublasLtDestroy(plans_->cublas);
  (void)cudnnDestroy(plans_->cudnn);
}

void Libraries::allow_tf32() {
  plans_->tf32 = true;
}
const std::string& Libraries::refusal() const {
  return plans_->refusal;
}

std::optional<int> Libraries::plan(const Convolution& how) {
  Plans& p = *plans_;
  auto graph = std::make_shared<Graph>();
  graph->set_io_data_type(how.bfloat16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  describe(*graph, how);
  const auto done = [&](fe::error_t status) {
    if (status.is_bad()) p.refusal = status.get_message();
    return status.is_good();
  };
  if (!done(graph->validate()) || !done(graph->build_operation_graph(p.cudnn)) ||
      !done(graph->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK})))
    return std::nullopt;
  if (!p.tf32 && !how.bfloat16)
    graph->deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE, fe::NumericalNote_t::DOWN_CONVERT_INPUTS,
                                   fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION});
  if (!done(graph->check_support()) || !done(graph->build_plans())) return std::nullopt;
  std::int64_t bytes = 0;
  if (!done(graph->get_workspace_size(bytes))) return std::nullopt;
  return p.keep(std::move(graph), static_cast<std::size_t>(bytes));
}

std::optional<int> Libraries::plan(const Product& how) {
  Plans& p = *plans_;
  const bool relu = how.then.low == 0 && how.then.high == std::numeric_limits<float>::infinity();
  if (how.then.summand || (how.then.clamps() && !relu)) {
    p.refusal = "no epilogue but a bias and ReLU";
    return std::nullopt;
  }
  auto plan = describe(how, p.tf32);
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "its preferences");
  const std::uint64_t most_bytes = std::uint64_t{32} << 20;
  constexpr std::uint32_t line = 16;
  const auto element = static_cast<Index>(plan->element);
  const bool aligned =
      std::all_of(plan->steps, plan->steps + 3, [=](Index step) { return step * element % line == 0; }) &&
      plan->batch.count <= plan->inner;
  const auto alignment = aligned ? line : static_cast<std::uint32_t>(element);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value), "its preferences");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_bytes);
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(which, alignment);
  cublasLtMatmulHeuristicResult_t heuristic{};
  int count = 0;
  const auto status =
      cublasLtMatmulAlgoGetHeuristic(p.cublas, plan->operation, plan->right->handle, plan->left->handle,
                                     plan->result->handle, plan->result->handle, preference, 1, &heuristic, &count);
  (void)cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    p.refusal = cublasLtGetStatusString(status);
    return std::nullopt;
  }
  plan->algorithm = heuristic.algo;
  return p.keep(std::move(plan), heuristic.workspaceSize);
}

void Libraries::run(int plan, const ConvolutionOperands& on) {
  Plans& p = *plans_;
  std::unordered_map<std::int64_t, void*> operands{{image, on.image}, {filter, on.filter}, {result, on.result}};
  if (on.bias != nullptr) operands[bias] = const_cast<void*>(on.bias);
  if (on.summand != nullptr) operands[summand] = const_cast<void*>(on.summand);
  const auto& graph = std::get<std::shared_ptr<Graph>>(p.all.at(static_cast<std::size_t>(plan)));
  if (auto status = graph->execute(p.cudnn, operands, p.workspace.get()); status.is_bad())
    throw std::runtime_error("cuDNN: " + status.get_message());
}

void Libraries::run(int plan, const ProductOperands& on) {
  Plans& p = *plans_;
  const auto& product = *std::get<std::unique_ptr<ProductPlan>>(p.all.at(static_cast<std::size_t>(plan)));
  if (on.bias != nullptr) product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &on.bias, sizeof on.bias);
  const float one = 1, zero = 0;
  for (Index first = 0; first < product.batch.count; first += product.inner) {
    Index at[3];
    product.batch.find(first, at);
    const auto place = [&](const void* data, int which) {
      const auto element = which == 2 ? product.result_element : product.element;
      return static_cast<const std::byte*>(data) + static_cast<std::size_t>(at[which]) * element;
    };
    auto* result = const_cast<std::byte*>(place(on.result, 2));
    check(cublasLtMatmul(p.cublas, product.operation, &one, place(on.right, 1), product.right->handle,
                         place(on.left, 0), product.left->handle, &zero, result, product.result->handle, result,
                         product.result->handle, &product.algorithm, p.workspace.get(), p.workspace_bytes, p.stream),
          "a product");
  }
}

void Libraries::allocate_workspace() {
  plans_->workspace = memory(plans_->workspace_bytes);
}
std::size_t Libraries::workspace_bytes() const {
  return plans_->workspace_bytes;
}

std::string libraries_name() {
  const auto version = [](std::size_t number) {
    return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
           std::to_string(number % 100);
  };
  return "cuDNN " + version(cudnnGetVersion()) + " and cuBLAS " + version(cublasLtGetVersion()) + " on " +
         device_name();
}

}  // namespace kit_cuda
