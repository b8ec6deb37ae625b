// 64 ranks as threads of one process, with the descriptors that a shell allows.
#include <fmt/format.h>
#include <sys/resource.h>

#include "test/catch.h"
#include "test/ranks.h"

using namespace gyre;
using gyre::engine::Communicator;

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
