#include "plugin/nccl/wrap_comm.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <functional>
#include <thread>

#include "base/log.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

constexpr std::chrono::hours for_ever{24 * 365};
constexpr std::chrono::milliseconds group_limit{500};  // of a second in which an abort ends all

}  // namespace

Result<bool> Beside::agree(bool willing) {
  const uint8_t mine = willing ? 1 : 0;
  uint8_t all = 0;
  GYRE_TRY(engine().run({Collective::all_reduce, 1, DataType::uint8, ReduceOp::min, 0, 0}, &mine, &all));
  return all == 1;
}

// By a thread, since a call that NCCL runs must not wait for the other ranks here, nor they for what NCCL does meanwhile on this one.
void Beside::decline(const std::shared_ptr<Beside>& comm, size_t calls) {
  {
    const std::lock_guard lock(comm->mutex_);
    comm->declined_ += calls;
    if (comm->telling_ || !comm->begin_call(false)) return;
    comm->telling_ = true;
  }
  try {
    std::thread([comm] { comm->tell_declined(); }).detach();
  } catch (const std::exception&) {
    comm->tell_declined();
  }
}

void Beside::tell_declined() {
  for (bool lives = true;;) {
    {
      const std::lock_guard lock(mutex_);
      if (declined_ == 0 || !lives) {
        declined_ = 0;
        telling_ = false;
        return end_call(ncclSuccess);  // what has failed, if anything, the engine knows
      }
      --declined_;
    }
    try {
      lives = static_cast<bool>(agree(false));
    } catch (const std::exception&) {
      lives = false;
    }
  }
}

void Beside::wait_for_declined() { wait_until_idle(for_ever); }

Status Beside::give_up() {
  given_up = true;
  interrupt();
  return lives();
}

void Beside::say(const engine::Call& call, std::string_view who, std::string_view why) {
  if (!log::enabled(log::Level::info)) return;
  const size_t bytes = call.count * size_of(call.type);
  const uint64_t bit = uint64_t{1} << std::min<int>(static_cast<int>(std::bit_width(bytes)), 63);
  uint64_t& said = said_[who == "gyre" ? 1 : 0][static_cast<size_t>(call.collective)];
  if ((said & bit) != 0) return;
  said |= bit;
  // As perf/nccl_beside.cpp reads it.
  log::info("rank {} of {}: {} of about {} bytes by {}{}{}", rank, size, name(call.collective), bytes, who, why.empty() ? "" : ": ", why);
}

Status Beside::note_by_nccl(cudaStream_t stream, ncclResult_t result) {
  launcher_ = std::thread::id();
  if (result != ncclInProgress) return by_nccl.set(stream);
  launched_on_ = stream;
  launcher_ = std::this_thread::get_id();
  return {};
}

Status Beside::mark_launched() {
  if (launches()) GYRE_TRY(by_nccl.set(launched_on_));
  launcher_ = std::thread::id();
  return {};
}

bool Beside::in_window(const void* memory) const {
  const std::less_equal<> reaches;  // pointers of different memory
  const auto* at = static_cast<const std::byte*>(memory);
  return std::any_of(windows.begin(), windows.end(),
                     [&](const Window& w) { return reaches(w.memory, at) && !reaches(w.memory + w.bytes, at); });
}

Status Beside::lives() const {
  if (aborted() || withdrawn_) return Error{Code::invalid_argument, "the communicator was aborted or destroyed meanwhile"};
  return {};
}

void Beside::withdraw() {
  withdrawn_ = true;
  const auto until = std::chrono::steady_clock::now() + group_limit;
  while (ending_groups > 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

std::shared_ptr<Beside> beside(ncclComm_t comm) { return std::static_pointer_cast<Beside>(look_up(comm)); }

Result<std::shared_ptr<Beside>> settled_beside(ncclComm_t comm) {
  auto known = beside(comm);
  if (known == nullptr || known->nccl_blocks) return known;
  GYRE_TRY(known->background.wait());
  return beside(comm);
}

// What NCCL launches late it has to launch before gyre's next call has a place behind it.
Result<std::shared_ptr<Beside>> ready_beside(ncclComm_t comm) {
  auto known = GYRE_TRY(settled_beside(comm));
  if (known == nullptr || known->nccl_blocks) return known;
  ncclResult_t state = ncclSuccess;
  if (known->launches()) GYRE_TRY(known->background.ask(comm, &state));
  if (state == ncclInProgress) return Background::in_progress();
  return beside(comm);
}

std::shared_ptr<Beside> take_beside(ncclComm_t comm) {
  auto found = forget(comm);
  return found ? std::static_pointer_cast<Beside>(*std::move(found)) : nullptr;
}

Result<ncclResult_t> ask(Beside& of, ncclComm_t comm, ncclResult_t* state) {
  return of.nccl_blocks ? hear_real<&Table::ncclCommGetAsyncError>(comm, state) : of.background.ask(comm, state);
}

}  // namespace gyre::plugin::nccl::wrap
