// Messages that their receiver reads where they lie, in the sender's shared heap: what travels in their place, and on the receiver's side
// the segments of that heap that are mapped for it. One of each for a direction of a connection; used by one thread.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "transport/shared_heap.h"

namespace gyre::transport {

struct Loan {
  uint64_t segment = 0;
  uint64_t offset = 0;    ///< in the segment, in bytes
  uint64_t gone[3] = {};  ///< segments that were lent from and are released; 0: none
};

class Lender {
 public:
  /// Where these bytes lie; none: they are not in the heap.
  std::optional<Loan> lend(const std::byte* data, size_t bytes);
  /// Where the peer opens the segment of the last loan; empty: it has heard that.
  std::string_view news() const { return news_; }

 private:
  HeapCache heap_;
  ToldSegments told_;
  std::string news_;
};

class Borrower {
 public:
  /// `bytes` of a loan in this process's memory; `news`: the lender's, in most_address_bytes. Code::remote: it is not what it says.
  Result<const std::byte*> at(const Loan&, const std::byte* news, size_t bytes);

 private:
  std::map<uint64_t, std::unique_ptr<SharedMemory>> segments_;
};

}  // namespace gyre::transport
