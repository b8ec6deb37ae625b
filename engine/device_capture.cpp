// Collectives in CUDA graphs. A captured one is a kernel that stays, for whichever replay: it says when it begins, and the thread that
// moves what is under way then assigns it tickets of its own and runs the call once more (kernels/stay.h). So nothing in a graph differs
// from replay to replay, and nothing has to be reset. What the GPU begins is the order of all, since a graph's launch is no call of ours:
// while graphs hold collectives the others say that they begin, too, and wait for that. Ranks must begin in the same order, as in NCCL, by
// which streams they use; those that do not find out by the words of their messages, before anything is touched, or wait for each other
// until the deadline: what one has begun, another holds back behind what that has begun.
#include <fmt/format.h>

#include "base/log.h"
#include "engine/device_communicator.h"

namespace gyre::engine {

// The call is numbered before there may be no place for it: whether there is differs from rank to rank, and the next calls' words must not.
// Nobody waits for a graph that was not made, so that what goes wrong concerns this rank only.
Status DeviceCommunicator::capture(const Call& call, const void* input, void* output, void* user, uint64_t graph) {
  const auto operation = GYRE_TRY(prepare(call, input, output));
  auto program = GYRE_TRY(this->program(operation));
  if (program->steps.kernels.empty()) return {};  // nothing to be done on this rank, also by messages
  const auto place = GYRE_TRY(take_place());
  return add_captured(operation, std::move(program), place, user, graph);
}

// Memory is taken only when nothing waits for the GPU, as far as is known here, and so before there is none left. A graph that was launched
// and has not begun is not known: CUDA may wait for it, and so the thread below goes on meanwhile.
Result<DeviceReplays::Place> DeviceCommunicator::take_place() {
  constexpr size_t soon = 128;
  auto lock = turn();
  DeviceReplays& replays = queue_->replays();
  if (replays.room() < soon && !under_way() && !replays.any_begun() && !graphs_.midway()) {
    lock.unlock();
    auto slab = GYRE_TRY(replays.more_places(gpu_));
    lock.lock();
    replays.grow(std::move(slab));
  }
  if (replays.room() == 0) {
    return Error{
        Code::invalid_usage,
        fmt::format("there is no room for more than {} collectives in CUDA graphs, and none is made while a collective is under way: "
                    "capture when all have ended",
                    graphs_.size())};
  }
  return replays.take();
}

Status DeviceCommunicator::add_captured(const Operation& operation, std::unique_ptr<DeviceProgram> program,
                                        const DeviceReplays::Place& place, void* user, uint64_t graph) {
  const DeviceProgram& own = *program;
  const Plan& plan = *own.plan;
  given_last_ = {HandOff::stays, plan.schedule().family, own.steps.kernels.size(), own.steps.traffic()};
  auto links = this->links(own, operation.call);
  auto run = std::make_shared<DeviceRun>(std::move(program), std::move(links), operation.call, *queue_, Tickets{}, operation.limit);
  auto holder = queue_->replays().holder(place);
  {
    const auto lock = turn();
    graphs_.add({graph, place, operation, own.steps.kernels.size(), std::move(run), 0});
    note_graphs();
  }
  given_.notify_all();
  return queue_->capture(plan.call(), own.steps, place, std::move(holder), user);  // where that fails, nobody holds the place
}

// Of the thread that moves what is under way, which is nothing.
void DeviceCommunicator::begin_next() {
  for (const uint64_t id : queue_->replays().released()) {
    if (const CapturedCollective* captured = graphs_.find(id)) queue_->replays().give_back(captured->place);
    graphs_.remove(id);
  }
  auto next = next_begun();
  note_graphs();
  if (!next) {
    std::ignore = fail(next.error());
    return;
  }
  if (!*next) return;
  const auto request = communicator_->begin(**std::move(next));
  if (request)
    last_ = *request;
  else
    std::ignore = fail(request.error());
}

// What the GPU has begun.
Result<std::optional<Operation>> DeviceCommunicator::next_begun() {
  DeviceReplays& replays = queue_->replays();
  const auto id = GYRE_TRY(replays.begun());
  if (!id) return std::optional<Operation>();
  replays.pop();
  finished_ = false;
  finishing_since_.reset();
  if (*id == 0) {
    std::optional<Operation> next(std::move(waiting_.front()));
    waiting_.pop_front();
    return next;
  }
  CapturedCollective* const captured = graphs_.find(*id);
  if (captured == nullptr)
    return Error{Code::invalid_usage, "a CUDA graph runs a collective that was captured in another one, which is gone"};
  return std::optional(DeviceGraphs::next_run(*captured, replays.assign(captured->place, captured->kernels)));
}

// Who calls often has the thread looking, and need not wake it. While graphs hold collectives nobody says that one has begun: it is looked
// for at once for a while, and then every now and then.
void DeviceCommunicator::rest(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::milliseconds awake{2}, drowsy{100};
  constexpr std::chrono::microseconds between_calls{100}, nap{50}, long_nap{500};
  const bool looks = !failure_ && (!graphs_.empty() || !waiting_.empty());
  const auto idle = std::chrono::steady_clock::now() - active_;
  if (!looks && idle >= between_calls) {
    given_.wait(lock, [&] { return over_ || (!failure_ && (under_way() || !graphs_.empty())); });
    return;
  }
  if (const Status lives = looks ? communicator_->lives() : Status(); !lives) {
    std::ignore = fail(lives.error());
    return;
  }
  if (looks && idle >= awake) {
    given_.wait_for(lock, idle < drowsy ? nap : long_nap, [&] { return over_ || ended_ != last_.number; });
    return;
  }
  lock.unlock();
  do std::this_thread::yield();
  while (wanted_.load() > 0);
  lock.lock();
}

}  // namespace gyre::engine
