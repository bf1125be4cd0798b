// SPDX-License-Identifier: Apache-2.0
#include "session/warm_processes.hpp"

#include <algorithm>

namespace strata::session {

Try<std::unique_ptr<Session>> WarmProcesses::open(const Job& job, const std::vector<int>& cpus) {
  const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                               [&](const auto& process) { return process->can_serve(job, cpus); });
  if (it == waiting_.end()) return Session::open(job, cpus);
  auto session = std::move(*it);
  waiting_.erase(it);
  session->bind(job);
  return session;
}

void WarmProcesses::keep(std::unique_ptr<Session> session) {
  session->process().resume();
  waiting_.push_back(std::move(session));
}

void WarmProcesses::unload() {
  std::erase_if(waiting_, [](const auto& session) { return !session->unload(); });
}

void WarmProcesses::end() {
  for (const auto& session : waiting_) session->end();
  waiting_.clear();
}

Try<std::unique_ptr<Session>> open_session(WarmProcesses* warm, const Job& job, const std::vector<int>& cpus) {
  return warm == nullptr ? Session::open(job, cpus) : warm->open(job, cpus);
}

void close_session(WarmProcesses* warm, std::unique_ptr<Session> session) {
  if (warm == nullptr)
    session->end();
  else
    warm->keep(std::move(session));
}

}  // namespace strata::session
