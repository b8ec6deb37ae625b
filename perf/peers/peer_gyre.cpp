// gyre's engine on host buffers, as another peer: peer_gyre -n N --sizes 8,64M
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "base/types.h"
#include "engine/communicator.h"
#include "perf/peers/spmd.h"
#include "transport/door.h"

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
  Gyre(Member member, std::unique_ptr<engine::Communicator> communicator) : member_(member), communicator_(std::move(communicator)) {}
  int rank() const override { return member_.rank; }
  int size() const override { return member_.size; }
  std::string version() const override { return "gyre"; }  // `compare` notes the commit
  void all_reduce(std::span<float> data) override {
    const engine::Call call{Collective::all_reduce, data.size(), DataType::float32, ReduceOp::sum, 0};
    const Status status = communicator_->run(call, data.data(), data.data());
    if (!status) [[unlikely]]
      give_up(member_.rank, status.error());
  }
  void barrier() override { member_.barrier(); }
  double maximum(double value) override { return member_.maximum(value); }

 private:
  Member member_;
  std::unique_ptr<engine::Communicator> communicator_;
};

Result<std::unique_ptr<engine::Communicator>> join(Member member, const transport::Door& door) {
  const Config config = GYRE_TRY(Config::from_environment());
  transport::Rendezvous rendezvous = door.rendezvous(member.rank, member.size);
  rendezvous.job = static_cast<uint64_t>(getppid());
  return engine::Communicator::create(rendezvous, config);
}

int run_rank(Member member, const Options& options, const transport::Door& door) {
  auto communicator = join(member, door);
  if (!communicator) give_up(member.rank, communicator.error());
  Gyre peer(member, *std::move(communicator));
  const int status = measure(peer, options);
  member.barrier();  // nobody leaves while another rank still works
  return status;
}

}  // namespace
}  // namespace gyre::peers

int main(int argc, char** argv) {
  gyre::peers::Options options;
  CLI::App app{"Times gyre's all-reduce on host buffers"};
  gyre::peers::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  auto door = gyre::transport::open_door();
  if (!door) {
    std::fprintf(stderr, "gyre: %s\n", door.error().what.c_str());
    return 1;
  }
  return gyre::peers::run_ranks(options.ranks, options.bind,
                                [&](gyre::peers::Member member) { return gyre::peers::run_rank(member, options, *door); });
}
