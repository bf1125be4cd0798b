// SPDX-License-Identifier: Apache-2.0
// Names of the parts of a row's facts that results show as they are stored (common/member_codec.hpp).
#pragma once

#include "store/row_info.hpp"

namespace strata::store {

void each_member(auto& member, FileLines& file) {
  member("file", file.file), member("lines", file.lines);
}

void each_member(auto& member, FileBytes& file) {
  member("file", file.file), member("bytes", file.bytes);
}

void each_member(auto& member, Lines& lines) {
  member("total", lines.total), member("files", lines.files);
}

void each_member(auto& member, ProfiledOperation& operation) {
  member("operation", operation.operation), member("layer", operation.layer), member("kernel", operation.kernel),
      member("shapes", operation.shapes), member("moves_only", operation.moves_only), member("ms", operation.ms),
      member("gap_ms", operation.gap_ms);
}

void each_member(auto& member, OperationProfile& profile) {
  member("operations", profile.operations), member("after_ms", profile.after_ms),
      member("profiled_ms", profile.profiled_ms), member("plain_ms", profile.plain_ms),
      member("iterations", profile.iterations), member("note", profile.note);
}

void each_member(auto& member, Phases& phases) {
  member("ms", phases.ms), member("joined", phases.joined), member("iterations", phases.iterations),
      member("note", phases.note);
}

}  // namespace strata::store
