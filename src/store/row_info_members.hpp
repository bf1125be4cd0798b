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

void each_member(auto& member, Phases& phases) {
  member("ms", phases.ms), member("joined", phases.joined), member("iterations", phases.iterations),
      member("note", phases.note);
}

}  // namespace strata::store
