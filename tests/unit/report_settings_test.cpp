// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/row_result.hpp"
#include "report/access.hpp"
#include "report/settings.hpp"

namespace strata::report {
namespace {

using analysis::settings_beside;

TEST(report_settings, leave_out_what_was_counted_again_at_the_end) {
  const Json settings{{"graphs", 1}, {"threads", 2}, {"compile", {{"guards", 216}, {"graph_breaks", {"x"}}}}};
  const Json facts{{"graphs", 3}, {"guards", 648}};
  EXPECT_EQ(settings_beside(settings, facts), (Json{{"threads", 2}, {"compile", {{"graph_breaks", {"x"}}}}}));
  EXPECT_EQ(settings_beside(settings, nullptr), settings);
  EXPECT_TRUE(settings_beside(nullptr, facts).is_null());
}

TEST(report_settings, read_as_words_and_never_as_json) {
  const Json settings{
      {"layout", "any"},
      {"freezing", false},
      {"streams", Json::array()},
      {"memory_format", nullptr},
      {"share", 0.5},
      {"compile", {{"graph_breaks", {{{"reason", "a print"}, {"where", "net.py:3"}}, {{"reason", "a branch"}}}}}}};
  EXPECT_EQ(settings_words({.settings = settings}),
            "compile (graph breaks reason a print, where net.py:3; reason a branch), freezing no, layout any, share "
            "0.50");
  EXPECT_EQ(settings_words({}), "");
}

}  // namespace
}  // namespace strata::report
