// One transport being joined with the peers that want it: all ranks do this together, one transport after the other.
#pragma once
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "engine/landing.h"
#include "transport/bootstrap.h"
#include "transport/transport.h"

namespace gyre::engine {

/// One transport of this rank. Members are in order of creation, so that endpoints go first.
struct Backend {
  transport::Device device;
  std::unique_ptr<transport::Worker> worker;
  std::unique_ptr<transport::Listener> listener;
  std::unique_ptr<Landing> landing;                             ///< of messages of a GPU's; null: they go by memory of the host
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints;  ///< [channel * ranks + peer]; null: not joined by this
};

class Joining {
 public:
  /// `wanted`: by peer; both sides of a pair want it or neither. `ports`: as transport::open_worker()'s.
  Joining(transport::Bootstrap&, const Config&, std::vector<bool> wanted, std::span<const std::string> ports = {});

  /// Called by all ranks, those that want nobody included. A pair that could not be joined has no endpoints, and reason() says why.
  Result<Backend> run(const transport::Device&, const transport::Slots&);
  const std::string& reason(size_t peer) const { return reasons_[peer]; }

 private:
  using Clock = std::chrono::steady_clock;

  Status open(const transport::Device&, const transport::Slots&);
  std::string connect_down(const std::vector<std::string>& addresses);
  bool joined(size_t peer);
  bool settled(const std::vector<std::string>& attempts);
  Status accept();
  void place_arrivals();
  Status keep_common();
  std::unique_ptr<transport::Endpoint>& endpoint(size_t channel, size_t peer) { return backend_.endpoints[channel * ranks_ + peer]; }

  transport::Bootstrap& bootstrap_;
  const Config& config_;
  size_t ranks_;
  size_t own_;
  size_t channels_;
  std::vector<bool> wanted_;
  std::span<const std::string> ports_;
  std::vector<std::string> reasons_;  // why a peer can't be joined
  Backend backend_;
  std::vector<std::unique_ptr<transport::Endpoint>> arrivals_;
  size_t failed_arrivals_ = 0;  // of peers whose names are not known
};

}  // namespace gyre::engine
