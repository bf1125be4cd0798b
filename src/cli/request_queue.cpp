// SPDX-License-Identifier: Apache-2.0
#include "cli/request_queue.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "common/interrupt.hpp"
#include "common/outside.hpp"

namespace strata::cli {
using Json = nlohmann::json;
namespace {

constexpr std::size_t kLongestLine = 1 << 20, kMostWaiting = 1000, kLongestId = 100;

}  // namespace

void RequestQueue::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMostWaiting) {
    entry.error = Error{fmt::format("{} requests are waiting already", kMostWaiting), "wait for answers", Exit::usage};
    entry.request = nullptr;
  }
  entries_.push_back(std::move(entry));
  changed_.notify_all();
}

void RequestQueue::refuse(std::string what, ErrorFacts facts) {
  facts.where = fmt::format("line {}", line_) + (facts.where.empty() ? "" : ", " + facts.where);
  add({.id = nullptr,
       .request = nullptr,
       .error = Error{std::move(what), "docs/engine.md describes the lines", Exit::usage, std::move(facts)}});
}

void RequestQueue::cancel(const Json& id) {
  const std::lock_guard lock(mutex_);
  if (running_ == id) return cancel_running_();
  for (auto& entry : entries_)
    if (entry.id == id) entry.cancelled = true;  // of what is answered already nothing is left to cancel
}

void RequestQueue::add_line(const std::string& line) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  auto value = outside::parse(line, "a line of standard input", {.unique_keys = true});
  if (!value) return refuse(value.error().what, {.allowed = "JSON"});
  if (!value->is_object())
    return refuse("a line of standard input is no object", {.got = outside::shown(*value), .allowed = "an object"});
  if (const auto& cancelled = outside::field(*value, "cancel"); !cancelled.is_null()) return cancel(cancelled);
  const auto& id = outside::field(*value, "id");
  if (!id.is_number_integer() && !(id.is_string() && id.get_ref<const std::string&>().size() <= kLongestId)) {
    const auto allowed = fmt::format("a whole number, or a text of up to {} bytes", kLongestId);
    return refuse(fmt::format("the line's \"id\" is {}; allowed: {}", outside::shown(id), allowed),
                  {"id", outside::shown(id), allowed});
  }
  const auto& shard = outside::field(*value, "shard");
  if (!shard.is_null() && !shard.is_string())
    return refuse(fmt::format("the line's \"shard\" is {}; allowed: a text, as \"2/8\"", outside::shown(shard)),
                  {"shard", outside::shown(shard), "a text"});
  add({.id = id, .request = outside::field(*value, "request"), .shard = outside::text_or(*value, "shard")});
}

void RequestQueue::read_all(int descriptor) {
  std::string line;
  bool too_long = false;
  std::array<char, 1 << 16> bytes{};
  const auto end_line = [&] {
    if (too_long) {
      ++line_;
      refuse(fmt::format("a line of standard input is longer than {} bytes", kLongestLine),
             {.allowed = fmt::format("up to {} bytes", kLongestLine)});
    } else {
      add_line(line);
    }
    line.clear();
    too_long = false;
  };
  for (;;) {
    const auto got = ::read(descriptor, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (const char c : std::string_view(bytes.data(), static_cast<std::size_t>(got)))
      if (c == '\n')
        end_line();
      else if (line.size() < kLongestLine)
        line += c;
      else
        too_long = true;
  }
  if (!line.empty()) {
    ++line_;
    refuse("the last line of standard input has no end");
  }
  end();
}

void RequestQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::optional<RequestQueue::Entry> RequestQueue::next() {
  std::unique_lock lock(mutex_);
  while (entries_.empty() && !ended_ && !interrupted())  // a signal wakes nobody here
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  if (entries_.empty() || interrupted()) return std::nullopt;
  auto entry = std::move(entries_.front());
  entries_.pop_front();
  running_ = entry.id;
  return entry;
}

void RequestQueue::done() {
  const std::lock_guard lock(mutex_);
  running_.reset();
}

}  // namespace strata::cli
