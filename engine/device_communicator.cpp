#include "engine/device_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "engine/device_packet_run.h"
#include "engine/mapped_run.h"
#include "engine/remains.h"
#include "transport/posted_fifo.h"

namespace gyre::engine {
namespace {

constexpr size_t scratch_alignment = 256;  // as cudaMalloc's

// Sums of a message each that schedules keep at most, but those in ordered numerics.
constexpr size_t most_sums = 2;

}  // namespace

Result<std::unique_ptr<DeviceCommunicator>> DeviceCommunicator::create(std::unique_ptr<Communicator> communicator, kernels::Gpu& gpu) {
  std::unique_ptr<DeviceCommunicator> made(new DeviceCommunicator(std::move(communicator), gpu));
  GYRE_TRY(made->open());
  made->thread_ = std::thread([self = made.get()] { self->serve(); });
  return made;
}

Status DeviceCommunicator::open() {
  memory_ = GYRE_TRY(DeviceMemory::open(*communicator_, gpu_));
  packets_ = DevicePackets(rank(), memory_.packets(), memory_.salt());
  mapped_ = DeviceMapped(rank(), memory_.maps());
  board_ = memory_.board();
  queue_ = GYRE_TRY(DeviceQueue::open(gpu_, memory_.path()));
  // Now, and not when the program has taken the rest. Not all calls need it.
  if (const auto reserved = size() > 1 ? scratch(most_sums * memory_.slots().bytes) : nullptr; !reserved)
    log::info("rank {}: no GPU memory for sums is reserved: {}", rank(), reserved.error().what);
  return {};
}

DeviceCommunicator::~DeviceCommunicator() {
  if (thread_.joinable()) {
    {
      const auto lock = turn();
      over_ = true;
      if (const Status lives = communicator_->lives(); !lives && !failure_) failure_ = lives.error();  // aborted, and nobody has looked
    }
    given_.notify_all();
    thread_.join();
  }
  if (board_ != nullptr) board_->leave();
  communicator_.reset();  // with what is under way
  if (queue_ != nullptr) leave_remains();
}

void DeviceCommunicator::leave_remains() {
  let_go();
  struct Remains {
    DeviceMemory memory;
    std::vector<kernels::GpuMemory> scratch;
    std::unique_ptr<DeviceQueue> queue;  // ends first

    Result<bool> done() const { return queue->done(); }
  };
  leave(std::make_unique<Remains>(Remains{std::move(memory_), std::move(scratch_), std::move(queue_)}), "a communicator on a GPU");
}

std::unique_lock<std::mutex> DeviceCommunicator::turn() {
  ++wanted_;
  std::unique_lock lock(mutex_);
  --wanted_;
  return lock;
}

Status DeviceCommunicator::enqueue(const Call& call, const void* input, void* output, void* user, std::optional<HandOff> hand_off) {
  const std::lock_guard calls(calls_);
  const auto graph = queue_->capture_of(user);
  if (!graph) return GYRE_TRY(status()), graph.error();  // of the GPU, which the others hear of, or of the stream
  if (*graph != 0) return capture(call, input, output, user, *graph);
  const Status given = give(GYRE_TRY(prepare(call, input, output)), user, hand_off);
  if (given) {
    const Error* const known = failure();  // meanwhile: its stream is held
    return known == nullptr ? Status() : Status(*known);
  }
  const auto lock = turn();
  return fail(given.error());  // other ranks wait for what will never come, and some of it may be on the stream
}

Status DeviceCommunicator::why_not(const Call& call) {
  GYRE_TRY(queue_->refuse(call));
  const auto lock = turn();
  GYRE_TRY(communicator_->plan(call));
  return {};
}

// What is refused here has not been called, and the next call may do.
Result<Operation> DeviceCommunicator::prepare(const Call& call, const void* input, void* output) {
  GYRE_TRY(queue_->refuse(call));
  const auto lock = turn();
  if (failure_) return *failure_;
  finished_ = false;
  finishing_since_.reset();
  auto operation = communicator_->prepare(call, input, output);
  if (operation) return operation;
  if (const Status lives = communicator_->lives(); !lives) return fail(lives.error());
  return operation.error();
}

Result<std::unique_ptr<DeviceProgram>> DeviceCommunicator::program(const Operation& operation) {
  auto program = std::make_unique<DeviceProgram>();
  program->plan = {operation.planned, operation.planned->messages.get()};
  program->rank = rank();
  const Plan& plan = *program->plan;
  const auto* own = GYRE_TRY(turns(plan));
  program->staging = memory_.staging(plan);
  const size_t before = (plan.scratch_bytes() + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
  for (size_t bytes = before;;) {  // how many sums are kept is known when the steps are
    std::byte* const memory = GYRE_TRY(scratch(bytes));
    program->staging.sums = memory + before;
    program->steps = device_steps(plan, rank(), *own, operation.buffers, memory, program->staging);
    bytes = before + program->steps.sums * program->staging.place_bytes;
    if (bytes <= scratch_bytes_) return program;
  }
}

// It begins before the stream has it, and moves meanwhile: that takes a while, and may wait until what was given before has ended.
Status DeviceCommunicator::give(Operation operation, void* user, std::optional<HandOff> hand_off) {
  const Plan& plan = *operation.planned->messages;
  const HandOff asked = hand_off.value_or(HandOff::packets);
  if (auto pass = hand_off && asked != HandOff::mapped ? std::nullopt : mapped_.pass(plan))
    return give_mapped(std::move(operation), *std::move(pass), user);
  if (asked == HandOff::mapped) return give_steps(std::move(operation), user, {});
  if (asked != HandOff::packets) return give_steps(std::move(operation), user, hand_off);
  if (!packets_.carry(plan)) return give_steps(std::move(operation), user, {});
  kernels::PacketBuffers* const uncleared = packets_.first();
  if (uncleared == nullptr) return give_packets(std::move(operation), user);
  GYRE_TRY(queue_->clear(uncleared));
  return give_steps(std::move(operation), user, {});
}

// At each gate a stream waits for the thread below, at a kernel of packets it does not: so callers could leave the thread behind without
// end, and more kernels say that they begin than the door has room for.
Status DeviceCommunicator::keep_close() {
  static_assert(most_ahead <= kernels::ReplayDoor::ring / 2);
  for (;; std::this_thread::yield()) {
    const auto lock = turn();
    if (failure_) return *failure_;
    if (waiting_.size() >= most_ahead) continue;
    if (last_.number <= most_ahead || GYRE_TRY(communicator_->test({last_.number - most_ahead}))) return {};
  }
}

Status DeviceCommunicator::give_packets(Operation operation, void* user) {
  GYRE_TRY(keep_close());
  const std::shared_ptr<const Planned> planned = operation.planned;
  const Plan& plan = *planned->messages;
  const kernels::PacketArgs args = packets_.next(plan, operation.buffers, operation.call.word);
  const Tickets tickets = queue_->reserve(1, HandOff::packets);
  given_last_ = {HandOff::packets, plan.schedule().family, 1,
                 kernels::packet_traffic(plan.call().count * size_of(plan.call().type), args.ranks)};
  operation.bound =
      std::make_shared<PacketRun>(planned, communicator_->connections().fifos.front(), operation.call, *queue_, tickets, operation.limit);
  const bool announced = in_graphs();
  GYRE_TRY(begin(std::move(operation), announced));
  return queue_->give(plan.call(), args, tickets, user, announced);
}

Status DeviceCommunicator::give_mapped(Operation operation, BoundPass pass, void* user) {
  const std::shared_ptr<const Planned> planned = operation.planned;
  const Call& call = planned->messages->call();
  const Tickets tickets = queue_->reserve(mapped_steps, HandOff::mapped);
  const DeviceSteps steps = steps_of(call, pass, queue_->list(), tickets.first);
  given_last_ = {HandOff::mapped, planned->messages->schedule().family, 1, mapped_traffic(call, pass)};
  const Buffers& buffers = operation.buffers;
  const MappedBuffers own{static_cast<const std::byte*>(buffers.input), static_cast<std::byte*>(buffers.output),
                          scalar_of_part(call, buffers.scalar, size())};
  operation.bound =
      std::make_shared<MappedRun>(planned, MappedRun::Own{rank(), std::move(pass), own}, communicator_->connections().fifos.front(),
                                  operation.call, *queue_, tickets, operation.limit, board_);
  const bool announced = in_graphs();
  GYRE_TRY(begin(std::move(operation), announced));
  return queue_->give(call, steps, tickets, user, announced);
}

Status DeviceCommunicator::give_steps(Operation operation, void* user, std::optional<HandOff> hand_off) {
  const std::shared_ptr<const DeviceProgram> program = GYRE_TRY(this->program(operation));
  const Plan& plan = *program->plan;
  const DeviceSteps& steps = program->steps;
  const HandOff fitting = queue_->fitting(steps);
  const HandOff by = fitting == HandOff::gates ? hand_off.value_or(fitting) : fitting;  // more would wait for itself in a full stream
  const Tickets tickets = queue_->reserve(steps.kernels.size(), by);
  given_last_ = {by, plan.schedule().family, steps.kernels.size(), steps.traffic()};
  operation.bound =
      std::make_shared<DeviceRun>(program, links(*program, operation.call), operation.call, *queue_, tickets, operation.limit);
  const bool announced = in_graphs();
  if (!announced || !steps.kernels.empty()) GYRE_TRY(begin(std::move(operation), announced));  // else there is nothing to be done here
  return queue_->give(plan.call(), steps, tickets, user, announced);
}

Status DeviceCommunicator::begin(Operation operation, bool announced) {
  const auto lock = turn();
  if (failure_) return *failure_;  // since it was prepared
  if (announced) {
    waiting_.push_back(std::move(operation));
    note_graphs();
  } else {
    last_ = GYRE_TRY(communicator_->begin(std::move(operation)));
  }
  given_.notify_all();
  return {};
}

std::vector<std::unique_ptr<DeviceLink>> DeviceCommunicator::links(const DeviceProgram& program, const Identity& call) const {
  const auto& fifos = communicator_->connections().fifos;
  const size_t ranks = program.staging.ranks;
  std::vector<std::unique_ptr<DeviceLink>> made(program.steps.arriving.size());
  for (uint32_t c = 0; c < made.size(); ++c) {
    const auto& arriving = program.steps.arriving[c];
    const auto& leaving = program.steps.leaving[c];
    if (arriving.empty() && leaving.empty()) continue;
    made[c] = device_link(
        {*fifos[c / ranks][c % ranks], call.word, arriving, leaving, program.staging, c, memory_.landing(c), communicator_->slots().bytes},
        memory_.reaches(static_cast<Rank>(c % ranks)));
  }
  return made;
}

Result<const std::vector<schedule::Turn>*> DeviceCommunicator::turns(const Plan& plan) {
  const auto key = std::pair(&plan.schedule(), plan.slices());
  const auto known = turns_.find(key);
  if (known != turns_.end()) return &known->second;
  const uint32_t credits = transport::PostedFifo::certain_credits(memory_.slots());
  return &turns_.emplace(key, GYRE_TRY(schedule::turns(plan.schedule(), rank(), credits, plan.slices()))).first->second;
}

Result<std::byte*> DeviceCommunicator::scratch(size_t bytes) {
  if (bytes > scratch_bytes_) {
    const size_t wished = std::max(bytes, 2 * scratch_bytes_);
    scratch_.push_back(GYRE_TRY(gpu_.allocate(wished)));
    scratch_bytes_ = wished;
  }
  return scratch_.empty() ? nullptr : scratch_.back().get();
}

// A GPU that has failed raises no flags any more, and the thread below does not ask CUDA, which may stand behind a launch into a held
// stream.
Status DeviceCommunicator::status() {
  if (const Error* known = failure()) return *known;
  const Status works = queue_->works();
  const auto lock = turn();
  if (!works) return fail(works.error());
  return failure_ ? Status(*failure_) : Status();
}

// Who finds out why a collective has failed has the turn for seconds; with nothing under way nobody has it for long.
bool DeviceCommunicator::idle() {
  ++wanted_;
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int i = 0; !lock && i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ignore = lock.try_lock();
  }
  --wanted_;
  if (!lock) return false;
  return !failure_ && !under_way() && !graphs_.midway();
}

Status DeviceCommunicator::finish(const std::function<Status()>& meanwhile) {
  constexpr std::chrono::milliseconds between{1};
  // For what comes without a word: a graph that was launched, and the next collective of one that has begun.
  constexpr std::chrono::seconds until_begun{2}, until_next{60};
  GYRE_TRY(status());
  const auto begin = std::chrono::steady_clock::now();
  for (auto next = begin + between;; std::this_thread::yield()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next) {
      GYRE_TRY(status());
      GYRE_TRY(meanwhile());
      next = now + between;
    }
    const auto lock = turn();
    if (failure_) return *failure_;
    if (under_way()) continue;
    if (graphs_.empty()) return finished_ = true, Status();
    if (!finishing_since_) finishing_since_ = begin;  // it may be asked for twice, with nothing between
    const auto quiet_since = std::max(*finishing_since_, active_);
    const bool midway = graphs_.midway();
    if (now - quiet_since < (midway ? until_next : until_begun)) continue;
    if (midway) return Error{Code::invalid_usage, "a CUDA graph does not go on between two of its collectives"};
    log::info("rank {}: {} collectives in CUDA graphs may not run any more", rank(), graphs_.size());
    finished_ = true;
    return {};
  }
}

// Nothing is moved any more, and the gate closes, which holds streams: also one that is late, and whose messages have all come. Where they
// lie others may write as soon as they have been let go.
Error DeviceCommunicator::fail(const Error& error) {
  if (failure_) return *failure_;
  failure_ = error;
  queue_->hold();
  communicator_->fail(error);
  failed_.store(true, std::memory_order_release);  // who sees it may end the process, and the others have heard by now
  return error;
}

// By the caller, whom a call that waits for room in a held stream does not keep from it.
// The board first: no rank that hears of it while it still moves lets a kernel go that this one would wait for.
void DeviceCommunicator::abort(std::string_view why) {
  if (board_ != nullptr) board_->leave();
  communicator_->abort(why);
  const auto lock = turn();
  if (const Status lives = communicator_->lives(); !lives) std::ignore = fail(lives.error());
  let_go();
}

// Only when nothing is moved any more the gate may be opened for all. By then no other rank's kernel may work on what the program takes
// back: one that was let go ends within milliseconds, or later, where its GPU is busy with other work, and does nothing then, since its
// rank has taken the list back when it heard of the end.
void DeviceCommunicator::let_go() {
  constexpr std::chrono::seconds limit{1};
  if (board_ != nullptr) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (board_->busy(mapped_.rank()) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  queue_->let_go(failure_ && !finished_ ? kernels::ReplayDoor::let_go : kernels::ReplayDoor::ended);
}

// The thread that moves what is under way.
void DeviceCommunicator::serve() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!failure_ && ended_ == last_.number) begin_next();
    if (failure_ || ended_ == last_.number) {
      rest(lock);
      continue;
    }
    const Request asked = last_;
    const auto done = communicator_->test(asked);
    if (!done)
      std::ignore = fail(done.error());
    else if (*done)
      ended_ = asked.number, active_ = std::chrono::steady_clock::now();
    lock.unlock();
    do std::this_thread::yield();
    while (wanted_.load() > 0);
    lock.lock();
  }
}

}  // namespace gyre::engine
