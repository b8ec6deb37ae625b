#include "plugin/nccl/wrap_forming.h"

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "base/log.h"
#include "plugin/nccl/wrap_real.h"
#include "transport/transport.h"

namespace gyre::plugin::nccl::wrap {
namespace {

// Longer than any rank takes to connect or to give up; who is silent that long is stopped or gone.
constexpr std::chrono::seconds word_limit{60};
constexpr std::chrono::seconds idle_limit{2};

std::chrono::milliseconds vote_limit() { return std::chrono::seconds(*config().timeout); }

/// All ranks of the job say why they can't go on; error: one of them does.
Status all_agree(transport::Bootstrap& job, const std::string& refusal) {
  const auto refusals = GYRE_TRY(job.all_gather(refusal, word_limit));
  for (size_t rank = 0; rank < refusals.size(); ++rank) {
    if (!refusals[rank].empty()) return Error{Code::invalid_usage, fmt::format("rank {}: {}", rank, refusals[rank])};
  }
  return {};
}

/// Both must have the same ranks in the same order.
std::string unlike(const engine::Communicator& made, ncclComm_t by_nccl) {
  int count = -1, rank = -1;
  if (call_real<&Table::ncclCommCount>(by_nccl, &count) != ncclSuccess ||
      call_real<&Table::ncclCommUserRank>(by_nccl, &rank) != ncclSuccess)
    return "NCCL does not say who it is";
  if (count == made.size() && rank == made.rank()) return {};
  return fmt::format("it is rank {} of {} of NCCL's, and {} of {} of gyre's", rank, count, made.rank(), made.size());
}

/// While a call is under way on the parent, which an abort ends.
template <class Make>
Result<Engine> among_ranks_of(Beside& parent, Make make) {
  if (!parent.begin_call(false)) return Error{Code::remote, "the communicator was aborted, or is in use"};
  try {
    Result<Engine> made = make(parent.engine());
    parent.end_call(ncclSuccess);
    return made;
  } catch (...) {
    parent.end_call(ncclSystemError);
    throw;
  }
}

void alone(const Birth& birth, std::string_view why) { log::warn("{}: NCCL runs all calls of this communicator: {}", birth.who, why); }

void form_one(const Birth& birth, ncclResult_t by_nccl) noexcept {
  try {
    auto made = birth.make(by_nccl);
    if (!made) return alone(birth, made.error().what);
    if (*made == nullptr) return;
    const auto comm = std::make_shared<Beside>((*made)->rank(), (*made)->size());
    if (!comm->made(*std::move(made))) return;
    adopt(*birth.made, comm);
    log::info("{}: gyre may run calls of this communicator ({})", birth.who, *config().collectives);
  } catch (const std::exception& error) {
    alone(birth, error.what());
  }
}

}  // namespace

void form(const std::vector<Birth>& births, ncclResult_t by_nccl) noexcept {
  if (births.empty()) return;
  std::vector<std::jthread> threads;
  try {
    for (size_t i = 1; i < births.size(); ++i) threads.emplace_back([&, i] { form_one(births[i], by_nccl); });
  } catch (const std::exception& error) {  // those without a thread stay away, and the others learn of it
    log::warn("no thread to make a communicator by: {}", error.what());
  }
  form_one(births[0], by_nccl);
}

Result<Engine> meet(const Meeting& at) {
  transport::open_ucx_before_threads(config());
  transport::Rendezvous rendezvous = at.rendezvous;
  rendezvous.timeout = vote_limit();
  auto job = GYRE_TRY(transport::Bootstrap::join(rendezvous));
  cuda::look();
  const bool on_gpu = cuda::present() && *config().device != "host";
  const auto ballots = GYRE_TRY(job->all_gather(ballot(config(), on_gpu), word_limit));
  if (auto why = objection(ballots); !why.empty()) return Error{Code::invalid_usage, why};
  auto made = GYRE_TRY(engine::Communicator::create(std::move(job), config()));
  GYRE_TRY(all_agree(made->bootstrap(), {}));
  return made;
}

Result<Engine> split(Beside& parent, int color, int key, const ncclComm_t* made, const std::string& refusal) {
  parent.wait_for_declined();
  return among_ranks_of(parent, [&](engine::Communicator& ranks) -> Result<Engine> {
    GYRE_TRY(all_agree(ranks.bootstrap(), refusal));
    auto part = GYRE_TRY(ranks.split(color, key, &parent.aborted()));
    if (part != nullptr) GYRE_TRY(all_agree(part->bootstrap(), unlike(*part, *made)));
    return part;
  });
}

Result<Engine> shrink(Beside& parent, const std::vector<Rank>& without, const ncclComm_t* made) {
  parent.wait_until_idle(idle_limit);
  return among_ranks_of(parent, [&](engine::Communicator& ranks) -> Result<Engine> {
    auto rest = GYRE_TRY(ranks.shrink(without, &parent.aborted()));
    GYRE_TRY(all_agree(rest->bootstrap(), unlike(*rest, *made)));
    return rest;
  });
}

}  // namespace gyre::plugin::nccl::wrap
