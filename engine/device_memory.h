// Where a communicator's messages lie on their way. Between ranks that reach each other's GPU memory: on the sender's GPU, where the
// receiver's kernels read them, so that nothing is copied and only word of it is sent. Else on both sides, and a transport carries them:
// on the GPU where the network reaches that by itself, as each rank finds for its own side, else in pinned memory of the host. It must
// not know: streams, what is under way.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/communicator.h"
#include "engine/device_probe.h"
#include "engine/device_steps.h"
#include "engine/mapped_board.h"
#include "kernels/gpu.h"

namespace gyre::engine {

class DeviceMemory {
 public:
  /// Called by all ranks, with a communicator that has planned nothing, and from now on plans for GPUs. Where all ranks reach each other,
  /// it plans for long messages from now on, unless it was told how long they are to be.
  static Result<DeviceMemory> open(Communicator&, kernels::Gpu&);

  /// Messages to and from this rank stay on GPUs.
  bool reaches(Rank peer) const { return regions_[static_cast<size_t>(peer)] != nullptr; }
  /// All ranks so reach each other.
  bool everywhere() const { return everywhere_; }
  MessagePath path() const {
    if (!everywhere_) return MessagePath::host;
    return on_one_gpu_ ? MessagePath::one_gpu : MessagePath::gpus;
  }
  const transport::Slots& slots() const { return slots_; }
  /// Some go by pinned memory.
  bool by_host() const { return pinned_ != nullptr; }
  /// Of a connection: where the network reaches its messages; null: in pinned memory, or on the sender's GPU.
  Landing* landing(uint32_t connection) const { return carried_[connection].landing; }
  /// Where ranks leave packets, by rank, as this rank's GPU reaches it; empty: some rank can't, or kernels of ranks run in turns.
  const std::vector<kernels::PacketBuffers*>& packets() const { return packets_; }
  /// Where all ranks are of this process and on one GPU, and streams wait for flags: theirs; null: they are not.
  const std::shared_ptr<MappedBoard>& board() const { return board_; }
  bool maps() const { return board_ != nullptr; }
  /// That all ranks have for this communicator, and for no other.
  uint64_t salt() const { return salt_; }
  /// Without sums, for messages of a plan of the communicator's; none of another plan is under way.
  Staging staging(const Plan&);

 private:
  /// [connection]: which one it is of those on which the sender has places for messages, and of those of a transport on which this rank
  /// receives and sends.
  struct Places {
    std::vector<uint32_t> in, out, carried_in, carried_out;
  };
  /// Where messages begin that a transport carries, and go over other connections, too, if there is a room for all; null: there are none.
  struct Carried {
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    Landing* landing = nullptr;
  };
  Status reach(Communicator&, kernels::Gpu&);
  Status carry(Connections&, kernels::Gpu&);
  std::vector<uint32_t> carried_by(const Backend&) const;
  void land(Backend&, kernels::Gpu&);
  Result<std::unique_ptr<Landing>> land_on(kernels::Gpu&, const Backend&, const std::vector<uint32_t>& connections);
  void place(std::byte* at, const std::vector<uint32_t>& connections, Landing*);
  size_t carried_bytes(size_t connections) const;
  std::string handle_of_region(kernels::Gpu&, DeviceProbe&, size_t bytes);
  void take_packets();
  Result<bool> exchange_regions(Communicator&, kernels::Gpu&, std::optional<DeviceProbe>&, size_t bytes, const std::vector<bool>& from);
  std::string open_others(kernels::Gpu&, std::optional<DeviceProbe>&, const std::vector<std::string>& offers,
                          const std::vector<bool>& from);
  const Places& places(const schedule::Schedule&);

  Rank rank_ = 0;
  transport::Slots slots_;
  size_t carried_room_ = 0;  // for what is carried one way, on all connections together; 0: each has its slots
  std::vector<bool> near_;   // [peer]
  kernels::GpuMemory region_, pinned_;
  std::vector<Landing::Region> landed_;
  /// [peer]: theirs as this rank's GPU reaches it, behind the packets; null: not both reach each other's
  std::vector<std::byte*> regions_;
  std::vector<Carried> carried_;  // [connection]
  std::vector<kernels::PacketBuffers*> packets_;
  uint64_t salt_ = 0;
  bool everywhere_ = false;
  bool on_one_gpu_ = true;  ///< as far as regions are reached
  bool in_turns_ = false;   ///< as kernels::ReachedMemory
  bool in_process_ = true;  ///< the same
  std::shared_ptr<MappedBoard> board_;
  std::map<const schedule::Schedule*, Places> places_;
};

}  // namespace gyre::engine
