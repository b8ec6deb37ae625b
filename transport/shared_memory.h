// Memory shared by processes of one host: an unnamed file that lives exactly as long as someone has it open or mapped, so that nothing is
// left behind by a process that is killed. Another process opens it through the owner's /proc entry and checks a secret in it, so that a
// process number of another container, or of an older process, is never mistaken for the peer.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique.h"

namespace gyre::transport {

class SharedMemory {
 public:
  /// Zeros, page-aligned. Pages take memory when first touched.
  static Result<std::unique_ptr<SharedMemory>> create(size_t bytes);
  /// Opens what address() of its creator says. Code::remote: the process is out of reach, or the memory is not what the address says.
  static Result<std::unique_ptr<SharedMemory>> open(std::string_view address);
  /// Only `bytes` from `offset` on, whole pages.
  static Result<std::unique_ptr<SharedMemory>> open_part(std::string_view address, size_t offset, size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::string address() const;  ///< at most 80 characters; only of one that was created here
  std::byte* data() const { return base_ + before_; }
  size_t bytes() const { return mapped_ - before_; }
  /// Of a memory of so many, with what it takes besides.
  static constexpr size_t footprint(size_t bytes) { return header_bytes + bytes; }

 private:
  static constexpr size_t header_bytes = 4096;
  SharedMemory(UniqueFd fd, std::byte* base, size_t mapped, size_t before)
      : fd_(std::move(fd)), base_(base), mapped_(mapped), before_(before) {}

  UniqueFd fd_;
  std::byte* base_;
  size_t mapped_;
  size_t before_;  // bytes of the mapping that are not the user's
};

}  // namespace gyre::transport
