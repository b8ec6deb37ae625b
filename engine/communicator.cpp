#include "engine/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "topo/select.h"

namespace gyre::engine {
namespace {

constexpr size_t plans_kept = 64;
constexpr size_t most_bytes = size_t{1} << 43;  // with the smallest slots, slices are counted in 32 bits

std::vector<HostMachine> machines(Rank rank, const Connections& connections) {
  std::vector<HostMachine> all;
  for (uint32_t channel = 0; channel < connections.fifos.size(); ++channel) all.emplace_back(rank, channel, connections.fifos[channel]);
  return all;
}

std::vector<transport::Worker*> workers(const Connections& connections) {
  std::vector<transport::Worker*> all;
  for (const Backend& backend : connections.backends) {
    if (backend.worker != nullptr && backend.device.between_hosts) all.push_back(backend.worker.get());
  }
  return all;
}

// What is wrong with a call by itself.
std::optional<Error> refuse(const void* input, const void* output, size_t count, DataType type, ReduceOp op) {
  const auto wrong = [](const std::string& what) { return Error{Code::invalid_argument, fmt::format("all_reduce: {}", what)}; };
  if (static_cast<size_t>(type) >= data_type_count) return wrong(fmt::format("there is no type {}", static_cast<int>(type)));
  if (static_cast<size_t>(op) >= reduce_op_count) return wrong(fmt::format("there is no operation {}", static_cast<int>(op)));
  const size_t element = size_of(type);
  if (count > most_bytes / element) return wrong(fmt::format("{} elements of {} are more than {} bytes", count, name(type), most_bytes));
  if (count != 0 && (input == nullptr || output == nullptr)) return wrong(fmt::format("null buffer for {} elements", count));
  const auto in = reinterpret_cast<uintptr_t>(input);
  const auto out = reinterpret_cast<uintptr_t>(output);
  if (in % element != 0 || out % element != 0) return wrong(fmt::format("buffers must be aligned to {} bytes", element));
  if (in != out && in < out + count * element && out < in + count * element) return wrong("input and output overlap and are not the same");
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const transport::Rendezvous& rendezvous, const Config& config) {
  auto bootstrap = GYRE_TRY(transport::Bootstrap::join(rendezvous));
  const auto facts = GYRE_TRY(exchange_facts(*bootstrap, config));
  auto connections = GYRE_TRY(connect_ranks(*bootstrap, config, facts));
  const bool busy = crowded(facts, bootstrap->rank());
  return std::unique_ptr<Communicator>(new Communicator(std::move(bootstrap), std::move(connections), config, busy));
}

Communicator::Communicator(std::unique_ptr<transport::Bootstrap> bootstrap, Connections connections, Config config, bool crowded)
    : bootstrap_(std::move(bootstrap)),
      connections_(std::move(connections)),
      config_(std::move(config)),
      executor_(std::make_unique<Executor>(*bootstrap_, workers(connections_), machines(bootstrap_->rank(), connections_), crowded)) {}

Result<const Plan*> Communicator::plan(const Call& call) {
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->call() == call; });
  if (known != plans_.end()) {
    if (known != plans_.begin()) std::rotate(plans_.begin(), known, known + 1);
    return plans_.front().get();
  }
  const std::string_view family =
      *config_.algorithm != "auto" ? std::string_view(*config_.algorithm) : topo::choose(call.count * size_of(call.type), size());
  auto proven = schedules_.find(family);
  if (proven == schedules_.end()) {
    const transport::Slots slots{static_cast<uint32_t>(*config_.slots), *config_.slot_bytes};
    auto made = GYRE_TRY(prove(family, size(), static_cast<uint32_t>(*config_.channels), slots));
    proven = schedules_.emplace(std::string(family), std::move(made)).first;
  }
  if (plans_.size() == plans_kept) plans_.pop_back();
  plans_.insert(plans_.begin(), std::make_unique<Plan>(proven->second, call, *config_.slot_bytes));
  return plans_.front().get();
}

Status Communicator::all_reduce(const void* input, void* output, size_t count, DataType type, ReduceOp op) {
  if (broken_) return *broken_;
  const uint64_t call = calls_++;
  if (auto refusal = refuse(input, output, count, type, op)) {
    // Ranks that do not refuse it wait for us in vain and must learn so; their calls must not be taken for our next one.
    bootstrap_->describe(call, 0, fmt::format("call={} all_reduce refused=yes", call), false);
    return *std::move(refusal);
  }
  const Plan* plan = GYRE_TRY(this->plan({Collective::all_reduce, count, type, op}));
  Status status = executor_->run(*plan, call, input, output);
  if (!status) give_up(status.error());
  return status;
}

// Messages may still be under way from and to the user's memory, and end only with the connections: before the user has it back.
void Communicator::give_up(const Error& error) {
  broken_ = error;
  executor_.reset();
  for (const Backend& backend : connections_.backends) {
    if (backend.worker != nullptr) backend.worker->abandon();
  }
  connections_.backends.clear();
}

}  // namespace gyre::engine
