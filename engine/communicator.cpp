#include "engine/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "base/hash.h"
#include "base/log.h"
#include "engine/network.h"

namespace gyre::engine {
namespace {

constexpr size_t plans_kept = 64;
constexpr auto release_time = std::chrono::seconds(1);
constexpr int free_spins = 300, crowded_spins = 4;
constexpr uint64_t refused_word = 0x72656675736564;  // in place of a plan's hash

std::vector<transport::Worker*> workers(const Connections& connections) {
  std::vector<transport::Worker*> all;
  for (const Backend& backend : connections.backends) {
    if (backend.worker != nullptr && backend.device.between_hosts) all.push_back(backend.worker.get());
  }
  return all;
}

std::string_view family_of(const DirectForm& form) { return form.schedule->staged ? "one_shot" : "two_shot"; }

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const transport::Rendezvous& rendezvous, const Config& given) {
  auto bootstrap = GYRE_TRY(transport::Bootstrap::join(rendezvous));
  const auto facts = GYRE_TRY(exchange_facts(*bootstrap, given));
  const Config config = suited(given, facts);
  auto circumstances = engine::circumstances(config, facts);
  if (!circumstances) {
    bootstrap->fail(circumstances.error());
    return circumstances.error();
  }
  auto connections = GYRE_TRY(connect_ranks(*bootstrap, config, facts));
  auto board = GYRE_TRY(open_board(*bootstrap, connections));
  const bool busy = host_load(facts, bootstrap->rank()).crowded;
  return std::unique_ptr<Communicator>(
      new Communicator(std::move(bootstrap), std::move(connections), config, *std::move(circumstances), busy, std::move(board)));
}

Communicator::Communicator(std::unique_ptr<transport::Bootstrap> bootstrap, Connections connections, const Config& config,
                           Circumstances circumstances, bool crowded, std::unique_ptr<transport::Board> board)
    : bootstrap_(std::move(bootstrap)),
      connections_(std::move(connections)),
      slots_{static_cast<uint32_t>(*config.slots), *config.slot_bytes},
      circumstances_(std::move(circumstances)),
      forms_(bootstrap_->rank(), bootstrap_->size(), crowded),
      batch_(bootstrap_->rank(), connections_.fifos.front(), slots_.bytes),
      machines_(bootstrap_->rank(), connections_.fifos),
      executor_(*bootstrap_, workers(connections_), crowded) {
  machines_.between(batch_);
  if (board == nullptr) return;
  direct_ = std::make_unique<Direct>(bootstrap_->rank(), std::move(board), crowded ? crowded_spins : free_spins);
  direct_->between(batch_);
}

Result<std::shared_ptr<const Proven>> Communicator::proven(const Call& call) {
  const Choice choice = GYRE_TRY(choose(circumstances_, call, profiles_));
  if (!choice.instead.empty()) {
    std::string said =
        fmt::format("{} runs {} and not {}: {}", name(call.collective), choice.family, circumstances_.algorithm, choice.instead);
    if (std::find(said_.begin(), said_.end(), said) == said_.end()) {
      log::info("{}", said);
      said_.push_back(std::move(said));
    }
  }
  const std::string key = fmt::format("{}: {}", choice.family, topo::text(choice.shape));
  if (const auto known = schedules_.find(key); known != schedules_.end()) return known->second;
  auto made = GYRE_TRY(prove(choice.family, choice.shape, slots_));
  if (made->schedule.channels > connections_.fifos.size()) {
    return Error{Code::internal,
                 fmt::format("{} has {} channels, ranks are connected on {}", key, made->schedule.channels, connections_.fifos.size())};
  }
  return schedules_.emplace(key, std::move(made)).first->second;
}

Result<std::unique_ptr<Plan>> Communicator::by_messages(const Call& call) {
  auto schedule = GYRE_TRY(proven(call));
  return std::make_unique<Plan>(GYRE_TRY(Plan::make(std::move(schedule), call, slots_.bytes)));
}

// Unless another algorithm is asked for.
Result<std::optional<DirectPlan>> Communicator::directly(const Call& call) {
  const std::string& asked = circumstances_.algorithm;
  // Each rank's scalar is known to itself only.
  if (direct_ == nullptr || call.op == ReduceOp::premul_sum) return std::optional<DirectPlan>();
  const topo::Family* family = topo::family_named(asked);
  if (family != nullptr && !topo::refusal(*family, {call.collective, size(), 1, call.root, {}}).empty()) return std::optional<DirectPlan>();
  DirectPlan plan = GYRE_TRY(forms_.plan(call, must_be_ordered(circumstances_, call), asked == "auto" || asked == "one_shot",
                                         asked == "auto" || asked == "two_shot"));
  return plan.staged || plan.mapped ? std::optional(std::move(plan)) : std::nullopt;
}

Result<Communicator::Planned*> Communicator::planned(const Call& any) {
  const Call call = normal(any);
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->call == call; });
  if (known != plans_.end()) {
    if (known != plans_.begin()) std::rotate(plans_.begin(), known, known + 1);
    return plans_.front().get();
  }
  auto made = std::make_unique<Planned>(Planned{call, nullptr, GYRE_TRY(directly(call))});
  if (!made->staged()) made->messages = GYRE_TRY(by_messages(call));
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

Status Communicator::run(const Call& call, const void* input, void* output) {
  if (broken_) return *broken_;
  const uint64_t number = calls_++;
  const Buffers buffers{input, output, call.scalar};
  if (auto refusal = refuse(call, rank(), size(), buffers)) return refused(number, *std::move(refusal));
  const auto found = planned(call);
  if (!found) return refused(number, found.error());
  Planned& plan = **found;
  const uint64_t hash = plan.hash();
  // Where ranks have called unlike each other, if only once and unnoticed, no later message must match. The number is in the word, so that
  // messages of two equal calls are not taken for each other.
  past_ = mix(past_ ^ hash);
  bootstrap_->made(number, hash);
  const Identity identity{number, mix(past_ + number * 0x9e3779b97f4a7c15), hash, &plan.text()};
  if (plan.direct) {
    direct_->bind(*plan.direct, identity, buffers);
    Status status = executor_.run(*direct_);
    if (!status) give_up(status.error());
    if (!status || !direct_->declined()) return status;
    if (plan.messages == nullptr) plan.messages = GYRE_TRY(by_messages(plan.call));
  }
  machines_.bind(*plan.messages, identity, buffers);
  Status status = executor_.run(machines_);
  if (!status) give_up(status.error());
  return status;
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

Status Communicator::exchange(std::span<const Transfer> transfers) {
  if (broken_) return *broken_;
  if (auto refusal = batch_.refuse(transfers)) return *std::move(refusal);
  batch_.bind(transfers, calls_);
  Status status = executor_.run(batch_);
  if (!status) give_up(status.error());
  return status;
}

// Messages may still be under way from and to the user's memory, and end only with the connections: before the user has it back.
void Communicator::give_up(const Error& error) {
  broken_ = error;
  // Memory that others have mapped can't be taken from them; those that live are done with it soon, or learn of the error.
  const auto limit = std::chrono::steady_clock::now() + release_time;
  while (direct_ != nullptr && !direct_->released() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  for (const Backend& backend : connections_.backends) {
    if (backend.worker != nullptr) backend.worker->abandon();
  }
  connections_.backends.clear();
}

}  // namespace gyre::engine
