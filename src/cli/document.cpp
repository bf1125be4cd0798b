// SPDX-License-Identifier: Apache-2.0
#include "cli/document.hpp"

#include <fmt/format.h>

#include "cli/say.hpp"
#include "common/write_whole.hpp"
#include "report/render/html.hpp"
#include "report/render/render.hpp"
#include "report/render_file.hpp"

namespace strata::cli {
namespace fs = std::filesystem;

int print_document(const document::Document& document, const std::string& format) {
  const auto text = document::render(document, format, {}, terminal_style());
  if (!text) return complain(text.error());
  if (format == "text")
    answer_styled(*text);
  else
    answer(*text);
  return 0;
}

fs::path default_report(const fs::path& store, const std::string& run_id) {
  const auto path = store.parent_path() / "reports" / (run_id + ".html");
  std::error_code ignored;  // writing says it
  fs::create_directories(path.parent_path(), ignored);
  return path;
}

int write_page(const document::Document& document, const Installation& place, const fs::path& path) {
  const auto script = plotly_js(place);
  if (!script) return complain(script.error());
  const auto page = document::render_html(document, *script);
  if (!page) return complain(page.error());
  if (auto written = write_whole(path, *page); !written) return complain(written.error());
  tell(fmt::format("report: {}\n", path.string()));
  return 0;
}

}  // namespace strata::cli
