// SPDX-License-Identifier: Apache-2.0
// The report's style sheet and script, embedded from assets/ by assets/embed.cmake.
#pragma once

#include <string_view>

namespace strata::report::assets {

extern const std::string_view kReportCss;
extern const std::string_view kReportJs;

}  // namespace strata::report::assets
