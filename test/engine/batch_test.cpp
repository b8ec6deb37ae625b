// Groups of sends and receives: random ones over every kind of connection, in every order, and between collectives.
#include "engine/batch.h"

#include <numeric>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/engine/groups.h"
#include "test/engine/loopback_mesh.h"
#include "test/engine/posted_mesh.h"
#include "test/ranks.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::first_wrong;
using gyre::test::Part;
using gyre::test::run_ranks;
using gyre::test::Sent;

namespace {

/// Several random groups after each other, all ranks in one thread, moved in a random order. `fifos(rank)`, `progress(rank)`.
template <class Fifos, class Progress>
std::string random_groups(int ranks, size_t slot_bytes, std::mt19937& random, Fifos fifos, Progress progress) {
  std::vector<std::unique_ptr<Batch>> batches;
  for (Rank r = 0; r < ranks; ++r) batches.push_back(std::make_unique<Batch>(r, fifos(static_cast<size_t>(r)), slot_bytes, Away{8192, 1}));
  for (int group = 0; group < 4; ++group) {
    const std::vector<Sent> messages = test::random_messages(random, ranks, 20000);
    std::vector<std::unique_ptr<Part>> parts;
    for (Rank r = 0; r < ranks; ++r) {
      parts.push_back(std::make_unique<Part>(messages, r, random));
      if (const auto refusal = batches[static_cast<size_t>(r)]->refuse(parts.back()->transfers())) return refusal->what;
      batches[static_cast<size_t>(r)]->bind(parts.back()->transfers(), 0);
    }
    std::vector<bool> done(batches.size());
    for (size_t idle = 0; std::find(done.begin(), done.end(), false) != done.end();) {
      const size_t r = random() % batches.size();
      progress(r);
      const Work::Moved moved = batches[r]->move();
      done[r] = moved.done;
      idle = moved.any ? 0 : idle + 1;
      if (idle == 2000 * batches.size()) return fmt::format("group {}: rank {} waits {}", group, r, batches[r]->where());
    }
    for (const auto& part : parts) {
      if (std::string wrong = part->wrong(); !wrong.empty()) return wrong;
    }
  }
  return {};
}

/// Blocks of unequal counts between all ranks: rank r has (r + 1) * (s + 2) % 7 * 900 elements for rank s.
std::string all_to_all_v(Communicator& communicator) {
  const Rank rank = communicator.rank();
  const auto count = [](Rank from, Rank to) { return static_cast<size_t>((from + 1) * (to + 2) % 7) * 900; };
  const auto value = [](Rank from, Rank to, size_t i) {
    return static_cast<double>(from * 1000000 + to * 100000) + static_cast<double>(i);
  };
  std::vector<std::vector<double>> out, in;
  std::vector<Transfer> transfers;
  for (Rank peer = 0; peer < communicator.size(); ++peer) {
    out.emplace_back(count(rank, peer));
    for (size_t i = 0; i < out.back().size(); ++i) out.back()[i] = value(rank, peer, i);
    in.emplace_back(count(peer, rank), -1.0);
  }
  for (Rank peer = 0; peer < communicator.size(); ++peer) {
    const auto p = static_cast<size_t>(peer);
    transfers.push_back({Transfer::Kind::send, peer, out[p].data(), out[p].size(), DataType::float64});
    transfers.push_back({Transfer::Kind::receive, peer, in[p].data(), in[p].size(), DataType::float64});
  }
  const Status status = communicator.exchange(transfers);
  if (!status) return status.error().what;
  for (Rank peer = 0; peer < communicator.size(); ++peer) {
    const auto& got = in[static_cast<size_t>(peer)];
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] != value(peer, rank, i)) return fmt::format("element {} from rank {} is {}", i, peer, got[i]);
    }
  }
  return {};
}

std::string all_reduce_of_ones(Communicator& communicator, size_t count) {
  std::vector<int32_t> data(count, 1);
  const Status status = communicator.all_reduce(data.data(), data.data(), count, DataType::int32, ReduceOp::sum);
  if (!status) return status.error().what;
  return std::count(data.begin(), data.end(), communicator.size()) == static_cast<long>(count) ? "" : "wrong sum";
}

}  // namespace

TEST_CASE("random groups over buffered connections, all messages come as they were sent", "[transport]") {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 6);
    const transport::Slots slots{2 + static_cast<uint32_t>(random() % 3), 4096};
    const test::LoopbackMesh mesh(static_cast<size_t>(ranks), slots);
    INFO("seed " << seed);
    CHECK(random_groups(
              ranks, slots.bytes, random, [&](size_t rank) { return mesh.fifos(rank); }, [](size_t) {}) == "");
  }
}

TEST_CASE("random groups over posted connections, all messages come as they were sent", "[transport]") {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 6);
    const transport::Slots slots{2 + static_cast<uint32_t>(random() % 3), 4096};
    test::PostedMesh mesh(static_cast<size_t>(ranks), slots, seed, seed < 60);
    INFO("seed " << seed);
    CHECK(random_groups(
              ranks, slots.bytes, random, [&](size_t rank) { return mesh.fifos(rank); }, [&](size_t rank) { mesh.progress(rank); }) == "");
  }
}

TEST_CASE("random groups and collectives of a communicator follow each other at once", "[transport]") {
  for (const std::string& backend : test::backends()) {
    for (const int ranks : {2, 3, 4}) {
      const auto config = all_configured({"GYRE_TRANSPORT=" + backend, "GYRE_SLOT_BYTES=4K"});
      INFO(backend << ", " << ranks << " ranks");
      CHECK(first_wrong(run_ranks(ranks, config, [&](Communicator& communicator) -> std::string {
              std::mt19937 alike(3);
              std::mt19937 own(static_cast<uint32_t>(communicator.rank()));
              for (int i = 0; i < 40; ++i) {
                const std::vector<Sent> messages = test::random_messages(alike, ranks, 30000);
                const Part part(messages, communicator.rank(), own);
                const Status status = communicator.exchange(part.transfers());
                if (!status) return status.error().what;
                if (std::string wrong = part.wrong(); !wrong.empty()) return wrong;
                if (alike() % 2 == 0) continue;
                if (std::string wrong = all_reduce_of_ones(communicator, alike() % 5000); !wrong.empty()) return wrong;
              }
              return {};
            })) == "");
    }
  }
}

TEST_CASE("an all-to-all of unequal counts is a group", "[transport]") {
  for (const std::string& backend : test::backends()) {
    for (const int ranks : {1, 2, 4}) {
      INFO(backend << ", " << ranks << " ranks");
      CHECK(first_wrong(run_ranks(ranks, all_configured({"GYRE_TRANSPORT=" + backend}), all_to_all_v)) == "");
    }
  }
}

TEST_CASE("a group of two ranks does not concern the others, who may wait in the next collective for long", "[transport]") {
  const auto body = [](Communicator& communicator) -> std::string {
    std::vector<float> data(100000, static_cast<float>(communicator.rank()));
    const Rank rank = communicator.rank();
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // rank 1 waits for it, rank 0 for both
    if (rank != 0) {
      const Transfer transfer{rank == 1 ? Transfer::Kind::receive : Transfer::Kind::send, 3 - rank, data.data(), data.size(),
                              DataType::float32};
      const Status status = communicator.exchange({&transfer, 1});
      if (!status) return status.error().what;
      if (data[0] != 2) return "did not get it";
    }
    return all_reduce_of_ones(communicator, 1000);
  };
  for (const auto& [backend, words] : test::run_over_backends(3, body)) {
    INFO(backend);
    CHECK(first_wrong(words) == "");
  }
}
