// SPDX-License-Identifier: Apache-2.0
// Collects what a run has seen of a level and writes the certificate: the `proof` object of docs/results_schema.md.
#pragma once

#include <map>
#include <optional>

#include "proof/clock.hpp"
#include "proof/conduct.hpp"
#include "proof/outputs.hpp"
#include "proof/precision.hpp"
#include "store/row_records.hpp"

namespace strata::proof {

// An iteration this many times faster than the arithmetic allows did not do the arithmetic. Winograd saves at most a
// factor of about 5 of multiplications, and a measured peak may be low by half.
constexpr double implausible = 10;

// What the driver gathers of one row. Fill what there is; what is missing becomes `not_checked`, never `pass`.
struct Evidence {
  std::map<std::string, OutputVerdict> sets;     // before timing: set name -> verdict of prove, in strict float32
  std::map<std::string, OutputVerdict> in_mode;  // the same in the case's precision, where that is another
  std::optional<PrecisionShare> precision;       // of the timed weights in that mode
  int blocks_checked = 0;
  int blocks_failed = 0;
  std::optional<OutputVerdict> block_failure;              // the first
  int blocks_of_new_inputs = 0, blocks_of_old_inputs = 0;  // as the level says; of this process, not of a resumed run's
  nlohmann::json load;                                     // the worker's answer
  std::map<std::string, std::map<std::string, std::string>> read_back;  // set -> tensor -> SHA-256, from read_weights
  std::optional<std::string> specials;  // of a NaN and an infinity in an input (special_values.hpp); nullopt: not asked
  double own_spread = 0;                // of a level that is not deterministic, in relative error
  std::optional<double> iteration_ms;   // measured median, and the least time that the machine's limits allow:
  std::optional<double> limit_ms;       // an iteration far below it did not do the work
  std::string limit_note;               // why there is no limit_ms
  std::optional<double> flops;          // of the network, and the operations that are not in them
  std::vector<std::string> uncounted;

  std::optional<double> latency_ms;             // median of run and wait
  std::optional<std::string> references_shown;  // why the level could read what it is judged by; empty: it cannot

  ClockEvidence clock;  // of the restart whose told times are explained worst
  Conduct conduct;

  // Keeps what was seen of one restart's clock if it speaks more against the level than what is known; why it is not
  // believed, or empty.
  std::string note_clock(const ClockEvidence& seen);
  // What the level says of a block: every iteration had an input of its own.
  void note_inputs(bool were_new) { ++(were_new ? blocks_of_new_inputs : blocks_of_old_inputs); }
  // Adds the verdict of one timed block.
  void add_block(const OutputVerdict& verdict);
};

struct Certificate {
  store::Proof proof;
  OutputVerdict::Kind kind = OutputVerdict::Kind::equal;
  bool none = true;          // nothing was proven: no outputs were checked
  std::string reason;        // of a verdict that is not equal
  std::string reason_short;  // at most 8 words

  bool may_have_numbers() const {
    return !none && (kind == OutputVerdict::Kind::equal || kind == OutputVerdict::Kind::equal_looser);
  }
};

// `power` is passed in since it is the same for every level of the case. `in_mode`: the reference in the case's
// precision mode; nullptr: that is float32, which `reference` is.
Certificate certificate(const Reference& reference, const Power& power, const Evidence& evidence,
                        const Reference* in_mode = nullptr);

// Whether a stored certificate says enough for a run that goes on to be spared its proof: equal, by a level that
// repeats itself (whose own spread, which the certificate does not hold, is none).
bool can_be_continued(const store::Proof& proof);

// The certificate of a row whose proof an earlier process of the same run made: what this process did not look at again
// stands as it was, what it did look at as it is now; the graver verdict holds.
Certificate continued(const store::Proof& before, Certificate now);

}  // namespace strata::proof
