// Which of the peers' memory this rank has mapped, and what a rank must tell the others so that they can map its own. Between ranks of one
// host, for one communicator. Used by one thread.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "base/types.h"
#include "transport/shared_heap.h"

namespace gyre::engine {

/// What peers have not heard yet: segments that they will need, and those that are gone.
struct HeapNews {
  static constexpr size_t most = 8;  ///< of each in one message; the rest waits
  struct New {
    uint64_t segment;
    uint64_t begin;  ///< its address in its owner's process
    char address[transport::most_address_bytes];
  };
  uint32_t added_count = 0;
  uint32_t gone_count = 0;
  New added[most];
  uint64_t gone[most];
};

class DirectMemory {
 public:
  explicit DirectMemory(int ranks) : peers_(static_cast<size_t>(ranks)) {}

  /// The segment of this rank's heap in which its memory lies; 0: none.
  uint64_t segment(const void* data, size_t bytes);
  /// Writes the news that peers must know to map these segments (0: none), and which are gone; false where there are none.
  bool tell(uint64_t a, uint64_t b, HeapNews& news);

  /// Takes down what a peer tells of, and lets go of what is gone.
  void hear(Rank peer, const HeapNews& news);
  /// Where a peer's memory is in this process. It is mapped when it is first used: only then is it sure that the peer keeps it.
  Result<std::byte*> at(Rank peer, uint64_t segment, uint64_t address, size_t bytes);

 private:
  struct Known {
    uint64_t begin = 0;
    std::string address;
    std::unique_ptr<transport::SharedMemory> memory;  // null: not used yet
  };

  transport::HeapCache heap_;
  transport::ToldSegments told_;
  std::vector<std::map<uint64_t, Known>> peers_;  // by segment
};

}  // namespace gyre::engine
