// What NCCL has made of a communicator or a window, or makes at the end of the thread's group: gyre's part comes then.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "plugin/nccl/wrap_forming.h"

namespace gyre::plugin::nccl::wrap {

/// What a group makes at its end.
struct ToCome {
  struct Window {
    std::shared_ptr<Beside> comm;
    Beside::Window window;
    const ncclWindow_t* made;
  };
  std::vector<Birth> births;
  std::vector<Window> windows;
};

/// After NCCL has answered a call that makes these: gyre's are made now, or, in a group, at its end.
ncclResult_t formed(ncclResult_t by_nccl, std::vector<Birth>);
/// After NCCL has answered the same of a window, which is there now, or, in a group, at its end.
void registered(const std::shared_ptr<Beside>&, const void* memory, size_t bytes, const ncclWindow_t* made);

/// At the end of a group, of which NCCL has come to this.
void make(const ToCome&, ncclResult_t by_nccl);

}  // namespace gyre::plugin::nccl::wrap
