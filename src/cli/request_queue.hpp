// SPDX-License-Identifier: Apache-2.0
// Lines of JSON that a client of `strata engine` writes while another request runs: requests in their order, and
// cancels, which are obeyed at once.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/result.hpp"

namespace strata::cli {

class RequestQueue {
 public:
  struct Entry {
    nlohmann::json id, request;
    std::optional<Error> error{};  // the line is none that can be answered otherwise
    bool cancelled = false;
    std::string shard{};  // of the whole that the request is; empty: all of it
  };

  // `cancel_running`: ends the request that runs; called from read_all()'s thread.
  explicit RequestQueue(std::function<void()> cancel_running) : cancel_running_(std::move(cancel_running)) {}

  // Until the end of the file; from another thread than the others. A line without an end is an error.
  void read_all(int descriptor);
  // The next request, waited for. nullopt: there will be none, or the program is interrupted.
  std::optional<Entry> next();
  // The request that next() gave is answered; it is not cancelled any more.
  void done();

  // Public for tests: what read_all() does with a line.
  void add_line(const std::string& line);
  void end();

 private:
  void add(Entry entry);
  void refuse(std::string what, ErrorFacts facts = {});  // the line that was read last
  void cancel(const nlohmann::json& id);

  std::function<void()> cancel_running_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  std::optional<nlohmann::json> running_;  // its id
  bool ended_ = false;
  std::size_t line_ = 0;  // that was read last; the first is 1
};

}  // namespace strata::cli
