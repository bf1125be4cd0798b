// SPDX-License-Identifier: Apache-2.0
// Worker processes that outlive a case: a walk of a sweep has one of each level, which unloads one point's network and
// loads the next one's. A process that has to be started otherwise for a case (another cache in its environment, other
// threads) is another one.
#pragma once

#include "session/session.hpp"

namespace strata::session {

class WarmProcesses {
 public:
  // One that waits and can serve the job, else a fresh one. `job` as in Session::bind().
  Try<std::unique_ptr<Session>> open(const Job& job, const std::vector<int>& cpus);
  void keep(std::unique_ptr<Session> session);  // it waits as it is, for the same case or the next
  void unload();                                // after a case: memory is free for the next one. Who cannot is ended.
  // Ends all that wait: the next walk has fresh ones.
  void end();

 private:
  std::vector<std::unique_ptr<Session>> waiting_;
};

// Of `warm`, or a fresh one where that is nullptr.
Try<std::unique_ptr<Session>> open_session(WarmProcesses* warm, const Job& job, const std::vector<int>& cpus);
// What becomes of a process that did its work.
void close_session(WarmProcesses* warm, std::unique_ptr<Session> session);

}  // namespace strata::session
