// A send, or a grouped receive, that NCCL tests until it is done. Belongs to its connection, which has a fixed number of them.
#pragma once
#include <array>
#include <cstdint>

#include "plugin/net.h"
#include "transport/transport.h"

namespace gyre::plugin {

class Request {
 public:
  Comm* comm = nullptr;
  bool in_use = false;
  bool flushes = false;  ///< its parts are the worker's, not the endpoint's
  uint8_t count = 0;     ///< parts
  std::array<transport::Request*, max_grouped> parts{};
  std::array<const Memory*, max_grouped> memory{};
  size_t bytes = 0;            ///< of a send
  const void* data = nullptr;  ///< of a send that waits to be handed to the endpoint; so is the tag
  int tag = 0;
  uint64_t posted_ns = 0;  ///< when, if that is counted

  bool done() const {
    for (uint8_t i = 0; i < count; ++i)
      if (!parts[i] || !parts[i]->done) return false;
    return true;
  }
};

}  // namespace gyre::plugin
