// SPDX-License-Identifier: Apache-2.0
// The worker's timed blocks (docs/protocol.md, measure), and their results, which the driver asks for afterwards.
#include <fmt/format.h>

#include <set>

#include "strata/timed_loop.hpp"
#include "strata/worker.hpp"

namespace strata {

using nlohmann::json;

namespace {

// The recorded iterations whose results are to stay.
std::set<std::size_t> retained_by(const json& request, std::size_t iterations) {
  std::set<std::size_t> retain;
  if (!request.contains("retain")) return retain;
  for (const auto iteration : field<std::vector<std::int64_t>>(request, "retain")) {
    if (iteration < 0 || static_cast<std::size_t>(iteration) >= iterations)
      throw Failure("bad_request", fmt::format("retain: {} is not one of the {} iterations", iteration, iterations));
    retain.insert(static_cast<std::size_t>(iteration));
  }
  return retain;
}

}  // namespace

// What `fresh` asks for an iteration that finds another input in its entry: `unseen`, where it is none of the ring's.
void Worker::exchange(const json& request, FreshInputs& fresh, std::vector<HostTensor>& unseen) {
  if (!request.contains("exchange")) return;
  if (steps()) throw Failure("bad_request", "inputs of training steps are not exchanged", "leave exchange out");
  const auto other = static_cast<std::size_t>(count_field(request, "exchange", 0));
  const auto at = static_cast<std::size_t>(count_field(request, "at", 0));
  if (at >= timed_.size())
    throw Failure("bad_request", fmt::format("at: {} is not one of the {} iterations", at, timed_.size()));
  if (request.contains("entry"))
    unseen = read_unseen(*bundle_, field<std::string>(request, "entry"), ring_.front());
  else if (other >= ring_.size())
    throw outside_ring("exchange", other);
  fresh.exchange_at(at, unseen.empty() ? ring_[other] : unseen);
  timed_[at] = other;
}

json Worker::measure(const json& request) {
  need_inputs();
  const auto iterations = count_field(request, "iterations", 1);
  const auto head = request.contains("head") ? count_field(request, "head", 0) : 0;
  timed_ = indices_for(request, iterations);
  retained_.clear();
  if (const auto region = request.value("region", json("end_to_end")); region != "end_to_end")
    throw Failure("unsupported", fmt::format("region {} is not one of: \"end_to_end\"", region.dump()));
  const auto retain = retained_by(request, timed_.size());
  std::vector<std::uint64_t> places;
  std::vector<HostTensor> unseen;
  const auto entries = timed_;       // what each iteration's entry is, where timed_ says whose input it holds
  std::optional<FreshInputs> fresh;  // ends before those above, which it reads until then
  if (const auto fresh_request = request.find("fresh"); fresh_request != request.end()) {
    places = field<std::vector<std::uint64_t>>(*fresh_request, "places");
    fresh.emplace(ring_, entries, field<std::uint64_t>(*fresh_request, "first"), places);
    exchange(*fresh_request, *fresh, unseen);
  }
  Block block = run_block(iterated(), ring_, static_cast<int>(head), entries, retain, fresh ? &*fresh : nullptr);
  note_first(block.wall_ns.front());
  for (const auto& [iteration, results] : block.retained) check_results(results);
  retained_ = std::move(block.retained);
  json result{{"wall_ns", block.wall_ns},
              {"latency_ns", block.latency_ns},
              {"cpu_ns", block.cpu_ns},
              {"start_ns", block.start_ns},
              {"runq_ns", block.runq_ns ? json(*block.runq_ns) : json()}};
  if (fresh) result["fresh"] = {{"places", fresh->places()}};
  if (!retain.empty()) result["copy_ns"] = block.copy_ns;
  return result;
}

json Worker::result(const json& request) {
  const auto iteration = count_field(request, "iteration", 0);
  const auto retained = retained_.find(static_cast<std::size_t>(iteration));
  if (retained == retained_.end())
    throw Failure("bad_request", fmt::format("the result of iteration {} was not retained", iteration),
                  "name it in `retain` of measure");
  Named named;
  name_results(named, timed_[retained->first], retained->second);
  write(field<std::string>(request, "out"), named);
  return json::object();
}

}  // namespace strata
