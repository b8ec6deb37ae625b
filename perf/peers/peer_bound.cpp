// No library: the least that an all-reduce in place between 2 ranks on memory that both have mapped must do, as a mark for those that
// do more. Every byte of the result depends on both inputs and lands in both buffers, so each rank reads a half of both, adds, and writes
// it into both, between two meetings on a flag: peer_bound --sizes 8,64M [--touched]. With --touched each rank rewrites its own buffer
// before every call, so that its lines have to come from the other's cache. --hop: only the time of a flag from one CPU to the other, in
// ns.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

#include "perf/peers/spmd.h"

namespace gyre::peers {
namespace {

constexpr size_t line_floats = 16;
constexpr size_t huge_page = size_t{2} << 20;
/// From the second buffer to a huge page. AMD's caches guess a way by a hash of some bits of the address, 15 xor 20 among them (Lipp et
/// al., Take A Way, 2020): where that of both buffers is the same, each byte took five times as long.
constexpr size_t apart = size_t{32} << 10;

struct Shared {
  struct alignas(64) Flag {
    std::atomic<uint64_t> value;
  };
  std::array<Flag, 2> flags;
  std::array<float*, 2> buffers;
};

// Zeroed memory for parent and children, its begin a multiple of a huge page.
std::byte* shared_memory(size_t bytes) {
  void* data = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  size_t room = bytes + huge_page;
  return static_cast<std::byte*>(std::memset(std::align(huge_page, bytes, data, room), 0, bytes));
}

void add_into_both(float* a, float* b, size_t count) {
#ifndef __clang__
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
}

class Bound final : public Peer {
 public:
  Bound(Member member, Shared& shared, bool touches) : member_(member), shared_(shared), touches_(touches) {}
  int rank() const override { return member_.rank; }
  int size() const override { return member_.size; }
  std::string version() const override { return "the bound"; }
  bool supports(Op op, Type type) const override { return op == Op::all_reduce && type == Type::float32 && size() == 2; }
  std::byte* allocate(size_t /*bytes*/) override { return reinterpret_cast<std::byte*>(shared_.buffers[own()]); }
  void run(const Call& call) override {
    const size_t half = call.block / 2;
    const size_t first = rank() == 0 ? 0 : half;
    meet();
    add_into_both(shared_.buffers[own()] + first, shared_.buffers[1 - own()] + first, rank() == 0 ? half : call.block - half);
    meet();
  }
  bool touches() const override { return touches_; }
  void touch(const Call& call) override {
    for (size_t i = 0; i < call.block; i += line_floats) shared_.buffers[own()][i] = 0;
  }
  void barrier() override { member_.barrier(); }
  double maximum(double value) override { return member_.maximum(value); }
  void meet() {
    shared_.flags[own()].value.store(++met_, std::memory_order_release);
    for (int polls = 0; shared_.flags[1 - own()].value.load(std::memory_order_acquire) < met_; ++polls) {
      if (polls > 20000) sched_yield();
    }
  }

 private:
  size_t own() const { return static_cast<size_t>(member_.rank); }
  Member member_;
  Shared& shared_;
  bool touches_;
  uint64_t met_ = 0;
};

// Of batches of round trips the best: half of a round trip, in ns.
int hop(Bound& bound) {
  double best_us = 1e9;
  for (int batch = 0; batch < 20; ++batch) {
    const double start = now_us();
    for (int i = 0; i < 1000; ++i) bound.meet();
    best_us = std::min(best_us, (now_us() - start) / 1000);
  }
  if (bound.rank() == 0) std::printf("{\"hop_ns\": %.1f}\n", 1e3 * best_us);
  return 0;
}

}  // namespace
}  // namespace gyre::peers

int main(int argc, char** argv) {
  using namespace gyre::peers;
  Options options;
  CLI::App app{"Times the bound of an all-reduce between 2 ranks"};
  add_options(app, options);
  bool touched = false;
  bool only_hop = false;
  app.add_flag("--touched", touched, "Each rank rewrites its buffer before every call");
  app.add_flag("--hop", only_hop, "Only the time of a flag from CPU to CPU");
  CLI11_PARSE(app, argc, argv);
  const size_t most = *std::max_element(options.sizes_bytes.begin(), options.sizes_bytes.end());
  auto* shared = reinterpret_cast<Shared*>(shared_memory(sizeof(Shared)));
  if (shared == nullptr) return 1;
  const size_t second = (most + huge_page - 1) / huge_page * huge_page + apart;
  std::byte* memory = shared_memory(second + most);
  if (memory == nullptr) return 1;
  shared->buffers = {reinterpret_cast<float*>(memory), reinterpret_cast<float*>(memory + second)};
  return run_ranks(2, true, [&](Member member) {
    Bound bound(member, *shared, touched);
    return only_hop ? hop(bound) : measure(bound, options);
  });
}
