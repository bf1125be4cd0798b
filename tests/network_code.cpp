// SPDX-License-Identifier: Apache-2.0
// Writes the programs of captured networks, for tests that compile many of them as one file:
//   strata_network_code BUNDLE...      writes BUNDLE/program, without the kit that all share
// Prints a line for each: empty, or why there is none.
#include <fmt/format.h>

#include "generate/compile_bundle.hpp"
#include "generate/folder.hpp"
#include "generate/generate.hpp"

namespace {

strata::Result<void> write(const std::filesystem::path& bundle) {
  const auto program = strata::generate::compile_bundle(bundle, {});
  if (!program) return tl::unexpected(program.error());
  strata::generate::Options options;
  options.sources = STRATA_SOURCE_DIR "/runtime";
  const auto files = strata::generate::generate(*program, bundle, options);
  if (!files) return tl::unexpected(files.error());
  for (const auto& [path, text] : *files)
    if (!path.starts_with("kit/"))
      if (auto done = strata::generate::write_text(bundle / "program" / path, text); !done) return done;
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const auto done = write(arguments[i]);
    fmt::print("{}\n", done ? "" : done.error().what);
  }
}
