#include "engine/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "engine/combine.h"

namespace gyre::engine {
namespace {

constexpr auto release_time = std::chrono::seconds(1);
constexpr uint64_t refused_word = 0x72656675736564;  // in place of a plan's hash

Surroundings surroundings(std::vector<transport::Worker*> workers, bool crowded, transport::Doorbell* doorbell) {
  const bool by_kernel = std::any_of(workers.begin(), workers.end(), [](const auto* worker) { return worker->polls_by_kernel(); });
  return {crowded, by_kernel, std::move(workers), doorbell};
}

std::unique_ptr<Direct> direct(Rank rank, std::unique_ptr<transport::Board> board, int looks, Away away) {
  return board == nullptr ? nullptr : std::make_unique<Direct>(rank, std::move(board), looks, away);
}

}  // namespace

Communicator::Communicator(Formed formed)
    : bootstrap_(std::move(formed.bootstrap)),
      given_(std::move(formed.given)),
      constants_(std::move(formed.constants)),
      reunion_(std::move(formed.reunion)),
      doorbell_(std::move(formed.doorbell)),
      connections_(std::move(formed.connections)),
      slots_{static_cast<uint32_t>(*formed.config.slots), *formed.config.slot_bytes},
      planner_(rank(), std::move(formed.circumstances), slots_, connections_.fifos.size(), formed.board.get(), formed.contests),
      explanations_(*given_.explain != 0 && rank() == 0 ? std::make_unique<Explanations>() : nullptr),
      batch_(rank(), connections_.fifos.front(), *formed.config.slot_bytes, formed.away),
      waiter_(*given_.wait, surroundings(networks(connections_), formed.crowded, doorbell_.get())),
      collective_(rank(), connections_.fifos, formed.away, direct(rank(), std::move(formed.board), waiter_.looks(), formed.away),
                  formed.contests, batch_),
      executor_(*bootstrap_, workers(connections_), connections_.transports, waiter_),
      in_flight_(collective_, batch_, networks(connections_)),
      time_limit_(std::chrono::seconds(*given_.deadline)) {}

Communicator::~Communicator() {
  if (explanations_ != nullptr && collective_.contests() != nullptr) explanations_->hear(*collective_.contests());
  if (in_flight_.empty()) return;
  const std::lock_guard lock(in_flight_.mutex());
  if (!broken_) std::ignore = give_up({Code::remote, "the communicator has ended"});
}

TimeLimit Communicator::limited(TimeLimit given) const {
  const std::chrono::milliseconds limit = given.value_or(time_limit_);
  return limit.count() > 0 ? TimeLimit(limit) : TimeLimit();
}

// Also what other ranks, or another thread by abort(), have said meanwhile.
std::optional<Error> Communicator::broken() {
  const Error* failure = bootstrap_->attention() && !broken_ ? bootstrap_->failure() : nullptr;
  if (failure != nullptr) {
    const std::lock_guard lock(in_flight_.mutex());
    std::ignore = give_up(*failure);
  }
  return broken_;
}

Result<Planned*> Communicator::next_call(const Call& call, const Buffers& buffers) {
  if (broken_) return *broken_;
  const uint64_t number = calls_++;
  Planned* latest = planner_.latest(call);
  if (latest == nullptr) {
    const auto found = planner_.planned(call);
    if (!found) return refused(number, found.error());
    latest = *found;
  }
  Planned& plan = *latest;
  if (!plan.extent.fits(buffers)) return refused(number, *refuse(call, rank(), plan.extent, buffers));
  if (explanations_ != nullptr) [[unlikely]]
    explanations_->note(plan, buffers, planner_);
  if (!std::exchange(plan.named, true)) bootstrap_->name(plan.hash(), plan.text());
  // Where ranks have called unlike each other, if only once and unnoticed, no later message must match; nor that of an equal call.
  past_ = mix(past_ ^ plan.hash());
  bootstrap_->made(number, plan.hash());
  return &plan;
}

Identity Communicator::identity(const Planned& plan) const { return {calls_ - 1, past_, plan.hash(), &plan.text()}; }

Status Communicator::run(const Call& call, const void* input, void* output, TimeLimit limit) {
  if (!in_flight_.empty()) return wait(GYRE_TRY(start(call, input, output, limit)));
  const Buffers buffers{input, output, call.scalar};
  const Planned& plan = *GYRE_TRY(next_call(call, buffers));
  if (explanations_ != nullptr) [[unlikely]]
    explanations_->count(plan, buffers);
  collective_.bind(plan, identity(plan), buffers, limited(limit));
  return run(collective_);
}

Status Communicator::exchange(std::span<const Transfer> transfers, TimeLimit limit) {
  if (!in_flight_.empty()) return wait(GYRE_TRY(start(transfers, limit)));
  if (broken_) return *broken_;
  if (auto refusal = batch_.refuse(transfers)) return refused(*std::move(refusal));
  batch_.bind(transfers, calls_, limited(limit));
  return run(batch_);
}

Status Communicator::run(Work& work) {
  const Status status = executor_.run(work);
  return status ? Status() : give_up(status.error());
}

Result<Request> Communicator::start(const Call& call, const void* input, void* output, TimeLimit limit) {
  return start(GYRE_TRY(prepare(call, input, output, limit)));
}

Result<Request> Communicator::start(std::span<const Transfer> transfers, TimeLimit limit) {
  if (auto error = broken()) return *std::move(error);
  if (auto refusal = batch_.refuse(transfers)) return refused(*std::move(refusal));
  return start(Operation{nullptr, {calls_, 0, 0, nullptr}, {}, {transfers.begin(), transfers.end()}, limited(limit)});
}

Result<Operation> Communicator::prepare(const Call& call, const void* input, void* output, TimeLimit limit) {
  if (auto error = broken()) return *std::move(error);
  const Buffers buffers{input, output, call.scalar};
  Planned& plan = *GYRE_TRY(next_call(call, buffers));
  return Operation{plan.shared_from_this(), identity(plan), buffers, {}, limited(limit)};
}

Result<Request> Communicator::begin(Operation next) {
  if (auto error = broken()) return *std::move(error);
  return start(std::move(next));
}

Status Communicator::only_on_gpus(bool reached, const OnGpus& ways) {
  const topo::Constants constants = GYRE_TRY(topo::constants_for_here(*constants_));
  planner_.only_on_gpus(GYRE_TRY(topo::costs_here(constants, constants_->file, reached ? "gpu" : "gpu_pinned")), ways);
  return {};
}

bool Communicator::slots_by_default() const {
  return given_.slot_bytes.origin == "default" && given_.slots.origin == "default" && given_.memory_bytes.origin == "default";
}

Status Communicator::lives() {
  if (auto error = broken()) return *std::move(error);
  return {};
}

void Communicator::fail(const Error& error) {
  if (broken_) return;
  bootstrap_->fail(error);
  const std::lock_guard lock(in_flight_.mutex());
  std::ignore = give_up(error);
}

Request Communicator::start(Operation next) {
  if (explanations_ != nullptr && next.planned != nullptr) [[unlikely]]
    explanations_->count(*next.planned, next.buffers);
  const std::lock_guard lock(in_flight_.mutex());
  in_flight_.add(std::move(next));
  in_flight_.move();  // so that peers need not wait until this rank looks again
  return {in_flight_.begun()};
}

// True: some of what is in flight has moved.
Result<bool> Communicator::step(Request request) {
  const std::lock_guard lock(in_flight_.mutex());
  if (broken_) return *broken_;
  if (in_flight_.ended() >= request.number) return true;
  in_flight_.ask(request.number);
  if (const uint64_t ended = in_flight_.ended(); std::exchange(seen_ended_, ended) != ended) executor_.begin();  // it is other work
  const auto moved = executor_.step(in_flight_);
  if (moved) return moved->any;
  const bool ended = in_flight_.ended() >= request.number;  // what is given up comes after it
  const Error broken = give_up(moved.error());
  return ended ? Result<bool>(true) : broken;
}

Error Communicator::no_request(Request request) const {
  return {Code::invalid_argument, fmt::format("there is no request {}, {} were made", request.number, in_flight_.begun())};
}

Result<bool> Communicator::test(Request request) {
  if (request.number == 0 || request.number > in_flight_.begun()) return no_request(request);
  if (in_flight_.ended() < request.number && !GYRE_TRY(step(request))) executor_.pass();
  return in_flight_.ended() >= request.number;
}

Status Communicator::wait(Request request) {
  if (request.number == 0 || request.number > in_flight_.begun()) return no_request(request);
  in_flight_.attend(request.number);
  Status status;
  while (status && in_flight_.ended() < request.number) {
    const auto moved = step(request);
    if (!moved) status = moved.error();
    if (moved && !*moved) executor_.rest(in_flight_);
  }
  in_flight_.attend(0);
  waiter_.reset();
  return status;
}

void Communicator::abort(std::string_view why) { bootstrap_->fail({Code::remote, fmt::format("aborted: {}", why)}); }

// A group that is not wrong by itself has partners, which wait for us.
Error Communicator::refused(Error group) {
  if (group.code == Code::remote) fail(group);
  return group;
}

// Ranks that do not refuse it wait for us in vain and must learn so; all may refuse it, each for its own reason, and go on.
Error Communicator::refused(uint64_t number, Error why) {
  const std::string text = "refused " + why.what;
  const uint64_t hash = std::hash<std::string>()(text);
  past_ = mix(past_ ^ refused_word);
  bootstrap_->name(hash, text);
  bootstrap_->made(number, hash, true);
  return why;
}

// Messages may still be under way from and to the user's memory, and end only with the connections: before the user has it back.
Error Communicator::give_up(const Error& error) {
  broken_ = error;
  collective_.take_back();
  // Memory that others have mapped can't be taken from them; those that live are done with it soon, or learn of the error.
  const auto limit = std::chrono::steady_clock::now() + release_time;
  while (!collective_.released() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  for (const Backend& backend : connections_.backends) {
    if (backend.worker != nullptr) backend.worker->abandon();
  }
  connections_.backends.clear();
  if (!in_flight_.empty()) in_flight_.forget();
  return error;
}

}  // namespace gyre::engine
