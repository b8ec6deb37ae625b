// NCCL's functions that make, end and ask communicators, by gyre alone.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.h"
#include "plugin/nccl/cuda_driver.h"
#include "plugin/nccl/errors.h"
#include "plugin/nccl/group.h"
#include "plugin/nccl/table.h"
#include "plugin/nccl/unique_id.h"
#include "transport/transport.h"

namespace gyre::plugin::nccl {
namespace {

// NCCL's ranks wait for each other for ever, also where communicators are split or shrunk; a rank may read data first.
constexpr size_t patience_s = 1800;
constexpr std::chrono::milliseconds abort_limit{2000};  // a call that was told to end has ended by then
constexpr std::chrono::milliseconds release_limit{1000};

Result<Config> started_config() {
  auto config = GYRE_TRY(checked_config());
  if (config.timeout.origin == "default") config.timeout.value = patience_s;
  start_log(config);
  transport::open_ucx_before_threads(config);
  cuda::look(config);
  return config;
}

struct Seat {
  Rank rank;
  int ranks;
  std::optional<int> device{};  ///< none: that of the calling thread
};

/// Checks what can be before others are waited for; the rest is the task.
Result<Task> init(const char* name, ncclComm_t* made, const Seat& seat, const ncclUniqueId& id, const ncclConfig_t* given) {
  if (made == nullptr) return Error{Code::invalid_argument, "comm is NULL"};
  *made = nullptr;
  if (seat.ranks < 1 || seat.rank < 0 || seat.rank >= seat.ranks)
    return Error{Code::invalid_argument, fmt::format("rank {} of {} ranks", seat.rank, seat.ranks)};
  const Settings chosen = GYRE_TRY(settings(given));
  const Config config = GYRE_TRY(started_config());
  const auto at = std::make_shared<Meeting>(GYRE_TRY(meeting(id, seat.rank, seat.ranks)));
  const auto comm = std::make_shared<Comm>(seat.rank, seat.ranks, seat.device ? *seat.device : cuda::current_device(), chosen);
  at->rendezvous.timeout = std::chrono::seconds(*config.timeout);
  at->rendezvous.cancelled = &comm->aborted();
  const auto run = [=]() -> Status {
    auto engine = GYRE_TRY(engine::Communicator::create(at->rendezvous, config));
    auto on_gpu = GYRE_TRY(join_on_gpus(*engine, comm->device, &comm->aborted()));
    GYRE_TRY(comm->made(std::move(engine), std::move(on_gpu)));
    if (comm->settings.blocking) *made = handle(comm);
    log::info("rank {} of {}: a communicator by gyre", comm->rank, comm->size);
    return {};
  };
  return Task{comm, name, run, [=] { *made = handle(comm); }};
}

Result<ncclResult_t> submit_init(const char* name, ncclComm_t* made, const Seat& seat, const ncclUniqueId& id, const ncclConfig_t* given) {
  return submit({GYRE_TRY(init(name, made, seat, id, given))});
}

/// A communicator made of another's ranks: `make` gives the engine's, or null where this rank is in none.
template <class Make>
Result<ncclResult_t> derive(const char* name, const Shared& parent, ncclComm_t* made, const Settings& chosen, Make make) {
  return submit({Task{parent, name, [=]() -> Status {
                        parent->take_engine();
                        std::unique_ptr<engine::Communicator> engine = GYRE_TRY(make(parent->engine(), &parent->aborted()));
                        if (engine == nullptr) return {};
                        if (parent->aborted()) return Error{Code::remote, "aborted while a communicator was made of its ranks"};
                        const auto child = std::make_shared<Comm>(engine->rank(), engine->size(), parent->device, chosen);
                        auto on_gpu = GYRE_TRY(join_on_gpus(*engine, child->device, &parent->aborted()));
                        GYRE_TRY(child->made(std::move(engine), std::move(on_gpu)));
                        *made = handle(child);
                        return {};
                      }}});
}

/// Of a new communicator of another's ranks.
Result<Settings> derived_settings(const Comm& parent, ncclComm_t* made, const ncclConfig_t* given) {
  if (made == nullptr) return Error{Code::invalid_argument, "newcomm is NULL"};
  *made = nullptr;
  return settings(given, parent.settings);
}

// Another thread may abort it while it is waited for.
Status end(ncclComm_t comm) {
  const Shared ended = GYRE_TRY(find(comm));
  if (ended->state() == ncclInProgress)
    return Error{Code::invalid_argument, "the communicator is in progress: ask ncclCommGetAsyncError until it is not, or abort it"};
  const Status finished = ended->finish();
  if (!forget(comm, ended)) return Error{Code::invalid_argument, "another thread has ended the communicator"};
  if (!finished) failed("ncclCommDestroy", finished.error());  // streams go on, who asks or not
  // The thread of its last call may still hold it, and would say goodbye only after this returns.
  const auto limit = std::chrono::steady_clock::now() + release_limit;
  while (!ended->settings.blocking && ended.use_count() > 1 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  return {};
}

/// Before some of its ranks go on; where it is to be aborted first, what runs has ended.
Status ready_to_shrink(Comm& parent, std::span<const int> without, int flags) {
  if (flags != NCCL_SHRINK_ABORT && flags != NCCL_SHRINK_DEFAULT)
    return Error{Code::invalid_argument, fmt::format("flags are {:#x}", flags)};
  if (without.empty() || without.size() >= static_cast<size_t>(parent.size))
    return Error{Code::invalid_argument, fmt::format("{} of {} ranks are to be left out", without.size(), parent.size)};
  for (const int rank : without) {
    if (rank < 0 || rank >= parent.size || rank == parent.rank)
      return Error{Code::invalid_argument, fmt::format("rank {} of {} is to be left out, by rank {}", rank, parent.size, parent.rank)};
  }
  if (flags == NCCL_SHRINK_ABORT) parent.interrupt();
  if (!parent.wait_until_idle(flags == NCCL_SHRINK_ABORT ? abort_limit : std::chrono::milliseconds(0)))
    return Error{Code::invalid_argument, "the communicator is in progress"};
  if (!parent.is_made()) return Error{Code::invalid_argument, "the communicator was never made"};
  return {};
}

template <class Read>
ncclResult_t ask(const char* name, ncclComm_t comm, int* value, Read read) {
  return guard(name, [&]() -> Status {
    const Shared asked = GYRE_TRY(find_healthy(comm));
    if (value == nullptr) return Error{Code::invalid_argument, "there is no place for the answer: NULL"};
    *value = read(*asked);
    return {};
  });
}

}  // namespace

namespace stand_alone {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) noexcept {
  return guard("ncclGetUniqueId", [&]() -> Status {
    if (id == nullptr) return Error{Code::invalid_argument, "the unique id is NULL"};
    const Config config = GYRE_TRY(checked_config());
    start_log(config);
    transport::open_ucx_before_threads(config);  // the id's bell is a thread
    *id = GYRE_TRY(make_unique_id());
    return {};
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) noexcept {
  return grouped("ncclCommInitRankConfig", [&] { return submit_init("ncclCommInitRankConfig", comm, {rank, ranks}, id, config); });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) noexcept {
  return grouped("ncclCommInitRank", [&] { return submit_init("ncclCommInitRank", comm, {rank, ranks}, id, nullptr); });
}

// The ranks meet at the first id; more of them would only spread the load of meeting.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int count, ncclUniqueId* ids, ncclConfig_t* config) noexcept {
  return grouped("ncclCommInitRankScalable", [&]() -> Result<ncclResult_t> {
    if (count < 1 || count > ranks || ids == nullptr)
      return Error{Code::invalid_argument, fmt::format("{} unique ids for {} ranks", ids == nullptr ? 0 : count, ranks)};
    for (int i = 1; i < count; ++i) close_door(ids[i]);
    return submit_init("ncclCommInitRankScalable", comm, {rank, ranks}, ids[0], config);
  });
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int* devices) noexcept {
  return grouped("ncclCommInitAll", [&]() -> Result<ncclResult_t> {
    if (comms == nullptr || ranks < 1) return Error{Code::invalid_argument, fmt::format("{} ranks for comms {}", ranks, fmt::ptr(comms))};
    const auto device = [devices](int rank) { return devices == nullptr ? rank : devices[rank]; };
    std::ignore = GYRE_TRY(started_config());
    for (int rank = 0; rank < ranks; ++rank) GYRE_TRY(cuda::is_device(device(rank)));
    const ncclUniqueId id = GYRE_TRY(make_unique_id(false));
    std::vector<Task> tasks;
    tasks.reserve(static_cast<size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      tasks.push_back(GYRE_TRY(init("ncclCommInitAll", &comms[rank], {rank, ranks, device(rank)}, id, nullptr)));
    return submit(std::move(tasks));
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) noexcept {
  return grouped("ncclCommSplit", [&]() -> Result<ncclResult_t> {
    const Shared parent = GYRE_TRY(find_healthy(comm));
    if (color < NCCL_SPLIT_NOCOLOR) return Error{Code::invalid_argument, fmt::format("color is {}", color)};
    const Settings chosen = GYRE_TRY(derived_settings(*parent, made, config));
    return derive("ncclCommSplit", parent, made, chosen,
                  [=](engine::Communicator& engine, const std::atomic<bool>* cancelled) { return engine.split(color, key, cancelled); });
  });
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* without, int count, ncclComm_t* made, ncclConfig_t* config, int flags) noexcept {
  return grouped("ncclCommShrink", [&]() -> Result<ncclResult_t> {
    const Shared parent = GYRE_TRY(find(comm));
    const Settings chosen = GYRE_TRY(derived_settings(*parent, made, config));
    const std::vector<Rank> ranks(without, without + (without == nullptr ? 0 : std::max(count, 0)));
    GYRE_TRY(ready_to_shrink(*parent, ranks, flags));
    return derive("ncclCommShrink", parent, made, chosen,
                  [ranks](engine::Communicator& engine, const std::atomic<bool>* cancelled) { return engine.shrink(ranks, cancelled); });
  });
}

// On host memory nothing is under way after a call that has succeeded.
ncclResult_t ncclCommFinalize(ncclComm_t comm) noexcept {
  if (comm == nullptr) return ncclSuccess;
  return answer("ncclCommFinalize", [&]() -> Result<ncclResult_t> {
    const Shared ended = GYRE_TRY(find_made(comm));
    if (ended->finalized.exchange(true)) return Error{Code::invalid_argument, "the communicator was finalized before"};
    if (!ended->settings.blocking) {
      auto begun = perform(Task{ended, "ncclCommFinalize", [ended] { return ended->finish(); }});
      if (!begun) ended->finalized = false;
      return begun;
    }
    GYRE_TRY(ended->finish());
    GYRE_TRY(find_healthy(comm));
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) noexcept {
  return comm == nullptr ? ncclSuccess : guard("ncclCommDestroy", [&] { return end(comm); });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) noexcept {
  if (comm == nullptr) return ncclSuccess;
  return guard("ncclCommAbort", [&]() -> Status {
    const Shared ended = GYRE_TRY(forget(comm));
    ended->abort();
    if (!ended->wait_until_idle(abort_limit)) log::warn("rank {}: what ran on an aborted communicator has not ended yet", ended->rank);
    return {};
  });
}

// What is under way ends, and the communicator can be shrunk or destroyed.
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) noexcept {
  return guard("ncclCommRevoke", [&]() -> Status {
    if (flags != 0) return Error{Code::invalid_argument, fmt::format("flags are {:#x}", flags)};
    const Shared revoked = GYRE_TRY(find(comm));
    if (!revoked->is_made()) return Error{Code::invalid_argument, "the communicator is not made yet: abort it"};
    revoked->interrupt();
    revoked->wait_until_idle(abort_limit);
    return {};
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) noexcept {
  return guard("ncclCommGetAsyncError", [&]() -> Status {
    const Shared asked = GYRE_TRY(find(comm));
    if (error == nullptr) return Error{Code::invalid_argument, "there is no place for the answer: NULL"};
    *error = asked->state();
    if (const auto untold = asked->untold()) failed("ncclCommGetAsyncError", *untold);
    return {};
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) noexcept {
  return ask("ncclCommCount", comm, count, [](const Comm& asked) { return asked.size; });
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) noexcept {
  return ask("ncclCommCuDevice", comm, device, [](const Comm& asked) { return asked.device; });
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) noexcept {
  return ask("ncclCommUserRank", comm, rank, [](const Comm& asked) { return static_cast<int>(asked.rank); });
}

}  // namespace stand_alone
}  // namespace gyre::plugin::nccl
