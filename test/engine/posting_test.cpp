// Machines over posted connections whose messages complete late and out of order: user memory is neither sent nor received too early.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "engine/machines.h"
#include "perf/reference.h"
#include "test/catch.h"
#include "test/engine/posted_mesh.h"
#include "test/slow_builds.h"
#include "test/text.h"
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

// One rank: joins the others on every channel, runs both ways, and says what is wrong.
std::string run_rank(Rank rank, int ranks, const Plan& plan, Addresses& addresses, std::atomic<int>& finished, bool any_memory) {
  const auto size = static_cast<size_t>(ranks);
  const size_t channels = plan.schedule().channels;
  auto worker = *transport::open_posted_loopback_worker(slots, static_cast<uint32_t>(rank) + 1, any_memory);
  auto listener = *worker->listen();
  addresses.text[static_cast<size_t>(rank)] = listener->address();
  ++addresses.known;
  while (addresses.known < ranks) std::this_thread::yield();
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints(channels * size);
  for (size_t place = 0; place < endpoints.size(); ++place) {
    const size_t peer = place % size;
    if (peer < static_cast<size_t>(rank)) {
      endpoints[place] = *worker->connect(addresses.text[peer], std::to_string(place - peer + static_cast<size_t>(rank)));
    }
  }
  for (size_t missing = channels * static_cast<size_t>(ranks - 1 - rank); missing > 0;) {
    worker->progress();
    auto endpoint = *listener->accept();
    if (endpoint == nullptr) continue;
    while (!*endpoint->ready()) worker->progress();
    const size_t place = std::stoul(std::string(endpoint->hello()));
    endpoints[place] = std::move(endpoint);
    --missing;
  }
  std::vector<std::vector<transport::Fifo*>> fifos(channels, std::vector<transport::Fifo*>(size));
  for (size_t place = 0; place < endpoints.size(); ++place) {
    if (endpoints[place] == nullptr) continue;
    while (!*endpoints[place]->ready()) worker->progress();
    fifos[place / size][place % size] = &endpoints[place]->fifo();
  }

  Machines machines(rank, fifos, Away{8192, 1});
  const Call& call = plan.call();
  std::string wrong;
  for (uint64_t word = 1; word <= 6; ++word) {
    std::vector<float> input(call.count);
    std::vector<float> output(call.count, -1);
    perf::fill_input(input.data(), call.count, call.type, call.op, rank, ranks);
    std::vector<float>& result = word % 2 == 0 ? input : output;
    machines.bind(plan, {word, word, plan.hash(), &plan.text()}, {input.data(), result.data()});
    for (Work::Moved moved; !moved.done;) {
      moved = machines.move();
      if (worker->progress() == 0 && !moved.any) std::this_thread::yield();
    }
    const std::vector<float> sent = result;
    result.assign(call.count, 1e30F);  // the user's again: what is still read or written would show
    if (perf::count_wrong(sent.data(), call.count, call.type, call.op, ranks) != 0) wrong = fmt::format("rank {} run {}", rank, word);
  }
  ++finished;
  while (finished < ranks) {  // peers may need our progress
    worker->progress();
    std::this_thread::yield();
  }
  return wrong;
}

std::string run(std::string_view family, int ranks, size_t count, bool any_memory = true) {
  const auto proven = prove(family, {Collective::all_reduce, ranks, 1, 0, {}}, slots);
  if (!proven) return proven.error().what;
  const Plan plan = *Plan::make(*proven, {Collective::all_reduce, count, DataType::float32, ReduceOp::sum, 0}, slots.bytes);
  Addresses addresses(ranks);
  std::atomic<int> finished = 0;
  std::vector<std::string> words(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { words[static_cast<size_t>(rank)] = run_rank(rank, ranks, plan, addresses, finished, any_memory); });
  }
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& word : words) all += word;
  return all;
}

}  // namespace

TEST_CASE("machines over posted connections give the right result, whatever completes when") {
  for (const topo::Family& family : topo::families()) {
    for (const int ranks : test::sampled(std::array{3, 2, 5})) {
      if (!topo::refusal(family, {Collective::all_reduce, ranks, 1, 0, {}}).empty()) continue;
      for (const size_t count : {size_t{0}, size_t{1}, size_t{1025}, size_t{20001}}) {
        INFO(family.name << ", " << ranks << " ranks, " << count << " elements");
        CHECK(run(family.name, ranks, count).empty());
      }
    }
  }
}

TEST_CASE("machines over posted connections that take registered memory only stage what they send and receive") {
  for (const topo::Family& family : topo::families()) {
    if (!topo::refusal(family, {Collective::all_reduce, 3, 1, 0, {}}).empty()) continue;
    for (const size_t count : {size_t{0}, size_t{1}, size_t{20001}}) {
      INFO(family.name << ", " << count << " elements");
      CHECK(run(family.name, 3, count, false) == "");
    }
  }
}

namespace {

/// Ranks of one collective in one thread, each moved when the test says.
class Moved {
 public:
  Moved(std::string_view family, Call call, int ranks, uint32_t seed)
      : plan_(*Plan::make(*prove(family, {call.collective, ranks, 1, 0, {}}, slots), call, slots.bytes)),
        mesh_(static_cast<size_t>(ranks), slots, seed) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<size_t>(rank);
      machines_.push_back(std::make_unique<Machines>(rank, std::vector(1, mesh_.fifos(r)), Away{8192, 1}));
      data_.emplace_back(call.count);
      machines_[r]->bind(plan_, {0, 1, plan_.hash(), &plan_.text()}, {data_[r].data(), data_[r].data()});
    }
  }
  Work::Moved move(size_t rank) {
    mesh_.progress(rank);
    return machines_[rank]->move();
  }
  const Machines& rank(size_t rank) const { return *machines_[rank]; }

 private:
  Plan plan_;
  test::PostedMesh mesh_;
  std::vector<std::unique_ptr<Machines>> machines_;
  std::vector<std::vector<float>> data_;
};

}  // namespace

TEST_CASE("who waits for its last sends to complete says to whom they go") {
  Moved ranks("naive", {Collective::broadcast, 1000, DataType::float32, ReduceOp::sum, 0}, 3, 1);
  for (int i = 0; i < 100; ++i) ranks.move(0);
  CHECK(ranks.rank(0).awaited() == std::vector<Rank>{1, 2});
  CHECK(ranks.rank(0).where() == "for its last sends to rank 1 to complete");
  for (int i = 0; i < 100; ++i) {
    ranks.move(0);
    ranks.move(1);
  }
  CHECK(ranks.rank(0).awaited() == std::vector<Rank>{2});
  CHECK(ranks.rank(0).where() == "for its last sends to rank 2 to complete");
}

TEST_CASE("who waits for a send to complete in a step says to whom it goes") {
  int met = 0;
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    Moved ranks("one_shot", {Collective::all_reduce, 20'000, DataType::float32, ReduceOp::sum, 0}, 2, seed);
    for (bool done = false; !done;) {
      ranks.move(1);
      const Work::Moved moved = ranks.move(0);
      done = moved.done;
      if (moved.any || ranks.rank(0).where().find("to complete in step") == std::string::npos) continue;
      ++met;
      CHECK(ranks.rank(0).awaited() == std::vector<Rank>{1});
      CHECK(test::contains(ranks.rank(0).where(), "for its sends to rank 1 to complete in step 1 (rrc "));
    }
  }
  CHECK(met != 0);
}
