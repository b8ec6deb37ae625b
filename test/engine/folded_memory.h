// More than 4 GiB of addresses in a few megabytes: the same memory again and again, but for an end of its own. What is read or written
// there must be the same in each fold, and so tells an address from one that is 4 GiB away, which lies elsewhere in a fold; and what should
// have come to the end and has not is missing there.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace gyre::test {

class FoldedMemory {
 public:
  static constexpr size_t page_bytes = 4096;
  static constexpr size_t fold_bytes = 769 * page_bytes;  // a prime number of pages, that caches hold
  static constexpr size_t end_bytes = size_t{2} << 20;
  static constexpr size_t bytes = (size_t{4} << 30) + (size_t{32} << 20);
  static constexpr size_t folded_bytes = bytes - end_bytes;
  static_assert((size_t{4} << 30) % fold_bytes != 0 && (size_t{2} << 30) % fold_bytes != 0);

  FoldedMemory() : fd_(::memfd_create("folded", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::ftruncate(fd_, fold_bytes) != 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    // Addresses only, which count as no memory even where the kernel promises no more than there is.
    data_ = map(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    fold(data_, fd_, 0);
    map(data_ + folded_bytes, end_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
  }
  ~FoldedMemory() {
    ::munmap(data_, bytes);
    ::close(fd_);
  }
  FoldedMemory(const FoldedMemory&) = delete;
  FoldedMemory& operator=(const FoldedMemory&) = delete;

  std::byte* data() const { return data_; }
  /// Of so many bytes of addresses all but the end: the fold that begins there in the file, again and again.
  static void fold(std::byte* data, int fd, size_t begin) {
    for (size_t at = 0; at < folded_bytes; at += fold_bytes)
      map(data + at, std::min(fold_bytes, folded_bytes - at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, begin);
  }
  /// The first offsets of all pages that differ: of one fold, and of the end.
  template <class Page>
  static void for_pages(Page page) {
    for (size_t at = 0; at < fold_bytes; at += page_bytes) page(at);
    for (size_t at = folded_bytes; at < bytes; at += page_bytes) page(at);
  }

 private:
  static std::byte* map(std::byte* at, size_t size, int access, int flags, int fd, size_t begin = 0) {
    void* mapped = ::mmap(at, size, access, flags, fd, static_cast<off_t>(begin));
    if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return static_cast<std::byte*>(mapped);
  }

  int fd_;
  std::byte* data_ = nullptr;
};

}  // namespace gyre::test
