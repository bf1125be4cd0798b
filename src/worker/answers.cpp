// SPDX-License-Identifier: Apache-2.0
#include "worker/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "worker/process.hpp"

namespace strata::worker {
namespace {

const char* const see_protocol = "the level breaks docs/protocol.md: `strata level check` shows where";

Failure wrong(const char* key, const Json& answer, const std::string& allowed) {
  const auto found = answer.find(key);
  const std::string got =
      found == answer.end() ? "missing" : printable(found->dump(-1, ' ', false, Json::error_handler_t::replace), 80);
  return {State::failed, fmt::format("the answer's field \"{}\" is {}; allowed is {}", key, got, allowed), see_protocol,
          ""};
}

// The first complaint about a field of hello; fields are read through it in a row.
struct Reader {
  const Json& answer;
  std::optional<Failure> failure;

  const Json* field(const char* key, const std::string& allowed, bool (*good)(const Json&)) {
    const auto found = answer.find(key);
    if (found == answer.end() || !good(*found)) {
      failure = failure ? failure : wrong(key, answer, allowed);
      return nullptr;
    }
    return &*found;
  }
  std::string text(const char* key) {
    const Json* value = field(key, "a string", [](const Json& v) { return v.is_string(); });
    return value == nullptr ? "" : value->get<std::string>();
  }
  std::int64_t integer(const char* key) {
    const Json* value =
        field(key, "an integer from 0", [](const Json& v) { return v.is_number_integer() && v.get<double>() >= 0; });
    return value == nullptr ? 0 : value->get<std::int64_t>();
  }
  std::vector<std::string> list(const char* key) {
    const Json* value = field(key, "a list of strings", [](const Json& v) {
      return v.is_array() && std::all_of(v.begin(), v.end(), [](const Json& e) { return e.is_string(); });
    });
    return value == nullptr ? std::vector<std::string>() : value->get<std::vector<std::string>>();
  }
};

bool is_debug(std::string type) {
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type != "release" && type != "relwithdebinfo" && type != "minsizerel";
}

}  // namespace

tl::expected<Hello, Failure> read_hello(const Json& answer, bool allow_debug) {
  Reader read{answer, std::nullopt};
  Hello hello;
  hello.api = static_cast<int>(read.integer("api"));
  if (!read.failure && hello.api != protocol_api) {  // first: another version may well have other fields
    return tl::unexpected(
        Failure{State::unavailable,
                fmt::format("the level speaks protocol version {}; this strata speaks {}", hello.api, protocol_api),
                hello.api > protocol_api ? "use a newer strata" : "build the level again with this strata's SDK", ""});
  }
  hello.level = read.text("level");
  hello.language = read.text("language");
  hello.devices = read.list("devices");
  hello.modes = read.list("modes");
  hello.maths = read.list("maths");
  hello.ops = read.list("ops");
  hello.library_ns = read.integer("library_ns");
  const Json* versions = read.field("versions", "an object of strings", [](const Json& v) {
    return v.is_object() && std::all_of(v.begin(), v.end(), [](const Json& e) { return e.is_string(); });
  });
  if (versions != nullptr) {
    hello.versions = versions->get<std::map<std::string, std::string>>();
  }
  const Json* build = read.field("build", "{\"type\":\"release\",\"flags\":\"\"}", [](const Json& v) {
    return v.is_object() && v.contains("type") && v["type"].is_string();
  });
  if (build != nullptr) {
    hello.build_type = (*build)["type"].get<std::string>();
    const auto flags = build->find("flags");
    hello.build_flags = flags != build->end() && flags->is_string() ? flags->get<std::string>() : "";
  }
  if (read.failure) {
    return tl::unexpected(*read.failure);
  }
  if (is_debug(hello.build_type) && !allow_debug) {
    return tl::unexpected(
        Failure{State::unavailable,
                fmt::format("the level is a \"{}\" build, whose times mean nothing", printable(hello.build_type, 40)),
                "build it as release, or pass --allow-debug to measure it all the same", ""});
  }
  return hello;
}

tl::expected<std::vector<std::int64_t>, Failure> read_integers(const Json& answer, const char* key, std::size_t count,
                                                               std::int64_t least) {
  const auto found = answer.find(key);
  const auto good = [least](const Json& v) {
    return v.is_number_integer() && v.get<double>() >= static_cast<double>(least) && v.get<double>() < 9.2e18;
  };
  if (found == answer.end() || !found->is_array() || found->size() != count ||
      !std::all_of(found->begin(), found->end(), good)) {
    return tl::unexpected(wrong(key, answer, fmt::format("a list of {} integers from {}", count, least)));
  }
  return found->get<std::vector<std::int64_t>>();
}

tl::expected<std::optional<std::int64_t>, Failure> read_optional_integer(const Json& answer, const char* key) {
  const auto found = answer.find(key);
  if (found == answer.end() || !(found->is_null() || found->is_number_integer())) {
    return tl::unexpected(wrong(key, answer, "an integer or null"));
  }
  return found->is_null() ? std::optional<std::int64_t>() : std::optional<std::int64_t>(found->get<std::int64_t>());
}

}  // namespace strata::worker
