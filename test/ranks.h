// The ranks of a job as threads of this process: each makes a communicator over a rendezvous on 127.0.0.1 and runs the test's function,
// which returns what the rank has to say; the main thread asserts, since Catch2's assertions are not for several threads.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/unique.h"
#include "engine/communicator.h"

namespace gyre::test {

/// A listening socket of this host, made before any rank starts, so that no port is guessed.
struct Listening {
  Listening() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd.get(), any, length) != 0 || ::listen(fd.get(), 128) != 0 || ::getsockname(fd.get(), any, &length) != 0) {
      throw std::runtime_error("cannot listen on 127.0.0.1");
    }
    port = ntohs(address.sin_port);
  }
  transport::Rendezvous rendezvous(Rank rank, int size) const {
    transport::Rendezvous r;
    r.rank = rank;
    r.size = size;
    r.port = port;
    r.job = 1;
    if (rank == 0) r.listen_fd = fd.get();
    return r;
  }

  UniqueFd fd;
  uint16_t port = 0;
};

/// What each rank says, by rank.
using Words = std::vector<std::string>;
using RankConfig = std::function<Config(Rank)>;
using RankBody = std::function<std::string(engine::Communicator&)>;

/// Runs `body` on each rank. A rank whose communicator can't be made says "create: " and why.
inline Words run_ranks(int size, const RankConfig& config, const RankBody& body) {
  const Listening listening;
  Words words(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto communicator = engine::Communicator::create(listening.rendezvous(rank, size), config(rank));
      words[static_cast<size_t>(rank)] = communicator ? body(**communicator) : "create: " + communicator.error().what;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return words;
}

/// A configuration of these settings, such as {"GYRE_TRANSPORT=shm"}.
inline Config configured(const std::vector<std::string>& settings) {
  auto config = Config::from(settings);
  if (!config) throw std::runtime_error(config.error().what);
  return *std::move(config);
}
inline RankConfig all_configured(std::vector<std::string> settings) {
  return [settings = std::move(settings)](Rank) { return configured(settings); };
}

}  // namespace gyre::test
