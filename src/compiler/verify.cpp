// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/kernels.hpp"
#include "compiler/layouts.hpp"
#include "compiler/lifetimes.hpp"
#include "compiler/op_traits.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

struct Breach {
  std::string what;
};

template <class... Args>
void need(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) throw Breach{fmt::format(text, std::forward<Args>(args)...)};
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program), holds_(program.graph.values.size(), -1) {}

  void places() const {
    need(p_.places.size() == p_.graph.values.size(), "{} places for {} values", p_.places.size(),
         p_.graph.values.size());
    for (std::size_t v = 0; v < p_.places.size(); ++v) {
      const auto& place = p_.places[v];
      const auto& name = p_.graph.values[v].name;
      need(place.storage >= 0 && place.storage < static_cast<int>(p_.places.size()), "value '{}' has no storage", name);
      const auto& owner = p_.place(place.storage);
      need(owner.storage == place.storage, "the storage of value '{}' owns no bytes itself", name);
      need(owner.in == place.in, "value '{}' and its storage lie in different memory", name);
      const auto bytes = bytes_in(p_.graph.values[v], place.layout, p_.block);
      need(bytes == place.bytes, "value '{}' is said to have {} bytes", name, place.bytes);
      need(place.bytes <= owner.bytes, "value '{}' has {} bytes, its storage {}", name, place.bytes, owner.bytes);
    }
  }

  void run() {
    const auto& g = p_.graph;
    for (const auto* list : {&g.inputs, &g.parameters, &g.buffers, &g.constants})
      for (const auto& named : *list) {
        need(p_.place(named.value).layout == Layout::plain, "'{}' is given and not plain", named.name);
        hold(named.value);
        fixed_storages_.insert(p_.place(named.value).storage);
      }
    if (g.mode == graph::Mode::train)
      for (const auto& update : g.updates) changes_[update.value] = storage_named(update.name);
    bool running = false;
    for (const auto& step : p_.steps) {
      need(!running || step.when == When::run, "{} is of load and comes after one of the run", where(step));
      running = step.when == When::run;
      execute(step);
    }
    ends();
  }

  void arena() const {
    const auto blocks = lifetimes_of(p_);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto& a = blocks[i];
      const auto from = offset(a);
      need(from >= 0 && from % alignment == 0 && a.bytes <= p_.arena_bytes - from,
           "storage '{}' of {} bytes at offset {} of an arena of {}", name(a.storage), a.bytes, from, p_.arena_bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const auto& b = blocks[j];
        const bool together = a.first <= b.last && b.first <= a.last;
        need(!together || from >= offset(b) + b.bytes || offset(b) >= from + a.bytes,
             "storages '{}' and '{}' live at the same time and overlap in the arena", name(a.storage), name(b.storage));
      }
    }
    need(p_.least_arena_bytes <= p_.arena_bytes, "the arena of {} bytes is below its own bound {}", p_.arena_bytes,
         p_.least_arena_bytes);
  }

 private:
  const std::string& name(int value) const { return p_.value(value).name; }
  std::int64_t offset(const Lifetime& block) const { return p_.place(block.storage).offset; }
  int storage(int value) const { return p_.place(value).storage; }
  void hold(int value) {
    holds_[static_cast<std::size_t>(value)] = ++version_;
    now_[storage(value)] = version_;
  }
  bool readable(int value) const {
    const auto it = now_.find(storage(value));
    return it != now_.end() && it->second == holds_[static_cast<std::size_t>(value)];
  }

  void execute(const Step& step) {
    const auto operands = operands_of(step);
    for (const int value : operands) {
      need(!changed_.contains(storage(value)), "{} reads '{}' after this step of training has changed it", where(step),
           name(value));
      need(readable(value), "{} reads value '{}', which is not written yet or written over", where(step), name(value));
      need(step.when == When::run || p_.place(value).in == Place::In::weights,
           "{} is of load and reads '{}', which is no weight", where(step), name(value));
    }
    for (const auto& post : step.posts)
      if (post.value >= 0) reads_alike(step, post.value);
    if (const int bound = bound_operand(step); bound >= 0) {
      const int result = written_with_.at(bound), read = operands.front();
      need(!has_layouts(p_.value(result)) ||
               same_bytes(p_.value(result), p_.place(result).layout, p_.place(read).layout, p_.block),
           "{} reads '{}', which was written in the order of another layout", where(step), name(bound));
    }
    if (step.view) return view(step, operands.front());
    types(step);
    need(can_run(p_, step, step.kernel), "{} is given to the kernel {}, which cannot compute it", where(step),
         name_of(step.kernel));
    std::set<int> written;
    for (const int output : step.node.outputs) {
      need(!fixed_storages_.contains(storage(output)), "{} writes over '{}', which is an input or a weight",
           where(step), name(storage(output)));
      need(written.insert(storage(output)).second, "{} writes two results into one storage", where(step));
      need((p_.place(output).in == Place::In::weights) == (step.when == When::load),
           "{} writes '{}' into the wrong memory", where(step), name(output));
      for (const int operand : operands)
        need(p_.place(operand).bytes == 0 || !p_.same_storage(operand, output) || may_write_over(p_, step, operand),
             "{} writes '{}' over '{}', which it still reads", where(step), name(output), name(operand));
    }
    for (const int output : step.node.outputs) {
      hold(output);
      written_with_[output] = step.node.outputs.front();
      if (const auto effect = changes_.find(output); effect != changes_.end()) changed_.insert(effect->second);
    }
  }

  int storage_named(const std::string& name) const {
    for (const auto* list : {&p_.graph.parameters, &p_.graph.buffers})
      for (const auto& named : *list)
        if (named.name == name) return storage(named.value);
    throw Breach{fmt::format("an update of '{}', which is no weight", name)};
  }

  // What a run computes is read and written in one type, but for conversions; a training step may read another than it
  // writes, which is float32.
  void types(const Step& step) const {
    if (step.when == When::load || step.node.operation() == "strata.cast") return;
    const auto written = p_.value(step.node.outputs.front()).type;
    std::vector<int> read, added;
    for (const auto& argument : step.node.args) read.insert(read.end(), argument.values.begin(), argument.values.end());
    for (const auto& post : step.posts) added.push_back(post.value);
    auto expected = written;
    if (p_.graph.mode == graph::Mode::train)
      for (const int value : read)
        if (value >= 0 && p_.value(value).type == graph::Type::bfloat16) expected = graph::Type::bfloat16;
    alike(step, read, expected);
    alike(step, added, written);
    alike(step, step.node.outputs, expected == written ? written : graph::Type::float32);
  }

  void alike(const Step& step, const std::vector<int>& values, graph::Type expected) const {
    for (const int value : values) {
      if (value < 0) continue;
      const auto type = p_.value(value).type;
      need(type == expected || !is_computed_with(type) || !is_computed_with(expected) ||
               p_.place(value).in == Place::In::weights,
           "{} takes or gives '{}' in {} where {} is due", where(step), name(value), graph::name_of(type),
           graph::name_of(expected));
    }
  }

  // A post is read in the layout of the result; weights and what has no elements lie in any.
  void reads_alike(const Step& step, int value) const {
    const auto& place = p_.place(value);
    need(!has_layouts(p_.value(value)) || place.in == Place::In::weights || place.bytes == 0 ||
             place.layout == p_.place(step.node.outputs.front()).layout,
         "{} takes '{}' as a post, which lies in another layout", where(step), name(value));
  }

  void view(const Step& step, int source) {
    const int output = step.node.outputs.front();
    need(step.node.outputs.size() == 1 && p_.same_storage(source, output), "{} is a view with a storage of its own",
         where(step));
    const auto &from = p_.value(source), &to = p_.value(output);
    need(from.type == to.type && from.elements() == to.elements() && step.posts.empty(), "{} is no view of '{}'",
         where(step), from.name);
    need(view_keeps_order(p_, step), "{} is a view of '{}', whose elements lie in another order", where(step),
         from.name);
    holds_[static_cast<std::size_t>(output)] = holds_[static_cast<std::size_t>(source)];
  }

  void ends() const {
    std::set<int> seen;
    for (const auto& output : p_.graph.outputs) {
      need(readable(output.value), "output '{}' is not written, or written over", output.name);
      const auto& place = p_.place(output.value);
      need(place.in == Place::In::caller && place.layout == Layout::plain,
           "output '{}' is not plain in the caller's memory", output.name);
      need(!fixed_storages_.contains(place.storage) && seen.insert(place.storage).second,
           "output '{}' shares its storage with an input or an output", output.name);
    }
    for (const auto& update : p_.graph.updates)
      need(readable(update.value), "the update of '{}' is written over", update.name);
  }

  const Program& p_;
  int version_ = 0;
  std::vector<int> holds_;           // by value: the version of its storage that is its content
  std::map<int, int> now_;           // by storage: its version
  std::set<int> fixed_storages_;     // storages of inputs and weights
  std::map<int, int> changes_;       // in training: effects, and the storages of what they change
  std::map<int, int> written_with_;  // values -> the first result of the step that writes them
  std::set<int> changed_;            // storages that were changed
};

}  // namespace

bool may_write_over(const Program& program, const Step& step, int operand) {
  const int output = step.node.outputs.front();
  if (step.node.outputs.size() != 1 || step.view) return false;
  const auto &from = program.value(operand), &to = program.value(output);
  if (from.type != to.type || from.shape != to.shape || program.place(operand).layout != program.place(output).layout)
    return false;
  std::vector<int> reads;  // with repetition
  for (const auto& argument : step.node.args) reads.insert(reads.end(), argument.values.begin(), argument.values.end());
  const bool by_operation = std::count(reads.begin(), reads.end(), operand) > 0;
  for (std::size_t i = 0; i < step.posts.size(); ++i)
    if (step.posts[i].value == operand && (i > 0 || by_operation || step.posts[i].kind != PostOp::Kind::add))
      return false;
  // a sum in place is oneDNN's; a layer on a GPU may write its result twice, first without the sum
  if (!by_operation) return program.target == Target::cpu || is_elementwise(step);
  // an element-wise operation reads each element where it writes; libraries want the first operand there
  const auto operation = step.node.operation();
  return is_elementwise(step) && (operand == operands_of(step).front() || operation == "add" || operation == "mul");
}

Result<void> verify(const Program& program, bool planned) {
  try {
    Verifier verifier(program);
    verifier.places();
    verifier.run();
    if (planned) verifier.arena();
  } catch (const Breach& breach) {
    return fail("the program is wrong: " + breach.what, "this is a fault of strata's compiler; please report it");
  } catch (const graph::ArgumentError& error) {
    return fail(error.what(), "remove the bundle's folder; it is made again");
  }
  return {};
}

}  // namespace strata::compiler
