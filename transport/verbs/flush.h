// A NIC that writes into a GPU's memory tells of the end of a write before the GPU can see it. A read by the same NIC from that memory goes
// behind the writes, and is answered when they are done. So each rail has a queue pair that is joined to itself, made when it is first
// needed, and a flush is a read of a few bytes by each rail whose port is up: any of them may have written. Rails that have failed are left
// out: what they wrote, they wrote before their failure was found, which takes longer than any write on PCI. Used by the worker's thread.
// Not run on hardware.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/verbs/registered.h"

namespace gyre::transport::verbs {

class Flushes {
 public:
  /// The rails outlive it.
  explicit Flushes(std::span<Rail* const> rails) : rails_(rails) {}
  Flushes(const Flushes&) = delete;
  Flushes& operator=(const Flushes&) = delete;

  /// Done when what was received at `data`, which lies in the memory, can be seen by its GPU. The error says why it can't be begun.
  Result<Request*> start(const Registered&, const std::byte* data);
  /// Also of one that is not done, on whose answers nobody waits any more.
  void release(Request*);
  /// How many reads have ended.
  unsigned progress() { return under_way_ > 0 ? read_completions() : 0; }

 private:
  struct Flush : Request {
    uint8_t reading = 0;  // rails, that have not answered
    bool read = false;    // one has
    bool in_use = false;
    std::string why;
  };
  struct Loop {  // of a rail to itself
    CompletionQueue queue;
    MemoryRegion target;
    QueuePair pair;
    uint32_t reading = 0;
    bool broken = false;
  };
  static constexpr uint32_t capacity = 512;  // under way; NCCL has 32 for each connection, and hardly more than one at a time

  Status make(Loop&, const Rail&);
  Status read(size_t rail, const Registered&, const std::byte* data, uint64_t flush);
  void ended(Loop&, const Rail&, const ibv_wc&);

  const std::span<Rail* const> rails_;
  std::array<uint64_t, 1> target_{};  // what is read is of no interest
  std::vector<Loop> loops_;
  std::vector<Flush> flushes_;
  unsigned read_completions();
  unsigned under_way_ = 0;
};

}  // namespace gyre::transport::verbs
