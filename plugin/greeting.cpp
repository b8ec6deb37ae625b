#include "plugin/greeting.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/hash.h"
#include "transport/attach.h"

namespace gyre::plugin {
namespace {

constexpr size_t max_name = 256;
constexpr uint64_t protocol = 2;

uint64_t file_id(const char* path) {
  struct stat info {};
  return stat(path, &info) == 0 ? mix(info.st_dev) ^ info.st_ino : 0;
}

struct Fixed {
  uint64_t protocol, number, boot, pids, ipc, shm, probe_address, probe_value, tuner_file;
  uint32_t pid, ways;
  Cookie cookie;
};

std::string encode_fixed(const Identity& from, const Cookie& cookie, uint64_t number, uint32_t ways) {
  const Fixed fixed{protocol,           number,           from.boot,       from.pids, from.ipc, from.shm,
                    from.probe_address, from.probe_value, from.tuner_file, from.pid,  ways,     cookie};
  std::string bytes(sizeof fixed, '\0');
  std::memcpy(bytes.data(), &fixed, sizeof fixed);
  return bytes.append(from.name.substr(0, max_name));
}

struct Decoded {
  Fixed fixed;
  Identity from;
};

Result<Decoded> decode_fixed(const char* what, std::string_view bytes) {
  Decoded d{};
  Fixed& f = d.fixed;
  // First of all, since another version may have another size.
  if (bytes.size() >= sizeof f.protocol) {
    std::memcpy(&f.protocol, bytes.data(), sizeof f.protocol);
    if (f.protocol != protocol)
      return Error{Code::invalid_usage, fmt::format("it speaks version {} of the net plugin's protocol, this is {}", f.protocol, protocol)};
  }
  if (bytes.size() < sizeof f || bytes.size() > sizeof f + max_name)
    return Error{Code::remote, fmt::format("its {} has {} bytes", what, bytes.size())};
  std::memcpy(&f, bytes.data(), sizeof f);
  d.from = {f.boot, f.pids, f.ipc, f.shm, f.probe_address, f.probe_value, f.tuner_file, f.pid, std::string(bytes.substr(sizeof(Fixed)))};
  for (char& c : d.from.name) c = c >= ' ' && c <= '~' ? c : '?';  // it will be logged
  return d;
}

}  // namespace

Identity Identity::self(std::string_view device, uint64_t tuner_file) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char host[128] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '?';
  Identity self;
  self.boot = boot.empty() ? 0 : fnv1a(boot);
  self.pids = file_id("/proc/self/ns/pid");
  self.ipc = file_id("/proc/self/ns/ipc");
  self.shm = file_id("/dev/shm");
  const auto memory = transport::ProcessAddress::self();
  self.probe_address = memory.at;
  self.probe_value = memory.word;
  self.tuner_file = tuner_file;
  self.pid = static_cast<uint32_t>(memory.pid);
  self.name = fmt::format("{}, process {}, {}", host, self.pid, device);
  return self;
}

bool Identity::shares_memory_with(const Identity& other) const {
  const auto same = [](uint64_t a, uint64_t b) { return a != 0 && a == b; };
  return same(boot, other.boot) && (same(ipc, other.ipc) || same(shm, other.shm));
}

bool Identity::may_read(const Identity& other) const {
  if (!shares_memory_with(other) || pids == 0 || pids != other.pids) return false;
  return static_cast<bool>(transport::Attached::open({other.pid, other.probe_address, other.probe_value}));
}

std::string encode(const Hello& hello) { return encode_fixed(hello.from, hello.cookie, hello.number, 0); }
std::string encode(const Offer& offer) { return encode_fixed(offer.from, {}, 0, offer.ways); }

Result<Hello> decode_hello(std::string_view bytes) {
  auto d = GYRE_TRY(decode_fixed("hello", bytes));
  return Hello{d.fixed.cookie, d.fixed.number, std::move(d.from)};
}

Result<Offer> decode_offer(std::string_view bytes) {
  auto d = GYRE_TRY(decode_fixed("offer", bytes));
  return Offer{d.fixed.ways, std::move(d.from)};
}

std::string encode_refusal(WayKind way, std::string_view why) {
  std::string bytes(1, static_cast<char>(way));
  return bytes.append(why);
}

std::optional<WayKind> decode_way(std::string_view& bytes) {
  if (bytes.empty() || static_cast<unsigned char>(bytes.front()) >= way_kinds) return std::nullopt;
  const auto way = static_cast<WayKind>(bytes.front());
  bytes.remove_prefix(1);
  return way;
}

}  // namespace gyre::plugin
