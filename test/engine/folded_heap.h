// More than 4 GiB of the shared heap in a few megabytes, as folded_memory.h has ordinary memory. Where peers have mapped it, that must be
// folded too: ranks are threads of this process, which so finds their mappings among its own.
#pragma once
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "test/engine/folded_memory.h"
#include "test/must.h"
#include "transport/fields.h"
#include "transport/shared_heap.h"

namespace gyre::test {

class FoldedHeap {
 public:
  FoldedHeap() : data_(static_cast<std::byte*>(must(heap().allocate(FoldedMemory::bytes)))) {
    uint64_t secret = 0, process = 0, fd = 0, size = 0;
    const std::string address = heap().address(heap().find(data_, 1)->number);
    if (!transport::parse_fields(address, {&process, &fd, &secret, &size})) throw std::runtime_error(address);
    fd_ = static_cast<int>(fd);
  }
  ~FoldedHeap() { (void)heap().release(data_); }
  FoldedHeap(const FoldedHeap&) = delete;
  FoldedHeap& operator=(const FoldedHeap&) = delete;

  std::byte* data() const { return data_; }
  /// Folds it wherever it is mapped and not folded yet; in how many places. Nobody may be using it.
  int fold() const {
    struct stat file {};
    if (::fstat(fd_, &file) != 0) throw std::system_error(errno, std::generic_category(), "fstat");
    int places = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      uintptr_t begin = 0, end = 0;
      std::string access, offset, device;
      char dash = 0;
      ino_t inode = 0;
      std::istringstream(line) >> std::hex >> begin >> dash >> end >> access >> offset >> device >> std::dec >> inode;
      if (inode != file.st_ino || end - begin != static_cast<size_t>(file.st_size)) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): as text is all that the system says of it
      FoldedMemory::fold(reinterpret_cast<std::byte*>(begin) + before, fd_, before);
      ++places;
    }
    return places;
  }

 private:
  static constexpr size_t before = transport::SharedMemory::footprint(0);  // in its file
  static transport::SharedHeap& heap() { return transport::SharedHeap::of_process(); }

  std::byte* data_;
  int fd_ = -1;
};

}  // namespace gyre::test
