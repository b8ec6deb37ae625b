// Machines over posted connections whose messages complete late and out of order: user memory is neither sent nor received too early.
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

#include "engine/host_machine.h"
#include "perf/reference.h"
#include "test/catch.h"
#include "topo/algorithms.h"
#include "transport/loopback_posted.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

constexpr transport::Slots slots{4, 4096};

struct Addresses {
  explicit Addresses(int ranks) : text(static_cast<size_t>(ranks)), known(0) {}
  std::vector<std::string> text;
  std::atomic<int> known;
};

// One rank: joins the others, runs both ways, and says what is wrong.
std::string run_rank(Rank rank, int ranks, const Plan& plan, Addresses& addresses, std::atomic<int>& finished) {
  auto worker = *transport::open_posted_loopback_worker(slots, static_cast<uint32_t>(rank) + 1);
  auto listener = *worker->listen();
  addresses.text[static_cast<size_t>(rank)] = listener->address();
  ++addresses.known;
  while (addresses.known < ranks) std::this_thread::yield();
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints(static_cast<size_t>(ranks));
  for (Rank peer = 0; peer < rank; ++peer) {
    endpoints[static_cast<size_t>(peer)] = *worker->connect(addresses.text[static_cast<size_t>(peer)], std::to_string(rank));
  }
  for (int missing = ranks - 1 - rank; missing > 0;) {
    worker->progress();
    auto endpoint = *listener->accept();
    if (endpoint == nullptr) continue;
    while (!*endpoint->ready()) worker->progress();
    const size_t peer = std::stoul(std::string(endpoint->hello()));
    endpoints[peer] = std::move(endpoint);
    --missing;
  }
  std::vector<transport::Fifo*> fifos;
  for (const auto& endpoint : endpoints) {
    while (endpoint != nullptr && !*endpoint->ready()) worker->progress();
    fifos.push_back(endpoint == nullptr ? nullptr : &endpoint->fifo());
  }

  HostMachine machine(rank, 0, fifos);
  const Call& call = plan.call();
  std::string wrong;
  for (uint64_t word = 1; word <= 6; ++word) {
    std::vector<float> input(call.count);
    std::vector<float> output(call.count, -1);
    perf::fill_input(input.data(), call.count, call.type, call.op, rank, ranks);
    std::vector<float>& result = word % 2 == 0 ? input : output;
    machine.bind(plan, word, input.data(), result.data());
    while (!machine.done()) {
      machine.run();
      worker->progress();
    }
    const std::vector<float> sent = result;
    result.assign(call.count, 1e30F);  // the user's again: what is still read or written would show
    if (perf::count_wrong(sent.data(), call.count, call.type, call.op, ranks) != 0) wrong = fmt::format("rank {} run {}", rank, word);
  }
  ++finished;
  while (finished < ranks) worker->progress();  // peers may need it
  return wrong;
}

std::string run(std::string_view family, int ranks, size_t count) {
  const auto proven = prove(family, ranks, 1, slots);
  if (!proven) return proven.error().what;
  const Plan plan(*proven, {Collective::all_reduce, count, DataType::float32, ReduceOp::sum}, slots.bytes);
  Addresses addresses(ranks);
  std::atomic<int> finished = 0;
  std::vector<std::string> words(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { words[static_cast<size_t>(rank)] = run_rank(rank, ranks, plan, addresses, finished); });
  }
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& word : words) all += word;
  return all;
}

}  // namespace

TEST_CASE("machines over posted connections give the right result, whatever completes when") {
  for (const topo::Family& family : topo::families()) {
    for (const int ranks : {2, 3, 5}) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{1025}, size_t{20001}}) {
        INFO(family.name << ", " << ranks << " ranks, " << count << " elements");
        CHECK(run(family.name, ranks, count).empty());
      }
    }
  }
}
