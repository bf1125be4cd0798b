// SPDX-License-Identifier: Apache-2.0
// Style sheet and script of a page of a document (document.hpp), embedded from assets/ by assets/embed.cmake.
#pragma once

#include <string_view>

namespace strata::report::assets {

extern const std::string_view kDocumentCss;
extern const std::string_view kDocumentJs;

}  // namespace strata::report::assets
