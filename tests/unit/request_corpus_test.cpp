// SPDX-License-Identifier: Apache-2.0
// Every command that a page shows and every entry of strata's suites is a request, and comes back from its JSON and
// from the words that it is rendered to.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cli/option.hpp"
#include "cli/run_arguments.hpp"
#include "common/text.hpp"
#include "engine/suite_entries.hpp"
#include "requests/codec.hpp"
#include "requests/members.hpp"

namespace strata::requests {
namespace {
namespace fs = std::filesystem;

const fs::path root = STRATA_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Of a shell's line: quotes, and a comment behind a space.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && c == '#' && words.back().empty()) break;
    if (c == quote)
      quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (quote == 0 && c == ' ') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Lines that begin with ./strata and a verb of requests, what they go on with behind a backslash included.
std::vector<std::string> commands_of(const fs::path& page) {
  static const std::regex command(R"(^(?:\$ )?\./strata ((?:compare|sweep|train|export|generate) .*)$)");
  std::vector<std::string> all;
  std::istringstream lines(std::regex_replace(text_of(page), std::regex(R"(\\\n\s*)"), ""));
  for (std::string line; std::getline(lines, line);)
    if (std::smatch found; std::regex_match(line, found, command)) all.push_back(found[1]);
  return all;
}

// Reads the words as the verb does; what is not of the request is left to the run's own options.
Result<Request> read_words(std::vector<std::string> words) {
  auto request = *request_for(words.front());
  CLI::App app;
  auto* verb = app.add_subcommand(words.front());
  cli::RunArguments run;
  cli::add_members(*verb, members_of(request));
  if (verb->get_option_no_throw("-o") == nullptr) {
    cli::add_run_arguments(*verb, run);
    cli::add_cluster_options(*verb, run.cluster, "points");
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return fail(error.what());
  }
  return request;
}

void expect_round_trips(const Request& request, const std::string& what) {
  const auto json = to_json(request);
  const auto from_json = read_request(json);
  ASSERT_TRUE(from_json) << what << ": " << from_json.error().what;
  EXPECT_EQ(to_json(*from_json), json) << what;
  const auto from_words = read_words(command_words(request));
  ASSERT_TRUE(from_words) << what << ": " << from_words.error().what;
  EXPECT_EQ(to_json(*from_words), json) << what;
}

// What a page leaves for its reader to fill in, or shows to be refused.
bool is_pattern(const std::string& command) {
  for (const char* part : {"LEVELS", "NETWORK", "MODEL", "...", "=/path", "NAME", "$"})
    if (command.find(part) != std::string::npos) return true;
  return false;
}

TEST(RequestCorpus, of_every_command_on_a_page_comes_back_from_json_and_words) {
  std::size_t read = 0;
  std::vector<fs::path> pages{root / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  for (const auto& page : pages)
    for (const auto& command : commands_of(page)) {
      if (is_pattern(command) || command.find(" --command ") != std::string::npos) continue;  // no network's
      const auto request = read_words(words_of(command));
      ASSERT_TRUE(request) << page << ": " << command << ": " << request.error().what;
      expect_round_trips(*request, command);
      ++read;
    }
  EXPECT_GT(read, 30U);
}

TEST(RequestCorpus, of_every_entry_of_a_suite_comes_back_from_json_and_words) {
  std::size_t read = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "suites")) {
    if (entry.path().extension() != ".toml") continue;
    const auto suite = suite::read(entry.path());
    ASSERT_TRUE(suite) << suite.error().what;
    const auto entries = engine::entries_of(*suite, {.scale = "0.01", .data_dir = "", .python = "", .store = ""});
    ASSERT_TRUE(entries) << entries.error().what;
    for (const auto& one : *entries) {
      expect_round_trips(one.request, one.command);
      ++read;
    }
  }
  EXPECT_GT(read, 20U);
}

}  // namespace
}  // namespace strata::requests
