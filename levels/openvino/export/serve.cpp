// SPDX-License-Identifier: Apache-2.0
// Serves the network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds model.xml and model.bin;
// inputs are named <entry>/<input> with entries from 0 on, outputs <entry>/<output>.
#include <openvino/openvino.hpp>

#include "case.hpp"
#include "safetensors.hpp"

const std::vector<std::pair<std::string, ov::element::Type>> kTypes{{"F64", ov::element::f64}, {"F32", ov::element::f32}, {"F16", ov::element::f16}, {"BF16", ov::element::bf16},
                                                                    {"I64", ov::element::i64}, {"I32", ov::element::i32}, {"I16", ov::element::i16}, {"I8", ov::element::i8},
                                                                    {"U8", ov::element::u8},   {"BOOL", ov::element::boolean}};

ov::Tensor to_openvino(const RawTensor& raw) {
  for (const auto& [name, type] : kTypes)
    if (name == raw.dtype) {
      ov::Tensor tensor(type, ov::Shape(raw.shape.begin(), raw.shape.end()));
      if (tensor.get_byte_size() != raw.bytes.size()) throw std::runtime_error("a tensor's shape and its number of bytes do not fit");
      std::memcpy(tensor.data(), raw.bytes.data(), raw.bytes.size());
      return tensor;
    }
  throw std::runtime_error("OpenVINO has no type for " + raw.dtype);
}

RawTensor from_openvino(const ov::Tensor& tensor) {
  const auto shape = tensor.get_shape();
  for (const auto& [name, type] : kTypes)
    if (type == tensor.get_element_type()) return {name, {shape.begin(), shape.end()}, std::string(static_cast<const char*>(tensor.data()), tensor.get_byte_size())};
  throw std::runtime_error("an output has the type " + tensor.get_element_type().get_type_name());
}

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 4) throw std::runtime_error("usage: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]");
  ov::Core core;
  // float32 is said, since the plugin would take bfloat16 where the processor has it
  auto network = core.compile_model(std::string(argv[1]) + "/model.xml", "CPU", ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY), ov::inference_num_threads(kThreads),
                                    ov::hint::inference_precision(ov::element::f32));
  auto request = network.create_infer_request();

  const auto inputs = read_safetensors(argv[2]);
  RawTensors outputs;
  for (int entry = 0; entry == 0 || inputs.count(std::to_string(entry) + "/" + kInputs.front()) > 0; ++entry) {
    for (const auto& port : network.inputs()) request.set_tensor(port, to_openvino(input_of(inputs, entry, port.get_any_name())));
    request.infer();
    for (std::size_t i = 0; i < kOutputs.size(); ++i) outputs[std::to_string(entry) + "/" + kOutputs[i]] = from_openvino(request.get_output_tensor(i));
  }
  print(outputs);
  if (argc == 4) write_safetensors(argv[3], outputs);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
