#include "transport/wake_pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "base/text.h"
#include "transport/fields.h"

namespace gyre::transport {
namespace {

uint64_t pipe_number(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) ? status.st_ino : 0;
}

}  // namespace

Result<WakePipe> WakePipe::create() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Error{Code::system, "pipe: " + errno_text(errno)};
  return WakePipe(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

std::string WakePipe::address() const { return fmt::format("{:x}:{:x}:{:x}", getpid(), read_.get(), pipe_number(read_.get())); }

// For reading too, since who writes to a pipe that nobody reads gets a signal that ends him.
Result<WakePipe> WakePipe::open(std::string_view text) {
  uint64_t pid = 0, number_of_fd = 0, inode = 0;
  if (!parse_fields(text, {&pid, &number_of_fd, &inode}) || inode == 0)
    return Error{Code::remote, fmt::format("'{}' is not a pipe's address", text)};
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, number_of_fd);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return Error{Code::remote, fmt::format("cannot open {} (a pipe of process {}): {}", path, pid, errno_text(errno))};
  if (pipe_number(fd.get()) != inode) return Error{Code::remote, fmt::format("{} is not the peer's pipe", path)};
  return WakePipe({}, std::move(fd));
}

void WakePipe::wake() const {
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(write_.get(), &byte, 1);  // one that is full is ready
}

void WakePipe::drain() const {
  char bytes[64];
  while (::read(read_.get(), bytes, sizeof bytes) == sizeof bytes) {
  }
}

}  // namespace gyre::transport
