// SPDX-License-Identifier: Apache-2.0
#include "report/render_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "analysis/result_json.hpp"
#include "common/outside.hpp"
#include "report/compare.hpp"
#include "report/render/render.hpp"

namespace strata::report {
using analysis::RunResult;
using Json = nlohmann::json;
namespace {

std::string csv_of_all(const std::vector<RunResult>& runs) {
  std::string out;
  for (const auto& run : runs) {
    auto rendered = csv(run);
    out += out.empty() ? rendered : rendered.substr(rendered.find('\n') + 1);  // one header line for all
  }
  return out;
}

Json json_of_all(const std::vector<RunResult>& runs) {
  if (runs.size() == 1) return analysis::to_json(runs.front());
  Json all = Json::array();
  for (const auto& run : runs) all.push_back(analysis::to_json(run));
  return all;
}

}  // namespace

Result<std::vector<RunResult>> read_results(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(fmt::format("cannot open {}", path.string()), "name a file that `strata show RUN --format json` wrote",
                Exit::usage);
  constexpr JsonBounds bounds{.bytes = std::size_t{256} << 20, .depth = 64, .values = 20'000'000};
  std::string written;  // it may be a pipe, whose size nobody knows
  for (std::array<char, 65536> part; in && written.size() <= bounds.bytes;) {
    in.read(part.data(), part.size());
    written.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  const auto parsed = outside::parse(written, path.string(), bounds);
  if (!parsed)
    return fail(fmt::format("{} is not JSON that strata reads: {}", path.string(), parsed.error().what),
                "write it again with --format json", Exit::usage);
  if (!parsed->is_array()) return std::vector{STRATA_TRY(analysis::read_result(*parsed, path.string()))};
  if (parsed->empty()) return fail(fmt::format("{} holds no run: an empty array", path.string()), "", Exit::usage);
  std::vector<RunResult> runs;
  for (const auto& run : *parsed) {
    const auto where = parsed->size() == 1 ? path.string() : fmt::format("{}: run {}", path.string(), runs.size() + 1);
    runs.push_back(STRATA_TRY(analysis::read_result(run, where)));
  }
  return runs;
}

Result<std::string> html(const std::vector<RunResult>& runs, const std::filesystem::path& plotly_js) {
  if (runs.empty())
    return fail("a report needs at least one run, got none", "name a run: strata list runs", Exit::usage);
  return document::render_html(compare_document(runs), plotly_js);
}

Result<std::string> render(const std::vector<RunResult>& runs, const std::string& format,
                           const std::filesystem::path& plotly_js, const TerminalStyle& style) {
  if (format == "html") return html(runs, plotly_js);
  if (format == "md") return document::render_markdown(compare_document(runs));
  if (format == "csv") return csv_of_all(runs);
  if (format == "json") return json_of_all(runs).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::string out;
  for (const auto& run : runs) {
    std::string rendered;
    if (format == "text")
      rendered = terminal(run, style);
    else if (format == "ledger")
      rendered = terminal_ledger(run, style);
    else if (format == "certificate")
      rendered = terminal_certificate(run, style);
    else
      return fail(fmt::format("no format \"{}\"", format), "choose text, ledger, certificate, html, md, csv or json",
                  Exit::usage);
    out += (out.empty() ? "" : "\n") + rendered;
  }
  return out;
}

Result<void> check_writable(const std::filesystem::path& path, const std::string& option) {
  const auto refuse = [&](const std::string& why) {
    return fail(fmt::format("{} {}: {}", option, path.string(), why), "name a file in a folder that you can write to",
                Exit::usage);
  };
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (std::filesystem::is_directory(status)) return refuse("it is a folder");
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!std::filesystem::is_directory(folder, code))
    return refuse(fmt::format("there is no folder {}", folder.string()));
  const bool file = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  // A file is replaced by one that is written beside it; what else stands there is written to.
  if (access(file ? folder.c_str() : path.c_str(), W_OK) != 0) return refuse("it cannot be written");
  return {};
}

}  // namespace strata::report
