// SPDX-License-Identifier: Apache-2.0
#include "report/render/render.hpp"

#include <fmt/format.h>

namespace strata::document {

Result<std::string> render(const Document& document, const std::string& format, const std::filesystem::path& plotly_js,
                           const report::TerminalStyle& style) {
  if (format == "text") return render_terminal(document, style);
  if (format == "html") return render_html(document, plotly_js);
  if (format == "md") return render_markdown(document);
  if (format == "csv") return render_csv(document);
  if (format == "json") return render_json(document);
  return fail(fmt::format("no format \"{}\"", format), "choose text, html, md, csv or json", Exit::usage);
}

}  // namespace strata::document
