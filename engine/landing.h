// Memory of a rank's GPU that a network reaches by itself: its devices read and write messages there, and the host copies nothing. A device
// tells of what it has written before the GPU can see it, so a flush comes between: one at a time for all connections, of all that had come
// when it began. Used by the worker's thread. It must not know: messages, kernels.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "transport/transport.h"

namespace gyre::engine {

class Landing {
 public:
  /// Shared, since kernels may write there when the connections are gone, and the network before there is a kernel.
  using Region = std::shared_ptr<std::byte[]>;
  /// Registers it with the worker, which outlives this; `dmabuf`: a descriptor of it, -1: there is none. Error: what keeps the network
  /// from it.
  static Result<std::unique_ptr<Landing>> open(transport::Worker&, Region, size_t bytes, int dmabuf);
  Landing(transport::Worker& worker, Region region, size_t bytes, std::unique_ptr<transport::Memory> memory)
      : worker_(worker), region_(std::move(region)), bytes_(bytes), memory_(std::move(memory)) {}
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;
  ~Landing();

  /// From now on messages of this connection of the worker's may lie there, until it ends, which it does before this.
  void admit(transport::Fifo& fifo) const { fifo.admit({region_.get(), bytes_}, *memory_); }

  /// Something has come there; by which flush the GPU can see it.
  uint64_t came(const std::byte* data) {
    latest_ = data;
    return begun_ + 1;
  }
  bool seen(uint64_t flush) {
    if (ended_ < flush) move_on();
    return ended_ >= flush;
  }
  /// Why nothing more will be seen.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  void move_on();
  void begin();
  void end();

  transport::Worker& worker_;
  Region region_;
  size_t bytes_;
  std::unique_ptr<transport::Memory> memory_;
  const std::byte* latest_ = nullptr;  // of what has come since the last flush began
  transport::Request* flush_ = nullptr;
  uint64_t begun_ = 0, ended_ = 0;  // flushes
  std::optional<Error> failure_;
};

}  // namespace gyre::engine
