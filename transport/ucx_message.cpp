#include "transport/ucx_message.h"

#include <fmt/format.h>

#include <cstring>

namespace gyre::transport::ucx {
namespace {

constexpr uint32_t magic = 0x58555947;  // "GYUX", and the version of the format: change it with the format

struct Header {
  uint32_t magic;
  uint8_t kind, name_bytes, hello_bytes, unwatched;
  uint32_t id, credits;
  uint64_t slot_bytes, host;
  uint32_t process, address_bytes, checksum, zero;
};
static_assert(sizeof(Header) == header_bytes);

// FNV-1a. Against accidents (a wrong port, a cut message), not against an attacker.
uint32_t hash(uint32_t state, std::string_view bytes) {
  for (const char c : bytes) state = (state ^ static_cast<uint8_t>(c)) * 16777619u;
  return state;
}

uint32_t checksum(Header header, std::string_view payload) {
  header.checksum = 0;
  char bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  return hash(hash(2166136261u, {bytes, sizeof bytes}), payload);
}

}  // namespace

Result<std::string> encode(const Message& m) {
  if (m.hello.size() > max_hello_bytes) return Error{Code::invalid_argument, fmt::format("hello of {} bytes, at most 64", m.hello.size())};
  if (m.worker_address.size() > max_address_bytes)
    return Error{Code::internal, fmt::format("UCX worker address of {} bytes, at most {}", m.worker_address.size(), max_address_bytes)};
  const std::string_view name = std::string_view(m.name).substr(0, max_name_bytes);
  Header header{magic,
                static_cast<uint8_t>(m.kind),
                static_cast<uint8_t>(name.size()),
                static_cast<uint8_t>(m.hello.size()),
                m.unwatched,
                m.id,
                m.slots.credits,
                m.slots.bytes,
                m.host,
                m.process,
                static_cast<uint32_t>(m.worker_address.size()),
                0,
                0};
  std::string bytes(sizeof header, '\0');
  bytes.append(name).append(m.hello).append(m.worker_address);
  header.checksum = checksum(header, std::string_view(bytes).substr(sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

Result<Message> decode(MessageKind expected, std::string_view bytes) {
  const auto refuse = [&](std::string_view why) {
    return Error{Code::invalid_argument, fmt::format("not a message of gyre's UCX transport ({} bytes): {}", bytes.size(), why)};
  };
  Header h{};
  if (bytes.size() < sizeof h) return refuse("shorter than a header");
  std::memcpy(&h, bytes.data(), sizeof h);
  const auto payload = bytes.substr(sizeof h);
  if (h.magic != magic) return refuse("wrong magic or version");
  if (h.kind != static_cast<uint8_t>(expected)) return refuse("of another kind");
  if (h.hello_bytes > max_hello_bytes || h.address_bytes > max_address_bytes) return refuse("a length is too large");
  if (payload.size() != size_t{h.name_bytes} + h.hello_bytes + h.address_bytes) return refuse("lengths do not add up");
  if (h.checksum != checksum(h, payload)) return refuse("wrong checksum");
  if (h.id >= max_id) return refuse("id too large");
  if (h.address_bytes == 0 && expected != MessageKind::reply) return refuse("no worker address");
  return Message{expected,
                 h.id,
                 {h.credits, h.slot_bytes},
                 h.unwatched != 0,
                 h.host,
                 h.process,
                 std::string(payload.substr(0, h.name_bytes)),
                 std::string(payload.substr(h.name_bytes, h.hello_bytes)),
                 std::string(payload.substr(size_t{h.name_bytes} + h.hello_bytes))};
}

}  // namespace gyre::transport::ucx
