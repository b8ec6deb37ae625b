// libibverbs as a table of function pointers, opened at run time, so that gyre loads where it is not there. Tests put a fake in its place,
// and the owners of handles below close through the same table, so that a fake sees every close. Posting and polling are not in it: verbs.h
// makes these calls through the tables of each device's own context, which a fake fills too.
#pragma once
#include <infiniband/verbs.h>

#include "base/result.h"
#include "base/unique.h"

/// Without one of these, libibverbs can't be used. All are in every one since 2009.
#define GYRE_VERBS_FUNCTIONS(F) \
  F(get_device_list)            \
  F(free_device_list)           \
  F(get_device_name)            \
  F(open_device)                \
  F(close_device)               \
  F(query_device)               \
  F(query_port)                 \
  F(query_pkey)                 \
  F(get_async_event)            \
  F(ack_async_event)            \
  F(alloc_pd)                   \
  F(dealloc_pd)                 \
  F(reg_mr)                     \
  F(dereg_mr)                   \
  F(create_cq)                  \
  F(destroy_cq)                 \
  F(create_qp)                  \
  F(modify_qp)                  \
  F(query_qp)                   \
  F(destroy_qp)

/// Null where libibverbs is too old for them: relaxed ordering of PCI (rdma-core 28), GPU memory as DMA-BUF (34).
#define GYRE_VERBS_NEWER_FUNCTIONS(F) \
  F(reg_mr_iova2)                     \
  F(reg_dmabuf_mr)

namespace gyre::transport::verbs {

struct Api {
#define GYRE_MEMBER(name) decltype(&::ibv_##name) name = nullptr;  // NOLINT(bugprone-macro-parentheses): a name, not a value
  GYRE_VERBS_FUNCTIONS(GYRE_MEMBER)
  GYRE_VERBS_NEWER_FUNCTIONS(GYRE_MEMBER)
#undef GYRE_MEMBER
};

/// Opens libibverbs, once; the error says what is missing. Does nothing while a fake is there.
Status load();
/// Only after load().
const Api& api();
/// For tests: every call goes to `fake` from now on, null: to the real one again. Not while anything is open.
void use(const Api* fake);

inline void close_device(ibv_context* context) { api().close_device(context); }
inline void close_domain(ibv_pd* domain) { api().dealloc_pd(domain); }
inline void close_queue(ibv_cq* queue) { api().destroy_cq(queue); }
inline void close_pair(ibv_qp* pair) { api().destroy_qp(pair); }
inline void close_region(ibv_mr* region) { api().dereg_mr(region); }
inline void free_list(ibv_device** list) { api().free_device_list(list); }

using Context = Unique<ibv_context, close_device>;
using ProtectionDomain = Unique<ibv_pd, close_domain>;
using CompletionQueue = Unique<ibv_cq, close_queue>;
using QueuePair = Unique<ibv_qp, close_pair>;
using MemoryRegion = Unique<ibv_mr, close_region>;
using DeviceList = Unique<ibv_device*, free_list>;

}  // namespace gyre::transport::verbs
