// SPDX-License-Identifier: Apache-2.0
// Style sheets and scripts of reports, embedded from assets/ by assets/embed.cmake.
#pragma once

#include <string_view>

namespace strata::report::assets {

extern const std::string_view kReportCss;
extern const std::string_view kReportJs;

// What a page of a document (document.hpp) has beside kReportCss, and instead of kReportJs.
extern const std::string_view kDocumentCss;
extern const std::string_view kDocumentJs;

}  // namespace strata::report::assets
