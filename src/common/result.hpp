// SPDX-License-Identifier: Apache-2.0
// How strata says that something went wrong: what, where, got, allowed, what to do. Never thrown for the expected.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace strata {

// Exit codes of the program (DESIGN: 0 all measured, 1 something failed, 2 bad usage, 3 the environment lacks
// something).
enum class Exit { ok = 0, failed = 1, usage = 2, environment = 3 };

// What the sentence of an error is about, for programs: where it is known as a value. Empty: it is not.
struct ErrorFacts {
  std::string where;    // an option, a member of a request, a path, a place in a text
  std::string got;      // what stands there, as JSON
  std::string allowed;  // what may: bounds, or words with ", " between them
};

struct Error {
  std::string what;  // what went wrong, where, what was got and what is allowed
  std::string hint;  // what to do; may be empty
  Exit exit = Exit::failed;
  ErrorFacts facts{};
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string what, std::string hint = {}, Exit exit = Exit::failed,
                                  ErrorFacts facts = {}) {
  return tl::unexpected<Error>(Error{std::move(what), std::move(hint), exit, std::move(facts)});
}

namespace detail {  // of STRATA_TRY

template <class T, class E>
T value_of(tl::expected<T, E>&& result) {
  return *std::move(result);
}

template <class E>
void value_of(tl::expected<void, E>&& /*without a value*/) {}

}  // namespace detail

}  // namespace strata

// The value of a tl::expected: `const auto file = STRATA_TRY(open(path));`. On an error the calling function returns
// that error. A statement expression, which GCC and Clang have; not to be used within another STRATA_TRY.
#define STRATA_TRY(...)                                                        \
  ({                                                                           \
    auto strata_tried = (__VA_ARGS__);                                         \
    if (!strata_tried) return tl::unexpected(std::move(strata_tried).error()); \
    ::strata::detail::value_of(std::move(strata_tried));                       \
  })
