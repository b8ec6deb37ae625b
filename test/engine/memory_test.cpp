// That a communicator takes no more memory than it says, counted while ranks run as threads, and that ranks agree on what fits.
#include "engine/memory.h"

#include <fmt/format.h>

#include "test/catch.h"
#include "test/engine/backends.h"
#include "test/engine/taken.h"
#include "test/ranks.h"
#include "test/text.h"
#include "topo/algorithms.h"
#include "transport/board.h"
#include "transport/loopback_posted.h"
#include "transport/posted_fifo.h"
#include "transport/shm.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::configured;
using gyre::test::contains;
using gyre::test::first_wrong;
using gyre::test::run_ranks;
using transport::Slots;

namespace {

constexpr size_t KiB = 1 << 10, MiB = 1 << 20;

/// Facts of ranks that have set no slots, and of these bounds.
std::vector<Facts> facts_of(const std::vector<size_t>& bounds, bool slots_by_default = true) {
  std::vector<Facts> facts(bounds.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    facts[i].memory_bytes = bounds[i];
    facts[i].slots_by_default = slots_by_default;
  }
  return facts;
}
Slots slots_of(const Config& config) { return {static_cast<uint32_t>(*config.slots), *config.slot_bytes}; }
std::string error_of(const Result<Config>& config) { return config ? "" : config.error().what; }

/// What ranks of this configuration have taken together once they are joined, and at the most while they ran `body`.
struct Taken {
  size_t joined = 0, most = 0;
  std::string wrong;
};
Taken taken(int ranks, const test::RankConfig& config, const test::RankBody& body = {}) {
  const size_t shared = test::shared_bytes(), aligned = test::aligned_bytes();
  test::restart_peak();
  Taken out;
  const auto words = run_ranks(ranks, config, [&](Communicator& communicator) -> std::string {
    if (!communicator.bootstrap().all_gather("")) return "not all are here";
    if (communicator.rank() == 0) out.joined = test::shared_bytes() + test::aligned_bytes() - shared - aligned;
    if (!communicator.bootstrap().all_gather("")) return "not all are here";
    const std::string said = body ? body(communicator) : "";
    if (!communicator.bootstrap().all_gather("")) return "not all are here";
    if (communicator.rank() == 0) out.most = test::shared_bytes() - shared + test::aligned_peak() - aligned;
    if (!communicator.bootstrap().all_gather("")) return "not all are here";
    return said;
  });
  out.wrong = first_wrong(words);
  return out;
}

bool both_share(const std::string& backend) { return backend == "shm" || backend == "loopback"; }

/// Every collective that every family has, of few elements and of many.
std::string run_everything(Communicator& communicator) {
  const auto ranks = static_cast<size_t>(communicator.size());
  std::vector<int32_t> in(ranks * 40000), out(ranks * 40000);
  for (const auto& family : topo::families()) {
    communicator.prefer({std::string(family.name), {}});
    for (const Collective collective : all_collectives()) {
      for (const size_t count : {size_t{1}, size_t{1000}, size_t{40000}}) {
        const Status status = communicator.run({collective, count, DataType::int32, ReduceOp::sum, 0}, in.data(), out.data());
        if (!status && !contains(status.error().what, "of scratch")) return status.error().what;
      }
    }
  }
  return {};
}

}  // namespace

TEST_CASE("memory: a rank's slots for a peer are at most 4 MiB by default, on every transport, as counted") {
  for (const std::string& backend : test::backends()) {
    for (const int channels : {0, 4, 16}) {
      INFO(backend << ", GYRE_CHANNELS=" << channels);
      const auto settings = std::vector{"GYRE_TRANSPORT=" + backend, fmt::format("GYRE_CHANNELS={}", channels)};
      const Taken two = taken(2, test::all_configured(settings));
      CHECK(two.wrong == "");
      const size_t others = backend == "shm" ? 2 * (transport::most_worker_bytes() + transport::Board::part_bytes(2 * MiB)) : 0;
      const size_t ends = both_share(backend) ? 1 : 2;
      const size_t headers = 64 * KiB + static_cast<size_t>(channels) * 16 * KiB;
      CHECK(two.joined <= others + ends * (4 * MiB + headers));
      CHECK(two.joined >= ends * 2 * MiB);  // it is counted
    }
  }
}

TEST_CASE("memory: what a posted connection takes is what is said of it") {
  const Slots slots{8, 64 * KiB};
  const auto worker = *transport::open_posted_loopback_worker(slots);
  const auto listener = *worker->listen();
  const auto left = *worker->connect(listener->address(), "");
  const auto right = *listener->accept();
  const size_t before = test::aligned_bytes();
  left->fifo(), right->fifo();
  const size_t bytes = test::aligned_bytes() - before;
  CHECK(bytes >= 2 * 2 * slots.credits * slots.bytes);
  CHECK(bytes <= 2 * transport::PostedFifo::footprint(slots) + 2 * 4 * KiB);  // malloc's own
  CHECK(transport::PostedFifo::footprint(slots) <= transport::most_connection_bytes(slots));
  CHECK(transport::shm_connection_bytes(slots) <= transport::most_connection_bytes(slots));
}

TEST_CASE("memory: default slots become fewer, and then smaller, until they fit what the least rank allows") {
  const Config config;
  CHECK(slots_of(*within_memory(config, facts_of({0, 0}))).credits == 8);
  CHECK(slots_of(*within_memory(config, facts_of({0, 0}))).bytes == 64 * KiB);
  size_t before = SIZE_MAX;
  for (const size_t allowed : {8 * MiB, 4 * MiB, 2 * MiB, 1 * MiB, 800 * KiB}) {
    const auto fitting = within_memory(config, facts_of({0, allowed, 3 * allowed, 0}));
    INFO(allowed << ": " << error_of(fitting));
    REQUIRE(fitting);
    const Slots slots = slots_of(*fitting);
    CHECK(*fitting->memory_bytes == allowed);
    CHECK(connected_bytes(4, connected_channels(config), slots) <= allowed);
    CHECK(scratch_room(*fitting, 4) == allowed - connected_bytes(4, connected_channels(config), slots));  // and no bounce buffer
    CHECK((slots.credits == 2 || slots.bytes == 64 * KiB));
    CHECK(slots.credits * slots.bytes < before);
    before = slots.credits * slots.bytes;
  }
}

TEST_CASE("memory: by default slots shrink as ranks are more, down to the least") {
  const auto of = [](size_t ranks) { return slots_of(*within_memory(Config(), facts_of(std::vector<size_t>(ranks)))); };
  CHECK(of(64).credits == 8);
  for (const size_t ranks : {size_t{64}, size_t{128}, size_t{512}, size_t{1024}}) {
    CHECK(connected_bytes(ranks, 2, of(ranks)) <= 256 * MiB);
  }
  CHECK(of(1024).bytes < 64 * KiB);
  CHECK(of(65536).bytes == 4 * KiB);
  CHECK(of(65536).credits == 2);
}

TEST_CASE("memory: what does not fit is an error that says what is needed, and slots that were set are not changed") {
  const std::string least = error_of(within_memory(Config(), facts_of({100000, 0, 200000})));
  CHECK(least == fmt::format("GYRE_MEMORY_BYTES=100000: 3 ranks on 2 channels need {} bytes on each with even the least slots "
                             "(2 slots of 4096 bytes)",
                             connected_bytes(3, 2, {2, 4096})));
  const Config set = configured({"GYRE_SLOTS=16"});
  CHECK(slots_of(*within_memory(set, facts_of({0, 0, 0}, false))).credits == 16);
  CHECK(contains(error_of(within_memory(set, facts_of({2 * MiB, 0, 0}, false))),
                 "with GYRE_SLOTS and GYRE_SLOT_BYTES (16 slots of 65536 bytes)"));
  CHECK(slots_of(*within_memory(set, facts_of({32 * MiB, 0, 0}, false))).credits == 16);
}

TEST_CASE("memory: whatever ranks run, they take no more than GYRE_MEMORY_BYTES, which without it they do") {
  constexpr int ranks = 4;
  constexpr size_t allowed = 800 * KiB;
  for (const std::string& backend : test::backends()) {
    INFO(backend);
    // Of one rank only: the others keep to it, too.
    const auto bounded = [&](Rank rank) {
      return configured({"GYRE_TRANSPORT=" + backend, fmt::format("GYRE_MEMORY_BYTES={}", rank == 2 ? allowed : 0)});
    };
    const Taken with = taken(ranks, bounded, run_everything);
    CHECK(with.wrong == "");
    CHECK(with.most <= ranks * allowed);
    CHECK(with.most > with.joined);  // there was scratch
    const Taken without = taken(ranks, test::all_configured({"GYRE_TRANSPORT=" + backend}), run_everything);
    CHECK(without.wrong == "");
    CHECK(without.most > ranks * allowed);
  }
}

TEST_CASE("memory: 64 ranks run every collective, each in a bound of GYRE_MEMORY_BYTES") {
  constexpr size_t allowed = 16 * MiB;
  const auto bounded = test::all_configured({"GYRE_TRANSPORT=shm", fmt::format("GYRE_MEMORY_BYTES={}", allowed)});
  const Taken with = taken(64, bounded, [](Communicator& communicator) -> std::string {
    std::vector<int32_t> in(64 * 4000), out(64 * 4000);
    for (const Collective collective : all_collectives()) {
      for (const size_t count : {size_t{1}, size_t{4000}}) {
        const Status status = communicator.run({collective, count, DataType::int32, ReduceOp::sum, 0}, in.data(), out.data());
        if (!status) return status.error().what;
      }
    }
    return {};
  });
  CHECK(with.wrong == "");
  CHECK(with.most <= 64 * allowed);
  CHECK(with.joined >= 64 * 2 * MiB);  // it is counted
}

TEST_CASE("memory: an algorithm whose scratch does not fit is not chosen, on any rank") {
  const auto run = [](size_t allowed) {
    const auto config = [allowed](Rank rank) {
      return configured({"GYRE_ALGORITHM=halving_doubling", fmt::format("GYRE_MEMORY_BYTES={}", rank == 1 ? allowed : 0)});
    };
    return run_ranks(4, config, [](Communicator& communicator) -> std::string {
      constexpr size_t count = 1 << 20;
      const Call call{Collective::reduce_scatter, count, DataType::float32, ReduceOp::sum, 0};
      const auto chosen = communicator.algorithm(call);
      if (!chosen) return chosen.error().what;
      std::vector<float> in(4 * count, 1), out(count);
      const Status status = communicator.run(call, in.data(), out.data());
      return !status ? status.error().what : out[count - 1] != 4 ? "wrong" : *chosen;
    });
  };
  CHECK(run(0) == test::Words(4, "halving_doubling"));
  const test::Words bounded = run(4 * MiB);
  CHECK(bounded[0] != "halving_doubling");
  CHECK(topo::family_named(bounded[0]) != nullptr);
  CHECK(bounded == test::Words(4, bounded[0]));
}

TEST_CASE("memory: a bound that is too small is the same error on all ranks") {
  const auto words = run_ranks(
      3, [](Rank rank) { return configured({fmt::format("GYRE_MEMORY_BYTES={}", rank == 1 ? 1000 : 0)}); },
      [](Communicator&) { return std::string("joined"); });
  for (const std::string& said : words) CHECK(contains(said, "create: GYRE_MEMORY_BYTES=1000: 3 ranks on 2 channels need "));
}
