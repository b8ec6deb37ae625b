// No library: the least that an all-reduce in place between 2 ranks on memory that both have mapped must do, as a mark for those that
// do more. Every byte of the result depends on both inputs and lands in both buffers, so each rank reads a half of both, adds, and writes
// it into both, between two meetings on a flag: peer_bound --sizes 8,64M [--touched]. With --touched each rank rewrites its own buffer
// before every call, so that its lines have to come from the other's cache. --hop: only the time of a flag from one CPU to the other, in
// ns.
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "perf/peers/spmd.h"

namespace gyre::peers {
namespace {

constexpr size_t line_floats = 16;
constexpr size_t huge_page = size_t{2} << 20;
/// From a huge page to the second buffer. AMD's caches guess the way of a line by a hash of its address, of which a bit is 15 xor 20 (Lipp
/// et al., Take A Way, 2020): where both buffers had the same hash, each byte took up to seven times as long.
constexpr size_t apart = size_t{32} << 10;

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
  Bound(Member member, std::array<float*, 2> buffers, bool touches) : member_(member), buffers_(buffers), touches_(touches) {}
  int rank() const override { return member_.rank; }
  int size() const override { return member_.size; }
  std::string version() const override { return "the bound"; }
  bool supports(Op op, Type type) const override { return op == Op::all_reduce && type == Type::float32 && size() == 2; }
  std::byte* allocate(size_t /*bytes*/) override { return reinterpret_cast<std::byte*>(buffers_[own()]); }
  void run(const Call& call) override {
    const size_t half = call.block / 2;
    const size_t first = rank() == 0 ? 0 : half;
    member_.meet();
    add_into_both(buffers_[own()] + first, buffers_[1 - own()] + first, rank() == 0 ? half : call.block - half);
    member_.meet();
  }
  bool touches() const override { return touches_; }
  void touch(const Call& call) override {
    for (size_t i = 0; i < call.block; i += line_floats) buffers_[own()][i] = 0;
  }
  void barrier() override { member_.barrier(); }
  double hop_ns() override { return member_.hop_ns(); }
  double maximum(double value) override { return member_.maximum(value); }

 private:
  size_t own() const { return static_cast<size_t>(member_.rank); }
  Member member_;
  std::array<float*, 2> buffers_;  // by rank
  bool touches_;
};

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
  const size_t second = (most + huge_page - 1) / huge_page * huge_page + apart;
  std::byte* memory = shared_memory(second + most);
  if (memory == nullptr) return 1;
  const std::array buffers{reinterpret_cast<float*>(memory), reinterpret_cast<float*>(memory + second)};
  return run_ranks(2, true, [&](Member member) {
    Bound bound(member, buffers, touched);
    if (!only_hop) return measure(bound, options);
    const double hop_ns = member.hop_ns();
    if (member.rank == 0) std::printf("{\"hop_ns\": %.1f}\n", hop_ns);
    return 0;
  });
}
