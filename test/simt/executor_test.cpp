#include "test/simt/executor.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/simt/sample.h"

using namespace gyre;
using namespace gyre::simt;

TEST_CASE("every thread of a grid runs once and knows who it is", "[simt]") {
  std::vector<int> runs(3 * 64);
  launch({3, 64, 0}, [&] { runs[blockIdx.x * blockDim.x + threadIdx.x] += gridDim.x == 3 && blockDim.x == 64 ? 1 : 100; });
  CHECK(std::all_of(runs.begin(), runs.end(), [](int n) { return n == 1; }));
}

TEST_CASE("what threads wrote before a barrier, others read after it", "[simt]") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    constexpr unsigned threads = 96;
    std::vector<unsigned> values(threads), sums(threads);
    launch({1, threads, seed}, [&] {
      for (unsigned round = 0; round < 5; ++round) {
        values[threadIdx.x] = threadIdx.x + round;
        __syncthreads();
        sums[threadIdx.x] += values[(threadIdx.x + 1) % threads];
        __syncthreads();
      }
    });
    for (unsigned i = 0; i < threads; ++i) CHECK(sums[i] == 5 * ((i + 1) % threads) + 10);
  }
}

TEST_CASE("threads go in turn, or in an order of their seed's", "[simt]") {
  const auto order = [](uint64_t seed) {
    std::vector<unsigned> threads(32);
    std::atomic<unsigned> turn{0};
    launch({1, 32, seed}, [&] { threads[turn++] = threadIdx.x; });
    return threads;
  };
  std::vector<unsigned> in_turn(32);
  for (unsigned i = 0; i < 32; ++i) in_turn[i] = i;
  CHECK(order(0) == in_turn);
  CHECK(order(1) != in_turn);
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_CASE("a barrier that some threads never reach is a deadlock, which is named", "[simt]") {
  const auto some_meet = [] {
    if (threadIdx.x < 7) __syncthreads();
  };
  std::string said;
  try {
    launch({2, 64, 0}, some_meet);
  } catch (const Deadlock& deadlock) {
    said = deadlock.what();
  }
  CHECK(said == "barrier deadlock in block 0: 7 of 64 threads wait, the first is thread 0; the others have ended");
  int runs = 0;
  launch({1, 64, 0}, [&] {
    if (threadIdx.x == 0) ++runs;
  });  // the next kernel is none the worse
  CHECK(runs == 1);
}

TEST_CASE("a block may wait for another's flag, and a thread for one of its own block", "[simt]") {
  uint64_t flag = 0, own = 0;
  int data = 0, seen = 0;
  launch({2, 32, 0}, [&] {
    if (blockIdx.x == 0 && threadIdx.x == 3) {
      while (kernels::load_acquire(&flag) == 0) kernels::relax();
      seen = data;
    }
    if (blockIdx.x == 1 && threadIdx.x == 0) {
      while (kernels::load_acquire(&own) == 0) kernels::relax();
      data = 7;
      kernels::store_release(&flag, 1);
    }
    if (blockIdx.x == 1 && threadIdx.x == 31) kernels::store_release(&own, 1);
  });
  CHECK(seen == 7);
}

TEST_CASE("several host threads launch at once", "[simt]") {
  std::vector<int> counts(4 * 64);
  std::vector<std::thread> hosts;
  for (size_t host = 0; host < 4; ++host) {
    hosts.emplace_back([&, host] {
      for (int i = 0; i < 10; ++i) launch({2, 32, 0}, [&] { ++counts[host * 64 + blockIdx.x * 32 + threadIdx.x]; });
    });
  }
  for (std::thread& host : hosts) host.join();
  CHECK(std::all_of(counts.begin(), counts.end(), [](int n) { return n == 10; }));
}

TEST_CASE("a kernel that stays reduces what the network brings, and says when it may leave", "[simt]") {
  CHECK(sums_are_right<Fault::none>({1, 32, 0}));
  for (uint64_t seed = 0; seed < 3; ++seed) CHECK(sums_are_right<Fault::none>({3, 64, seed}));
}
