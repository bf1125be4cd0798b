// SPDX-License-Identifier: Apache-2.0
// Where the results of one case of a run go: a call for each kind, each in the store when it returns. Errors: the
// store's.
#pragma once

#include "store/store.hpp"

namespace strata::measure {

class CaseSink {
 public:
  CaseSink(store::Store& store, std::string run_id) : store_(store), run_id_(std::move(run_id)) {}

  // The case itself, again when more of it is known; the other calls are of the case that was given last.
  Result<void> of_case(const store::Case& run_case) {
    case_key_ = run_case.key;
    return store_.add_case(run_id_, run_case);
  }
  Result<void> finished() { return store_.finish_case(run_id_, case_key_); }
  Result<void> new_row(store::Row& row) {
    row.row_id = STRATA_TRY(store_.add_row(run_id_, case_key_, row));
    return {};
  }
  Result<void> row(const store::Row& row) { return store_.update_row(row); }
  Result<void> block(const store::Row& row, const store::Block& block) { return store_.add_block(row.row_id, block); }
  // What others had of the processors in rounds `first` to `last` of a restart, in all blocks of the row.
  Result<void> taken(const store::Row& row, int restart, int first, int last, double share) {
    return store_.set_taken(row.row_id, restart, first, last, share);
  }
  // One whose blocks are all stored.
  Result<void> restart(int number, const store::Json& loads) {
    return store_.add_restart(run_id_, case_key_, number, loads);
  }
  Result<void> series(std::int64_t row_id, const std::vector<store::Series>& all) {
    return store_.add_series(row_id, all);
  }
  Result<void> warning(store::Warning warning) {
    warning.case_key = case_key_;
    return store_.add_warning(run_id_, warning);
  }

 private:
  store::Store& store_;
  std::string run_id_, case_key_;
};

}  // namespace strata::measure
