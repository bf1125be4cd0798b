// SPDX-License-Identifier: Apache-2.0
// The lines of a certificate, and those that certificates of inference and of training share.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>

#include "proof/certificate.hpp"

namespace strata::proof {

// Why a light proof has no planted faults.
inline constexpr const char* kNotPlanted = "not planted at this point: the corners of the sweep have them";

struct Line {
  std::string check;
  std::string how;                     // observed, reported, assumed
  std::string result = "not_checked";  // or pass, fail
  std::string value{}, bound{}, detail{};
  bool about_level = true;  // false: of the proof itself; shown, not counted
};

// The lines in order, and what they add up to.
class Lines {
 public:
  void add(Line line) { lines_.push_back(std::move(line)); }

  // A failing line decides the verdict unless a graver one did; the first reason of the gravest kind stays.
  void fail(Line line, OutputVerdict::Kind kind, const std::string& reason, const std::string& brief) {
    line.result = "fail";
    if (kind > kind_) {
      kind_ = kind;
      reason_ = reason;
      brief_ = brief;
    }
    lines_.push_back(std::move(line));
  }

  // A line that fails by this verdict; `where`: in front of its reason.
  void refuse(Line line, const OutputVerdict& verdict, const std::string& where = {}) {
    line.detail = verdict.reason;
    fail(std::move(line), verdict.kind, where.empty() ? verdict.reason : where + ": " + verdict.reason,
         verdict.reason_short);
  }

  // Fails if there is a complaint, for the level is not believed then; else it stands as it is.
  void add_unless(Line line, const std::string& complaint, const std::string& brief) {
    if (complaint.empty()) return add(std::move(line));
    fail(std::move(line), OutputVerdict::Kind::mistrusted, complaint, brief);
  }

  void note(OutputVerdict::Kind kind) { kind_ = std::max(kind_, kind); }  // of a passing line
  bool equal() const { return kind_ == OutputVerdict::Kind::equal || kind_ == OutputVerdict::Kind::equal_looser; }

  // What they add up to. `none`: no outputs were checked; `verdicts`: all that were come to, the last after them.
  Certificate certificate(bool none, bool weak,
                          std::initializer_list<const std::map<std::string, OutputVerdict>*> verdicts,
                          const std::optional<OutputVerdict>& last) const;

 private:
  // Lines of one sort that say something; assumptions count although nothing was checked.
  int count(std::string_view how) const {
    return static_cast<int>(std::count_if(lines_.begin(), lines_.end(), [&](const Line& l) {
      return l.about_level && l.how == how && (how == "assumed" || l.result != "not_checked");
    }));
  }

  std::vector<store::ProofLine> proof_lines() const {
    std::vector<store::ProofLine> all;
    for (const Line& l : lines_) all.push_back({l.check, l.how, l.result, l.value, l.bound, l.detail});
    return all;
  }

  std::vector<Line> lines_;
  OutputVerdict::Kind kind_ = OutputVerdict::Kind::equal;
  std::string reason_, brief_;
};

// A verdict as a line; `line` has its check, bound and value. Without one it was not checked, and `note` says why.
void add_verdict(Lines& lines, Line line, const std::optional<OutputVerdict>& verdict, const std::string& note = {});
// What came of the checks of timed blocks; `line` has its check.
void add_blocks(Lines& lines, const Evidence& evidence, Line line);
// That a level which is not deterministic is judged more loosely; `runs`: of what.
void add_repeatability(Lines& lines, const Evidence& evidence, const char* runs);
// That the level computes in the case's precision, by the size of its error.
void add_precision(Lines& lines, const std::string& precision, const std::optional<PrecisionShare>& share);
// Tensors that the level read back against the bundle's files; `about`: its bundle.json.
void add_read_back(Lines& lines, const std::filesystem::path& bundle, const nlohmann::json& about,
                   const Evidence& evidence);
// That the bundle holds a light proof (docs/sweep.md), if it does.
void add_extent(Lines& lines, const nlohmann::json& bundle);
void add_parameters(Lines& lines, const nlohmann::json& bundle, const Evidence& evidence);
// What becomes of a NaN or an infinity in an input.
void add_specials(Lines& lines, const Evidence& evidence);
// Threads and precision must be the case's; others are shown.
void add_settings(Lines& lines, const core::Case& question, const Evidence& evidence);
void add_work(Lines& lines, const Evidence& evidence);
// That the told times are those of the driver's own clock.
void add_clock(Lines& lines, const Evidence& evidence);
// That no iteration had an input which the level had seen before.
void add_new_inputs(Lines& lines, const Evidence& evidence);
// That the level works no harder where it is looked at, nor with more threads than the case has.
void add_conduct(Lines& lines, const Evidence& evidence);
// In inference: that inputs which it never saw take it no longer than others.
void add_unseen(Lines& lines, const Evidence& evidence);
// That it cannot read what it is judged by.
void add_references(Lines& lines, const Evidence& evidence);

}  // namespace strata::proof
