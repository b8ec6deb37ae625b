#include "engine/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "base/hash.h"
#include "base/log.h"
#include "engine/memory.h"

namespace gyre::engine {
namespace {

constexpr size_t plans_kept = 64;
constexpr auto release_time = std::chrono::seconds(1);
constexpr uint64_t refused_word = 0x72656675736564;  // in place of a plan's hash

std::vector<transport::Worker*> workers(const Connections& connections) {
  std::vector<transport::Worker*> all;
  for (const Backend& backend : connections.backends) {
    if (backend.worker != nullptr && backend.device.between_hosts) all.push_back(backend.worker.get());
  }
  return all;
}

Surroundings surroundings(const std::vector<transport::Worker*>& workers, bool crowded, transport::Doorbell* doorbell) {
  const bool by_kernel = std::any_of(workers.begin(), workers.end(), [](const auto* worker) { return worker->polls_by_kernel(); });
  return {crowded, !workers.empty(), by_kernel, doorbell};
}

std::unique_ptr<Direct> direct(Rank rank, std::unique_ptr<transport::Board> board, int looks) {
  return board == nullptr ? nullptr : std::make_unique<Direct>(rank, std::move(board), looks);
}

std::string_view family_of(const DirectForm& form) { return form.schedule->staged ? "one_shot" : "two_shot"; }

}  // namespace

Communicator::Communicator(Formed formed)
    : bootstrap_(std::move(formed.bootstrap)),
      given_(std::move(formed.given)),
      reunion_(std::move(formed.reunion)),
      doorbell_(std::move(formed.doorbell)),
      connections_(std::move(formed.connections)),
      slots_{static_cast<uint32_t>(*formed.config.slots), *formed.config.slot_bytes},
      circumstances_(std::move(formed.circumstances)),
      forms_(rank(), size(), formed.crowded),
      batch_(rank(), connections_.fifos.front(), slots_.bytes),
      waiter_(*given_.wait, surroundings(workers(connections_), formed.crowded, doorbell_.get())),
      collective_(rank(), connections_.fifos, direct(rank(), std::move(formed.board), waiter_.looks()), batch_),
      executor_(*bootstrap_, workers(connections_), connections_.transports, waiter_),
      in_flight_(collective_, batch_, workers(connections_)),
      time_limit_(std::chrono::seconds(*given_.deadline)) {}

void Communicator::say_instead(const Call& call, const Choice& choice) {
  if (choice.instead.empty()) return;
  std::string said =
      fmt::format("{} runs {} and not {}: {}", name(call.collective), choice.family, circumstances_.algorithm, choice.instead);
  if (std::find(said_.begin(), said_.end(), said) != said_.end()) return;
  log::info("{}", said);
  said_.push_back(std::move(said));
}

Result<std::shared_ptr<const Proven>> Communicator::proven(const Choice& choice) {
  const std::string key = engine::key(choice);
  if (const auto known = schedules_.find(key); known != schedules_.end()) return known->second;
  auto made = GYRE_TRY(prove(choice.family, choice.shape, slots_));
  if (made->schedule.channels > connections_.fifos.size()) {
    return Error{Code::internal,
                 fmt::format("{} has {} channels, ranks are connected on {}", key, made->schedule.channels, connections_.fifos.size())};
  }
  return schedules_.emplace(key, std::move(made)).first->second;
}

// The best whose scratch there may be. All ranks know of the same bound, so that they choose alike.
Result<std::unique_ptr<Plan>> Communicator::by_messages(const Call& call) {
  Excluded excluded;
  for (;;) {
    const Choice choice = GYRE_TRY(choose(circumstances_, call, profiles_, excluded));
    auto schedule = GYRE_TRY(proven(choice));
    Plan plan = GYRE_TRY(Plan::make(std::move(schedule), call, slots_.bytes));
    if (plan.scratch_bytes() <= circumstances_.scratch_room) {
      say_instead(call, choice);
      return std::make_unique<Plan>(std::move(plan));
    }
    excluded.emplace(key(choice), fmt::format("needs {} bytes of scratch, GYRE_MEMORY_BYTES={} leaves {}", plan.scratch_bytes(),
                                              circumstances_.memory_bytes, circumstances_.scratch_room));
  }
}

// Unless another algorithm is asked for.
Result<std::optional<DirectPlan>> Communicator::directly(const Call& call) {
  const std::string& asked = circumstances_.algorithm;
  // Each rank's scalar is known to itself only.
  if (!collective_.has_direct() || call.op == ReduceOp::premul_sum) return std::optional<DirectPlan>();
  const topo::Family* family = topo::family_named(asked);
  if (family != nullptr && !topo::refusal(*family, {call.collective, size(), 1, call.root, {}}).empty()) return std::optional<DirectPlan>();
  DirectPlan plan = GYRE_TRY(forms_.plan(call, must_be_ordered(circumstances_, call), asked == "auto" || asked == "one_shot",
                                         asked == "auto" || asked == "two_shot"));
  return plan.staged || plan.mapped ? std::optional(std::move(plan)) : std::nullopt;
}

Result<Planned*> Communicator::planned(const Call& any) {
  const Call call = normal(any);
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->call == call; });
  if (known != plans_.end()) {
    if (known != plans_.begin()) std::rotate(plans_.begin(), known, known + 1);
    return plans_.front().get();
  }
  auto made = std::make_shared<Planned>(Planned{call, nullptr, GYRE_TRY(directly(call))});
  // Also where a direct form may be declined.
  if (!made->staged() || made->direct->mapped) made->messages = GYRE_TRY(by_messages(call));
  if (plans_.size() == plans_kept) plans_.pop_back();
  bootstrap_->name(made->hash(), made->text());
  plans_.insert(plans_.begin(), std::move(made));
  return plans_.front().get();
}

Result<const Plan*> Communicator::plan(const Call& call) {
  Planned* found = GYRE_TRY(planned(call));
  if (found->messages == nullptr) found->messages = GYRE_TRY(by_messages(found->call));
  return found->messages.get();
}

Result<std::string> Communicator::algorithm(const Call& call, BufferKind kind) {
  Planned* found = GYRE_TRY(planned(call));
  if (const DirectForm* form = found->form(kind); form != nullptr) return std::string(family_of(*form));
  return GYRE_TRY(plan(call))->schedule().family;
}

void Communicator::prefer(const Preference& preference) {
  circumstances_.algorithm = preference.algorithm;
  circumstances_.grid = preference.grid;
  plans_.clear();
}

Result<double> Communicator::predicted_us(const Call& call, BufferKind kind) {
  const Planned* found = GYRE_TRY(planned(call));
  if (const DirectForm* form = found->form(kind); form != nullptr) return GYRE_TRY(price(*form, found->call)).seconds * 1e6;
  const Plan* chosen = GYRE_TRY(plan(call));
  const topo::Query asked = query(circumstances_, chosen->call());
  const auto& profile = profiles_.of(chosen->schedule().family, chosen->shape(), asked.placement);
  if (!profile) return profile.error();
  return topo::price(*profile, asked.costs, asked.block_bytes, asked.cutting).seconds * 1e6;
}

Result<topo::Price> Communicator::price(const DirectForm& form, const Call& call) const {
  const topo::Costs& costs = circumstances_.costs;
  if (!costs.direct) return Error{Code::invalid_usage, "the constants have no costs of ranks that reach each other's memory"};
  const auto block_bytes = static_cast<double>(call.count * size_of(call.type));
  return topo::price(*form.schedule, *costs.direct, block_bytes, costs.processors_per_node);
}

std::vector<topo::DirectCandidate> Communicator::direct_candidates(const Planned& planned, BufferKind kind) const {
  std::vector<topo::DirectCandidate> all;
  if (!planned.direct) return all;
  for (const auto* form : {&planned.direct->staged, &planned.direct->mapped}) {
    if (!*form) continue;
    const bool staged = (*form)->schedule->staged;
    topo::DirectCandidate out{family_of(**form), staged ? "staged" : "mapped", {}, {}, "runs"};
    if (&**form != planned.form(kind))
      out.when = staged ? "runs where no buffer is of the shared heap" : "runs where all buffers are of the shared heap";
    const auto priced = price(**form, planned.call);
    if (priced) {
      out.price = *priced;
    } else {
      out.refused = priced.error().what;
    }
    all.push_back(std::move(out));
  }
  return all;
}

std::string Communicator::explain(const Call& call, BufferKind kind) {
  const topo::Query asked = query(circumstances_, normal(call));
  const auto found = planned(call);
  return topo::explain(asked, topo::choose(asked, profiles_),
                       found ? direct_candidates(**found, kind) : std::vector<topo::DirectCandidate>());
}

std::optional<Deadline> Communicator::deadline(TimeLimit given) const {
  const std::chrono::milliseconds limit = given.value_or(time_limit_);
  if (limit.count() <= 0) return std::nullopt;
  return Deadline{limit, std::chrono::steady_clock::now() + limit};
}

Result<Identity> Communicator::next_call(const Call& call, const Buffers& buffers) {
  if (broken_) return *broken_;
  const uint64_t number = calls_++;
  if (auto refusal = refuse(call, rank(), size(), buffers)) return refused(number, *std::move(refusal));
  const auto found = planned(call);
  if (!found) return refused(number, found.error());
  const uint64_t hash = (*found)->hash();
  // Where ranks have called unlike each other, if only once and unnoticed, no later message must match. The number is in the word, so that
  // messages of two equal calls are not taken for each other.
  past_ = mix(past_ ^ hash);
  bootstrap_->made(number, hash);
  return Identity{number, mix(past_ + number * 0x9e3779b97f4a7c15), hash, &(*found)->text()};
}

Status Communicator::run(const Call& call, const void* input, void* output, TimeLimit limit) {
  if (!in_flight_.empty()) return wait(GYRE_TRY(start(call, input, output, limit)));
  const Buffers buffers{input, output, call.scalar};
  const Identity next = GYRE_TRY(next_call(call, buffers));
  collective_.bind(*plans_.front(), next, buffers, deadline(limit));
  return run(collective_);
}

Status Communicator::exchange(std::span<const Transfer> transfers, TimeLimit limit) {
  if (!in_flight_.empty()) return wait(GYRE_TRY(start(transfers, limit)));
  if (broken_) return *broken_;
  if (auto refusal = batch_.refuse(transfers)) return *std::move(refusal);
  batch_.bind(transfers, calls_, deadline(limit));
  return run(batch_);
}

Status Communicator::run(Work& work) {
  const Status status = executor_.run(work);
  return status ? Status() : give_up(status.error());
}

Result<Request> Communicator::start(const Call& call, const void* input, void* output, TimeLimit limit) {
  const Buffers buffers{input, output, call.scalar};
  const Identity next = GYRE_TRY(next_call(call, buffers));
  return start(Operation{plans_.front(), next, buffers, {}, deadline(limit)});
}

Result<Request> Communicator::start(std::span<const Transfer> transfers, TimeLimit limit) {
  if (broken_) return *broken_;
  if (auto refusal = batch_.refuse(transfers)) return *std::move(refusal);
  return start(Operation{nullptr, {calls_, 0, 0, nullptr}, {}, {transfers.begin(), transfers.end()}, deadline(limit)});
}

Request Communicator::start(Operation next) {
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
  const auto moved = executor_.step(in_flight_);
  if (!moved) return give_up(moved.error());
  return moved->any;
}

Result<bool> Communicator::test(Request request) {
  if (request.number == 0 || request.number > in_flight_.begun()) {
    return Error{Code::invalid_argument, fmt::format("there is no request {}, {} were made", request.number, in_flight_.begun())};
  }
  if (in_flight_.ended() < request.number && !GYRE_TRY(step(request))) executor_.pass();
  return in_flight_.ended() >= request.number;
}

Status Communicator::wait(Request request) {
  GYRE_TRY(test(request));
  in_flight_.attend(true);
  Status status;
  while (status && in_flight_.ended() < request.number) {
    const auto moved = step(request);
    if (!moved) status = moved.error();
    if (moved && !*moved) executor_.rest(in_flight_);
  }
  in_flight_.attend(false);
  waiter_.reset();
  return status;
}

void Communicator::abort(std::string_view why) { bootstrap_->fail({Code::remote, fmt::format("aborted: {}", why)}); }

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
  // Memory that others have mapped can't be taken from them; those that live are done with it soon, or learn of the error.
  const auto limit = std::chrono::steady_clock::now() + release_time;
  while (!collective_.released() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  for (const Backend& backend : connections_.backends) {
    if (backend.worker != nullptr) backend.worker->abandon();
  }
  connections_.backends.clear();
  in_flight_.forget();
  return error;
}

}  // namespace gyre::engine
