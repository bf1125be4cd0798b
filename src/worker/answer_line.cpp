// SPDX-License-Identifier: Apache-2.0
#include "worker/answer_line.hpp"

#include <fmt/format.h>

#include "worker/process.hpp"

namespace strata::worker {
namespace {

constexpr int deepest = 64;

State state_of_code(const std::string& code) {
  if (code == "unsupported") return State::unsupported;
  if (code == "unavailable") return State::unavailable;
  return code == "out_of_memory" ? State::out_of_memory : State::failed;
}

std::string text_field(const Json& answer, const char* key) {
  const auto found = answer.find(key);
  return found != answer.end() && found->is_string() ? printable(found->get<std::string>(), 4000) : std::string();
}

}  // namespace

tl::expected<AnswerLine, std::string> parse_answer_line(std::string_view line, std::int64_t id, std::string_view op) {
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  Json answer = Json::parse(line, watch, false);
  if (too_deep) return tl::unexpected(fmt::format("the answer to {} is nested deeper than {} values", op, deepest));
  if (!answer.is_object())
    return tl::unexpected(fmt::format("the answer to {} is no JSON object: \"{}\"", op, printable(line, 120)));
  const auto got_id = answer.find("id");
  if (got_id == answer.end() || *got_id != id) {
    const std::string shown =
        got_id == answer.end() ? "none" : printable(got_id->dump(-1, ' ', false, Json::error_handler_t::replace), 40);
    return tl::unexpected(fmt::format("the answer to {} carries id {} instead of {}", op, shown, id));
  }
  const auto ok = answer.find("ok");
  if (ok == answer.end() || !ok->is_boolean())
    return tl::unexpected(fmt::format("the answer to {} has no boolean \"ok\": \"{}\"", op, printable(line, 120)));
  if (ok->get<bool>()) return AnswerLine{std::move(answer), std::nullopt};
  const std::string code = text_field(answer, "code");
  std::string what = text_field(answer, "what");
  if (what.empty()) {
    what = fmt::format("{} failed with code \"{}\" and no reason", op, code);
  } else if (code == "bad_request") {
    what = fmt::format("the level refused {} as a bad request: {}", op, what);
  }
  Failure failure{state_of_code(code), std::move(what), text_field(answer, "hint"), ""};
  return AnswerLine{std::move(answer), std::move(failure)};
}

}  // namespace strata::worker
