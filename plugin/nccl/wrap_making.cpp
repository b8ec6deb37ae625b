// NCCL's functions that make communicators, beside which gyre makes its own.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "plugin/nccl/wrap.h"
#include "plugin/nccl/wrap_births.h"
#include "plugin/nccl/wrap_issue.h"
#include "plugin/nccl/wrap_made.h"
#include "plugin/nccl/wrap_real.h"
#include "transport/transport.h"

namespace gyre::plugin::nccl {
namespace {

using wrap::Birth;
using wrap::call_real;
using wrap::hear_real;

/// Before NCCL starts threads for a communicator, where gyre may have one beside it.
void prepare(int ranks) {
  if (ranks > 1 && wrap::offer().any()) transport::open_ucx_before_threads(wrap::config());
}

}  // namespace

namespace wrap {

ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config) noexcept {
  return answer("ncclSetEncryption", [&]() -> Result<ncclResult_t> {
    const ncclResult_t result = hear_real<&Table::ncclSetEncryption>(config);
    if (result == ncclSuccess && config != nullptr) encrypt(config->mode != NCCL_ENCRYPTION_MODE_NONE);
    return result;
  });
}

// Releases 2.13 to 2.22 leave those bytes as they were that they don't use.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) noexcept {
  return answer("ncclGetUniqueId", [&]() -> Result<ncclResult_t> {
    if (id != nullptr) std::memset(id, 0, sizeof *id);
    const ncclResult_t result = hear_real<&Table::ncclGetUniqueId>(id);
    if (result != ncclSuccess || id == nullptr || encrypted()) return result;
    const char* given = std::getenv("NCCL_COMM_ID");
    if (given != nullptr && *given != '\0') {
      log::warn("NCCL_COMM_ID leaves no room for gyre to say where its ranks meet: NCCL runs all calls");
    } else if (const Status added = add_meeting(*id); !added) {
      log::warn("{}: NCCL runs all calls", added.error().what);
    }
    return result;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) noexcept {
  return answer("ncclCommInitRankConfig", [&]() -> Result<ncclResult_t> {
    prepare(ranks);
    const auto result =
        GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommInitRankConfig>(comm, ranks, id, rank, config); }));
    return formed(result, birth(comm, ranks, rank, id));
  });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) noexcept {
  return answer("ncclCommInitRank", [&]() -> Result<ncclResult_t> {
    prepare(ranks);
    const auto result = GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommInitRank>(comm, ranks, id, rank); }));
    return formed(result, birth(comm, ranks, rank, id));
  });
}

// gyre's ranks meet at the first id.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int count, ncclUniqueId* ids, ncclConfig_t* config) noexcept {
  return answer("ncclCommInitRankScalable", [&]() -> Result<ncclResult_t> {
    prepare(ranks);
    const auto result = GYRE_TRY(
        pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommInitRankScalable>(comm, ranks, rank, count, ids, config); }));
    if (ids == nullptr || count < 1) return result;
    for (int i = 1; i < count; ++i) close_added_door(ids[i]);
    return formed(result, birth(comm, ranks, rank, ids[0]));
  });
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int* devices) noexcept {
  return answer("ncclCommInitAll", [&]() -> Result<ncclResult_t> {
    prepare(ranks);
    const auto result = GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommInitAll>(comms, ranks, devices); }));
    return formed(result, births(comms, ranks));
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) noexcept {
  return answer("ncclCommSplit", [&]() -> Result<ncclResult_t> {
    const auto parent = GYRE_TRY(ready_beside(comm));
    if (parent == nullptr || made == nullptr)
      return pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommSplit>(comm, color, key, made, config); });
    Birth part = split_birth(parent, comm, made, color, key, config);
    const auto result =
        GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommSplit>(comm, color, key, part.at(), config); }));
    return formed(result, {std::move(part)});
  });
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* without, int count, ncclComm_t* made, ncclConfig_t* config, int flags) noexcept {
  return answer("ncclCommShrink", [&]() -> Result<ncclResult_t> {
    const auto parent = GYRE_TRY(ready_beside(comm));
    const std::vector<Rank> left_out(without, without + (without == nullptr ? 0 : std::max(count, 0)));
    if (parent != nullptr && flags == NCCL_SHRINK_ABORT) GYRE_TRY(parent->give_up());
    if (parent == nullptr || made == nullptr)
      return pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommShrink>(comm, without, count, made, config, flags); });
    Birth rest = shrink_birth(parent, comm, made, left_out, config);
    const auto result =
        GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommShrink>(comm, without, count, rest.at(), config, flags); }));
    return formed(result, {std::move(rest)});
  });
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId* id, int rank, ncclComm_t* made, ncclConfig_t* config) noexcept {
  return answer("ncclCommGrow", [&]() -> Result<ncclResult_t> {
    std::ignore = GYRE_TRY(settled_beside(comm));
    return pass(nullptr, nullptr, [=] { return call_real<&Table::ncclCommGrow>(comm, ranks, id, rank, made, config); });
  });
}

}  // namespace wrap
}  // namespace gyre::plugin::nccl
