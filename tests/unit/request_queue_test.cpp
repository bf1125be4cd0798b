// SPDX-License-Identifier: Apache-2.0
// What clients of `strata engine` may write: requests, cancels, and what is neither.
#include "cli/request_queue.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace strata::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RequestQueue, gives_requests_in_their_order_and_then_its_end) {
  RequestQueue queue([] {});
  queue.add_line(R"({"id": 1, "request": {"verb": "compare"}})");
  queue.add_line("  ");
  queue.add_line(R"({"id": "b", "request": {"verb": "sweep"}})");
  queue.end();
  const auto first = queue.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, 1);
  EXPECT_EQ(first->request["verb"], "compare");
  queue.done();
  EXPECT_EQ(queue.next()->id, "b");
  queue.done();
  EXPECT_FALSE(queue.next());
}

TEST(RequestQueue, cancels_what_runs_at_once_and_what_waits_before_it_begins) {
  int cancelled = 0;
  RequestQueue queue([&] { ++cancelled; });
  for (const char* line : {R"({"id": 1, "request": {}})", R"({"id": 2, "request": {}})", R"({"id": 3, "request": {}})"})
    queue.add_line(line);
  ASSERT_TRUE(queue.next());
  queue.add_line(R"({"cancel": 2})");
  queue.add_line(R"({"cancel": 7})");
  EXPECT_EQ(cancelled, 0);
  queue.add_line(R"({"cancel": 1})");
  EXPECT_EQ(cancelled, 1);
  queue.done();
  queue.add_line(R"({"cancel": 1})");
  EXPECT_EQ(cancelled, 1) << "it is answered";
  const auto second = queue.next();
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->cancelled);
  queue.done();
  const auto third = queue.next();
  ASSERT_TRUE(third);
  EXPECT_FALSE(third->cancelled);
}

TEST(RequestQueue, refuses_a_line_that_says_a_thing_twice) {
  RequestQueue queue([] {});
  queue.add_line(R"({"id": 1, "id": 2, "request": {}})");
  queue.add_line(R"({"id": 1, "request": {"verb": "runs", "limit": 1, "limit": 2}})");
  queue.end();
  for (const char* where : {"line 1", "line 2"}) {
    const auto entry = queue.next();
    ASSERT_TRUE(entry && entry->error);
    EXPECT_THAT(entry->error->what, HasSubstr("a key that occurs twice"));
    EXPECT_EQ(entry->error->facts.where, where);
  }
}

TEST(RequestQueue, answers_lines_that_are_no_request_with_an_error) {
  const std::string too_long(3 << 20, 'x');
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  RequestQueue queue([] {});
  std::thread reader([&] { queue.read_all(ends[0]); });
  const std::string lines =
      "nonsense\n[1]\n{\"request\": {}}\n" + too_long + "\n{\"id\": 4, \"request\": {}}\n{\"id\": 5";
  for (std::size_t at = 0; at < lines.size();) {
    const auto written = ::write(ends[1], lines.data() + at, lines.size() - at);
    ASSERT_GT(written, 0);
    at += static_cast<std::size_t>(written);
  }
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  int line = 0;
  for (const char* why : {"not UTF-8 JSON", "no object", "\"id\" is null", "longer than 1048576 bytes"}) {
    const auto entry = queue.next();
    ASSERT_TRUE(entry && entry->error) << why;
    EXPECT_THAT(entry->error->what, HasSubstr(why));
    EXPECT_THAT(entry->error->facts.where, StartsWith(fmt::format("line {}", ++line)));
  }
  const auto good = queue.next(), cut = queue.next();
  ASSERT_TRUE(good && cut && cut->error);
  EXPECT_FALSE(good->error);
  EXPECT_THAT(cut->error->what, HasSubstr("has no end"));
  EXPECT_EQ(cut->error->facts.where, "line 6");
  EXPECT_FALSE(queue.next());
}

}  // namespace
}  // namespace strata::cli
