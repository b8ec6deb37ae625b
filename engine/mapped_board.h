// What ranks of a process must know of each other to give memory back: a kernel of one works on the buffers of all, also after one of them
// has failed, for as long as it takes to end. It must not know: streams, messages.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/types.h"

namespace gyre::engine {

class MappedBoard {
 public:
  /// That of the ranks that give the same key, which no others do.
  static std::shared_ptr<MappedBoard> of(uint64_t key, int ranks);
  explicit MappedBoard(int ranks) : places_(static_cast<size_t>(ranks)) {}

  // From any thread.
  /// What one rank did before it is seen by another that calls this, or begin(), after. Words over shared memory order the same, but not
  /// for a sanitizer, to which two mappings are two memories.
  void meet() { const std::lock_guard lock(mutex_); }
  /// The rank is about to let a kernel go, which has ended when the flag has reached the value. False: it must not, since some rank has
  /// left.
  bool begin(Rank rank, std::shared_ptr<const uint64_t> ended, uint64_t value);
  /// No kernel is let go from now on.
  void leave();
  /// Another rank's has not ended.
  bool busy(Rank own);

 private:
  struct Place {
    std::shared_ptr<const uint64_t> ended;
    uint64_t value = 0;
  };
  std::mutex mutex_;
  std::vector<Place> places_;
  bool left_ = false;
};

}  // namespace gyre::engine
