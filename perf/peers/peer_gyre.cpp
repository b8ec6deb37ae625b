// gyre's engine on host buffers, as another peer: peer_gyre -n N --sizes 8,64M [--heap]
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "base/types.h"
#include "engine/communicator.h"
#include "perf/peers/spmd.h"
#include "transport/door.h"
#include "transport/shared_heap.h"

namespace gyre::peers {
namespace {

/// Prints the error and ends this rank; the launcher ends the others.
[[noreturn]] void give_up(int rank, const Error& error) {
  std::fprintf(stderr, "gyre, rank %d: %s (%s:%d)\n", rank, error.what.c_str(), error.file, error.line);
  std::fflush(stdout);
  _exit(1);
}

class Gyre final : public Peer {
 public:
  Gyre(Member member, std::unique_ptr<engine::Communicator> communicator, bool heap)
      : member_(member), communicator_(std::move(communicator)), heap_(heap) {}
  int rank() const override { return member_.rank; }
  int size() const override { return member_.size; }
  std::string version() const override { return "gyre"; }  // `compare` notes the commit
  bool supports(Op, Type) const override { return true; }
  std::byte* allocate(size_t bytes) override {
    if (!heap_) return touched_memory(bytes);
    const auto memory = transport::SharedHeap::of_process().allocate(bytes);
    if (!memory) give_up(member_.rank, memory.error());
    return static_cast<std::byte*>(std::memset(*memory, 0, bytes));  // touched
  }
  void run(const Call& c) override {
    const engine::Call call{collective(c.op), c.block, type(c.type), ReduceOp::sum, 0};
    std::byte* const own = Call::has_blocks(c.op) ? c.block_of(rank()) : c.data;
    const void* input = c.op == Op::all_gather ? own : c.data;
    void* output = c.op == Op::all_to_all ? c.apart : c.op == Op::reduce_scatter ? own : c.data;
    const Status status = communicator_->run(call, input, output);
    if (!status) [[unlikely]]
      give_up(member_.rank, status.error());
  }
  void barrier() override { member_.barrier(); }
  double hop_ns() override { return member_.hop_ns(); }
  double maximum(double value) override { return member_.maximum(value); }

 private:
  static Collective collective(Op op) {
    constexpr std::array all{Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                             Collective::all_to_all};
    return all.at(static_cast<size_t>(op));
  }
  static DataType type(Type type) {
    constexpr std::array all{DataType::float32, DataType::float16, DataType::bfloat16};
    return all.at(static_cast<size_t>(type));
  }

  Member member_;
  std::unique_ptr<engine::Communicator> communicator_;
  bool heap_;
};

Result<std::unique_ptr<engine::Communicator>> join(Member member, const transport::Door& door) {
  const Config config = GYRE_TRY(Config::from_environment());
  transport::Rendezvous rendezvous = door.rendezvous(member.rank, member.size);
  rendezvous.job = static_cast<uint64_t>(getppid());
  return engine::Communicator::create(rendezvous, config);
}

int run_rank(Member member, const Options& options, bool heap, const transport::Door& door) {
  auto communicator = join(member, door);
  if (!communicator) give_up(member.rank, communicator.error());
  Gyre peer(member, *std::move(communicator), heap);
  const int status = measure(peer, options);
  member.barrier();  // nobody leaves while another rank still works
  return status;
}

}  // namespace
}  // namespace gyre::peers

int main(int argc, char** argv) {
  gyre::peers::Options options;
  CLI::App app{"Times gyre's collectives on host buffers"};
  gyre::peers::add_options(app, options);
  bool heap = false;
  app.add_flag("--heap", heap, "Buffers from gyre's shared heap, which all ranks map");
  CLI11_PARSE(app, argc, argv);
  auto door = gyre::transport::open_door();
  if (!door) {
    std::fprintf(stderr, "gyre: %s\n", door.error().what.c_str());
    return 1;
  }
  return gyre::peers::run_ranks(options.ranks, options.bind,
                                [&](gyre::peers::Member member) { return gyre::peers::run_rank(member, options, heap, *door); });
}
