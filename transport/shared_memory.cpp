#include "transport/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/text.h"
#include "transport/fields.h"

namespace gyre::transport {
namespace {

struct Header {
  char magic[8];
  uint64_t secret;
  uint64_t bytes;
};
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr char magic[8] = {'g', 'y', 'r', 'e', 's', 'h', 'm', '1'};

Result<std::byte*> map(int fd, size_t offset, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return Error{Code::system, fmt::format("shm: cannot map {} bytes: {}", bytes, errno_text(errno))};
  return static_cast<std::byte*>(memory);
}

// "pid:fd:secret:bytes", all in hexadecimal.
struct Address {
  uint64_t pid, fd, secret, bytes;
};

// What the address names, and how long it is, once it is sure that it is this.
Result<std::pair<UniqueFd, size_t>> open_file(std::string_view text, size_t least_bytes) {
  Address address{};
  if (!parse_fields(text, {&address.pid, &address.fd, &address.secret, &address.bytes}))
    return Error{Code::remote, fmt::format("shm: '{}' is not an address of shared memory", text)};
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.fd);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return Error{Code::remote, fmt::format("shm: cannot open {} (memory of process {}): {}", path, address.pid, errno_text(errno))};
  struct stat status {};
  Header header{};
  const bool ours = fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && static_cast<uint64_t>(status.st_size) == address.bytes &&
                    address.bytes >= least_bytes && (fcntl(fd.get(), F_GET_SEALS) & seals) == seals &&
                    pread(fd.get(), &header, sizeof header, 0) == sizeof header && std::memcmp(header.magic, magic, sizeof magic) == 0 &&
                    header.secret == address.secret && header.bytes == address.bytes;
  if (ours) return std::pair(std::move(fd), size_t{address.bytes});
  return Error{Code::remote, fmt::format("shm: {} is not the peer's memory (another container's process number?)", path)};
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(size_t bytes) {
  const size_t mapped = header_bytes + bytes;
  UniqueFd fd(memfd_create("gyre", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Error{Code::system, fmt::format("shm: memfd_create: {}", errno_text(errno))};
  if (ftruncate(fd.get(), static_cast<off_t>(mapped)) != 0)
    return Error{Code::system, fmt::format("shm: {} bytes: {}", mapped, errno_text(errno))};
  // A file that shrank would be a bus error in all that have mapped it.
  if (fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return Error{Code::system, fmt::format("shm: cannot seal: {}", errno_text(errno))};
  std::byte* base = GYRE_TRY(map(fd.get(), 0, mapped));
  Header header{{}, 0, mapped};
  std::memcpy(header.magic, magic, sizeof magic);
  if (getrandom(&header.secret, sizeof header.secret, 0) != sizeof header.secret) header.secret = reinterpret_cast<uintptr_t>(base);
  std::memcpy(base, &header, sizeof header);
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(fd), base, mapped, header_bytes));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::open(std::string_view address) {
  const auto [fd, bytes] = GYRE_TRY(open_file(address, header_bytes));
  std::byte* base = GYRE_TRY(map(fd.get(), 0, bytes));
  return std::unique_ptr<SharedMemory>(new SharedMemory(UniqueFd(), base, bytes, header_bytes));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::open_part(std::string_view address, size_t offset, size_t bytes) {
  const auto [fd, all] = GYRE_TRY(open_file(address, header_bytes));
  if (bytes == 0 || bytes > all - header_bytes || offset > all - header_bytes - bytes || offset % header_bytes != 0)
    return Error{Code::remote, fmt::format("shm: {} bytes from {} on are not in a memory of {}", bytes, offset, all - header_bytes)};
  std::byte* base = GYRE_TRY(map(fd.get(), header_bytes + offset, bytes));
  return std::unique_ptr<SharedMemory>(new SharedMemory(UniqueFd(), base, bytes, 0));
}

SharedMemory::~SharedMemory() { munmap(base_, mapped_); }

std::string SharedMemory::address() const {
  Header header{};
  std::memcpy(&header, base_, sizeof header);
  return fmt::format("{:x}:{:x}:{:x}:{:x}", getpid(), fd_.get(), header.secret, mapped_);
}

}  // namespace gyre::transport
