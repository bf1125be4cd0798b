// SPDX-License-Identifier: Apache-2.0
// level.json: what a level says about itself (docs/protocol.md), and finding levels by walking folders.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "core/participant_id.hpp"

namespace strata::level {

// In place of operations' names: every one of ATen, and their gradients by autograd.
inline constexpr const char* kAllOfAten = "*";

// The variant that strata itself gives every level on a processor: its workers' malloc asks for huge pages. Only their
// environment differs, so workers are told no variant, and the default's artefacts are theirs.
inline constexpr const char* kHugePages = "hugepages";
inline constexpr const char* kHugePagesTunable = "glibc.malloc.hugetlb=1";  // of GLIBC_TUNABLES

// A level with one setting changed. What it does not say is the level's.
struct Variant {
  std::string name, title;
  std::vector<std::string> modes, devices;  // empty: the level's
  std::optional<bool> bakes_weights, reassociates;
  bool on_data = false;  // differs from the level in a training on a data set alone
  std::string generate;  // what `strata generate` is told besides the level's --target; empty: it does not write this
};

struct Level {
  std::string id, title, language, variant = "default";
  int rank = 0;
  std::vector<std::string> devices, modes, precisions, models, start, prepare, needs, to_maintain;
  std::vector<std::string>
      operations;  // of a level that runs the captured graph: the ATen operations that it has; empty: not said
  bool environment = true, peer = false, harness = false, reassociates = false, bakes_weights = false, dynamic = false,
       huge_pages = false,  // its workers' malloc asks for huge pages, in every variant
      on_data = false;      // of a variant that takes part in trainings on a data set alone
  std::string from, changes, default_text;
  std::map<std::string, std::string> generate;  // by device the --target of `strata generate` that writes its program
  std::string generate_options;                 // what more it is told, for a variant
  std::vector<Variant> variants;  // in the order of level.json's names, then strata's own; empty in a level that is one
  std::filesystem::path folder;   // absolute
  std::string distribution;       // the Python distribution that brings it (installed_levels.hpp); empty: none
  std::string requirements;       // SHA-256 of its folder's requirements.txt (own_environment.hpp); empty: it has none
  std::vector<std::string> ignored;  // keys of level.json that this version does not know
  std::string in_environment;        // of several that --env names; empty: in the only one, or in none of them

  core::ParticipantId participant() const { return {id, variant, in_environment}; }
  std::string level_and_variant() const { return participant().level_and_variant(); }
  // What `load` and the prepare command say; empty: nothing.
  std::string told_variant() const { return variant == "default" || variant == kHugePages ? "" : variant; }
  std::string name() const { return participant().name(); }
};

// The level with a variant's settings in place of its own.
Level as_variant(const Level& level, const Variant& variant);

struct BrokenLevel {
  std::filesystem::path where;
  Error error;
};

// Levels by rank, then id. A broken level.json is a problem and hides no other level; of two levels with one id the
// first found wins.
struct DiscoveredLevels {
  std::vector<Level> levels;
  std::vector<BrokenLevel> problems;
};

// Up to 40 of a-z, 0-9 and _, a letter first: ids stand in comma lists and before an @.
bool good_id(const std::string& id);

// Reads one level.json. Errors name the file, the field, what was got and what is allowed.
Result<Level> read(const std::filesystem::path& folder);

void sort_by_rank(std::vector<Level>& levels);  // then by id

// Walks each root: a folder with level.json is a level, others are searched (4 deep; hidden ones and links are not).
DiscoveredLevels discover(const std::vector<std::filesystem::path>& roots);

// `<root>/levels`, then the folders of STRATA_LEVEL_PATH (separated by colons).
std::vector<std::filesystem::path> search_path(const std::filesystem::path& root);

// What {python}, {tools_python}, {build} and {root} stand for in `start` and `prepare`; {level} is the level's folder,
// {level_python} the interpreter of the environment that it brings (own_environment.hpp).
// A command that starts with an interpreter starts it as common/python.hpp does.
struct Places {
  std::string python, tools_python, build, root;
};
std::vector<std::string> expand(const std::vector<std::string>& command, const Level& level, const Places& places);

// Whether `strata export` can ship what it makes of a case: the level has an export folder (docs/export.md).
bool ships(const Level& level);

// Why the build left a level's program out, and what to do: from `<program>.missing`, two lines that its CMakeLists.txt
// wrote (strata_leave_out). nullopt: it did not.
std::optional<Error> left_out(const std::filesystem::path& program);

// The variables that docs/protocol.md promises to a worker.
std::map<std::string, std::string> environment(const Level& level, const Places& places, int threads,
                                               const std::filesystem::path& cache);

}  // namespace strata::level
