// SPDX-License-Identifier: Apache-2.0
// A document as text and as a page, for tests of what they hold.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "report/render/render.hpp"

namespace strata::document {

inline Document document_of(Item item) {
  return {.title = "t", .sections = {{.id = "s", .title = "S", .items = {std::move(item)}}}};
}

inline std::string terminal_of(const Document& document, int width = 80, bool unicode = true) {
  return render_terminal(document, {.width = width, .colour = false, .unicode = unicode});
}

// A page with a script in the place of plotly, so that it is small.
inline std::string page_of(const Document& document) {
  const auto path =
      std::filesystem::temp_directory_path() / ("strata_document_plotly_" + std::to_string(getpid()) + ".js");
  std::ofstream(path) << "var Plotly;";
  auto page = render_html(document, path);
  std::filesystem::remove(path);
  return page.value();
}

inline std::size_t times(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

}  // namespace strata::document
