// NCCL's functions that make, end and ask communicators, where gyre has some beside NCCL's.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "plugin/guard.h"
#include "plugin/nccl/config.h"
#include "plugin/nccl/missing.h"
#include "plugin/nccl/wrap.h"
#include "plugin/nccl/wrap_issue.h"
#include "plugin/nccl/wrap_made.h"
#include "plugin/nccl/wrap_real.h"
#include "transport/control.h"
#include "transport/door.h"
#include "transport/transport.h"

namespace gyre::plugin::nccl {
namespace {

using wrap::Birth;
using wrap::call_real;
using wrap::hear_real;
using wrap::Made;
using wrap::Parts;

constexpr std::chrono::milliseconds end_limit{2000};
std::atomic<bool> encrypts{false};  // NCCL its connections

std::string who(Rank rank, int ranks) { return fmt::format("rank {} of {}", rank, ranks); }

const char* const not_encrypted = "NCCL is to encrypt its connections, which gyre does not do";

/// Before NCCL starts threads for a communicator, where gyre may have one beside it.
void prepare(int ranks) {
  if (ranks > 1 && wrap::offer().any()) transport::open_ucx_before_threads(wrap::config());
}

/// Of ranks that each bring the unique id.
std::vector<Birth> birth(ncclComm_t* made, int ranks, int rank, const ncclUniqueId& id) {
  const bool asked = wrap::offer().any() || has_meeting(id);
  if (made == nullptr || ranks < 2 || rank < 0 || rank >= ranks || !asked) {
    close_added_door(id);
    return {};
  }
  return {{who(rank, ranks), made, [=, encrypted = encrypts.load()](const Made& by_nccl) -> Result<Parts> {
             if (encrypted || by_nccl.result != ncclSuccess) close_added_door(id);
             if (encrypted) return Error{Code::invalid_usage, not_encrypted};
             if (by_nccl.result != ncclSuccess) return Parts();
             return wrap::meet(GYRE_TRY(added_meeting(id, rank, ranks)), by_nccl);
           }}};
}

/// Of a parent's ranks. Where NCCL goes on with it the program sees it when gyre is done, too.
Birth birth(const std::shared_ptr<wrap::Beside>& parent, ncclComm_t handle, ncclComm_t* made, const char* how) {
  Birth own{who(parent->rank, parent->size) + how, made, {}, parent, handle};
  if (!parent->nccl_blocks && made != nullptr) own.place = &parent->parts.emplace_back(*made);
  return own;
}

/// Why gyre has no part in what is made of the parent's ranks with that config; empty: it may have.
std::string refusal(const wrap::Beside& parent, const ncclConfig_t* given) {
  if (encrypts) return not_encrypted;
  const auto chosen = settings(given, {parent.nccl_blocks});
  return chosen && chosen->blocking == parent.nccl_blocks ? "" : "one of it and of what it is made of does not block";
}

/// Of ranks that are all of this process.
std::vector<Birth> births(ncclComm_t* comms, int ranks) {
  if (!wrap::offer().any() || comms == nullptr || ranks < 2) return {};
  auto door = transport::open_door();
  if (!door) return {};
  const auto shared = std::make_shared<transport::Door>(*std::move(door));
  const uint64_t job = transport::random_number();
  std::vector<Birth> all;
  all.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back({who(rank, ranks), comms + rank, [=, encrypted = encrypts.load()](const Made& by_nccl) -> Result<Parts> {
                     if (by_nccl.result != ncclSuccess) return Parts();
                     if (encrypted) return Error{Code::invalid_usage, not_encrypted};
                     Meeting at{shared->rendezvous(rank, ranks), {}};
                     at.rendezvous.job = job;
                     return wrap::meet(at, by_nccl);
                   }});
  }
  return all;
}

/// What its streams have of gyre's ends, since the program asks for that.
Status give_up(wrap::Beside& comm) {
  comm.given_up = true;
  comm.interrupt();
  return comm.lives();
}

/// What its streams were given has ended, or can't, and they go on; who has not asked for the error hears of it here.
void finish(const char* name, wrap::Beside& comm) {
  if (const Status finished = comm.finish(); !finished) failed(name, finished.error());
}

}  // namespace

namespace wrap {

ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config) noexcept {
  return answer("ncclSetEncryption", [&]() -> Result<ncclResult_t> {
    const ncclResult_t result = hear_real<&Table::ncclSetEncryption>(config);
    if (result == ncclSuccess && config != nullptr) encrypts = config->mode != NCCL_ENCRYPTION_MODE_NONE;
    return result;
  });
}

// Releases 2.13 to 2.22 leave those bytes as they were that they don't use.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) noexcept {
  return answer("ncclGetUniqueId", [&]() -> Result<ncclResult_t> {
    if (id != nullptr) std::memset(id, 0, sizeof *id);
    const ncclResult_t result = hear_real<&Table::ncclGetUniqueId>(id);
    if (result != ncclSuccess || id == nullptr || encrypts) return result;
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
    Birth part = birth(parent, comm, made, ", split");
    part.make = [=, why = refusal(*parent, config)](const Made& by_nccl) -> Result<Parts> {
      if (by_nccl.result == ncclInvalidArgument) return Parts();  // of which NCCL tells the others nothing
      if (by_nccl.result == ncclInvalidUsage) return stay_away(*parent);
      return split(*parent, color, key, by_nccl, by_nccl.result == ncclSuccess ? why : "NCCL could not make it");
    };
    const auto result =
        GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommSplit>(comm, color, key, part.at(), config); }));
    return formed(result, {std::move(part)});
  });
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* without, int count, ncclComm_t* made, ncclConfig_t* config, int flags) noexcept {
  return answer("ncclCommShrink", [&]() -> Result<ncclResult_t> {
    const auto parent = GYRE_TRY(ready_beside(comm));
    const std::vector<Rank> left_out(without, without + (without == nullptr ? 0 : std::max(count, 0)));
    if (parent != nullptr && flags == NCCL_SHRINK_ABORT) GYRE_TRY(give_up(*parent));
    if (parent == nullptr || made == nullptr || !refusal(*parent, config).empty())
      return pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommShrink>(comm, without, count, made, config, flags); });
    Birth rest = birth(parent, comm, made, ", shrunk");
    rest.make = [=](const Made& by_nccl) -> Result<Parts> {
      if (by_nccl.result != ncclSuccess) return Parts();
      return shrink(*parent, left_out, by_nccl);
    };
    const auto result =
        GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommShrink>(comm, without, count, rest.at(), config, flags); }));
    return formed(result, {std::move(rest)});
  });
}

// All ranks register symmetric windows together, each its own memory, as all give what they have back. Any other kind a rank may have
// alone, so that it decides nothing. NCCL succeeds without a window where it has none; of a communicator that does not block none of its
// ranks knows that when another one may call, so there the memory counts for good.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* memory, size_t bytes, ncclWindow_t* window, int flags) noexcept {
  return answer("ncclCommWindowRegister", [&]() -> Result<ncclResult_t> {
    const auto known = GYRE_TRY(ready_beside(comm));
    const auto result =
        GYRE_TRY(pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommWindowRegister>(comm, memory, bytes, window, flags); }));
    const bool symmetric = (static_cast<unsigned>(flags) & NCCL_WIN_COLL_SYMMETRIC) != 0;
    const bool begun = result == ncclSuccess || result == ncclInProgress;
    if (begun && window != nullptr && symmetric) registered(known, memory, bytes, window);
    return result;
  });
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) noexcept {
  return answer("ncclCommWindowDeregister", [&]() -> Result<ncclResult_t> {
    if (const auto owner = GYRE_TRY(settled_beside(comm)); owner != nullptr && window != nullptr)
      std::erase_if(owner->windows, [&](const Beside::Window& known) { return known.window == window; });
    return pass(nullptr, nullptr, [&] { return call_real<&Table::ncclCommWindowDeregister>(comm, window); });
  });
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId* id, int rank, ncclComm_t* made, ncclConfig_t* config) noexcept {
  return answer("ncclCommGrow", [&]() -> Result<ncclResult_t> {
    std::ignore = GYRE_TRY(settled_beside(comm));
    return pass(nullptr, nullptr, [=] { return call_real<&Table::ncclCommGrow>(comm, ranks, id, rank, made, config); });
  });
}

// What gyre has failed of has been told, and is no reason to keep the communicator.
ncclResult_t ncclCommFinalize(ncclComm_t comm) noexcept {
  return answer("ncclCommFinalize", [&]() -> Result<ncclResult_t> {
    const auto ended = GYRE_TRY(ready_beside(comm));
    if (ended == nullptr) return hear_real<&Table::ncclCommFinalize>(comm);
    if (ended->nccl_blocks) finish("ncclCommFinalize", *ended);
    GYRE_TRY(ended->lives());
    const ncclResult_t result = hear_real<&Table::ncclCommFinalize>(comm);
    if (result == ncclSuccess || result == ncclInProgress) ended->finalized = true;
    return result == ncclSuccess && ended->winds_up() ? ncclInProgress : result;
  });
}

// What streams were given of gyre's is waited for, or let go, since NCCL's may come after it; an abort ends that wait. Then by NCCL first,
// which waits for what is under way; its handle may come again at once, so gyre forgets it before.
ncclResult_t ncclCommDestroy(ncclComm_t comm) noexcept {
  return answer("ncclCommDestroy", [&]() -> Result<ncclResult_t> {
    const auto ended = GYRE_TRY(ready_beside(comm));
    if (ended != nullptr) {
      finish("ncclCommDestroy", *ended);
      if (!forget(comm, ended)) return Error{Code::invalid_argument, "another thread has ended the communicator"};
      ended->background.withdraw();
      ended->withdraw();
    }
    const ncclResult_t result = hear_real<&Table::ncclCommDestroy>(comm);
    if (ended != nullptr && !ended->wait_until_idle(end_limit)) ended->abort();
    return result;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) noexcept {
  return answer("ncclCommAbort", [&]() -> Result<ncclResult_t> {
    const auto ended = take_beside(comm);
    if (ended != nullptr) {
      ended->abort();
      ended->background.withdraw();
      ended->withdraw();
    }
    const ncclResult_t result = hear_real<&Table::ncclCommAbort>(comm);
    if (ended != nullptr) ended->wait_until_idle(end_limit);
    return result;
  });
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) noexcept {
  return answer("ncclCommRevoke", [&]() -> Result<ncclResult_t> {
    const auto revoked = beside(comm);
    if (revoked == nullptr) return hear_real<&Table::ncclCommRevoke>(comm, flags);
    if (revoked->is_made())
      GYRE_TRY(give_up(*revoked));
    else
      revoked->abort();
    const auto pause = revoked->nccl_blocks ? std::unique_lock<std::mutex>() : revoked->background.pause();
    return hear_real<&Table::ncclCommRevoke>(comm, flags);
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) noexcept {
  return answer("ncclCommGetAsyncError", [&]() -> Result<ncclResult_t> {
    const auto asked = beside(comm);
    if (asked == nullptr) return hear_real<&Table::ncclCommGetAsyncError>(comm, error);
    const ncclResult_t result = GYRE_TRY(ask(*asked, comm, error));
    if (result != ncclSuccess || (*error != ncclSuccess && *error != ncclInProgress)) return result;
    const bool given_up = asked->given_up;
    if (const ncclResult_t own = given_up ? ncclSuccess : asked->state(); own != ncclSuccess) *error = own;
    if (*error == ncclSuccess && asked->winds_up()) *error = ncclInProgress;
    if (*error == ncclSuccess && asked->launches_here()) std::ignore = asked->mark_launched();
    if (const auto untold = given_up ? std::nullopt : asked->untold()) failed("ncclCommGetAsyncError", *untold);
    return result;
  });
}

const char* ncclGetLastError(ncclComm_t comm) noexcept {
  const char* own = last_error();
  if (*own != '\0' || !has<&Table::ncclGetLastError>(real())) return own;  // which an NCCL before 2.13 has no words to add to
  return call_real<&Table::ncclGetLastError>(comm);
}

}  // namespace wrap
}  // namespace gyre::plugin::nccl
