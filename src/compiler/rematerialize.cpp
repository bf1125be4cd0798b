// SPDX-License-Identifier: Apache-2.0
#include "compiler/rematerialize.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/lifetimes.hpp"
#include "compiler/op_traits.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"
#include "compiler/verify.hpp"

namespace strata::compiler {
namespace {

// Of a machine with wide vectors, in the time in which it moves a byte of main memory.
constexpr double flops_per_byte = 20;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

void add_once(std::vector<int>& to, int element) {
  if (std::find(to.begin(), to.end(), element) == to.end()) to.push_back(element);
}

bool is_effect(const Program& program, int value) {
  return std::any_of(program.graph.updates.begin(), program.graph.updates.end(),
                     [&](const auto& update) { return update.value == value; });
}

// A layer with a sum accumulates in place where its summand dies, and may then round otherwise than where it does not.
bool rounds_as_memory_lies(const Step& step) {
  const bool sums = std::any_of(step.posts.begin(), step.posts.end(),
                                [](const PostOp& post) { return post.kind == PostOp::Kind::add; });
  return sums && !is_elementwise(step) && step.node.operation() != "strata.batch_norm_train";
}

// Without the running statistics, unless these are what it normalises with.
void drop_statistics(const Program& program, Step& step) {
  std::erase_if(step.node.outputs, [&](int value) { return is_effect(program, value); });
  if (step.node.find("fixed_statistics") != nullptr) return;
  for (auto& argument : step.node.args)
    if (argument.name == "running_mean" || argument.name == "running_var")
      argument = tensor_argument(argument.name, -1);
}

// The mask is kept: it is a quarter of the bytes, and drawing it again would need the number of the step.
void read_mask(Step& step) {
  step.node.op = "strata.dropout_again.default";
  step.node.args.push_back(tensor_argument("mask", step.node.outputs.at(1)));
  step.node.outputs.resize(1);
}

// The first step that changes each storage; the number of steps: none does.
std::vector<int> changes_of(const Program& program, const std::vector<int>& producer) {
  std::map<std::string, int> by_name;
  for (const auto& update : program.graph.updates) by_name[update.name] = producer[at(update.value)];
  std::vector<int> changed(program.places.size(), static_cast<int>(program.steps.size()));
  for (const auto* list : {&program.graph.parameters, &program.graph.buffers})
    for (const auto& named : *list)
      if (const auto it = by_name.find(named.name); it != by_name.end())
        changed[at(program.place(named.value).storage)] = it->second;
  return changed;
}

}  // namespace

std::optional<Step> repetition_of(const Program& program, const Step& step) {
  if (step.when != When::run || step.phase != Phase::forward || step.view || rounds_as_memory_lies(step))
    return std::nullopt;
  Step again = step;
  if (step.node.operation() == "strata.batch_norm_train") drop_statistics(program, again);
  if (step.node.operation() == "strata.dropout_train") read_mask(again);
  for (const int value : again.node.outputs)
    if (is_effect(program, value) || program.place(value).in != Place::In::arena) return std::nullopt;
  again.again = true;
  again.phase = Phase::backward;
  return again;
}

Rematerialization::Rematerialization(const Program& program)
    : p_(program), producer_(uses_of(program).producer), numbers_(program.places.size(), -1) {
  const auto changed_at = changes_of(program, producer_);
  for (const auto& step : program.steps) add_call(step, changed_at);
}

int Rematerialization::storage(int value) {
  const auto& place = p_.place(p_.place(value).storage);
  if (place.in != Place::In::arena) return -1;
  int& number = numbers_[at(place.storage)];
  if (number < 0) {
    number = static_cast<int>(bytes_.size());
    bytes_.push_back((place.bytes + alignment - 1) / alignment * alignment);
    renewed_by_.push_back(-1);
  }
  return number;
}

void Rematerialization::add_call(const Step& step, const std::vector<int>& changed_at) {
  const auto operands = operands_of(step);
  const auto own = static_cast<int>(calls_.size());
  const int viewed = step.view ? producer_[at(operands.front())] : -1;
  root_.push_back(viewed < 0 ? own : root_[at(viewed)]);
  Call call;
  call.until = static_cast<int>(p_.steps.size());
  for (const int value : operands) {
    const int read = storage(value);
    if (read < 0) continue;
    add_once(call.reads, read);
    if (renewed_by_[at(read)] >= 0) add_once(call.from, producer_[at(value)]);
    if (!step.view && may_write_over(p_, step, value)) add_once(call.over, read);
  }
  for (const int value : step.node.outputs)
    if (!step.view && storage(value) >= 0) call.writes.push_back(storage(value));
  call.reads_again = call.reads;
  if (const auto again = repetition_of(p_, step)) {
    for (const int value : operands_of(*again)) {
      call.until = std::min(call.until, changed_at[at(p_.place(value).storage)]);
      call.cost += static_cast<double>(p_.place(value).bytes);
      if (storage(value) >= 0) add_once(call.reads_again, storage(value));
    }
    for (const int value : again->node.outputs) {
      call.gives_again.push_back(storage(value));
      renewed_by_[at(storage(value))] = own;
      call.cost += static_cast<double>(p_.place(value).bytes);
    }
    call.cost += static_cast<double>(flops_of(p_, step)) / flops_per_byte;
  }
  calls_.push_back(std::move(call));
}

// The repetitions that `step` needs before it can be repeated itself, then its own; all before the step `before`.
bool Rematerialization::add_again(const Choice& choice, int step, int before, Choice& repeated,
                                  std::vector<Turn>& turns) const {
  if (!choice[at(root_[at(step)])] || repeated[at(step)]) return true;
  repeated[at(step)] = true;
  if (calls_[at(step)].until < before) return false;
  for (const int dependency : calls_[at(step)].from)
    if (!add_again(choice, dependency, before, repeated, turns)) return false;
  turns.push_back({step, true});
  return true;
}

bool Rematerialization::turns_of(const Choice& choice, std::vector<Turn>& turns) const {
  Choice repeated(calls_.size(), false);
  turns.clear();
  for (std::size_t s = 0; s < calls_.size(); ++s) {
    if (is_backward(s))
      for (const int dependency : calls_[s].from)
        if (!add_again(choice, dependency, static_cast<int>(s), repeated, turns)) return false;
    turns.push_back({static_cast<int>(s), false});
  }
  return true;
}

std::int64_t Rematerialization::Profile::most() const {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

bool Rematerialization::profile(const Choice& choice, Profile& into) const {
  if (!turns_of(choice, into.turns)) return false;
  const auto count = bytes_.size();
  into.first.assign(2 * count, -1);  // what is given again comes behind
  into.last.assign(2 * count, -1);
  const auto read = [&](const Turn& turn, int storage) {
    const int by = turn.again || is_backward(at(turn.step)) ? renewed_by_[at(storage)] : -1;
    return by >= 0 && choice[at(by)] ? at(storage) + count : at(storage);
  };
  for (std::size_t t = 0; t < into.turns.size(); ++t) {
    const auto& turn = into.turns[t];
    const auto& call = calls_[at(turn.step)];
    for (const int dependency : turn.again ? call.reads_again : call.reads)
      into.last[read(turn, dependency)] = static_cast<int>(t);
    for (const int write : turn.again ? call.gives_again : call.writes) {
      const auto own = at(write) + (turn.again ? count : 0);
      into.first[own] = into.last[own] = static_cast<int>(t);
    }
  }
  into.bytes.assign(into.turns.size() + 2, 0);
  for (std::size_t i = 0; i < into.first.size(); ++i) {
    if (into.first[i] < 0) continue;  // not given again
    into.bytes[at(into.first[i])] += bytes_[i % count];
    into.bytes[at(into.last[i]) + 1] -= bytes_[i % count];
  }
  // a result that is written over an operand takes no place of its own at that turn
  for (std::size_t t = 0; t < into.turns.size(); ++t) {
    const auto& turn = into.turns[t];
    const auto& call = calls_[at(turn.step)];
    if (std::any_of(call.over.begin(), call.over.end(),
                    [&](int element) { return into.last[read(turn, element)] == static_cast<int>(t); })) {
      into.bytes[t] -= bytes_[at(call.writes.front())];
      into.bytes[t + 1] += bytes_[at(call.writes.front())];
    }
  }
  for (std::size_t t = 1; t < into.bytes.size(); ++t) into.bytes[t] += into.bytes[t - 1];
  into.bytes.resize(into.turns.size());
  into.first.resize(count);
  into.last.resize(count);
  return true;
}

Program Rematerialization::program_with(const Choice& choice) const {
  Program changed = p_;
  changed.steps.clear();
  std::vector<Turn> turns;
  static_cast<void>(turns_of(choice, turns));
  std::map<int, int> now;  // values that were given again
  const auto renew = [&](int& value) {
    if (const auto it = now.find(value); it != now.end()) value = it->second;
  };
  for (const auto& turn : turns) {
    const Step& original = p_.steps[at(turn.step)];
    Step step = original;
    if (turn.again && !step.view) step = *repetition_of(p_, original);
    for (auto& argument : step.node.args) std::for_each(argument.values.begin(), argument.values.end(), renew);
    for (auto& post : step.posts) renew(post.value);
    if (turn.again) {
      step.again = true;
      step.phase = Phase::backward;
      step.node.name += ".again";
      for (int& value : step.node.outputs) {
        const int copy = add_value(changed, p_.value(value).name + ".again", p_.value(value));
        changed.place(copy).layout = p_.place(value).layout;
        now[value] = copy;
        value = copy;
      }
    }
    changed.steps.push_back(std::move(step));
  }
  return changed;
}

}  // namespace strata::compiler
