// A context of UCX and memory mapped in it, owned. Private to the UCX backend.
#pragma once
#include <ucp/api/ucp.h>

#include <memory>
#include <span>

#include "base/unique.h"
#include "transport/ucx.h"

namespace gyre::transport::ucx {

void close_context(ucp_context_h);
using Context = Unique<ucp_context, close_context>;
Result<Context> open_context(const UcxWay&, uint64_t features = UCP_FEATURE_TAG);

struct Unmap {
  ucp_context_h context = nullptr;
  void operator()(ucp_mem_h memory) const { ucp_mem_unmap(context, memory); }
};
using Mapped = std::unique_ptr<ucp_mem, Unmap>;
/// Of what a UCX worker has registered; what is not is the host's.
MemoryKind kind_of(const Memory*);
Result<Mapped> map_memory(ucp_context_h, std::span<std::byte>, MemoryKind);

}  // namespace gyre::transport::ucx
