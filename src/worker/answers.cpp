// SPDX-License-Identifier: Apache-2.0
#include "worker/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/outside.hpp"
#include "worker/process.hpp"

namespace strata::worker {
namespace {

const char* const see_protocol = "the level breaks docs/protocol.md: `strata level check` shows where";

// Through which one answer is read; `op` names it in complaints.
outside::Fields fields_of(const Json& answer, std::string_view op) {
  return {answer, fmt::format("the answer to {}", op), see_protocol};
}

bool is_debug(std::string type) {
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type != "release" && type != "relwithdebinfo" && type != "minsizerel";
}

}  // namespace

Failure broken_answer(const outside::Fields& fields) {
  return {.state = State::failed, .what = fields.error()->what, .hint = fields.error()->hint};
}

tl::expected<Hello, Failure> read_hello(const Json& answer, bool allow_debug) {
  auto read = fields_of(answer, "hello");
  Hello hello;
  hello.api = static_cast<int>(read.integer("api", 0, 1'000'000));
  if (!read.error() && hello.api != protocol_api) {  // first: another version may well have other fields
    return tl::unexpected(Failure{
        .state = State::unavailable,
        .what = fmt::format("the level speaks protocol version {}; this strata speaks {}", hello.api, protocol_api),
        .hint = hello.api > protocol_api ? "use a newer strata" : how_to_upgrade});
  }
  hello.level = read.text("level");
  hello.language = read.text("language");
  hello.devices = read.texts("devices");
  hello.modes = read.texts("modes");
  hello.precisions = read.texts("precisions");
  hello.ops = read.texts("ops");
  hello.library_ns = read.integer("library_ns", 0, longest_ns);
  const Json& versions = read.object("versions");
  for (const auto& [name, version] : versions.items()) {
    if (version.is_string()) {
      hello.versions.emplace(name, version.get<std::string>());
    } else {
      read.complain("versions", versions, "an object of strings");
    }
  }
  outside::Fields build(read.object("build"), "the answer to hello: \"build\"", see_protocol);
  hello.build_type = build.text("type");
  hello.build_flags = build.text("flags", "");
  if (read.error() || build.error()) {
    return tl::unexpected(broken_answer(read.error() ? read : build));
  }
  if (is_debug(hello.build_type) && !allow_debug) {
    return tl::unexpected(Failure{
        .state = State::unavailable,
        .what = fmt::format("the level is a \"{}\" build, whose times mean nothing", printable(hello.build_type, 40)),
        .hint = "build it as release, or pass --allow-debug to measure it all the same"});
  }
  return hello;
}

tl::expected<std::vector<std::int64_t>, Failure> read_integers(const Json& answer, const char* key,
                                                               std::optional<std::size_t> count, std::int64_t least) {
  outside::Fields read(answer, "the answer", see_protocol);
  auto result = read.integers(key, count, least, longest_ns);
  if (read.error()) {
    return tl::unexpected(broken_answer(read));
  }
  return result;
}

tl::expected<std::optional<std::int64_t>, Failure> read_optional_integer(const Json& answer, const char* key) {
  outside::Fields read(answer, "the answer", see_protocol);
  const auto result = read.integer_or_null(key);
  if (read.error()) {
    return tl::unexpected(broken_answer(read));
  }
  return result;
}

Json last_line(const Finished& finished) {
  std::string_view text = finished.stdout_text;
  const auto last = text.find_last_not_of("\n ");
  if (last == text.npos) return {};
  text = text.substr(0, last + 1);
  auto answer = outside::parse(text.substr(text.rfind('\n') + 1), "the answer");
  return answer && answer->is_object() ? std::move(*answer) : Json();
}

}  // namespace strata::worker
