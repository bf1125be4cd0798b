// SPDX-License-Identifier: Apache-2.0
// How verbs declare their options: what a value is called, which values are allowed, which options go together. What is
// not allowed ends the program before anything runs, with exit code 2 and a sentence of what is.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cli/console.hpp"
#include "common/result.hpp"
#include "engine/needs.hpp"
#include "requests/member.hpp"

namespace strata::cli {

// Wrong usage with a hint of its own; empty: the help of the verb.
class WrongUsage : public CLI::ParseError {
 public:
  explicit WrongUsage(std::string what, std::string hint = {})
      : CLI::ParseError("WrongUsage", std::move(what), static_cast<int>(Exit::usage)), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// One of these words, shown as {cpu,cuda}; another is refused with the nearest.
CLI::Option* choice(CLI::Option* option, std::vector<std::string> allowed);

// A whole number from low to high.
CLI::Option* whole(CLI::Option* option, std::int64_t low, std::int64_t high);

// A number above 0.
CLI::Option* positive(CLI::Option* option);

// A time above 0, as 60s or 2m.
CLI::Option* duration(CLI::Option* option);

// Whether the option is given once for each value.
bool is_repeated(const CLI::Option& option);

// text, json, csv or md.
CLI::Option* format_choice(CLI::Option* option);

// --store PATH, the same at every verb that has it.
CLI::Option* add_store(CLI::App& verb, std::string& path);

// The members of a request as options of the verb. What they refer to outlives it.
void add_members(CLI::App& verb, const std::vector<requests::Member>& members);
void add_member(CLI::App& verb, const requests::Member& member);

// --needs before a verb: what it needs is told, and nothing is done.
void add_needs(CLI::App& app);
bool asks_for_needs(const CLI::App& verb);
// In the form that was asked for. What the verb refuses, or cannot say, needs nothing: it says why when it is called.
void tell_needs(const CLI::App& verb, const Result<engine::Needs>& needs);

// What the verb does once it is chosen, as a Result<int>, its exit code, or a Result<void>. `needs`: what must be ready
// before that beside the driver, as Result<engine::Needs>.
using NeedsOf = std::function<Result<engine::Needs>()>;
template <class Action>
void set_action(CLI::App& verb, int& exit_code, Action action, NeedsOf needs = {}) {
  verb.callback([&verb, &exit_code, action = std::move(action), needs = std::move(needs)] {
    if (asks_for_needs(verb)) return tell_needs(verb, needs ? needs() : engine::Needs());
    exit_code = code_of(action());
  });
}

// Refuses those of the options (of `verb`, by name) that were given, since they mean nothing `with` what else was
// given.
void refuse(const CLI::App& verb, std::initializer_list<const char*> options, const std::string& with);

// "list runs": the words of a verb of a verb.
std::string words_of(const CLI::App& verb);

// What CLI11 says of wrong usage, in strata's words: what is wrong, and what to do.
Error in_words(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv);

// Before the verbs are added: how help looks. It shows what a value is called, its default and what goes with it.
void prepare_help(CLI::App& app);

// After all verbs were added: no option of any of them takes an empty value, as "$UNSET" in a script is one, or another
// option for its value.
void refuse_empty_values(CLI::App& app);

// The same of "--option=", which would take the next word: before parsing.
void refuse_empty_words(int argc, const char* const* argv);

}  // namespace strata::cli
