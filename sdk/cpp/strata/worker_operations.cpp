// SPDX-License-Identifier: Apache-2.0
// The worker's iterations with the time of each operation (docs/protocol.md, operations).
#include <fmt/format.h>

#include "strata/spans.hpp"
#include "strata/worker.hpp"

namespace strata {
namespace {

using nlohmann::json;

// While it lives the level records; it ends whatever happens.
class Recording {
 public:
  Recording(TimesOperations& level, Spans& spans) : level_(level) { level_.record(&spans); }
  ~Recording() {
    try {
      level_.record(nullptr);
    } catch (const std::exception&) {  // it began, so it can end
    }
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  TimesOperations& level_;
};

// Times of all operations, one entry an iteration.
class Times {
 public:
  // `spans`: one after the other, between the iteration's begin and end.
  void add(const Spans& spans, Span iteration) {
    if (entries_.empty()) entries_.resize(spans.size());
    if (spans.size() != entries_.size())
      throw Failure("failed", fmt::format("an iteration had {} operations, another {}", entries_.size(), spans.size()),
                    "operations are compared by their place: they are to be the same in every iteration");
    auto before = iteration.begin_ns;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (spans[i].begin_ns < before || spans[i].end_ns < spans[i].begin_ns)
        throw Failure("failed", fmt::format("operation {} begins before the one before it ends", i),
                      "a level that runs several at once cannot tell their times");
      entries_[i].ns.push_back(spans[i].end_ns - spans[i].begin_ns);
      entries_[i].gap_ns.push_back(spans[i].begin_ns - before);
      before = spans[i].end_ns;
    }
    wall_ns_.push_back(iteration.end_ns - iteration.begin_ns);
    after_ns_.push_back(iteration.end_ns - before);
  }

  json answer(const std::vector<OperationFacts>& facts) const {
    if (facts.size() != entries_.size())
      throw Failure("failed", fmt::format("{} operations were timed, {} described", entries_.size(), facts.size()));
    json all = json::array();
    for (std::size_t i = 0; i < facts.size(); ++i)
      all.push_back({{"operation", facts[i].operation},
                     {"layer", facts[i].layer ? json(*facts[i].layer) : json()},
                     {"kernel", facts[i].kernel},
                     {"shapes", facts[i].shapes},
                     {"moves_only", facts[i].moves_only},
                     {"ns", entries_[i].ns},
                     {"gap_ns", entries_[i].gap_ns}});
    return {{"operations", all}, {"wall_ns", wall_ns_}, {"after_ns", after_ns_}};
  }

 private:
  struct Entry {
    std::vector<std::int64_t> ns, gap_ns;
  };
  std::vector<Entry> entries_;
  std::vector<std::int64_t> wall_ns_, after_ns_;
};

}  // namespace

json Worker::time_operations(const json& request) {
  need_inputs();
  const auto entries = indices_for(request, count_field(request, "iterations", 1));
  auto& level = *can<TimesOperations>();
  Iterated& running = iterated();
  Times times;
  std::vector<OperationFacts> facts;
  std::vector<HostTensor> results;
  Spans recorded, spans;
  for (const auto index : entries) {
    recorded.clear();
    const auto begin = now_ns();
    running.set_input(ring_[index]);
    const auto set = now_ns();
    {  // what a library is called for while inputs are taken is within that
      const Recording recording(level, recorded);
      running.run();
      running.wait();
    }
    const auto ran = now_ns();
    running.outputs(results);
    const auto end = now_ns();
    spans.assign(1, {begin, set});
    spans.insert(spans.end(), recorded.begin(), recorded.end());
    spans.push_back({ran, end});
    times.add(spans, {begin, end});
    note_first(end - begin);
  }
  facts.push_back({.operation = "input", .moves_only = true});
  for (auto& each : level.recorded()) facts.push_back(std::move(each));
  facts.push_back({.operation = "outputs", .moves_only = true});
  return times.answer(facts);
}

}  // namespace strata
