#include "plugin/nccl/comm.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugin/guard.h"
#include "plugin/nccl/held_up.h"

namespace gyre::plugin::nccl {
namespace {

constexpr std::chrono::seconds farewell_limit{2};    // that others have to read what this process's GPU holds for them
constexpr std::chrono::microseconds engine_nap{50};  // between two looks at what has it

// Never destroyed: threads may call while the process ends, and a fork may come at any time. A forked child has neither the threads nor the
// connections of what was made before: there nothing of it may end, which would wait for those threads, or end what the parent has.
struct Registry {
  std::mutex mutex;
  std::unordered_map<ncclComm_t, Shared> comms;
  std::unordered_multimap<ncclComm_t, Shared> made_before_fork;  // written in a child before anything else runs there
  pid_t process = ::getpid();

  static Registry& of_process() {
    static auto& registry = *new Registry;
    [[maybe_unused]] static const int watched =
        ::pthread_atfork([] { registry.mutex.lock(); }, [] { registry.mutex.unlock(); }, [] { registry.begin_child(); });
    return registry;
  }
  void begin_child() {
    made_before_fork.merge(comms);
    process = ::getpid();
    mutex.unlock();
  }
};

// Programs may end without destroying. The others must not take that for a death, so those that nothing runs on say goodbye. The rest is
// kept: threads and CUDA's callbacks of the program's go on while it ends, and would find behind a collective what it has never given. With
// the process all streams end.
void say_goodbye() {
  Registry& registry = Registry::of_process();
  if (registry.process != ::getpid()) return;
  std::vector<Shared> ended;
  {
    const std::lock_guard lock(registry.mutex);
    for (const auto& [_, comm] : registry.comms) {
      if (comm->is_made() && comm->wait_until_idle({})) ended.push_back(comm);
    }
  }
  const auto until = std::chrono::steady_clock::now() + farewell_limit;
  std::erase_if(ended, [until](const Shared& comm) { return !comm->settle(until); });
  const std::lock_guard lock(registry.mutex);
  std::erase_if(registry.comms, [&](const auto& entry) { return std::find(ended.begin(), ended.end(), entry.second) != ended.end(); });
}

Error no_comm(ncclComm_t handle) {
  if (handle == nullptr) return {Code::invalid_argument, "comm is NULL"};
  if (Registry::of_process().made_before_fork.contains(handle))
    return {Code::invalid_argument, fmt::format("comm {} was made before this process was forked, and is its parent's", fmt::ptr(handle))};
  return {Code::invalid_argument, fmt::format("comm {} is no communicator of gyre's, or was destroyed", fmt::ptr(handle))};
}

}  // namespace

Status Comm::made(std::unique_ptr<engine::Communicator> engine, std::unique_ptr<OnGpu> on_gpu) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return Error{Code::remote, "aborted while the communicator was made"};
  engine_ = std::move(engine);
  on_gpu_ = std::move(on_gpu);
  made_ = true;
  return {};
}

bool Comm::begin_call(bool in_background) {
  const std::lock_guard lock(mutex_);
  if (busy_ || aborted_) return false;
  busy_ = true;
  in_background_ = in_background;
  return true;
}

void Comm::end_call(ncclResult_t result) {
  const std::lock_guard lock(mutex_);
  const bool lasts = !made_ || in_background_ || job_error();
  if (lasts && error_ == ncclSuccess) error_ = result;
  busy_ = false;
  in_background_ = false;
  idle_.notify_all();
}

bool Comm::wait_until_idle(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, limit, [&] { return !busy_; });
}

ncclResult_t Comm::state() const {
  const bool in_background = in_background_;
  const ncclResult_t result = error_;
  if (result != ncclSuccess && !in_background) return result;
  const auto error = job_error();  // also of a call that waits for room in a stream that an error holds
  if (error) return nccl_result(error->code);
  return in_background ? ncclInProgress : ncclSuccess;
}

// Watchdogs ask while another thread captures a graph, which a call of CUDA's may spoil, or waits in a launch, which would hold them.
std::optional<Error> Comm::job_error() const {
  if (!made_) return std::nullopt;
  if (const Error* failure = engine_->bootstrap().failure(); failure != nullptr) return *failure;
  const Error* const noted = on_gpu_ != nullptr ? on_gpu_->failure() : nullptr;
  return noted != nullptr ? std::optional(*noted) : std::nullopt;
}

std::string Comm::failure() const {
  const auto error = job_error();
  return error ? error->what : "an earlier call has failed";
}

std::optional<Error> Comm::untold() {
  if (told_ || error_ != ncclSuccess) return std::nullopt;
  auto error = job_error();
  if (error && told_.exchange(true)) return std::nullopt;  // another thread tells it
  return error;
}

Status Comm::wait_for(cudaStream_t stream, cuda::Context context) const {
  cuda::Mark so_far(context);
  GYRE_TRY(so_far.set(stream));
  return wait_for(so_far);
}

Status Comm::wait_for(cuda::Mark& mark) const {
  HeldUp held_up(*this);
  while (!GYRE_TRY(mark.passed())) {
    if (const auto error = job_error()) return *error;
    if (aborted_) return Error{Code::remote, "aborted while it waited for its stream"};
    held_up.look();
    std::this_thread::yield();
  }
  return {};
}

Status Comm::finish() {
  if (on_gpu_ == nullptr) return {};
  HeldUp held_up(*this);
  // An error of the host's engine holds streams of ranks that may be waited for here. What is sound ends in that time.
  constexpr std::chrono::seconds grace{1};
  std::optional<std::chrono::steady_clock::time_point> wrong_since;
  Status finished = on_gpu_->finish([&] {
    held_up.look();
    const auto error = job_error();
    if (!error) return Status();
    const auto now = std::chrono::steady_clock::now();
    if (!wrong_since) wrong_since = now;
    return now - *wrong_since < grace ? Status() : Status(*error);
  });
  if (!finished && job_error()) interrupt();
  return finished;
}

Status Comm::wait_for_engine() const {
  if (on_gpu_ == nullptr) return {};
  HeldUp held_up(*this);
  for (; !GYRE_TRY(engine_free()); std::this_thread::sleep_for(engine_nap)) held_up.look();
  return {};
}

void Comm::take_engine() const {
  const Status freed = wait_for_engine();
  if (freed) return;
  engine_->abort(freed.error().what);
  for (auto free = engine_free(); !free || !*free; free = engine_free()) std::this_thread::sleep_for(engine_nap);
}

bool Comm::settle(std::chrono::steady_clock::time_point until) {
  while (on_gpu_ != nullptr && !on_gpu_->idle()) {
    if (!on_gpu_->status() || std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void Comm::interrupt_made() {
  const auto cause = job_error();  // others may hear of this before they see that
  const std::string why = fmt::format("rank {} has given up this communicator{}", rank, cause ? ": " + cause->what : "");
  if (engine_ != nullptr) engine_->abort(why);
  if (on_gpu_ != nullptr) on_gpu_->abort(why);
  let_go_ = true;
}

void Comm::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupt_made();
}

void Comm::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  // What graphs launch later is let go then, as what is under way; else it would be an error of the GPU.
  if (busy_ || (on_gpu_ != nullptr && (!on_gpu_->idle() || on_gpu_->in_graphs()))) interrupt_made();
}

void for_each_comm(const std::function<void(ncclComm_t, const Comm&)>& look) {
  Registry& registry = Registry::of_process();
  const std::lock_guard lock(registry.mutex);
  for (const auto& [handle, comm] : registry.comms) look(handle, *comm);
}

ncclComm_t handle(Shared comm) {
  auto* made = reinterpret_cast<ncclComm_t>(comm.get());
  adopt(made, std::move(comm));
  return made;
}

void adopt(ncclComm_t by, Shared comm) {
  [[maybe_unused]] static const int registered = std::atexit(say_goodbye);
  Registry& registry = Registry::of_process();
  const std::lock_guard lock(registry.mutex);
  registry.comms.insert_or_assign(by, std::move(comm));
}

Shared look_up(ncclComm_t handle) {
  Registry& registry = Registry::of_process();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.comms.find(handle);
  return found == registry.comms.end() ? nullptr : found->second;
}

Result<Shared> find(ncclComm_t handle) {
  auto found = look_up(handle);
  if (found == nullptr) return no_comm(handle);
  return found;
}

Result<Shared> find_made(ncclComm_t handle) {
  auto comm = GYRE_TRY(find(handle));
  const ncclResult_t state = comm->state();
  if (state == ncclInProgress)
    return Error{Code::invalid_argument, "the communicator is in progress: ask ncclCommGetAsyncError until it is not"};
  if (!comm->is_made())
    return Error{state == ncclSuccess ? Code::invalid_argument : static_cast<Code>(state), "the communicator could not be made"};
  return comm;
}

Result<Shared> find_healthy(ncclComm_t handle) {
  auto comm = GYRE_TRY(find_made(handle));
  const ncclResult_t state = comm->state();
  if (state == ncclSuccess) return comm;
  return Error{static_cast<Code>(state), "the communicator can only be shrunk, aborted or destroyed any more: " + comm->failure()};
}

Result<Shared> forget(ncclComm_t handle) {
  Registry& registry = Registry::of_process();
  const std::lock_guard lock(registry.mutex);
  auto node = registry.comms.extract(handle);
  if (node.empty()) return no_comm(handle);
  return std::move(node.mapped());
}

bool forget(ncclComm_t handle, const Shared& comm) { return replace(handle, comm, nullptr); }

bool replace(ncclComm_t handle, const Shared& comm, Shared by) {
  Registry& registry = Registry::of_process();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.comms.find(handle);
  if (found == registry.comms.end() || found->second != comm) return false;
  if (by != nullptr)
    found->second = std::move(by);
  else
    registry.comms.erase(found);
  return true;
}

}  // namespace gyre::plugin::nccl
