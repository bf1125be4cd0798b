// SPDX-License-Identifier: Apache-2.0
// The worker's operations on a data set: data, steps, evaluate (docs/protocol.md).
#include <fmt/format.h>

#include <cmath>
#include <future>

#include "strata/timed_loop.hpp"
#include "strata/worker.hpp"

namespace strata {

using nlohmann::json;

namespace {

// Batches one ahead of the level: while it works on one, the next is gathered by another thread.
class PrefetchedBatches {
 public:
  PrefetchedBatches(const BatchMaker& maker, std::function<void(std::int64_t, std::vector<HostTensor>&)> fill,
                    std::int64_t first, std::int64_t count)
      : fill_(std::move(fill)), next_(first), end_(first + count) {
    for (auto& entry : entries_) entry = maker.allocate_entry();
    begin();
  }

  // The next batch; its memory is the caller's until the call after the next one. Times in ns: how long the caller
  // waited for it, and how long it took to gather.
  const std::vector<HostTensor>& take() {
    const auto start = now_ns();
    gathered_ns_ = gathering_.get();
    waited_ns_ = now_ns() - start;
    auto& entry = entries_[current_];
    current_ = 1 - current_;
    begin();
    return entry;
  }
  std::int64_t waited_ns() const { return waited_ns_; }
  std::int64_t gathered_ns() const { return gathered_ns_; }

 private:
  void begin() {
    if (next_ == end_) return;
    gathering_ = std::async(std::launch::async, [this, step = next_, entry = &entries_[current_]] {
      const auto start = now_ns();
      fill_(step, *entry);
      return now_ns() - start;
    });
    ++next_;
  }

  std::function<void(std::int64_t, std::vector<HostTensor>&)> fill_;
  std::array<std::vector<HostTensor>, 2> entries_;
  std::size_t current_ = 0;
  std::int64_t next_, end_, waited_ns_ = 0, gathered_ns_ = 0;
  std::future<std::int64_t> gathering_;  // last: its destructor waits for what uses the rest
};

}  // namespace

json Worker::data(const json& request) {
  stepper();
  const auto mean = field<std::vector<double>>(request, "mean"),
             deviation = field<std::vector<double>>(request, "deviation");
  auto opened = std::make_unique<TrainingData>(TrainingData{BatchMaker(*bundle_, mean, deviation), {}});
  json counts = json::object();
  for (const auto& [name, path] : field<std::map<std::string, std::string>>(request, "splits")) {
    auto split = opened->maker.open_split(path);
    counts[name] = split.count;
    opened->splits.emplace(name, std::move(split));
  }
  data_ = std::move(opened);
  return {{"counts", counts}};
}

const DataSplit& Worker::split_of(const json& request) {
  stepper();
  if (!data_) throw Failure("bad_request", "there is no data set", "send data first");
  const auto name = field<std::string>(request, "split");
  const auto it = data_->splits.find(name);
  if (it == data_->splits.end()) throw Failure("bad_request", fmt::format("the data set has no split '{}'", name));
  return it->second;
}

json Worker::train_steps(const json& request) {
  const DataSplit& split = split_of(request);
  if (!stepper_->training()) throw Failure("bad_request", "the mode is eval", "send set_mode with mode train first");
  const auto order = BatchOrder::open(field<std::string>(request, "order"), data_->maker.batch(), split.count);
  const auto first = count_field(request, "first", 0), count = count_field(request, "count", 1);
  if (first + count > order.steps())
    throw Failure("bad_request",
                  fmt::format("steps {} to {} of an order of {}", first, first + count - 1, order.steps()));
  PrefetchedBatches batches(
      data_->maker,
      [&](std::int64_t step, std::vector<HostTensor>& entry) {
        data_->maker.fill(
            split, [&](std::int64_t place) { return order.at(step, place); }, entry);
      },
      first, count);
  std::vector<double> losses;
  std::vector<std::int64_t> wall_ns, waited_ns, gathered_ns;
  std::vector<HostTensor> results;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& entry = batches.take();
    waited_ns.push_back(batches.waited_ns());
    gathered_ns.push_back(batches.gathered_ns());
    wall_ns.push_back(iterate(iterated(), entry, results).wall_ns);
    check_results(results);
    losses.push_back(value_at(results[0].view, 0));
    if (!std::isfinite(losses.back())) break;  // what follows is as lost
  }
  return {{"loss", losses}, {"wall_ns", wall_ns}, {"waited_ns", waited_ns}, {"gathered_ns", gathered_ns}};
}

json Worker::evaluate(const json& request) {
  const DataSplit& split = split_of(request);
  if (stepper_->training()) throw Failure("bad_request", "the mode is train", "send set_mode with mode eval first");
  const auto batch = data_->maker.batch();
  const auto first = count_field(request, "first", 0), count = count_field(request, "count", 1);
  if (first + count > split.count)
    throw Failure("bad_request",
                  fmt::format("images {} to {} of a split of {}", first, first + count - 1, split.count));
  const auto loss = bundle_->json["case"].value("loss", "cross_entropy");
  PrefetchedBatches batches(
      data_->maker,
      [&](std::int64_t i, std::vector<HostTensor>& entry) {  // the last batch is filled up with its own last image
        data_->maker.fill(
            split,
            [&](std::int64_t place) {
              return BatchOrder::Sample{.index = first + std::min(i * batch + place, count - 1)};
            },
            entry);
      },
      0, (count + batch - 1) / batch);
  Score total;
  std::vector<std::int64_t> wall_ns;
  std::vector<HostTensor> results;
  for (std::int64_t done = 0; done < count; done += batch) {
    const auto& entry = batches.take();
    wall_ns.push_back(iterate(iterated(), entry, results).wall_ns);
    check_results(results);
    const auto batch_score = score(results[0], entry[1], std::min(batch, count - done), loss);
    total.loss += batch_score.loss;
    total.correct += batch_score.correct;
  }
  return {{"samples", count}, {"correct", total.correct}, {"loss_sum", total.loss}, {"wall_ns", wall_ns}};
}

}  // namespace strata
