// SPDX-License-Identifier: Apache-2.0
// Runs the network on a file of tensors, <entry>/<input> with entries from 0 on; results are <entry>/<output>.
#pragma once

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>

#include "opened.hpp"

// Entries 0, 1, ... of the file, which must be all that it holds.
inline std::vector<Inputs> entries_of(const kit::SafeTensors& file) {
  int entries = 1;
  while (file.find(std::to_string(entries) + "/" + model_input(0)->name) != nullptr) ++entries;
  std::vector<Inputs> all;
  std::map<std::string, bool> known;
  for (int entry = 0; entry < entries; ++entry) {
    all.emplace_back(file, std::to_string(entry));
    for (int i = 0; i < model_input_count(); ++i) known[std::to_string(entry) + "/" + model_input(i)->name] = true;
  }
  for (const auto& [name, tensor] : file.all())
    if (known.count(name) == 0)
      throw std::runtime_error(file.path() + " holds '" + name + "' (" + described(tensor.type, tensor.shape) +
                               "), which is no input of the network");
  return all;
}

// "0/output F32 [1,10] 0.1 0.2 ...": up to eight numbers.
inline void print_result(const std::string& name, const ModelTensor& about, const void* values) {
  std::printf("%s %s", printable(name).c_str(), described(about.type, shape_of(about)).c_str());
  for (std::int64_t i = 0; i < std::min<std::int64_t>(8, about.elements); ++i)
    std::printf(" %.*g", std::string(about.type) == "F32" ? 6 : 17,
                number_at(values, about.type, static_cast<std::size_t>(i)));
  std::printf("\n");
}

// `to`: the file for the results; empty: they are printed alone.
inline int run_entries(const std::string& from, const std::string& to, const std::string& weights, int threads) {
  const kit::SafeTensors file(from);
  const auto entries = entries_of(file);
  const Network network = open_network(weights, threads);
  std::deque<std::vector<std::byte>> copies;
  std::map<std::string, kit::FileTensor> results;
  for (std::size_t entry = 0; entry < entries.size(); ++entry) {
    entries[entry].give_to(network.get());
    need(model_run(network.get()) == 0);
    for (int i = 0; i < model_output_count(); ++i) {
      const ModelTensor& about = *model_output_tensor(i);
      const auto* values = static_cast<const std::byte*>(model_output(network.get(), i));
      const auto name = std::to_string(entry) + "/" + about.name;
      print_result(name, about, values);
      if (to.empty()) continue;
      const auto& copy = copies.emplace_back(values, values + about.bytes);
      results[name] = {about.type, shape_of(about), copy.data(), copy.size()};
    }
  }
  if (!to.empty()) kit::write_safetensors(to, results);
  return 0;
}
