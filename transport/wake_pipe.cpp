#include "transport/wake_pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdint>

#include "base/text.h"

namespace gyre::transport {
namespace {

uint64_t pipe_number(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) ? status.st_ino : 0;
}

// "pid:fd:inode", all in hexadecimal.
struct PipeAddress {
  uint64_t pid = 0, fd = 0, number = 0;
};
bool parse(std::string_view text, PipeAddress& address) {
  for (uint64_t* field : {&address.pid, &address.fd, &address.number}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *field, 16);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with(':')) text.remove_prefix(1);
  }
  return text.empty() && address.number != 0;
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
  PipeAddress address;
  if (!parse(text, address)) return Error{Code::remote, fmt::format("'{}' is not a pipe's address", text)};
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.fd);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return Error{Code::remote, fmt::format("cannot open {} (a pipe of process {}): {}", path, address.pid, errno_text(errno))};
  if (pipe_number(fd.get()) != address.number) return Error{Code::remote, fmt::format("{} is not the peer's pipe", path)};
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
