// SPDX-License-Identifier: Apache-2.0
// Chooses for every step in which layout it reads and writes, so that few bytes are moved for that alone, and inserts
// the reorders that are left ("strata.reorder"), one for each value and layout, before its first reader. The choice is
// a local search over a count of bytes: from three starts (all plain but layers that cannot be; all as libraries like
// it; step by step), one step or one connected group of indifferent steps at a time, until nothing gains. The least is
// kept, so that it is never above the first start. Steps that a workspace or a mask binds to each other have one
// layout.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "compiler/layouts.hpp"
#include "compiler/passes/passes.hpp"
#include "compiler/step_builder.hpp"
#include "compiler/use_def.hpp"

namespace strata::compiler {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

class Assignment {
 public:
  explicit Assignment(const Program& program) : p_(program), uses_(uses_of(program)), choice_(program.steps.size(), 0) {
    for (const auto& step : program.steps) {
      options_.push_back(layout_options(program, step));
      std::vector<int> touched;
      for (const int value : operands_of(step))
        if (moves(value)) touched.push_back(value);
      for (const int value : step.node.outputs)
        if (moves(value)) touched.push_back(value);
      touched_.push_back(std::move(touched));
    }
    for (std::size_t s = 0; s < program.steps.size(); ++s)
      if (const int bound = bound_operand(program.steps[s]); bound >= 0) {
        bound_[bound] = s;
        touched_[s].push_back(bound);
        touched_[at(uses_.producer[at(bound)])].push_back(bound);
      }
    group();
  }

  // All plain where that is allowed.
  void start_plain() { set_all(Layout::plain); }
  void start_liked() { std::fill(choice_.begin(), choice_.end(), 0); }
  void start_in_order() {
    start_liked();
    for (std::size_t s = 0; s < choice_.size(); ++s) improve_step(s, true);
  }

  void choose_as(const Assignment& other) { choice_ = other.choice_; }

  void search() {
    constexpr int most_sweeps = 20;
    bool better = true;
    for (int sweep = 0; better && sweep < most_sweeps; ++sweep) {
      better = false;
      for (const auto& members : groups_) better = improve_group(members) || better;
      for (std::size_t s = 0; s < choice_.size(); ++s) better = improve_step(s, false) || better;
    }
  }

  double cost() const {
    double total = 0;
    for (std::size_t s = 0; s < choice_.size(); ++s) total += static_cast<double>(chosen(s).bytes);
    for (std::size_t v = 0; v < p_.graph.values.size(); ++v)
      if (moves(static_cast<int>(v)) || bound_.contains(static_cast<int>(v))) total += cost_of(static_cast<int>(v));
    return total;
  }

  const LayoutOption& chosen(std::size_t step) const { return options_[step][choice_[step]]; }
  Layout layout_of(int value) const {
    const int producer = uses_.producer[at(value)];
    return producer < 0 || !moves(value) ? Layout::plain : chosen(at(producer)).out;
  }
  // What a step reads a value in: as operand of its operation, as operand of a post, or both.
  std::set<Layout> wanted_by(const Step& step, std::size_t s, int value) const {
    std::set<Layout> result;
    for (const auto& argument : step.node.args)
      if (std::find(argument.values.begin(), argument.values.end(), value) != argument.values.end())
        result.insert(layout_of(argument, s));
    for (const auto& post : step.posts)
      if (post.value == value) result.insert(chosen(s).out);
    return result;
  }
  Layout layout_of(const graph::Argument& argument, std::size_t s) const {
    const auto& option = chosen(s);
    return option.plain_argument != nullptr && argument.name == option.plain_argument ? Layout::plain : option.in;
  }
  // Whether a value can lie in other layouts than plain.
  bool moves(int value) const {
    return has_layouts(p_.value(value)) && p_.place(value).in != Place::In::weights &&
           p_.place(value).in != Place::In::none;
  }
  const Uses& uses() const { return uses_; }

 private:
  double bytes_of(int value, Layout layout) const {
    return static_cast<double>(bytes_in(p_.value(value), layout, p_.block).value_or(0));
  }

  // Of the reorders of a value: each layout that readers want is made once.
  double cost_of(int value) const {
    if (const auto reader = bound_.find(value); reader != bound_.end()) {
      constexpr double never = 1e18;
      const auto producer = at(uses_.producer[at(value)]);
      const int result = p_.steps[producer].node.outputs.front();
      const bool alike = same_bytes(p_.value(result), chosen(producer).out, chosen(reader->second).in, p_.block);
      return alike || !moves(result) ? 0 : never;
    }
    const auto own = layout_of(value);
    std::set<Layout> layouts;
    for (const int reader : uses_.consumers[at(value)])
      layouts.merge(wanted_by(p_.steps[at(reader)], at(reader), value));
    if (uses_.read_at_end[at(value)]) layouts.insert(Layout::plain);
    double total = 0;
    for (const auto layout : layouts)
      if (!same_bytes(p_.value(value), own, layout, p_.block)) total += bytes_of(value, own) + bytes_of(value, layout);
    return total;
  }

  double cost_around(const std::vector<std::size_t>& steps) const {
    std::set<int> values;
    double total = 0;
    for (const auto s : steps) {
      values.insert(touched_[s].begin(), touched_[s].end());
      total += static_cast<double>(chosen(s).bytes);
    }
    for (const int value : values) total += cost_of(value);
    return total;
  }

  bool improve_step(std::size_t s, bool also_equal) {
    if (options_[s].size() == 1) return false;
    const auto before = choice_[s];
    auto best = before;
    double least = cost_around({s});
    for (std::size_t option = 0; option < options_[s].size(); ++option) {
      choice_[s] = option;
      const double cost = cost_around({s});
      if (cost < least || (also_equal && cost == least && option < best)) {
        least = cost;
        best = option;
      }
    }
    choice_[s] = best;
    return best != before;
  }

  bool improve_group(const std::vector<std::size_t>& members) {
    bool better = false;
    for (const auto layout : {Layout::blocked, Layout::channels_last, Layout::plain}) {
      const double before = cost_around(members);
      std::vector<std::size_t> old;
      for (const auto s : members) {
        old.push_back(choice_[s]);
        set(s, layout);
      }
      if (cost_around(members) < before) {
        better = true;
        continue;
      }
      for (std::size_t i = 0; i < members.size(); ++i) choice_[members[i]] = old[i];
    }
    return better;
  }

  // The first option that reads and writes so, or else writes or reads so; otherwise as it was.
  void set(std::size_t s, Layout layout) {
    const auto& all = options_[s];
    const auto score = [&](const LayoutOption& o) { return (o.out == layout ? 2 : 0) + (o.in == layout ? 1 : 0); };
    const auto best =
        std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return score(a) < score(b); });
    if (score(*best) > 0) choice_[s] = static_cast<std::size_t>(best - all.begin());
  }
  void set_all(Layout layout) {
    for (std::size_t s = 0; s < choice_.size(); ++s) set(s, layout);
  }

  // Steps with a choice that share a value, directly or through others such.
  void group() {
    std::vector<std::size_t> root(p_.steps.size());
    for (std::size_t s = 0; s < root.size(); ++s) root[s] = s;
    const auto find = [&](std::size_t s) {
      while (root[s] != s) s = root[s] = root[root[s]];
      return s;
    };
    std::map<int, std::size_t> by_value;
    for (std::size_t s = 0; s < p_.steps.size(); ++s) {
      if (options_[s].size() == 1) continue;
      for (const int value : touched_[s]) {
        const auto [it, fresh] = by_value.emplace(value, s);
        if (!fresh) root[find(s)] = find(it->second);
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> members;
    for (std::size_t s = 0; s < p_.steps.size(); ++s)
      if (options_[s].size() > 1) members[find(s)].push_back(s);
    for (auto& [first, all] : members) groups_.push_back(std::move(all));
  }

  const Program& p_;
  Uses uses_;
  std::vector<std::vector<LayoutOption>> options_;  // by step
  std::vector<std::size_t> choice_;
  std::vector<std::vector<int>> touched_;  // values whose reorders depend on the step's choice
  std::vector<std::vector<std::size_t>> groups_;
  std::map<int, std::size_t> bound_;  // values that bind a step, the value of the map, to its producer's layout
};

Assignment best_of(const Program& program) {
  Assignment best(program);
  best.start_plain();
  best.search();
  for (const auto start : {&Assignment::start_liked, &Assignment::start_in_order}) {
    Assignment other(program);
    (other.*start)();
    other.search();
    // of equals, what libraries like
    if (other.cost() <= best.cost()) best.choose_as(other);
  }
  return best;
}

class Inserter {
 public:
  Inserter(Program& program, const Assignment& assignment)
      : p_(program), chosen_(assignment), before_(program.steps.size() + 1) {}

  void insert() {
    const auto old_values = static_cast<int>(p_.graph.values.size());
    for (int v = 0; v < old_values; ++v)
      if (chosen_.moves(v)) p_.place(v).layout = chosen_.layout_of(v);
    for (std::size_t s = 0; s < p_.steps.size(); ++s) {
      if (chosen_.chosen(s).view) p_.steps[s].view = true;
      for (int v : operands_of(p_.steps[s]))
        if (v < old_values && chosen_.moves(v)) read_as_wanted(s, v);
    }
    for (auto& output : p_.graph.outputs) output.value = kept_plain(output.value);
    for (auto& update : p_.graph.updates) update.value = kept_plain(update.value);
    std::vector<Step> all;
    for (std::size_t s = 0; s <= p_.steps.size(); ++s) {
      for (auto& reorder : before_[s]) all.push_back(std::move(reorder));
      if (s < p_.steps.size()) all.push_back(std::move(p_.steps[s]));
    }
    p_.steps = std::move(all);
  }

 private:
  void read_as_wanted(std::size_t s, int value) {
    auto& step = p_.steps[s];
    const auto own = p_.place(value).layout;
    const auto layouts = chosen_.wanted_by(step, s, value);
    const auto out = chosen_.chosen(s).out;
    for (auto& argument : step.node.args) {
      const auto in = chosen_.layout_of(argument, s);
      if (in != own && std::find(argument.values.begin(), argument.values.end(), value) != argument.values.end())
        std::replace(argument.values.begin(), argument.values.end(), value, reordered(value, in, s, step));
    }
    if (layouts.contains(out) && out != own)
      for (auto& post : step.posts)
        if (post.value == value) post.value = reordered(value, out, s, step);
  }

  int kept_plain(int value) {
    if (!chosen_.moves(value) || p_.place(value).layout == Layout::plain) return value;
    const int producer = chosen_.uses().producer[at(value)];
    return reordered(value, Layout::plain, at(producer) + 1, p_.steps[at(producer)]);
  }

  // The value in another layout, made before step `s`, for the first time or as before.
  int reordered(int value, Layout layout, std::size_t s, const Step& like) {
    const auto [it, fresh] = built_.emplace(std::pair(value, layout), -1);
    if (!fresh) return it->second;
    const auto name = p_.value(value).name + "." + std::string(name_of(layout));
    const int result = it->second = add_value(p_, name, p_.value(value));
    p_.place(result).layout = layout;
    Step step = make_step(p_, "strata.reorder.default", {tensor_argument("self", value)}, {result});
    step.view = same_bytes(p_.value(value), p_.place(value).layout, layout, p_.block);
    step.graph_nodes = {like.node.name};
    set_place(step, like);
    before_[s].push_back(std::move(step));
    return result;
  }

  Program& p_;
  const Assignment& chosen_;
  std::vector<std::vector<Step>> before_;
  std::map<std::pair<int, Layout>, int> built_;
};

}  // namespace

Result<void> propagate_layouts(Program& program) {
  const Program before = program;
  const auto best = best_of(before);
  Inserter(program, best).insert();
  STRATA_TRY(recompute_places(program));
  materialize_outputs(program);
  return recompute_places(program);
}

}  // namespace strata::compiler
