// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_words.hpp"

#include <algorithm>

#include "cli/former_names.hpp"
#include "cli/option.hpp"
#include "cli/sweep.hpp"

namespace strata::cli {

const std::vector<std::string>& VerbWords::verbs() {
  static const std::vector<std::string> all{"compare", "sweep", "train"};
  return all;
}

std::unique_ptr<VerbWords> VerbWords::of(const std::string& verb) {
  if (std::find(verbs().begin(), verbs().end(), verb) == verbs().end()) return nullptr;
  return std::unique_ptr<VerbWords>(new VerbWords(verb));
}

VerbWords::VerbWords(const std::string& verb) : app_("strata", "./strata"), verb_(app_.add_subcommand(verb)) {
  if (verb == "train")
    add_train_options(*verb_, training_);
  else if (verb == "sweep")
    add_sweep_options(*verb_, comparison_);
  else
    add_compare_options(*verb_, comparison_);
  refuse_empty_values(app_);
}

RunArguments& VerbWords::run_arguments() {
  return trains() ? static_cast<RunArguments&>(training_) : comparison_;
}

const engine::CompareRequest& VerbWords::request() {
  return trains() ? static_cast<const engine::CompareRequest&>(training_) : comparison_;
}

Result<int> VerbWords::run() {
  if (trains()) return run_train(training_);
  return verb_->get_name() == "sweep" ? run_sweep(comparison_) : run_compare(comparison_);
}

void VerbWords::read(const std::vector<std::string>& arguments) {
  const auto words = with_current_names(arguments);
  run_arguments().words = words;
  app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as CLI11 takes them
}

Result<void> VerbWords::try_read(const std::vector<std::string>& words) {
  try {
    read(words);
    return {};
  } catch (const CLI::ParseError& error) {
    std::vector<const char*> argv{"./strata"};
    for (const auto& word : words) argv.push_back(word.c_str());
    return tl::unexpected(in_words(app_, error, static_cast<int>(argv.size()), argv.data()));
  }
}

}  // namespace strata::cli
