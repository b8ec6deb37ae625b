// gyre's engine on host buffers, as another peer: peer_gyre -n N --sizes 8,64M
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "base/types.h"
#include "base/unique.h"
#include "engine/communicator.h"
#include "perf/peers/spmd.h"
#include "transport/bootstrap.h"

namespace gyre::peers {
namespace {

/// Where the ranks meet: opened before they are started, so that its port needs no guess.
struct Door {
  UniqueFd fd;
  uint16_t port;
};

Result<Door> open_door(int ranks) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (!fd || bind(fd.get(), any, length) != 0 || listen(fd.get(), ranks) != 0 || getsockname(fd.get(), any, &length) != 0) {
    return Error{Code::system, std::string("a listening socket on 127.0.0.1: ") + std::strerror(errno)};
  }
  return Door{std::move(fd), ntohs(address.sin_port)};
}

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
    const Status status = communicator_->all_reduce(data.data(), data.data(), data.size(), DataType::float32, ReduceOp::sum);
    if (!status) [[unlikely]]
      give_up(member_.rank, status.error());
  }
  void barrier() override { member_.barrier(); }
  double maximum(double value) override { return member_.maximum(value); }

 private:
  Member member_;
  std::unique_ptr<engine::Communicator> communicator_;
};

Result<std::unique_ptr<engine::Communicator>> join(Member member, const Door& door) {
  const Config config = GYRE_TRY(Config::from_environment());
  transport::Rendezvous rendezvous;
  rendezvous.rank = member.rank;
  rendezvous.size = member.size;
  rendezvous.port = door.port;
  rendezvous.job = static_cast<uint64_t>(getppid());
  if (member.rank == 0) rendezvous.listen_fd = door.fd.get();
  return engine::Communicator::create(rendezvous, config);
}

int run_rank(Member member, const Options& options, const Door& door) {
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
  auto door = gyre::peers::open_door(options.ranks);
  if (!door) {
    std::fprintf(stderr, "gyre: %s\n", door.error().what.c_str());
    return 1;
  }
  return gyre::peers::run_ranks(options.ranks, options.bind,
                                [&](gyre::peers::Member member) { return gyre::peers::run_rank(member, options, *door); });
}
