// One port of one RDMA device, opened: what a worker's connections over it share. Queue pairs are made and joined here. Used by the
// worker's thread, but registration, which is for any. Its port's state and address are as they were read last: what changes later is told
// by events(), and holds for queue pairs that are made from then on.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "transport/verbs/api.h"
#include "transport/verbs/events.h"
#include "transport/verbs/options.h"
#include "transport/verbs/port.h"
#include "transport/verbs/wire.h"

namespace gyre::transport::verbs {

class Path;

class Rail {
 public:
  /// `name` is the device's ("mlx5_0").
  /// The address is chosen where the port is Ethernet, by NCCL's variables and what `sysfs` shows.
  static Result<std::unique_ptr<Rail>> open(const std::string& name, uint8_t port, PathOptions, const std::string& sysfs = "/sys");

  const std::string& name() const { return name_; }  ///< "mlx5_0:1"
  /// Null: there are no more. A path that comes back may add one.
  ibv_cq* completions(size_t queue) const { return polled_[queue]; }
  uint32_t max_piece() const { return port_.attributes.max_msg_sz; }
  const PathOptions& options() const { return options_; }
  int mbit_per_s() const { return port_.mbit_per_s; }  ///< 0: unknown
  uint16_t lid() const { return port_.attributes.lid; }
  std::string address() const;   ///< "RoCE v2 10.0.0.1", "InfiniBand LID 7"
  std::string describe() const;  ///< "mlx5_0:1 (100000 Mbit/s, RoCE v2 10.0.0.1, index 3)"
  /// Packets of a write may pass each other.
  bool adaptive_routing() const { return options_.adaptive_routing.value_or(!port_.ethernet()); }

  /// What the device has told since the last call. Never blocks. Where a port or its addresses have changed, refresh() was called.
  std::vector<RailEvent> events();
  /// Reads the port anew. An error: it is not active, or no address fits, and all stays as it was.
  Status refresh();
  bool up() const { return up_; }  ///< as far as events() and refresh() have told

  struct Limits {
    uint32_t sends = 0, receives = 0, inlined = 0;
  };
  struct Pair {
    QueuePair pair;
    uint64_t name = 0;  ///< which its completions carry above three bits that are the path's
  };
  /// In state INIT. `inlined` is what was wanted, or what the device gives. The path is told of its completions, null: nobody.
  Result<Pair> make_pair(Path*, Limits&);
  /// It is being closed. Completions may come when it is gone, and are nobody's.
  void forget(uint64_t name);
  Path* find(uint64_t id) const {
    const auto slot = static_cast<uint32_t>(id) >> 3U;
    return slot < paths_.size() && (paths_[slot].name ^ id) < 8 ? paths_[slot].path : nullptr;
  }
  /// The same for other purposes than a connection's, told of by this queue.
  Result<QueuePair> make_pair_on(ibv_cq*, Limits&) const;
  Result<CompletionQueue> make_queue(int entries) const;
  PairCard card(const ibv_qp&) const;
  /// To RTS. The peer does the same with our card.
  Status join(ibv_qp&, const PairCard& peer) const;
  /// InfiniBand: by LID within a subnet, by a global route to another or where the port demands it. RoCE: by address.
  ibv_ah_attr address_of(const PairCard& peer) const;
  ibv_pd* domain() const { return domain_.get(); }
  static Status break_pair(ibv_qp&);

 private:
  struct Named {
    uint64_t name = 0;  // 31..3 the place in paths_, 63..32 how often it was taken
    Path* path = nullptr;
    size_t queue = 0;
    uint32_t room = 0;
  };
  Result<size_t> queue_with(uint32_t room);
  uint64_t enter(Path*, size_t queue, uint32_t room);

  Rail(std::string device, uint8_t number, PathOptions, std::string sysfs);
  Status prepare();

  const std::string device_, name_, sysfs_;
  uint8_t number_;
  PathOptions options_;
  Context context_;
  ibv_device_attr device_limits_{};
  Port port_;
  uint16_t pkey_index_ = 0;
  bool up_ = true;
  ProtectionDomain domain_;
  std::vector<std::pair<CompletionQueue, uint32_t>> queues_;  // with the room that is left
  std::vector<ibv_cq*> polled_{nullptr};                      // these, and null
  std::vector<Named> paths_;
};

}  // namespace gyre::transport::verbs
