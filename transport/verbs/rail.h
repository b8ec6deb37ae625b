// One port of one RDMA device, opened: what a worker's connections over it share. Queue pairs are made and joined here. Used by the
// worker's thread, but registration, which is for any.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "transport/verbs/api.h"
#include "transport/verbs/gid.h"
#include "transport/verbs/options.h"

namespace gyre::transport::verbs {

/// A queue pair's end as the peer must know it. Bytes as they are sent.
struct PairCard {
  std::array<uint8_t, 16> gid{};
  uint32_t number = 0;
  uint32_t first_packet = 0;
  uint16_t lid = 0;
  uint8_t mtu = 0;        ///< ibv_mtu
  uint8_t link_layer = 0; ///< IBV_LINK_LAYER_...
};

class Rail {
 public:
  /// `name` is the device's ("mlx5_0").
  /// The address is chosen where the port is Ethernet, by NCCL's variables and what `sysfs` shows.
  static Result<std::unique_ptr<Rail>> open(const std::string& name, uint8_t port, PathOptions, const std::string& sysfs = "/sys");

  const std::string& name() const { return name_; }  ///< "mlx5_0:1"
  ibv_cq* completions() const { return queue_.get(); }
  uint32_t max_piece() const { return port_.max_msg_sz; }

  struct Limits {
    uint32_t sends = 0, receives = 0, inlined = 0;
  };
  /// In state INIT. `inlined` is what was wanted, or what the device gives.
  Result<QueuePair> make_pair(Limits&) const;
  PairCard card(const ibv_qp&) const;
  /// To RTS. The peer does the same with our card.
  Status join(ibv_qp&, const PairCard& peer) const;
  Result<MemoryRegion> add_memory(void* data, size_t bytes) const;
  static Status break_pair(ibv_qp&);

 private:
  Rail(std::string name, uint8_t number, PathOptions options) : name_(std::move(name)), number_(number), options_(options) {}
  Status prepare(const std::string& device, const std::string& sysfs);

  std::string name_;
  uint8_t number_;
  PathOptions options_;
  Context context_;
  ibv_port_attr port_{};
  Gid gid_;
  ProtectionDomain domain_;
  CompletionQueue queue_;
};

}  // namespace gyre::transport::verbs
