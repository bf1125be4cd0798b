// SPDX-License-Identifier: Apache-2.0
// Names in JSON of what is known of a row, in the store and in results that show it as it is stored
// (common/member_codec.hpp).
#pragma once

#include "common/member_codec.hpp"
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
      member("gap_ms", operation.gap_ms), member("flops", operation.flops), member("bytes", operation.bytes);
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

void each_member(auto& member, StartUp& start) {
  member("restart", start.restart), member("cold", start.cold), member("process_ms", start.process_ms),
      member("library_ms", start.library_ms), member("load_ms", start.load_ms), member("build_ms", start.build_ms),
      member("weights_ms", start.weights_ms), member("first_iteration_ms", start.first_iteration_ms),
      member("total_ms", start.total_ms);
}

void each_member(auto& member, MemoryFacts& memory) {
  member("idle_private_bytes", memory.idle_private_bytes), member("steady_private_bytes", memory.steady_private_bytes),
      member("peak_private_bytes", memory.peak_private_bytes), member("steady_pss_bytes", memory.steady_pss_bytes),
      member("above_idle_bytes", memory.above_idle_bytes), member("shared_file_bytes", memory.shared_file_bytes),
      member("device_peak_bytes", memory.device_peak_bytes), member("expected_peak_bytes", memory.expected_peak_bytes);
}

void each_member(auto& member, ProofLine& line) {
  member("check", line.check), member("how", line.how), member("result", line.result), member("value", line.value),
      member("bound", line.bound), member("detail", line.detail);
}

void each_member(auto& member, ProofWhileTraining& proof) {
  member("steps_and_scores", proof.steps_and_scores), member("by", proof.by), member("steps", proof.steps),
      member("steps_in_windows", proof.steps_in_windows), member("longest_window", proof.longest_window),
      member("windows_too_rough", proof.windows_too_rough);
}

void each_member(auto& member, Proof& proof) {
  member("verdict", proof.verdict), member("weak", proof.weak), member("observed", proof.observed),
      member("reported", proof.reported), member("assumed", proof.assumed),
      member("first_difference", members::NullIfEmpty{proof.first_difference}),
      member("worst_ratio", proof.worst_ratio), member("lines", proof.lines),
      member("in_the_middle", members::IfThere{proof.in_the_middle});
}

void each_member(auto& member, DeepFacts& deep) {
  member("first_difference", deep.first_difference), member("worst_ratio", deep.worst_ratio),
      member("reason", deep.reason), member("note", members::NullIfEmpty{deep.note});
}

void each_member(auto& member, TriedVariant& tried) {
  member("variant", tried.variant), member("title", tried.title), member("state", tried.state),
      member("reason", tried.reason), member("median_ms", tried.median_ms), member("ratio", tried.ratio);
}

void each_member(auto& member, Tuning& tuning) {
  member("seconds", tuning.seconds), member("restarts", tuning.restarts), member("best", tuning.best),
      member("note", tuning.note), member("tried", tuning.tried);
}

}  // namespace strata::store
