// SPDX-License-Identifier: Apache-2.0
#include "nvidia_convolution.hpp"

#include <cudnn_frontend.h>

namespace strata::cudnn {
namespace {

namespace fe = cudnn_frontend;
using Direction = ConvolutionShape::Direction;
using Tensors = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Names : std::int64_t { image_name = 1, weight_name, result_name };

Dims extents(const View& view) {
  return {view.extents, view.extents + view.rank};
}
// Strides of dimensions of one element are what they would be without gaps: cuDNN tells layouts by them.
Dims strides(const View& view) {
  const bool last = is_channels_last(view);
  const View whole = last ? channels_last(extents(view)) : row_major(extents(view));
  return {whole.strides, whole.strides + whole.rank};
}

template <class Attributes>
Attributes window_of(const ConvolutionShape& shape) {
  return Attributes().set_padding(shape.padding).set_stride(shape.stride).set_dilation(shape.dilation);
}

void check(fe::error_t status, const char* tried) {
  if (status.is_bad()) throw Unsupported(std::string("cuDNN: ") + tried + ": " + status.get_message());
}

void fill(fe::graph::Graph& graph, const ConvolutionShape& shape) {
  const auto type = fe::DataType_t::FLOAT;
  graph.set_io_data_type(shape.bfloat16 ? fe::DataType_t::BFLOAT16 : type)
      .set_intermediate_data_type(type)
      .set_compute_data_type(type);
  const auto tensor = [&](const View& view, Names name) {
    return graph.tensor(fe::graph::Tensor_attributes().set_uid(name).set_dim(extents(view)).set_stride(strides(view)));
  };
  const auto give = [](const Tensors& output, const View& view, Names name) {
    output->set_output(true).set_uid(name).set_dim(extents(view)).set_stride(strides(view));
  };
  if (shape.direction == Direction::forward) {
    give(graph.conv_fprop(tensor(shape.image, image_name), tensor(shape.weight, weight_name),
                          window_of<fe::graph::Conv_fprop_attributes>(shape)),
         shape.result, result_name);
  } else if (shape.direction == Direction::of_input) {
    give(graph.conv_dgrad(tensor(shape.result, result_name), tensor(shape.weight, weight_name),
                          window_of<fe::graph::Conv_dgrad_attributes>(shape)),
         shape.image, image_name);
  } else {
    give(graph.conv_wgrad(tensor(shape.result, result_name), tensor(shape.image, image_name),
                          window_of<fe::graph::Conv_wgrad_attributes>(shape)),
         shape.weight, weight_name);
  }
}

// Same results in every run; and unless it `rounds`, no kernel that rounds factors or sums.
void plan(fe::graph::Graph& graph, bool rounds) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> barred{Note::NONDETERMINISTIC};
  if (!rounds)
    barred.insert(barred.end(), {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS, Note::REDUCED_PRECISION_REDUCTION});
  check(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "no plans");
  graph.deselect_numeric_notes(barred);
  check(graph.check_support(), "no plan fits the device and the precision");
  check(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE), "no plan could be built");
}

}  // namespace

struct ConvolutionPlan::Graph : fe::graph::Graph {};

ConvolutionPlan::ConvolutionPlan(cudnnHandle_t handle, const ConvolutionShape& shape, bool tf32)
    : graph_(std::make_unique<Graph>()) {
  fill(*graph_, shape);
  check(graph_->validate(), "this convolution");
  check(graph_->build_operation_graph(handle), "this convolution");
  plan(*graph_, tf32 || shape.bfloat16);
  std::int64_t bytes = 0;
  check(graph_->get_workspace_size(bytes), "the workspace");
  check(graph_->get_plan_name(name_), "the plan's name");
  workspace_bytes_ = static_cast<std::size_t>(bytes);
}

ConvolutionPlan::~ConvolutionPlan() = default;
ConvolutionPlan::ConvolutionPlan(ConvolutionPlan&&) noexcept = default;

void ConvolutionPlan::run(cudnnHandle_t handle, const ConvolutionCall& call, void* workspace) const {
  std::unordered_map<std::int64_t, void*> pack{
      {image_name, call.image}, {weight_name, call.weight}, {result_name, call.result}};
  if (auto status = graph_->execute(handle, pack, workspace); status.is_bad())
    throw kit_cuda::DeviceError("cuDNN: a convolution: " + status.get_message(), false);
}

std::vector<std::uint8_t> describe_device() {
  fe::DeviceProperties properties;
  std::vector<std::uint8_t> bytes;
  check(properties.set_device_id(0).build(), "the device");
  check(properties.serialize(bytes), "the device");
  return bytes;
}

std::string kernel_on(const std::vector<std::uint8_t>& description, int compute_capability,
                      const ConvolutionShape& shape, bool tf32) {
  auto properties = std::make_shared<fe::DeviceProperties>();
  check(properties->deserialize(description), "the description of the device");
  fe::graph::Graph graph;
  graph.set_device_properties(properties).set_sm_version(compute_capability);
  fill(graph, shape);
  check(graph.validate(), "this convolution");
  check(graph.build_operation_graph(), "this convolution");
  plan(graph, tf32 || shape.bfloat16);
  std::string name;
  check(graph.get_plan_name(name), "the plan's name");
  return name;
}

}  // namespace strata::cudnn
