#include "plugin/nccl/held_up.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace gyre::plugin::nccl {

void HeldUp::look() {
  const auto now = std::chrono::steady_clock::now();
  if (said_ || now < next_) return;
  next_ = now + between;
  std::string own = fmt::format("rank {} of {}", waiting_.rank, waiting_.size);
  std::vector<std::string> holding;
  for_each_comm([&](ncclComm_t handle, const Comm& comm) {
    if (&comm != &waiting_ && !comm.may_hold_streams()) return;
    std::string name = fmt::format("comm {} (rank {} of {})", fmt::ptr(handle), comm.rank, comm.size);
    if (&comm == &waiting_)
      own = std::move(name);
    else
      holding.push_back(std::move(name));
  });
  if (holding.empty()) return;
  said_ = true;
  log::warn("{} waits for a stream, maybe behind what the failure of {} holds until ncclCommAbort", own, fmt::join(holding, " and of "));
}

}  // namespace gyre::plugin::nccl
