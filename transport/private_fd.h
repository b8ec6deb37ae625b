// A descriptor that forked children do not keep: while one holds a socket of ours, the kernel does not tell the peer of our end. PyTorch's
// loaders are such children, and outlive a rank that is killed.
#pragma once
#include "base/unique.h"

namespace gyre::transport {

class PrivateFd {
 public:
  PrivateFd() = default;
  explicit PrivateFd(UniqueFd);
  PrivateFd(PrivateFd&& other) noexcept : fd_(std::move(other.fd_)) {}
  PrivateFd& operator=(PrivateFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~PrivateFd();
  int get() const { return fd_.get(); }
  explicit operator bool() const { return bool(fd_); }

 private:
  UniqueFd fd_;
};

}  // namespace gyre::transport
