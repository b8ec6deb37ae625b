#include "plugin/nccl/wrap_made.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

#include "base/log.h"
#include "plugin/nccl/wrap_open_group.h"
#include "plugin/nccl/wrap_real.h"
#include "plugin/no_signals.h"

namespace gyre::plugin::nccl::wrap {
namespace {

void remember(ToCome::Window one) {
  one.window.window = *one.made;
  if (one.window.window != nullptr) one.comm->windows.push_back(one.window);
}

}  // namespace

// A rank that takes nothing over only says so, for which nothing here waits, and nobody need ask NCCL.
ncclResult_t formed(ncclResult_t by_nccl, std::vector<Birth> births) {
  const bool refused = is_error(by_nccl);
  if (!offer().any()) {
    if (births.empty() || refused) return by_nccl;
    try {
      const NoSignals none;
      std::thread([births = std::move(births)] {
        for (const Birth& birth : births) form_one(birth, Made());
      }).detach();
    } catch (const std::exception& error) {  // this rank stays away, and the others learn of it
      log::warn("no thread to say that NCCL runs all calls: {}", error.what());
    }
    return by_nccl;
  }
  if (open_group().depth == 0) {
    form(births, by_nccl);
    return by_nccl;
  }
  for (Birth& birth : births) birth.refused = refused ? by_nccl : ncclSuccess;
  std::move(births.begin(), births.end(), std::back_inserter(open_group().to_come.births));
  return by_nccl;
}

void registered(const std::shared_ptr<Beside>& comm, const void* memory, size_t bytes, const ncclWindow_t* made) {
  if (comm == nullptr) return;
  const ToCome::Window one{comm, {nullptr, static_cast<const std::byte*>(memory), bytes}, made};
  if (!comm->nccl_blocks) return comm->windows.push_back(one.window);
  if (open_group().depth == 0) return remember(one);
  open_group().to_come.windows.push_back(one);
}

void make(const ToCome& ended, ncclResult_t by_nccl) {
  form(ended.births, by_nccl);
  if (by_nccl == ncclSuccess) std::for_each(ended.windows.begin(), ended.windows.end(), remember);
}

}  // namespace gyre::plugin::nccl::wrap
