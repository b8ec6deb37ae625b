#include "plugin/handle.h"

#include <cstring>

#include "base/hash.h"

namespace gyre::plugin {
namespace {

constexpr std::array<char, 8> handle_magic{'g', 'y', 'r', 'e', 'n', 'e', 't', 1};

struct Layout {
  std::array<char, 8> magic = handle_magic;
  Cookie cookie{};
  uint16_t family = 0, port = 0;
  uint32_t scope = 0;
  std::array<uint8_t, 16> address{};
  uint64_t checksum = 0, attempt = 0;
  std::array<char, 64> zero{};

  uint64_t sum() const {
    std::array<char, 48> bytes;
    std::memcpy(bytes.data(), this, bytes.size());
    return fnv1a({bytes.data(), bytes.size()});
  }
};
static_assert(sizeof(Layout) == handle_bytes && offsetof(Layout, checksum) == 48 && offsetof(Layout, attempt) == 56);

Layout layout_of(Handle handle) {
  Layout layout;
  std::memcpy(&layout, handle.data(), sizeof layout);
  return layout;
}

}  // namespace

void write_handle(Handle handle, const HandleContent& content) {
  Layout layout;
  layout.cookie = content.cookie;
  layout.family = content.address.bytes.ss_family;
  if (layout.family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &content.address.bytes, sizeof v6);
    layout.port = v6.sin6_port;
    layout.scope = v6.sin6_scope_id;
    std::memcpy(layout.address.data(), &v6.sin6_addr, 16);
  } else {
    sockaddr_in v4;
    std::memcpy(&v4, &content.address.bytes, sizeof v4);
    layout.port = v4.sin_port;
    std::memcpy(layout.address.data(), &v4.sin_addr, 4);
  }
  layout.checksum = layout.sum();
  std::memcpy(handle.data(), &layout, sizeof layout);
}

Result<HandleContent> read_handle(Handle handle) {
  const Layout layout = layout_of(handle);
  const bool known = layout.magic == handle_magic && layout.checksum == layout.sum();
  if (!known || (layout.family != AF_INET && layout.family != AF_INET6))
    return Error{Code::invalid_usage, "the handle is not of this version of gyre's net plugin; do all ranks use the same plugin?"};
  HandleContent content;
  content.cookie = layout.cookie;
  auto& address = content.address;
  if (layout.family == AF_INET6) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = layout.port;
    v6.sin6_scope_id = layout.scope;
    std::memcpy(&v6.sin6_addr, layout.address.data(), 16);
    std::memcpy(&address.bytes, &v6, address.length = sizeof v6);
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = layout.port;
    std::memcpy(&v4.sin_addr, layout.address.data(), 4);
    std::memcpy(&address.bytes, &v4, address.length = sizeof v4);
  }
  return content;
}

uint64_t attempt_of(Handle handle) { return layout_of(handle).attempt; }

void note_attempt(Handle handle, uint64_t attempt) { std::memcpy(handle.data() + offsetof(Layout, attempt), &attempt, sizeof attempt); }

}  // namespace gyre::plugin
