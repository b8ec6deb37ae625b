// Ownership of C handles: one owner from the line that creates a handle; destruction in reverse order of creation.
#pragma once
#include <unistd.h>

#include <memory>
#include <utility>

namespace gyre {

template <class T, auto close>
struct Closer {
  void operator()(T* p) const { close(p); }
};
/// Owner of a handle that is a pointer, closed by `close`.
template <class T, auto close>
using Unique = std::unique_ptr<T, Closer<T, close>>;

/// Owner of a file descriptor; -1: none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace gyre
