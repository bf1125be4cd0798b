// SPDX-License-Identifier: Apache-2.0
#include "worker/answer_line.hpp"

#include <fmt/format.h>

#include "common/outside.hpp"
#include "worker/process.hpp"

namespace strata::worker {
namespace {

constexpr std::size_t longest_progress_bytes = 4096, shown_progress_bytes = 200;

std::string text_field(const Json& answer, const char* key) {
  return printable(outside::text_or(answer, key), 4000);
}

}  // namespace

State failure_state(std::string_view code) {
  if (code == "unsupported") return State::unsupported;
  if (code == "unavailable") return State::unavailable;
  return code == "out_of_memory" ? State::out_of_memory : State::failed;
}

std::optional<std::string> progress_in(std::string_view line, std::optional<std::int64_t> id) {
  if (line.size() > longest_progress_bytes || line.find("\"progress\"") == std::string_view::npos) return std::nullopt;
  const auto parsed = outside::parse(line, "a line of progress");
  if (!parsed || !parsed->is_object() || parsed->contains("ok")) return std::nullopt;
  const Json& progress = outside::field(*parsed, "progress");
  const bool fits = progress.is_string() && outside::as_integer(outside::field(*parsed, "id")) == id;
  return fits ? std::optional(printable(progress.get<std::string>(), shown_progress_bytes)) : std::nullopt;
}

tl::expected<AnswerLine, std::string> parse_answer_line(std::string_view line, std::int64_t id, std::string_view op) {
  auto parsed = outside::parse(line, fmt::format("the answer to {}", op));
  if (!parsed) return tl::unexpected(fmt::format("{}: \"{}\"", parsed.error().what, printable(line, 120)));
  Json& answer = *parsed;
  if (!answer.is_object())
    return tl::unexpected(fmt::format("the answer to {} is no JSON object: \"{}\"", op, printable(line, 120)));
  const Json& got_id = outside::field(answer, "id");
  if (outside::as_integer(got_id) != id) {
    const std::string shown = answer.contains("id") ? outside::shown(got_id) : "none";
    return tl::unexpected(fmt::format("the answer to {} carries id {} instead of {}", op, shown, id));
  }
  const Json& ok = outside::field(answer, "ok");
  if (!ok.is_boolean())
    return tl::unexpected(fmt::format("the answer to {} has no boolean \"ok\": \"{}\"", op, printable(line, 120)));
  if (ok.get<bool>()) return AnswerLine{std::move(answer), std::nullopt};
  const std::string code = text_field(answer, "code");
  std::string what = text_field(answer, "what");
  if (what.empty()) {
    what = fmt::format("{} failed with code \"{}\" and no reason", op, code);
  } else if (code == "bad_request") {
    what = fmt::format("the level refused {} as a bad request: {}", op, what);
  }
  Failure failure{.state = failure_state(code), .what = std::move(what), .hint = text_field(answer, "hint")};
  return AnswerLine{std::move(answer), std::move(failure)};
}

}  // namespace strata::worker
