// 64 ranks as threads of one process, with the descriptors that a shell allows.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>

#include "test/catch.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "test/text.h"

using namespace gyre;
using gyre::engine::Communicator;
using gyre::test::contains;

namespace {

/// The soft limit of this process while it lives.
class Descriptors {
 public:
  explicit Descriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~Descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::string sums(Communicator& communicator, size_t count) {
  std::vector<int32_t> in(count, communicator.rank() + 1), out(count);
  const Status status = communicator.all_reduce(in.data(), out.data(), count, DataType::int32, ReduceOp::sum);
  if (!status) return status.error().what;
  const int32_t all = communicator.size() * (communicator.size() + 1) / 2;
  for (const int32_t sum : out) {
    if (sum != all) return fmt::format("{} elements: {} instead of {}", count, sum, all);
  }
  return {};
}

}  // namespace

TEST_CASE("64 ranks in one process have enough in 1024 descriptors") {
  const Descriptors limit(1024);
  const auto words = test::run_ranks(64, test::all_configured({}), [](Communicator& communicator) -> std::string {
    for (Rank peer = 0; peer < communicator.size(); ++peer) {
      if (peer != communicator.rank() && communicator.transports()[static_cast<size_t>(peer)] != "shm") return "not over shm";
    }
    std::string wrong = sums(communicator, 16);
    return wrong.empty() ? sums(communicator, 1 << 18) : wrong;
  });
  CHECK(test::first_wrong(words) == "");
}

TEST_CASE("64 ranks split in parts of 8, which sum, and so do all of them then") {
  const Descriptors limit(1024);
  const auto words = test::run_ranks(64, test::all_configured({}), [](Communicator& communicator) -> std::string {
    auto part = communicator.split(communicator.rank() % 8, 0);
    if (!part) return part.error().what;
    if ((*part)->size() != 8 || (*part)->rank() != communicator.rank() / 8) return "another part";
    std::string wrong = sums(**part, 70'000);
    return wrong.empty() ? sums(communicator, 1000) : wrong;
  });
  CHECK(test::first_wrong(words) == "");
}

TEST_CASE("64 ranks in one process meet over tcp") {
  constexpr rlim_t enough = 9000;  // two channels, of which each rank has an end
  rlimit here{};
  ::getrlimit(RLIMIT_NOFILE, &here);
  if (here.rlim_max < enough) return;
  const Descriptors limit(enough);
  const auto words = test::run_ranks(64, test::all_configured({"GYRE_TRANSPORT=tcp"}), [](Communicator& communicator) -> std::string {
    std::string wrong = sums(communicator, 16);
    return wrong.empty() ? sums(communicator, 1 << 18) : wrong;
  });
  CHECK(test::first_wrong(words) == "");
}

// With 20 each rank has a socket, and rank 0 cannot accept all; with 40 all join and cannot be connected.
// Without sanitizers, which need descriptors themselves, to look whether an object is there.
TEST_CASE("where descriptors run out, every rank says so, and none waits for the others") {
  if (test::sanitized) return;
  for (const rlim_t most : {rlim_t{20}, rlim_t{40}}) {
    const Descriptors limit(most);
    INFO(most << " descriptors");
    const auto since = std::chrono::steady_clock::now();
    const auto config = test::all_configured({"GYRE_TRANSPORT=shm"});  // UCX, which auto tries next, ends the process then
    const auto words = test::run_ranks(12, config, [](Communicator&) { return std::string("joined"); });
    for (const std::string& said : words) {
      INFO(said);
      CHECK(contains(said, "Too many open files"));
    }
    CHECK(std::chrono::steady_clock::now() - since < std::chrono::seconds(20));  // ranks wait 30
  }
}
