#include "plugin/nccl/wrap_forming.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "plugin/nccl/copies.h"
#include "plugin/nccl/wrap_ballot.h"
#include "plugin/nccl/wrap_job.h"
#include "plugin/nccl/wrap_real.h"
#include "plugin/no_signals.h"
#include "transport/transport.h"

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr std::chrono::seconds idle_limit{2};

std::chrono::milliseconds vote_limit() { return std::chrono::seconds(*config().timeout); }
// Longer than a rank takes for a step on its way, as a rule. It ends a communicator that is made, never the one that it is made of: there a
// rank that is to be in none comes early, and others may still be making NCCL's.
std::chrono::milliseconds word_limit() { return 6 * vote_limit(); }

/// While there is one, so long ranks wait for each other at each step, those of communicators that are made of them, too.
class Limited {
 public:
  explicit Limited(transport::Bootstrap& ranks) : ranks_(ranks) { ranks.limit_gathers(word_limit()); }
  ~Limited() { ranks_.limit_gathers({}); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  transport::Bootstrap& ranks_;
};

// First letters of a rank's word: a reason of its own, or that it has only lost another.
constexpr char its_own = '1', of_another = '2';

/// All ranks of the job say whether they can go on; error: one of them can't. A rank that has only lost another is named last.
Status all_agree(transport::Bootstrap& job, const Status& own) {
  const auto kind = [](const Error& error) { return error.code == Code::remote || error.code == Code::timeout ? of_another : its_own; };
  const auto words = GYRE_TRY(job.all_gather(own ? std::string() : kind(own.error()) + own.error().what));
  for (const char first : {its_own, of_another}) {
    for (size_t rank = 0; rank < words.size(); ++rank) {
      if (words[rank].starts_with(first)) return Error{Code::invalid_usage, fmt::format("rank {}: {}", rank, words[rank].substr(1))};
    }
  }
  return {};
}

/// Options may leave a collective without a plan, which would be an error of the job's calls: as all ranks know them, all find the same.
Status all_have_plans(const Parts& parts) {
  const bool may_lack = *config().algorithm != "auto" || *config().numerics != "default" || *config().memory_bytes != 0;
  for (const engine::Call& call : may_lack ? parts.rules.examples(parts.engine->size()) : std::vector<engine::Call>()) {
    if (parts.on_gpu != nullptr)
      GYRE_TRY(parts.on_gpu->why_not(call));
    else
      GYRE_TRY(parts.engine->plan(call));
  }
  return {};
}

/// Their part on GPUs, where that is what the ranks are to have. A rank that has not heard of all that they have it has none.
Result<Parts> with_gpus(std::unique_ptr<engine::Communicator> ranks, Rules rules, const MakeOnGpu& make, int device,
                        const std::atomic<bool>* cancelled) {
  Parts parts{std::move(ranks), nullptr, nullptr, std::move(rules)};
  const Limited limited(parts.engine->bootstrap());
  const auto context = cuda::context_of(device);
  Status status = context ? Status() : context.error();
  if (context) parts.context = *context;
  if (status && make) {
    auto on_gpu = make_on_gpus(*parts.engine, make, device, cancelled);
    if (on_gpu)
      parts.on_gpu = *std::move(on_gpu);
    else
      status = on_gpu.error();
  }
  if (status) status = all_have_plans(parts);
  GYRE_TRY(all_agree(parts.engine->bootstrap(), status));
  return parts;
}

/// Both must have the same ranks in the same order.
Status alike(const engine::Communicator& own, const Made& by_nccl) {
  if (by_nccl.ranks < 0 || by_nccl.rank < 0) return Error{Code::invalid_usage, "NCCL does not say who it is"};
  if (by_nccl.ranks == own.size() && by_nccl.rank == own.rank()) return {};
  return Error{Code::invalid_usage,
               fmt::format("it is rank {} of {} of NCCL's, and {} of {} of gyre's", by_nccl.rank, by_nccl.ranks, own.rank(), own.size())};
}

/// Calls on the same memory as the parent's.
Result<Parts> like_its_parent(const Beside& parent, std::unique_ptr<engine::Communicator> ranks, const Made& by_nccl) {
  GYRE_TRY(all_agree(ranks->bootstrap(), alike(*ranks, by_nccl)));
  const auto gpu = parent.on_gpu() != nullptr ? std::optional(by_nccl.device) : std::nullopt;
  Rules rules = GYRE_TRY(rules_among(ranks->bootstrap(), gpu));
  if (!rules.any()) return Parts();
  GpusOfAll gpus;
  if (gpu) gpus = GYRE_TRY(gpus_of_all(ranks->bootstrap(), *gpu));
  if (!gpus.refusal.empty()) return Error{Code::invalid_usage, gpus.refusal};
  return with_gpus(std::move(ranks), std::move(rules), gpus.make, by_nccl.device, &parent.aborted());
}

/// While a call is under way on the parent, which an abort ends.
template <class Make>
Result<Parts> among_ranks_of(Beside& parent, Make make) {
  if (!parent.begin_call(false)) return Error{Code::remote, "the communicator was aborted, or is in use"};
  try {
    Result<Parts> made = make(parent.engine());
    parent.end_call(ncclSuccess);
    return made;
  } catch (...) {
    parent.end_call(ncclSystemError);
    throw;
  }
}

// Unsaid where there is no memory to say it: that may be why it is called, and above are C frames.
template <class... Args>
void try_to_warn(fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    log::warn(format, std::forward<Args>(args)...);
  } catch (const std::exception&) {
    return;
  }
}

void alone(const Birth& birth, std::string_view why) noexcept {
  try_to_warn("{}: NCCL runs all calls of this communicator: {}", birth.who, why);
}

std::shared_ptr<Beside> join_others(const Birth& birth, const Made& by_nccl) {
  auto made = birth.make(by_nccl);
  if (by_nccl.cancelled != nullptr && *by_nccl.cancelled)
    return log::info("{}: gyre's part was given up with the communicator", birth.who), nullptr;
  if (!made) return alone(birth, made.error().what), nullptr;
  if (made->engine == nullptr) return nullptr;
  auto comm = std::make_shared<Beside>(made->engine->rank(), made->engine->size(), by_nccl.device, made->context, std::move(made->rules),
                                       by_nccl.blocks);
  if (!comm->made(std::move(made->engine), std::move(made->on_gpu))) return nullptr;
  log::info("{}: gyre may run calls of this communicator on {}: {}, by {}", birth.who,
            comm->on_gpu() != nullptr ? "GPU memory" : "host memory", comm->rules.collectives(), comm->rules.decided_by());
  return comm;
}

Made made_by_nccl(ncclResult_t result, ncclComm_t comm, bool blocks) {
  Made made{result, result == ncclSuccess ? comm : nullptr};
  made.blocks = blocks;
  if (made.comm == nullptr) return made;
  cuda::look();
  if (call_real<&Table::ncclCommCuDevice>(made.comm, &made.device) != ncclSuccess) made.device = cuda::current_device();
  if (call_real<&Table::ncclCommCount>(made.comm, &made.ranks) != ncclSuccess) made.ranks = -1;
  if (call_real<&Table::ncclCommUserRank>(made.comm, &made.rank) != ncclSuccess) made.rank = -1;
  return made;
}

/// Programs may look for it there while NCCL makes it.
void hand_over(const Birth& birth) {
  if (birth.place != nullptr) std::atomic_ref(*birth.made).store(*birth.place);
}

/// A step on its way.
template <class Step>
void unless_it_throws(const Birth& birth, Step step) noexcept {
  try {
    step();
  } catch (const std::exception& error) {
    alone(birth, error.what());
  }
}

void form_now(const Birth& birth, ncclResult_t by_nccl) noexcept {
  unless_it_throws(birth, [&] {
    hand_over(birth);
    const Made made = made_by_nccl(by_nccl, *birth.made, birth.parent == nullptr || birth.parent->nccl_blocks);
    if (auto comm = form_one(birth, made)) adopt(made.comm, std::move(comm));
  });
}

// Until gyre's is there, if it comes to that, one that was never made goes by the handle, which the program may move; of a part the parent
// is in progress, and the program sees it when it no longer is.
void form_in_background(const Birth& birth) {
  const bool is_part = birth.parent != nullptr;
  const ncclComm_t own = is_part ? nullptr : *birth.made;
  const auto busy = is_part ? birth.parent : std::make_shared<Beside>(0, 0, 0, nullptr, Rules(), false);
  const auto work = [=]() noexcept {
    Made made{ncclRemoteError};
    const auto look = [&](ncclResult_t state) { made = made_by_nccl(state, is_part ? *birth.place : own, false); };
    unless_it_throws(birth, [&] { busy->background.await_nccl(is_part ? birth.parent_handle : own, std::ref(look)); });
    made.cancelled = &busy->aborted();
    const auto comm = form_one(birth, made);
    const auto last = [&] {
      if (!is_part) return void(replace(own, busy, comm));
      unless_it_throws(birth, [&] {
        if (comm != nullptr) adopt(made.comm, comm);
      });
      hand_over(birth);
    };
    busy->background.end(std::ref(last));
  };
  busy->background.begin();
  if (is_part)
    *birth.made = nullptr;
  else
    adopt(own, busy);
  try {
    const NoSignals none;
    std::thread(work).detach();
  } catch (const std::exception&) {  // the program waits for what is in the background
    work();
  }
}

/// NCCL goes on with it, and has answered so, or, of a part, as if that were there.
bool goes_on(const Birth& birth, ncclResult_t by_nccl) {
  if (birth.parent == nullptr) return by_nccl == ncclInProgress && *birth.made != nullptr;
  if (birth.place == nullptr || is_error(by_nccl)) return false;
  ncclResult_t state = ncclSuccess;
  const auto asked = birth.parent->background.ask(birth.parent_handle, &state);
  return asked && *asked == ncclSuccess && state == ncclInProgress;
}

}  // namespace

std::shared_ptr<Beside> form_one(const Birth& birth, const Made& by_nccl) noexcept {
  try {
    return join_others(birth, by_nccl);
  } catch (const std::exception& error) {
    return alone(birth, error.what()), nullptr;
  }
}

void form(const std::vector<Birth>& births, ncclResult_t of_all) noexcept {
  const Birth* own = nullptr;  // by this thread
  const auto answer = [of_all](const Birth& birth) { return birth.refused != ncclSuccess ? birth.refused : of_all; };
  std::vector<std::jthread> threads;
  try {
    for (const Birth& birth : births) {
      if (goes_on(birth, answer(birth)))
        form_in_background(birth);
      else if (own == nullptr)
        own = &birth;
      else
        threads.emplace_back([&] { form_now(birth, answer(birth)); });
    }
  } catch (const std::exception& error) {  // those without a thread stay away, and the others learn of it
    try_to_warn("no thread to make a communicator by: {}", error.what());
  }
  if (own != nullptr) form_now(*own, answer(*own));
}

Result<Parts> meet(const Meeting& at, const Made& by_nccl) {
  transport::Rendezvous rendezvous = at.rendezvous;
  rendezvous.timeout = vote_limit();
  rendezvous.cancelled = by_nccl.cancelled;
  auto job = GYRE_TRY(transport::Bootstrap::join(rendezvous));
  job->limit_gathers(word_limit());
  cuda::look();
  const bool on_gpu = cuda::present() && *config().device != "host";
  const auto ballots = GYRE_TRY(job->all_gather(ballot(config(), on_gpu, loaded_nccls().size(), by_nccl.blocks)));
  if (auto why = objection(ballots); !why.empty()) return Error{Code::invalid_usage, why};
  if (!offer().any())
    return Error{Code::invalid_usage, "no rank has GYRE_COLLECTIVES that sizes leave any calls of, nor a profile for gyre"};
  const auto gpu = on_gpu ? std::optional(by_nccl.device) : std::nullopt;
  Rules own = GYRE_TRY(rules_among(*job, gpu));
  if (!own.any()) return Parts();
  GpusOfAll gpus;
  if (gpu) gpus = GYRE_TRY(gpus_of_all(*job, *gpu));
  if (!gpus.refusal.empty()) return Error{Code::invalid_usage, gpus.refusal};
  auto ranks = GYRE_TRY(engine::Communicator::create(std::move(job), config()));
  return with_gpus(std::move(ranks), std::move(own), gpus.make, by_nccl.device, by_nccl.cancelled);
}

Result<Parts> split(Beside& parent, int color, int key, const Made& by_nccl, const std::string& refusal) {
  if (parent.stays_away) return stay_away(parent);
  parent.wait_for_declined();
  return among_ranks_of(parent, [&](engine::Communicator& ranks) -> Result<Parts> {
    const Limited limited(ranks.bootstrap());
    GYRE_TRY(all_agree(ranks.bootstrap(), refusal.empty() ? Status() : Error{Code::invalid_usage, refusal}));
    auto part = GYRE_TRY(ranks.split(color, key, &parent.aborted()));
    if (part == nullptr) return Parts();
    return like_its_parent(parent, std::move(part), by_nccl);
  });
}

Result<Parts> stay_away(Beside& parent) {
  const std::string why = "NCCL has refused it a part of these ranks";
  if (!parent.stays_away.exchange(true)) parent.engine().bootstrap().stay_away(its_own + why);
  return Error{Code::invalid_usage, fmt::format("rank {}: {}", parent.rank, why)};
}

Result<Parts> shrink(Beside& parent, const std::vector<Rank>& without, const Made& by_nccl) {
  parent.wait_until_idle(idle_limit);
  return among_ranks_of(parent, [&](engine::Communicator& ranks) -> Result<Parts> {
    const Limited limited(ranks.bootstrap());
    return like_its_parent(parent, GYRE_TRY(ranks.shrink(without, &parent.aborted())), by_nccl);
  });
}

}  // namespace gyre::plugin::nccl::wrap
