// SPDX-License-Identifier: Apache-2.0
// Runs the network on the stored input and compares with the stored reference: network --check [THREADS]; or on inputs
// of your own, <entry>/<input> with entries from 0 on: network INPUTS.safetensors [OUTPUTS.safetensors] [THREADS].
#include <chrono>
#include <cmath>
#include <memory>

#include "aten_network.hpp"
#include "fields.hpp"
#include "printable.hpp"
#include "program_folder.hpp"
#include "torch_tensors.hpp"

namespace {

const std::string folder = program_folder();

Field field_of(const std::string& name, at::ScalarType type, at::IntArrayRef shape) {
  for (const auto& [dtype, known] : dtypes())
    if (known == type) return {name, dtype, {shape.begin(), shape.end()}};
  throw std::runtime_error("'" + name + "' is of a type that safetensors has not");
}

Fields fields_of(const std::vector<Port>& ports) {
  Fields fields;
  for (const auto& port : ports) fields.push_back(field_of(port.name, port.type, port.shape));
  return fields;
}

// The tensor of this name, which must be of this type and shape.
const RawTensor& tensor_of(const RawTensors& file, const std::string& what, const std::string& name,
                           const Field& field) {
  const auto it = file.find(name);
  if (it == file.end()) throw std::runtime_error("the " + what + "s lack '" + name + "', which is " + described(field));
  check_tensor(what, name, it->second, field);
  return it->second;
}

void copy_into(const std::vector<NamedTensor>& tensors, const RawTensors& weights, const RawTensors& constants) {
  for (const auto& tensor : tensors) {
    const auto& file = weights.count(tensor.name) > 0 ? weights : constants;
    const auto field = field_of(tensor.name, tensor.tensor->scalar_type(), tensor.tensor->sizes());
    *tensor.tensor = to_torch(tensor_of(file, "weight", tensor.name, field));
  }
}

std::unique_ptr<AtenNetwork> load_network() {
  std::unique_ptr<AtenNetwork> network(make_generated_network());
  const auto weights = read_safetensors(folder + "/weights.safetensors");
  const bool has_constants = std::ifstream(folder + "/constants.safetensors").good();
  const auto constants = has_constants ? read_safetensors(folder + "/constants.safetensors") : RawTensors();
  for (const auto* list : {&network->parameters, &network->buffers, &network->constants})
    copy_into(*list, weights, constants);
  return network;
}

// Of the group `entry` of a file: <entry>/<input>.
std::vector<at::Tensor> inputs_of(const Fields& fields, const RawTensors& file, const std::string& entry) {
  std::vector<at::Tensor> inputs;
  for (const auto& field : fields)
    inputs.push_back(to_torch(tensor_of(file, "input", entry + "/" + field.name, field)));
  return inputs;
}

int check(AtenNetwork& network) {
  const auto reference = read_safetensors(folder + "/reference.safetensors");
  const auto inputs = inputs_of(fields_of(network.inputs), reference, "input");
  std::vector<at::Tensor> all;
  std::vector<double> bounds;
  for (const auto& port : network.outputs) {
    const std::string name = port.name;
    all.push_back(
        to_torch(tensor_of(reference, "reference", "output/" + name, field_of(name, at::kDouble, port.shape))));
    const auto bound = tensor_of(reference, "reference", "bound/" + name, field_of(name, at::kDouble, {}));
    bounds.push_back(to_torch(bound).item<double>());
  }
  const auto results = network.forward(inputs);
  int wrong = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double error = ((results.at(i).to(at::kDouble) - all.at(i)).norm() / all.at(i).norm()).item<double>();
    wrong += error <= bounds.at(i) ? 0 : 1;
    std::cout << network.outputs[i].name << ": error " << error << " against the float64 reference, allowed "
              << bounds.at(i) << ": " << (error <= bounds.at(i) ? "equal" : "WRONG") << '\n';
  }
  double least = 1e300;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    network.forward(inputs);
    least =
        std::min(least, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::cout << "least of 20 runs " << least << " ms with " << at::get_num_threads() << " threads\n";
  return wrong == 0 ? 0 : 1;
}

// `to`: the file for the results; empty: they are printed alone.
int run(AtenNetwork& network, const std::string& from, const std::string& to) {
  const auto file = read_safetensors(from);
  const auto inputs = fields_of(network.inputs), gives = fields_of(network.outputs);
  const int entries = check_inputs(file, inputs);
  RawTensors outputs;
  for (int entry = 0; entry < entries; ++entry) {
    std::vector<RawTensor> results;
    for (const auto& result : network.forward(inputs_of(inputs, file, std::to_string(entry))))
      results.push_back(from_torch(result));
    check_outputs(results, gives);
    for (std::size_t i = 0; i < results.size(); ++i) outputs[std::to_string(entry) + "/" + gives[i].name] = results[i];
  }
  print(outputs);
  if (!to.empty()) write_safetensors(to, outputs);
  return 0;
}

constexpr const char* usage =
    "usage: network --check [THREADS], or network INPUTS.safetensors [OUTPUTS.safetensors] [THREADS]";

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && (words.front() == "--help" || words.front() == "-h")) {
    std::cout << usage << '\n';
    return 0;
  }
  int threads = NETWORK_THREADS > 0 ? NETWORK_THREADS : at::get_num_threads();
  const auto& last = words.empty() ? std::string() : words.back();
  if (words.size() > 1 && last.size() < 5 && last.find_first_not_of("0123456789") == std::string::npos) {
    threads = std::max(1, std::stoi(last));
    words.pop_back();
  }
  const bool checks = !words.empty() && words.front() == "--check";
  if (words.empty() || words.size() > (checks ? 1 : 2) || (!checks && words.front().rfind("--", 0) == 0)) {
    std::cerr << usage << '\n';
    return 2;
  }
  set_up(threads);
  const c10::InferenceMode guard;
  const auto network = load_network();
  return checks ? check(*network) : run(*network, words[0], words.size() > 1 ? words[1] : "");
} catch (const std::exception& error) {
  std::cerr << "error: " << printable(error.what()) << '\n';
  return 1;
}
