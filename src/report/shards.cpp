// SPDX-License-Identifier: Apache-2.0
#include "report/shards.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cluster/shard.hpp"
#include "store/run_state.hpp"

namespace strata::report {
namespace {

std::vector<std::string> missing_shards(const store::Run& run) {
  std::set<int> there;
  int count = 0;
  for (const auto& entry : run.joined->shards)
    if (const auto shard = cluster::read_shard(entry.shard)) {
      there.insert(shard->number);
      count = std::max(count, shard->count);
    }
  std::vector<std::string> missing;
  for (int number = 1; number <= count; ++number)
    if (!there.contains(number)) missing.push_back(cluster::Shard{number, count}.text());
  return missing;
}

std::set<std::string> values_of(const store::Run& run, std::string store::JoinedShard::*member) {
  std::set<std::string> values;
  if (run.joined)
    for (const auto& shard : run.joined->shards) values.insert(shard.*member);
  return values;
}

document::Cell rate_cell(double rate) {
  if (rate <= 0) return document::Absent{"not measured in this precision or on this device"};
  return document::Number{.value = rate};
}

// What the machines can do at most, as each measured itself: what times of different machines are read against.
document::Table peaks_table(const store::Run& run) {
  document::Table table{
      .id = "peaks",
      .title = "Peaks of the machines",
      .columns = {{.id = "machine", .title = "machine", .align = document::Align::left},
                  {.id = "precision", .title = "precision", .align = document::Align::left},
                  {.id = "threads", .title = "threads"},
                  {.id = "gflops", .title = "operations", .unit = "GFLOP/s"},
                  {.id = "gbytes_per_s", .title = "memory", .unit = "GB/s"},
                  {.id = "instructions", .title = "instructions", .align = document::Align::left},
                  {.id = "quiet", .title = "with the cores to itself", .align = document::Align::left}}};
  std::map<std::tuple<std::string, std::string, int>, const store::Limits*> best;
  for (const auto& run_case : run.cases) {
    const auto node = run.joined->node_of.find(run_case.id);
    if (node == run.joined->node_of.end() || !run_case.limits) continue;
    auto& known = best[{node->second, std::string(name_of(run_case.question.precision)), run_case.question.threads}];
    if (!known || run_case.limits->gflops > known->gflops) known = &*run_case.limits;
  }
  for (const auto& [of, limits] : best) {
    const auto& [machine, precision, threads] = of;
    table.rows.push_back(
        {machine, precision,
         document::Number{.value = static_cast<double>(threads), .format = document::NumberFormat::count},
         rate_cell(limits->gflops), rate_cell(limits->gbytes_per_s), limits->instruction_set,
         limits->quiet ? "yes" : "no"});
  }
  table.note =
      "Measured by each machine itself, float32 on processors alone: the highest rates measured on it so far with "
      "so many threads. Times of points on different machines are unpaired: no interval here holds for their ratio.";
  return table;
}

document::Text paragraph(const std::string& sentence) {
  return {sentence, document::Text::Kind::warning};
}

}  // namespace

std::optional<document::Section> shards_section(const store::Run& run) {
  if (!run.joined) return std::nullopt;
  document::Table table{.id = "shards",
                        .title = "Who did which part",
                        .columns = {{.id = "shard", .title = "shard", .align = document::Align::left},
                                    {.id = "run", .title = "run", .align = document::Align::left},
                                    {.id = "machine", .title = "machine", .align = document::Align::left},
                                    {.id = "cpu", .title = "processor", .align = document::Align::left},
                                    {.id = "state", .title = "state", .align = document::Align::left}}};
  const auto& shards = run.joined->shards;
  const bool points = !shards.empty() && shards.front().points;
  if (points) table.columns.push_back({.id = "points", .title = "points"});
  for (const auto& shard : shards) {
    std::vector<document::Cell> row{shard.shard, shard.run, shard.node, shard.cpu, shard.state};
    if (points)
      row.emplace_back(document::Number{.value = static_cast<double>(shard.points.value_or(0)),
                                        .format = document::NumberFormat::count});
    table.rows.push_back(std::move(row));
  }
  document::Section section{.id = "shards", .title = "Shards"};
  if (const auto missing = missing_shards(run); !missing.empty())
    section.items.push_back(paragraph(fmt::format("This store has no run of shard {}.", fmt::join(missing, ", "))));
  for (const auto& note : run.joined->notes) section.items.push_back(paragraph(note + "."));
  if (values_of(run, &store::JoinedShard::cpu).size() > 1)
    section.items.push_back(paragraph(
        "The shards ran on machines of several kinds. Levels of one point shared a machine, so that speedups and "
        "who is the fastest hold; times of points on different machines say nothing of each other."));
  section.items.push_back(std::move(table));
  if (values_of(run, &store::JoinedShard::node).size() > 1)
    if (auto peaks = peaks_table(run); !peaks.rows.empty()) section.items.push_back(std::move(peaks));
  return section;
}

void add_machines(document::Section& section, const store::Run& run) {
  if (values_of(run, &store::JoinedShard::node).size() < 2) return;
  const auto& nodes = run.joined->node_of;
  for (auto& item : section.items) {
    auto* table = std::get_if<document::Table>(&item);
    if (!table || table->id != "points") continue;
    table->columns.insert(table->columns.begin() + 1,
                          document::Column{.id = "machine", .title = "machine", .align = document::Align::left});
    for (auto& row : table->rows) {
      const auto* point = std::get_if<std::string>(&row.front());
      const auto node = point ? nodes.find(*point) : nodes.end();
      row.insert(row.begin() + 1, document::Cell{node != nodes.end() ? node->second : std::string()});
    }
  }
}

std::string how_to_go_on(const store::Run& run) {
  if (!run.joined) return fmt::format("./strata resume {} goes on", run.run_id);
  return "each shard goes on by itself: ./strata resume RUN, or the command that sent it";
}

std::string resumed_words(const store::Run& run) {
  const int times = run.settings.resumed.value_or(0);
  if (times <= 0) return {};
  return fmt::format("Resumed {} after it was cut off. ", times == 1 ? "once" : fmt::format("{} times", times));
}

std::string ending_words(const store::Run& run) {
  const auto state = store::state_of(run);
  if (state == store::RunState::finished) return resumed_words(run);
  if (state == store::RunState::running) return resumed_words(run) + "Still running. ";
  const auto* how = run.settings.budget_spent               ? "The budget is spent"
                    : state == store::RunState::interrupted ? "Interrupted"
                                                            : "Not finished";
  return resumed_words(run) + fmt::format("{}; {}. ", how, how_to_go_on(run));
}

}  // namespace strata::report
