// SPDX-License-Identifier: Apache-2.0
// Runs a compiled training step on its arena without computing anything: a step fills what it writes with numbers drawn
// from its operation, its arguments and every byte that it reads, and what it changes also from what was there. Two
// programs with equal fingerprints of loss, parameters and buffers compute the same from the same, whatever the
// operations are; a byte written over too early, a step left out or an effect too many gives others.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "compiler/program.hpp"

namespace strata::compiler {

class Fingerprints {
 public:
  explicit Fingerprints(const Program& program) : p_(program), arena_(static_cast<std::size_t>(program.arena_bytes)) {
    for (std::size_t v = 0; v < p_.places.size(); ++v)
      if (const auto& place = p_.places[v]; place.storage == static_cast<int>(v) && place.in != Place::In::arena)
        own_[place.storage].resize(static_cast<std::size_t>(place.bytes));
    for (const auto* list : {&p_.graph.inputs, &p_.graph.parameters, &p_.graph.buffers, &p_.graph.constants})
      for (const auto& one : *list) {
        fill(one.value, mixed(0, one.name));
        by_name_[one.name] = one.value;
      }
    for (const auto& one : p_.graph.updates) changes_[one.value] = by_name_.at(one.name);
  }

  // Of outputs, parameters and buffers after one step, by their names.
  std::map<std::string, std::uint64_t> run() {
    for (const auto& step : p_.steps)
      if (!step.view) execute(step);
    std::map<std::string, std::uint64_t> found;
    for (const auto* list : {&p_.graph.outputs, &p_.graph.parameters, &p_.graph.buffers})
      for (const auto& one : *list) found[one.name] = mixed_with(0, one.value);
    return found;
  }

 private:
  static std::uint64_t mixed(std::uint64_t x, std::uint64_t y) {
    x = (x ^ y) * 0x9e3779b97f4a7c15ULL;
    return x ^ (x >> 29);
  }
  static std::uint64_t mixed(std::uint64_t x, const std::string& text) {
    for (const char c : text) x = mixed(x, static_cast<std::uint64_t>(c) + 1);
    return x;
  }

  std::byte* data(int value) {
    const auto& place = p_.place(p_.place(value).storage);
    return place.in == Place::In::arena ? arena_.data() + place.offset : own_.at(p_.place(value).storage).data();
  }
  std::uint64_t mixed_with(std::uint64_t x, int value) {
    const auto bytes = static_cast<std::size_t>(p_.place(value).bytes);
    for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
      std::uint32_t word = 0;
      std::memcpy(&word, data(value) + i, sizeof word);
      x = mixed(x, word);
    }
    return mixed(x, bytes);
  }
  void fill(int value, std::uint64_t from) {
    const auto bytes = static_cast<std::size_t>(p_.place(value).bytes);
    for (std::size_t i = 0; i < bytes; ++i) data(value)[i] = static_cast<std::byte>(from = mixed(from, i));
  }

  // A repeated step must give what the first did: it reads no running statistics, and a dropout its mask.
  std::uint64_t read(const Step& step) {
    auto name = step.node.operation();
    if (name == "strata.dropout_again") name = "strata.dropout_train";
    std::uint64_t found = mixed(0, name);
    const bool keeps_statistics = name == "strata.batch_norm_train" && step.node.find("fixed_statistics") == nullptr;
    for (const auto& one : step.node.args) {
      if (one.name == "mask" || (keeps_statistics && one.name.starts_with("running_"))) continue;
      if (one.kind == graph::Argument::Kind::plain && !one.plain.is_null()) found = mixed(found, one.plain.dump());
      for (const int value : one.values)
        if (value >= 0) found = mixed_with(found, value);
    }
    for (const auto& post : step.posts) {
      found = mixed(found, post.operation);
      if (post.value >= 0) found = mixed_with(found, post.value);
    }
    return found;
  }

  void execute(const Step& step) {
    std::uint64_t from = read(step);
    const auto operation = step.node.operation();
    if (operation == "strata.dropout_train") {
      fill(step.node.outputs[1], mixed(1, step.node.name));
      from = mixed_with(from, step.node.outputs[1]);
    } else if (step.node.find("mask") != nullptr) {
      from = mixed_with(from, step.node.tensor("mask"));
    }
    for (std::size_t i = 0; i < step.node.outputs.size(); ++i) {
      const int output = step.node.outputs[i];
      if (const auto changed = changes_.find(output); changed != changes_.end())
        fill(changed->second, mixed_with(from, changed->second));
      else if (operation != "strata.dropout_train" || i == 0)
        fill(output, mixed(from, i));
    }
  }

  const Program& p_;
  std::vector<std::byte> arena_;
  std::map<int, std::vector<std::byte>> own_;  // by storage
  std::map<std::string, int> by_name_;
  std::map<int, int> changes_;  // effect -> what it changes
};

inline std::map<std::string, std::uint64_t> fingerprints_of(const Program& program) {
  return Fingerprints(program).run();
}

}  // namespace strata::compiler
