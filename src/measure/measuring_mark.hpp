// SPDX-License-Identifier: Apache-2.0
// Says to other runs of strata that this one measures, and names the one that does. Advice, not a lock: nobody waits.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace strata::measure {

// A file that the measuring run holds (flock) and that its process id stands in; the kernel lets go of it however the
// run ends, so that no file that is left over means anything.
class MeasuringMark {
 public:
  // Takes the mark if nobody has it. Where the file cannot be made there is no mark, and nobody is named.
  explicit MeasuringMark(const std::filesystem::path& file);
  ~MeasuringMark();
  MeasuringMark(const MeasuringMark&) = delete;
  MeasuringMark& operator=(const MeasuringMark&) = delete;

  // The process that has the mark instead; 0: somebody has it whose number could not be read.
  std::optional<pid_t> other() const { return other_; }

 private:
  int file_ = -1;
  std::optional<pid_t> other_;
};

}  // namespace strata::measure
