// SPDX-License-Identifier: Apache-2.0
// Reports on standard output, and as pages (console.hpp).
#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "cli/console.hpp"
#include "common/hash.hpp"
#include "common/write_whole.hpp"
#include "report/render/render.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
namespace {

Result<void> write_and_tell(const fs::path& path, const std::string& page) {
  STRATA_TRY(write_whole(path, page));
  tell(fmt::format("report: {}\n", path.string()));
  return {};
}

// The name of the script's copy in the folder, which is made where it is missing; another version has another name.
// A run that Ctrl-C ended has a page, too: what reads files stops then, so that this is read here.
Result<std::string> shared_script(const fs::path& folder, const fs::path& script) {
  std::ifstream in(script, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  if (content.empty()) return fail(fmt::format("cannot read {}", script.string()));
  auto name = fmt::format("plotly-{}.min.js", sha256_hex(content).substr(0, 12));
  if (!there_is(folder / name)) STRATA_TRY(write_whole(folder / name, content));
  return name;
}

}  // namespace

Result<void> print_document(const document::Document& document, const std::string& format) {
  const auto text = STRATA_TRY(document::render(document, format, {}, terminal_style()));
  format == "text" ? answer_styled(text) : answer(text);
  return {};
}

void write_stored_page(const document::Document& document, const Installation& place, const fs::path& store,
                       const std::string& run_id) {
  const auto folder = store.parent_path() / "reports";
  std::error_code ignored;  // writing says it
  fs::create_directories(folder, ignored);
  const auto written = [&]() -> Result<void> {
    const auto script = STRATA_TRY(plotly_js(place));
    const auto name = STRATA_TRY(shared_script(folder, script));
    return write_and_tell(folder / (run_id + ".html"), as_typed(document::render_html_beside(document, name)));
  }();
  if (written) return;
  print_error(written.error());
  tell(fmt::format("the run is stored: ./strata report {} -o PATH writes its page elsewhere\n", run_id));
}

Result<void> write_page(const document::Document& document, const Installation& place, const fs::path& path) {
  const auto script = STRATA_TRY(plotly_js(place));
  return write_and_tell(path, as_typed(STRATA_TRY(document::render_html(document, script))));
}

}  // namespace strata::cli
