// What ranks are told when a call is wrong, when calls differ, when a rank leaves, and when ranks can't be joined.
#include <fmt/format.h>

#include <array>

#include "engine/communicator.h"
#include "perf/reference.h"
#include "test/catch.h"
#include "test/ranks.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::configured;
using gyre::test::contains;
using gyre::test::error_of;
using gyre::test::run_ranks;
using gyre::test::Words;

namespace {

const auto over_loopback = all_configured({"GYRE_TRANSPORT=loopback"});

/// A right call of 100 floats; empty when its result is right.
std::string works(Communicator& communicator) {
  std::array<float, 100> data{};
  perf::fill_input(data.data(), data.size(), DataType::float32, ReduceOp::sum, communicator.rank(), communicator.size());
  const Status status = communicator.all_reduce(data.data(), data.data(), data.size(), DataType::float32, ReduceOp::sum);
  if (!status) return status.error().what;
  return perf::count_wrong(data.data(), data.size(), DataType::float32, ReduceOp::sum, communicator.size()) == 0 ? "" : "wrong result";
}

using WrongCall = std::function<Status(Communicator&, float* a, float* b)>;

/// All ranks make the same wrong call between two right ones. What they are told, all of them the same.
std::string told(const WrongCall& call) {
  const Words words = run_ranks(2, over_loopback, [&](Communicator& communicator) -> std::string {
    alignas(64) std::array<float, 64> a{};
    alignas(64) std::array<float, 64> b{};
    const std::string before = works(communicator);
    const Status status = call(communicator, a.data(), b.data());
    if (!status && status.error().code != Code::invalid_argument) return "not an invalid argument: " + status.error().what;
    const std::string after = works(communicator);
    return before.empty() && after.empty() ? error_of(status) : before + " / " + error_of(status) + " / " + after;
  });
  return words[0] == words[1] ? words[0] : words[0] + " | " + words[1];
}

struct Different {
  const char* key;
  size_t count = 1000;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  const char* algorithm = "ring";
};

/// The last rank's call differs.
Words told_of(int ranks, const Different& different) {
  const Different others{different.key};
  const auto of = [&](Rank rank) { return rank == ranks - 1 ? different : others; };
  return run_ranks(ranks, all_configured({"GYRE_TRANSPORT=loopback", "GYRE_ALGORITHM=ring"}), [&](Communicator& communicator) {
    if (const std::string wrong = works(communicator); !wrong.empty()) return wrong;
    std::vector<double> data(1100);
    const Different mine = of(communicator.rank());
    communicator.prefer({mine.algorithm, {}});
    return error_of(communicator.all_reduce(data.data(), data.data(), mine.count, mine.type, mine.op));
  });
}

}  // namespace

TEST_CASE("a wrong argument is named, and the communicator works afterwards", "[transport]") {
  CHECK(told([](Communicator& c, float*, float* b) { return c.all_reduce(nullptr, b, 8, DataType::float32, ReduceOp::sum); }) ==
        "all_reduce: null buffer for 8 elements");
  CHECK(told([](Communicator& c, float* a, float*) { return c.all_reduce(a, nullptr, 8, DataType::float32, ReduceOp::sum); }) ==
        "all_reduce: null buffer for 8 elements");
  CHECK(told([](Communicator& c, float* a, float*) { return c.all_reduce(a, a + 7, 8, DataType::float32, ReduceOp::sum); }) ==
        "all_reduce: input and output overlap and are not the same");
  CHECK(told([](Communicator& c, float* a, float*) { return c.all_reduce(a + 7, a, 8, DataType::float32, ReduceOp::sum); }) ==
        "all_reduce: input and output overlap and are not the same");
  CHECK(told([](Communicator& c, float* a, float* b) {
          return c.all_reduce(reinterpret_cast<std::byte*>(a) + 2, b, 8, DataType::float32, ReduceOp::sum);
        }) == "all_reduce: buffers must be aligned to 4 bytes");
  CHECK(told([](Communicator& c, float* a, float* b) { return c.all_reduce(a, b + 1, 8, DataType::float64, ReduceOp::sum); }) ==
        "all_reduce: buffers must be aligned to 8 bytes");
  CHECK(told([](Communicator& c, float* a, float* b) { return c.all_reduce(a, b, SIZE_MAX, DataType::int8, ReduceOp::sum); }) ==
        fmt::format("all_reduce: {} elements of int8 are more than {} bytes", SIZE_MAX, size_t{1} << 43));
  CHECK(told([](Communicator& c, float* a, float* b) { return c.all_reduce(a, b, 8, static_cast<DataType>(12), ReduceOp::sum); }) ==
        "all_reduce: there is no type 12");
  CHECK(told([](Communicator& c, float* a, float* b) { return c.all_reduce(a, b, 8, DataType::float32, static_cast<ReduceOp>(6)); }) ==
        "all_reduce: there is no operation 6");
}

TEST_CASE("what looks wrong and is not passes", "[transport]") {
  CHECK(told([](Communicator& c, float*, float*) { return c.all_reduce(nullptr, nullptr, 0, DataType::float32, ReduceOp::sum); }).empty());
  CHECK(told([](Communicator& c, float* a, float*) { return c.all_reduce(a, a + 8, 8, DataType::float32, ReduceOp::sum); }).empty());
  CHECK(told([](Communicator& c, float* a, float*) { return c.all_reduce(a, a, 8, DataType::float32, ReduceOp::sum); }).empty());
}

TEST_CASE("calls that differ are an error on every rank, which names the rank and the difference", "[transport]") {
  for (const Different& different :
       {Different{"count", 999}, Different{"type", 1000, DataType::int32}, Different{"type", 1000, DataType::float64},
        Different{"op", 1000, DataType::float32, ReduceOp::max}, Different{"algorithm", 1000, DataType::float32, ReduceOp::sum, "one_shot"},
        Different{"algorithm", 1000, DataType::float32, ReduceOp::sum, "naive"}}) {
    for (const int ranks : {2, 3}) {
      for (const std::string& words : told_of(ranks, different)) {
        INFO(ranks << " ranks: " << words);
        CHECK(contains(words, fmt::format("calls differ: rank {} has {}=", ranks - 1, different.key)));
      }
    }
  }
}

TEST_CASE("after calls that differ every call returns that error", "[transport]") {
  const Words words = run_ranks(2, over_loopback, [](Communicator& communicator) {
    std::vector<float> data(100);
    const size_t count = communicator.rank() == 0 ? 100 : 99;
    const std::string first = error_of(communicator.all_reduce(data.data(), data.data(), count, DataType::float32, ReduceOp::sum));
    const std::string second = error_of(communicator.all_reduce(data.data(), data.data(), 10, DataType::float32, ReduceOp::sum));
    return !first.empty() && first == second ? std::string() : first + " / " + second;
  });
  CHECK(words == Words{"", ""});
}

TEST_CASE("a rank that leaves early is named to those that wait for it", "[transport]") {
  for (const int ranks : {2, 3}) {
    for (const Rank leaver : {0, 2}) {
      if (leaver >= ranks) continue;
      const Words words = run_ranks(ranks, over_loopback, [&](Communicator& communicator) -> std::string {
        const std::string first = works(communicator);
        if (!first.empty()) return first;
        return communicator.rank() == leaver ? "" : works(communicator);
      });
      for (Rank rank = 0; rank < ranks; ++rank) {
        const std::string& said = words[static_cast<size_t>(rank)];
        INFO("rank " << rank << " of " << ranks << ", without rank " << leaver << ": " << said);
        if (rank == leaver) CHECK(said.empty());
        if (rank != leaver) CHECK(contains(said, fmt::format("rank {} has left", leaver)));
      }
    }
  }
}

TEST_CASE("ranks that differ in an option that must be equal are told which", "[transport]") {
  struct Option {
    const char* name;
    const char* most;
    const char* odd;
  };
  for (const Option& o : {Option{"GYRE_SLOT_BYTES", "8192", "4096"}, Option{"GYRE_SLOTS", "8", "4"}, Option{"GYRE_CHANNELS", "1", "2"}}) {
    const auto config = [&](Rank rank) {
      return configured({"GYRE_TRANSPORT=loopback", fmt::format("{}={}", o.name, rank == 1 ? o.odd : o.most)});
    };
    for (const std::string& words : run_ranks(3, config, works)) {
      CHECK(words == fmt::format("create: ranks differ: rank 1 has {}={}, rank 0 has {}", o.name, o.odd, o.most));
    }
  }
}

TEST_CASE("a transport inside a host does not join ranks of different hosts, and says so", "[transport]") {
  for (const char* transport : {"shm", "loopback"}) {
    const auto config = [&](Rank rank) {
      return configured({fmt::format("GYRE_TRANSPORT={}", transport), fmt::format("GYRE_HOSTID=host{}", rank)});
    };
    const Words words = run_ranks(2, config, works);
    for (const std::string& said : words) {
      INFO(said);
      CHECK(contains(said, "create: "));
      CHECK(contains(said, "cannot be joined with rank"));
      CHECK(contains(said, fmt::format("(transport {}): {} does not reach another host", transport, transport)));
    }
  }
}

TEST_CASE("an error says in which call, for what and in which step the rank was", "[transport]") {
  const Words words = told_of(2, {"count", 999});
  CHECK(contains(words[0], "; rank 0 was in call 1, all_reduce count=1000 type=float op=sum algorithm=ring, waiting "));
  CHECK(contains(words[1], "; rank 1 was in call 1, all_reduce count=999 type=float op=sum algorithm=ring, waiting "));
}
